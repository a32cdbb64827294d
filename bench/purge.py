#!/usr/bin/python3 -Bu
# Time and WAL of forgetting: idem seals a generation, later retires it and empties its slot by TRUNCATE; by hand the
# same events are deleted in batches and the table is vacuumed. Tables are made anew in each turn, and a checkpoint
# comes before each measurement, so that all pay for full page images alike.

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from figures import ratios, median_of, verdict
from fill import fill_by_hand, fill_generation
from server import cpu_ns, process_of, session, set_setting, value, wal_position

# By ctid, since that spares a look-up in the primary key.
DELETE = """DELETE FROM {table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {table} WHERE expires_at < now() ORDER BY expires_at LIMIT {batch}))"""

ENOUGH = 5_000_000      # events for which there are targets


def delete_in_batches(cursor, table, batch):
    while True:
        cursor.execute(DELETE.format(table=table, batch=batch))
        if cursor.rowcount < batch:
            return


def cost(cursor, use):
    """Seconds, bytes of WAL, and seconds of the server process's CPU."""
    cursor.execute("CHECKPOINT")
    process = process_of(cursor)
    wal, cpu, start = wal_position(cursor), cpu_ns(process), time.perf_counter()
    use()
    return time.perf_counter() - start, wal_position(cursor) - wal, (cpu_ns(process) - cpu) / 1e9


def make_ring(table, events):
    """A dedup table whose current generation holds expired events."""
    session().execute(f"SELECT idem_create_table('{table}')")
    fill_generation(table, 0, 1, events, "-31 days")


def by_hand(cursor, events, batch):
    delete = cost(cursor, lambda: delete_in_batches(cursor, "deleted", batch))
    vacuum = cost(cursor, lambda: cursor.execute("VACUUM deleted"))
    left = value(cursor, "SELECT count(*) FROM deleted")
    if left != events:
        raise SystemExit(f"{left} events are left of {events} live ones")
    return {"DELETE": delete, "VACUUM": vacuum}


def by_idem(cursor, table, verify):
    set_setting(cursor, "idem.verify_purge", "on" if verify else "off")
    sealed = cost(cursor, lambda: cursor.execute(f"CALL idem_rotate('{table}')"))
    if not value(cursor, f"SELECT filter FROM idem_generations WHERE dedup = '{table}'::regclass AND generation = 0"):
        raise SystemExit("there is no filter: idem must be preloaded, and idem.filter_memory be large enough")
    emptied = cost(cursor, lambda: cursor.execute(f"CALL idem_purge('{table}')"))
    left = value(cursor, f"SELECT count(*) FROM {table}")
    if left != 0:
        raise SystemExit(f"{left} events are left of a generation that was emptied")
    proved = "with" if verify else "without"
    return {"turn, seal, filter": sealed, f"retire, TRUNCATE, {proved} the proving scan": emptied}


def one_turn(cursor, arguments):
    cursor.execute("DROP TABLE IF EXISTS deleted, proved, trusted")
    cursor.execute("CALL idem_purge()")     # gives the memory of their filters back
    with ThreadPoolExecutor(max_workers=2) as pool:
        for task in [pool.submit(fill_by_hand, "deleted", 2 * arguments.events, arguments.events),
                     pool.submit(make_ring, "proved", arguments.events),
                     pool.submit(make_ring, "trusted", arguments.events)]:
            task.result()
    costs = by_idem(cursor, "proved", True)
    costs |= by_hand(cursor, arguments.events, arguments.batch)
    costs |= by_idem(cursor, "trusted", False)
    return costs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=5_000_000, help="events of the generation")
    parser.add_argument("--batch", type=int, default=10_000, help="rows that one DELETE removes")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    cursor = session()
    turns = [one_turn(cursor, arguments) for _ in range(arguments.turns)]

    print(f"{arguments.events} expired events")
    times, wal, cpu = ({name: [turn[name][part] for turn in turns] for name in turns[0]} for part in range(3))
    for name in times:
        print(f"  {name:44} {median_of(times[name], 3):>22} s {median_of(cpu[name], 3):>20} s of CPU "
              f"{median_of([w / 1024 for w in wal[name]], 0):>24} kB of WAL")

    hand_time = [sum(pair) for pair in zip(times["DELETE"], times["VACUUM"])]
    hand_wal = [sum(pair) for pair in zip(wal["DELETE"], wal["VACUUM"])]
    seal = "turn, seal, filter"
    for proved in ("with", "without"):
        name = f"retire, TRUNCATE, {proved} the proving scan"
        all_of_it = [sum(pair) for pair in zip(times[name], times[seal])]
        for what, values, target in ((f"{name}, time", ratios(hand_time, times[name]), 30),
                                     (f"{name}, WAL", ratios(hand_wal, wal[name]), 10_000),
                                     (f"{seal} and {name}, time", ratios(hand_time, all_of_it), 8)):
            # Some of what idem does costs as much for few events as for many.
            judged = arguments.events >= ENOUGH
            print(f"  by hand / {what:66} {median_of(values, 0):>20}  "
                  + (verdict(statistics.median(values) >= target, f">= {target}") if judged else ""))


if __name__ == "__main__":
    main()
