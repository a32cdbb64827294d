#!/usr/bin/python3 -Bu
# What is not a rate: the answer for an event that another session holds, the memory of a long transaction, and the
# locks of one with many claims.

import argparse
import threading
import time

import psycopg2

from figures import median_of, verdict
from server import private_kb, process_of

LOOP = """DO $$
DECLARE
    go_on boolean;
BEGIN
    FOR i IN {first} .. {last} LOOP
        SELECT acquired INTO go_on FROM idem_acquire('webhook', 'charge-wallet', 'evt_{name}_' || i);
        IF NOT go_on THEN
            RAISE 'event % was not acquired', i;
        END IF;
        {settle}
    END LOOP;
END $$"""
SETTLE = "PERFORM idem_commit('webhook', 'charge-wallet', 'evt_{name}_' || i);"


def connect():
    connection = psycopg2.connect("")
    return connection, connection.cursor()


def open_event():
    """A duplicate whose first delivery is still being worked on."""
    holder, holder_cursor = connect()
    other, other_cursor = connect()
    insert = """INSERT INTO processed_event_c (handler, event_id, status, created_at, expires_at)
                VALUES ('charge-wallet', 'evt_open', 'processing', now(), now() + '15 minutes')
                ON CONFLICT DO NOTHING"""
    acquire = "SELECT outcome FROM idem_acquire('webhook', 'charge-wallet', 'evt_open')"
    holder_cursor.execute(insert)
    holder_cursor.execute(acquire)

    latencies, outcomes = [], set()
    for _ in range(200):
        start = time.perf_counter()
        other_cursor.execute(acquire)
        latencies.append((time.perf_counter() - start) * 1e6)
        outcomes.add(other_cursor.fetchone()[0])
    print(f"idem: answers {', '.join(sorted(outcomes))} in {median_of(latencies, 0)} µs, round trip included  "
          + verdict(outcomes == {"busy"} and max(latencies) < 1e6, "busy, at once"))

    other_cursor.execute("SET lock_timeout = '1s'")
    start = time.perf_counter()
    try:
        other_cursor.execute(insert)
        answer = "no error"
    except psycopg2.errors.LockNotAvailable:
        answer = "error 55P03, lock_timeout = 1 s"
    print(f"hand-written: waits {time.perf_counter() - start:.2f} s, then {answer}")
    for connection in (other, holder):
        connection.rollback()
        connection.close()


def memory(calls):
    """One transaction with very many settled claims."""
    connection, cursor = connect()
    process = process_of(cursor)

    def contexts_kb():
        cursor.execute("SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts")
        return int(cursor.fetchone()[0])

    def loop(first, last):
        cursor.execute(LOOP.format(first=first, last=last, name="memory", settle=SETTLE.format(name="memory")))

    loop(1, 10_000)
    contexts_before, private_before = contexts_kb(), private_kb(process)
    worker = threading.Thread(target=loop, args=(10_001, 10_000 + calls))
    peak = private_before
    worker.start()
    while worker.is_alive():
        worker.join(0.05)
        peak = max(peak, private_kb(process))
    contexts_after = contexts_kb()
    connection.rollback()
    connection.close()
    # Half a megabyte is far below one byte a call, and above what the allocator's blocks come to.
    print(f"{calls} acquire + commit in one transaction: memory contexts {contexts_before} -> {contexts_after} kB, "
          f"private memory of the server process {private_before} kB, at most {peak} kB  "
          + verdict(peak - private_before < 512 and contexts_after - contexts_before < 512, "no growth"))


def many_claims(claims):
    """One transaction with many open claims."""
    connection, cursor = connect()
    cursor.execute("SHOW max_locks_per_transaction")
    setting = cursor.fetchone()[0]
    cursor.execute(LOOP.format(first=1, last=claims, name="many", settle=""))
    cursor.execute("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()")
    locks = cursor.fetchone()[0]
    cursor.execute("SELECT count(idem_commit('webhook', 'charge-wallet', 'evt_many_' || i)) "
                   f"FROM generate_series(1, {claims}) i")
    connection.commit()
    cursor.execute("SELECT count(*) FROM webhook WHERE event_id LIKE 'evt\\_many\\_%' AND state = 'done'")
    done = cursor.fetchone()[0]
    connection.close()
    print(f"{claims} claims open in one transaction, max_locks_per_transaction {setting}: {locks} locks held, "
          f"{done} events done after COMMIT  " + verdict(done == claims and locks < 64, "no setting raised"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1_000_000, help="calls of the memory check")
    arguments = parser.parse_args()
    open_event()
    memory(arguments.calls)
    many_claims(10_000)


if __name__ == "__main__":
    main()
