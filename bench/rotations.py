#!/usr/bin/python3 -Bu
# A thousand turns of a ring, under load: what grows? Years of turns in minutes, so autovacuum, which is on, has to look
# as often as it would in years: every second. Sizes are looked at when the ring has turned a hundred times, as by then
# each slot was in use, and at the end.

import argparse
import statistics
import subprocess
import time

from figures import verdict
from server import private_kb, process_of, session, value

LOAD = """\\set event random(1, 9223372036854775807)
SELECT acquired FROM idem_accept('turning', 'charge-wallet', 'evt_' || :event);"""

SIZES = """SELECT relname::text, pg_total_relation_size(oid) / 1024 FROM pg_class
           WHERE oid IN ('pg_class'::regclass, 'pg_attribute'::regclass, 'pg_statistic'::regclass, 'pg_index'::regclass)
              OR relname IN ('idem_control', 'idem_generation', 'idem_purge_state') ORDER BY relname"""
TABLE_SIZE = """SELECT sum(pg_total_relation_size(inhrelid)) / 1024 FROM pg_inherits
                WHERE inhparent = 'turning'::regclass"""


def turns(cursor):
    return value(cursor, "SELECT coalesce(sum(turned), 0)::int FROM idem_purge_state WHERE dedup = 'turning'::regclass")


def turn_until(cursor, count):
    """Turns the ring as often as its events' expiry allows; returns the largest size of the table meanwhile, in kB."""
    sizes = []
    while turns(cursor) < count:
        cursor.execute("CALL idem_rotate('turning')")
        sizes.append(int(value(cursor, TABLE_SIZE)))
        time.sleep(0.02)
    return sizes


def processes(cursor):
    cursor.execute("SELECT pid, backend_type FROM pg_stat_activity WHERE application_name = 'pgbench' "
                   "OR backend_type LIKE 'idem launcher%' ORDER BY backend_start")
    return {f"{'session of pgbench' if kind == 'client backend' else kind} {pid}": private_kb(pid)
            for pid, kind in cursor.fetchall()}


def look(cursor):
    cursor.execute(SIZES)
    sizes = {f"{name}, kB": size for name, size in cursor.fetchall()}
    memory = {"session that turns the ring": private_kb(process_of(cursor)), **processes(cursor)}
    return sizes | {f"memory of {who}, kB": kb for who, kb in memory.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rotations", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=2)
    arguments = parser.parse_args()
    cursor = session()
    # Each call's warning of a ring that can't turn yet is not of interest.
    cursor.execute("SET client_min_messages = error")
    cursor.execute("SELECT idem_create_table('turning', hot_window => '1 ms', cold_window => '500 ms')")
    load = subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-c", str(arguments.clients), "-T", "86400", "-R", "2000",
                             "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            text=True)
    load.stdin.write(LOAD)
    load.stdin.close()

    start = time.perf_counter()
    turn_until(cursor, arguments.rotations // 10)
    before = look(cursor)
    half = turn_until(cursor, arguments.rotations // 2)
    rest = turn_until(cursor, arguments.rotations)
    after = look(cursor)
    took = time.perf_counter() - start
    if load.poll() is not None:
        raise SystemExit("pgbench has ended")
    load.terminate()
    cursor.execute("SELECT turned, retired, events_freed, last_error FROM idem_purge_state WHERE dedup = 'turning'::regclass")
    turned, retired, freed, error = cursor.fetchone()
    print(f"{turned} turns in {took:.0f} s, {retired} generations of {freed} events emptied, last error: {error}")

    # As the table breathes, its median is told.
    before["dedup table, median of turns so far, kB"] = round(statistics.median(half))
    after["dedup table, median of turns so far, kB"] = round(statistics.median(rest))
    print(f"  {'':58} after {arguments.rotations // 10:>5} after {arguments.rotations:>5}")
    grown = []
    for what, kb in before.items():
        print(f"  {what:58} {kb:>11} {after[what]:>11}")
        # A block of the allocator or an extension of a file is no growth; a hundredth of a kilobyte a turn would be.
        if after[what] > max(1.25 * kb, kb + 256):
            grown.append(what)
    print(f"  grown: {', '.join(grown) or 'nothing'}  " + verdict(not grown, "flat"))


if __name__ == "__main__":
    main()
