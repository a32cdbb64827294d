#!/usr/bin/python3 -Bu
# Bytes that a remembered event takes on disk, and in the memory of filters.

import argparse

from server import session, value

RESULT = '{"balance": 90, "currency": "EUR", "note": "' + "x" * 40 + '"}'


def fill(cursor, table, events, result):
    """A sealed generation of events as idem_accept leaves them, one after the other."""
    cursor.execute(f"SELECT idem_create_table('{table}')")
    cursor.execute(f"SELECT count(a.acquired) FROM generate_series(1, {events}) i, idem_accept('{table}', "
                   f"'charge-wallet', 'evt_' || left(md5(i::text), 24), result => %s::jsonb) a", (result,))
    cursor.execute(f"CALL idem_rotate('{table}')")


def print_sizes(cursor, table, events, what):
    cursor.execute("SELECT pg_relation_size(partition), pg_indexes_size(partition) FROM idem_generations "
                   f"WHERE dedup = '{table}'::regclass AND generation = 0")
    heap, indexes = (size / events for size in cursor.fetchone())
    print(f"  {what}: {heap:.0f} bytes of table and {indexes:.0f} of indexes, {heap + indexes:.0f} together")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    cursor = session()
    stored = value(cursor, "SELECT pg_column_size(%s::jsonb)", (RESULT,))
    fill(cursor, "without_result", arguments.events, None)
    fill(cursor, "with_result", arguments.events, RESULT)
    print("an event with an id of 28 bytes and a handler of 13 bytes, on disk")
    print_sizes(cursor, "without_result", arguments.events, "no result")
    print_sizes(cursor, "with_result", arguments.events, f"a result of {stored} bytes")
    filter_bytes = value(cursor, "SELECT filter_bytes FROM idem_tables WHERE dedup = 'without_result'::regclass")
    print(f"filter of a table with 8 generations, for each event of a generation: {filter_bytes / arguments.events:.1f} "
          f"bytes; for each of 7 sealed generations' events: {filter_bytes / arguments.events / 7:.1f}")


if __name__ == "__main__":
    main()
