#!/usr/bin/python3 -Bu
# Makes tables with very many remembered events, of the same shape as one by one would leave them, in a fraction of the
# time: rows in bulk, and the index afterwards, its pages as full as those that grew by random keys. Called with what to
# make, such as ring_large=10000000 (idem, eight generations, the current one half as large as the others) and
# btree_large=10000000 (the same rows in one table by hand). With wal_level=minimal none of it is written to the WAL.

import sys
from concurrent.futures import ThreadPoolExecutor

from server import session, value

GENERATIONS = 8

# What one writes by hand who knows of the cost: 16 bytes as key, and no index to purge by.
BTREE = """CREATE TABLE {table} (key uuid NOT NULL, handler text COLLATE "C" NOT NULL, event_id text COLLATE "C" NOT NULL,
    status text NOT NULL, created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, result jsonb)"""

# The ids that cpu.py's loops make of numbers; by numbers they expire in the order in which they came.
EVENTS = """(SELECT 'evt_' || left(md5(i::text), 24) AS id, clock_timestamp() + '{age}' AS seen
             FROM generate_series({first}, {last}) i OFFSET 0) e"""


def run(*statements):
    """Runs statements as one transaction."""
    cursor = session()
    cursor.execute("SET maintenance_work_mem = '512MB'")
    cursor.execute("SET max_parallel_maintenance_workers = 0")
    cursor.execute("; ".join(["BEGIN", *statements, "COMMIT"]))
    cursor.connection.close()


def vacuum(table):
    """Hint bits and statistics, so that no measurement sets or gathers them."""
    cursor = session()
    cursor.execute(f"VACUUM ANALYZE {table}")
    cursor.connection.close()


def fill_generation(table, slot, first, last, age="0 days"):
    """Replaces what a slot holds by events with these numbers, in the state in which idem_accept leaves them; they came
    this long ago (a negative interval), for 30 days."""
    part = f"{table}_g{slot}"
    run(f"ALTER TABLE {part} DROP CONSTRAINT {part}_pkey",
        f"TRUNCATE TABLE ONLY {part}",
        f"""INSERT INTO {part} (key, state, attempt, first_seen_at, expires_at, failures, slot, handler, event_id)
            SELECT idem_key('charge-wallet', id), 'done', 1, seen, seen + '30 days', 0, {slot}, 'charge-wallet', id
            FROM {EVENTS.format(first=first, last=last, age=age)}""",
        f"ALTER TABLE {part} ADD PRIMARY KEY (key) WITH (fillfactor = 70)")
    vacuum(part)


def last_numbers(events):
    """The number of the last event of each generation, oldest first."""
    generation = events / (GENERATIONS - 0.5)
    return [round(generation * (g + 1)) for g in range(GENERATIONS - 1)] + [events]


def fill_ring(table, events, pool):
    cursor = session()
    cursor.execute(f"SELECT idem_create_table('{table}', generations => {GENERATIONS})")
    for g in range(GENERATIONS - 1):
        # A generation without events would be retired at once.
        cursor.execute(f"SELECT idem_accept('{table}', 'opening', '{g}')")
        cursor.execute(f"CALL idem_rotate('{table}')")
    last = last_numbers(events)
    first = [1, *(number + 1 for number in last)]
    return [pool.submit(fill_generation, table, g, first[g], last[g]) for g in range(GENERATIONS)]


def fill_btree(table, events):
    run(BTREE.format(table=table),
        f"""INSERT INTO {table}
            SELECT md5('charge-wallet:' || id)::uuid, 'charge-wallet', id, 'done', seen, seen + '30 days'
            FROM {EVENTS.format(first=1, last=events, age='0 days')}""",
        f"ALTER TABLE {table} ADD PRIMARY KEY (key) WITH (fillfactor = 70)")
    vacuum(table)


def fill_by_hand(table, events, expired):
    """The usual hand-written table, shaped like processed_event_c; the first ones are expired."""
    run(f"CREATE TABLE {table} (LIKE processed_event_c)",
        *(f"""INSERT INTO {table} SELECT 'charge-wallet', id, 'done', seen, seen + '30 days'
              FROM {EVENTS.format(first=first, last=last, age=age)}"""
          for first, last, age in ((1, expired, "-31 days"), (expired + 1, events, "0 days"))),
        f"ALTER TABLE {table} ADD PRIMARY KEY (handler, event_id) WITH (fillfactor = 70)",
        f"CREATE INDEX ON {table} (expires_at)")
    vacuum(table)


def main():
    with ThreadPoolExecutor(max_workers=2) as pool:
        tasks = []
        for argument in sys.argv[1:]:
            table, events = argument.split("=")
            if table.startswith("ring"):
                tasks += fill_ring(table, int(events), pool)
            else:
                tasks.append(pool.submit(fill_btree, table, int(events)))
        for task in tasks:
            task.result()
    cursor = session()
    print(f"filled {' '.join(sys.argv[1:])}: {value(cursor, 'SELECT pg_size_pretty(pg_database_size(current_database()))')}")


if __name__ == "__main__":
    main()
