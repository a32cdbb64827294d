#!/usr/bin/python3 -Bu
# Transactions per second of new events where few and where very many are remembered, by a server whose memory is
# limited (bench/run does that): in idem's eight generations (ring_…) and in one table with one B-tree (btree_…), as
# fill.py has made them. What matters is how much is kept of the rate among few.

import argparse
import os
import statistics

from figures import ratios, median_of
from large import prepare_filters
from server import session, tps, value
from tps import verdict_of

SCRIPTS = {
    "ring": """\\set event random(1, 9223372036854775807)
SELECT acquired FROM idem_accept('{table}', 'charge-wallet', 'evt_' || :event);""",
    "btree": """\\set event random(1, 9223372036854775807)
INSERT INTO {table} VALUES (md5('charge-wallet:' || 'evt_' || :event)::uuid, 'charge-wallet', 'evt_' || :event, 'done', now(),
    now() + '30 days') ON CONFLICT DO NOTHING;""",
}


def uncache(folder):
    """Takes the files of a stopped server out of the system's cache, where they would be charged to whoever filled it."""
    for path, _, files in os.walk(folder):
        for name in files:
            file = os.open(os.path.join(path, name), os.O_RDWR)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=15, help="length of a run")
    parser.add_argument("--drop", type=int, default=3, help="seconds left out at the start of a run")
    parser.add_argument("--warm-up", type=int, default=20, help="seconds of each table's first run, which does not count")
    parser.add_argument("--uncache", metavar="FOLDER", help="only take its files out of the system's cache")
    arguments = parser.parse_args()
    if arguments.uncache:
        return uncache(arguments.uncache)
    cursor = session()
    prepare_filters(cursor)
    print(f"database {value(cursor, 'SELECT pg_size_pretty(pg_database_size(current_database()))')}, "
          f"shared_buffers {value(cursor, 'SHOW shared_buffers')}, synchronous_commit off, {arguments.clients} clients")

    tables = [f"{kind}_{size}" for kind in SCRIPTS for size in ("small", "large")]
    rates = {table: [] for table in tables}

    def run(table, seconds):
        return tps(SCRIPTS[table.split("_")[0]].format(table=table), arguments.clients, seconds, arguments.drop)

    for table in tables:
        run(table, arguments.warm_up)
    for turn in range(arguments.turns):
        for table in tables if turn % 2 == 0 else reversed(tables):
            rates[table].append(statistics.mean(run(table, arguments.seconds)))
    for table in tables:
        print(f"  {table:12} {median_of(rates[table], 0):>24} tps")
    for above, below, target in (("ring_large", "ring_small", 0.8), ("btree_large", "btree_small", None),
                                 ("ring_large", "btree_large", None)):
        ratio = ratios(rates[above], rates[below])
        print(f"  {above} / {below:12} {median_of(ratio):>18}  {verdict_of(ratio, target) if target else ''}")


if __name__ == "__main__":
    main()
