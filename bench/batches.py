#!/usr/bin/python3 -Bu
# Server CPU of ten thousand events by one call and by as many calls; and of asking for due events in a small table and in
# one that remembers millions. Each chunk is rolled back, so that all find the same.

import argparse
import statistics

import psycopg2

from figures import ratios, median_of, verdict

SINGLE = """DO $$
DECLARE go_on boolean;
BEGIN
    FOR i IN {first} .. {first} + {count} - 1 LOOP
        SELECT acquired INTO go_on FROM idem_acquire('{table}', 'h', 'evt_' || left(md5(i::text), 24));
        {commit}
    END LOOP;
END $$"""
SINGLE_COMMIT = "PERFORM idem_commit('{table}', 'h', 'evt_' || left(md5(i::text), 24));"
MANY = """DO $$
DECLARE ids text[] := ARRAY(SELECT 'evt_' || left(md5(i::text), 24) FROM generate_series({first}, {first} + {count} - 1) i);
BEGIN
    PERFORM count(*) FROM idem_acquire_many('{table}', 'h', ids) WHERE acquired;
    {commit}
END $$"""
MANY_COMMIT = "PERFORM idem_commit_many('{table}', 'h', ids);"

FILL = """
SELECT idem_create_table('{table}', generations => 2, mode => '{mode}');
INSERT INTO {table}_g0 (key, state, attempt, first_seen_at, expires_at, failures, slot, handler, event_id)
SELECT idem_key('h', id), 'done', 1, now(), now() + interval '30 days', 0, 0, 'h', id
FROM (SELECT 'evt_' || left(md5(i::text), 24) AS id FROM generate_series(1, {known}) i) known;
"""


class Session:
    """A connection of its own for each side; its server process does nothing else."""

    def __init__(self):
        self.connection = psycopg2.connect("")
        self.cursor = self.connection.cursor()
        self.cursor.execute("SELECT pg_backend_pid()")
        self.process = self.cursor.fetchone()[0]
        self.cpu = []

    def run(self, statement):
        before = self.cpu_ns()
        self.cursor.execute(statement)
        self.cpu.append((self.cpu_ns() - before) / 1000)
        self.connection.rollback()

    def cpu_ns(self):
        with open(f"/proc/{self.process}/schedstat") as schedstat:
            return int(schedstat.read().split()[0])


def compare(title, sides, turns, over, under, target, unit):
    """Runs the sides in turns; each side is a function from the turn's number to a statement."""
    sessions = {name: Session() for name in sides}
    for turn in range(turns + 1):
        for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
            sessions[name].run(sides[name](turn))
    for session in sessions.values():
        del session.cpu[0]
    print(f"\n{title}")
    for name, session in sessions.items():
        print(f"  {name:36} {median_of([cpu / unit for cpu in session.cpu]):>22} µs CPU")
        session.connection.close()
    values = ratios(sessions[over].cpu, sessions[under].cpu)
    print(f"  {over} / {under}: {median_of(values)}  "
          + verdict(statistics.median(values) <= target, f"<= {target:.2f}"))


def fill(cursor, table, known, mode):
    cursor.execute(FILL.format(table=table, known=known, mode=mode))
    cursor.execute(f"ANALYZE {table}_g0")


def many(cursor, count, turns):
    fill(cursor, "many", 1_000_000, "transaction")

    def calls(template, commit, new):
        def statement(turn):
            first = (2_000_000 if new else 1) + turn * count
            return template.format(table="many", first=first, count=count,
                                   commit=commit.format(table="many") if new else "")
        return statement

    for new in (True, False):
        compare(f"{count} {'new events, acquired and committed' if new else 'duplicates'}, per event", {
            "single calls": calls(SINGLE, SINGLE_COMMIT, new),
            "one call": calls(MANY, MANY_COMMIT, new),
        }, turns, "one call", "single calls", 0.60, count)


def due(cursor, known, turns):
    for table, settled in (("due_small", 10_000), ("due_large", known)):
        fill(cursor, table, settled, "lease")
        cursor.execute(f"SELECT idem_receive('{table}', 'h', 'due_' || i, payload => '{{}}') FROM generate_series(1, 10000) i")
        cursor.execute("CHECKPOINT")
    compare(f"idem_due for 100 of 10000 due events, per event", {
        "10000 settled events": lambda turn: "SELECT count(*) FROM idem_due('due_small', 'h', 100)",
        f"{known} settled events": lambda turn: "SELECT count(*) FROM idem_due('due_large', 'h', 100)",
    }, turns, f"{known} settled events", "10000 settled events", 1.25, 100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000, help="events in a call")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--known", type=int, default=5_000_000, help="settled events beside those that are due")
    arguments = parser.parse_args()
    connection = psycopg2.connect("")
    connection.autocommit = True
    cursor = connection.cursor()
    many(cursor, arguments.count, arguments.turns)
    due(cursor, arguments.known, arguments.turns)


if __name__ == "__main__":
    main()
