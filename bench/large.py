#!/usr/bin/python3 -Bu
# New events where very many are remembered, in idem's eight generations (ring_…) and in one table with one B-tree
# (btree_…), as fill.py has made them of three sizes; and with --duplicates, known events of a sealed and of the current
# generation. Measured like cpu.py.

import argparse

from cpu import ACQUIRE, Comparison, Group, Side, measure, one_of, print_sides, report, take_turns
from figures import median_of, ratios
from fill import last_numbers
from server import session, value, wal_position

ACCEPT = "SELECT acquired INTO go_on FROM idem_accept('{table}', 'charge-wallet', id);"
CLAIM = """INSERT INTO {table} VALUES (md5('charge-wallet:' || id)::uuid, 'charge-wallet', id, 'done',
               clock_timestamp(), clock_timestamp() + '30 days') ON CONFLICT DO NOTHING;
           go_on := FOUND;"""

FIRST_NEW = 100_000_001     # beyond all numbers that fill.py uses


def sides_of(sizes):
    return {f"ring, {size}": ACCEPT.format(table=f"ring_{size}") for size in sizes} | {
        f"btree, {size}": CLAIM.format(table=f"btree_{size}") for size in sizes}


def prepare_filters(cursor):
    cursor.execute("CALL idem_purge()")
    missing = value(cursor, "SELECT count(*) FROM idem_generations "
                            "WHERE sealed_at IS NOT NULL AND dedup::text LIKE 'ring%' AND NOT filter")
    if missing > 0:
        raise SystemExit(f"{missing} sealed generations have no filter: idem.filter_memory is too small")


def print_sizes(cursor):
    indexes = {"ring_middle": "SELECT sum(pg_indexes_size(inhrelid)) FROM pg_inherits WHERE inhparent = %s::regclass",
               "btree_middle": "SELECT pg_indexes_size(%s)"}
    for table, query in indexes.items():
        print(f"indexes of {table}: {value(cursor, query, (table,)) / 2 ** 20:.0f} MB, ", end="")
    print(f"shared_buffers {value(cursor, 'SHOW shared_buffers')}, "
          f"filters {value(cursor, 'SELECT pg_size_pretty(sum(filter_bytes)) FROM idem_tables')}")


def growth(arguments, observer):
    sides = sides_of(["small", "middle", "large"])
    measure(Group("new event, by the number of remembered events", sides, [
        Comparison("ring, middle", "btree, middle", cpu_target=0.70),
        Comparison("ring, large", "btree, large", cpu_target=1.00),
        Comparison("ring, small", "btree, small"),
        Comparison("ring, large", "ring, small", cpu_target=1.25),
        Comparison("btree, large", "btree, small"),
    ], first_id=FIRST_NEW, warm_up=arguments.warm_up, lead=arguments.lead),
            arguments.calls, arguments.turns, None, observer)


def wal_after_checkpoint(arguments, observer):
    sides = {name: Side(statements) for name, statements in sides_of(["middle"]).items()}
    wal = {name: [] for name in sides}
    first = FIRST_NEW + 100_000_000
    for turn in range(arguments.checkpoints):
        for name in list(sides) if turn % 2 == 0 else reversed(sides):
            observer.execute("CHECKPOINT")
            before = wal_position(observer)
            sides[name].run(first, arguments.after_checkpoint)
            wal[name].append((wal_position(observer) - before) / arguments.after_checkpoint)
        first += arguments.after_checkpoint
    print(f"\nnew event, the first {arguments.after_checkpoint} after a checkpoint")
    for name in sides:
        print(f"  {name:24} {median_of(wal[name], 0):>22} bytes of WAL")
        sides[name].close()
    report("ring, middle / btree, middle, WAL", ratios(wal["ring, middle"], wal["btree, middle"]), 0.40)


def duplicates(arguments, observer):
    """Of events that are equally many, so that equally much is to be cached: half a generation's."""
    last = last_numbers(arguments.events)
    half = last[-1] - last[-2]
    acquire = ACQUIRE.format(table="ring_small")
    numbers = {"current": one_of(last[-2] + 1, last[-1]), "newest sealed": one_of(last[-3] + 1, last[-3] + half),
               "oldest sealed": one_of(1, half)}
    sides = {name: Side(acquire, number, "false") for name, number in numbers.items()}
    for side in sides.values():
        side.run(1, arguments.warm_up)
    print("\nduplicate, by the generation of the event")
    take_turns(sides.values(), 1, arguments.calls, arguments.turns, observer, one_of(1, half))
    print_sides(sides)
    for name in ("newest sealed", "oldest sealed"):
        report(f"{name} / current, CPU", ratios(sides[name].cpu, sides["current"].cpu), 1.40)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=4000, help="calls in a chunk")
    parser.add_argument("--turns", type=int, default=13, help="chunks of each side")
    parser.add_argument("--lead", type=int, default=12_000,
                        help="calls of new events before each chunk, which give a side the caches that others have used")
    parser.add_argument("--warm-up", type=int, default=20_000, help="calls of each side before the first chunk")
    parser.add_argument("--checkpoints", type=int, default=3)
    parser.add_argument("--after-checkpoint", type=int, default=50_000, help="events after each checkpoint")
    parser.add_argument("--duplicates", action="store_true", help="known events only")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in ring_small, for --duplicates")
    arguments = parser.parse_args()
    observer = session()
    if arguments.duplicates:
        observer.execute("CALL idem_purge('ring_small')")
        duplicates(arguments, observer)
    else:
        prepare_filters(observer)
        print_sizes(observer)
        wal_after_checkpoint(arguments, observer)
        growth(arguments, observer)


if __name__ == "__main__":
    main()
