#!/usr/bin/python3 -Bu
# Server CPU and WAL per event: plpgsql loops of idem's calls and of hand-written statements, one transaction a chunk.
# Small chunks of all sides take turns, and ratios are taken within a turn, because the machine's speed drifts. A loop
# which only composes the event ids is measured like a side, and subtracted from each.

import argparse
import statistics
from dataclasses import dataclass

from figures import ratios, median_of, verdict
from server import cpu_ns, process_of, session, wal_position

INSERT = """INSERT INTO {table} (handler, event_id, status, created_at, expires_at)
            VALUES ('charge-wallet', id, 'processing', clock_timestamp(), clock_timestamp() + '15 minutes')
            ON CONFLICT DO NOTHING;
            go_on := FOUND;"""
UPDATE = """UPDATE {table} SET status = 'done', expires_at = clock_timestamp() + '30 days'{result}
            WHERE handler = 'charge-wallet' AND event_id = id;"""
ACQUIRE = """SELECT acquired INTO go_on FROM idem_acquire('{table}', 'charge-wallet', id);"""
ACQUIRE_IN_EXPRESSION = """claim := idem_acquire('{table}', 'charge-wallet', id); go_on := claim.acquired;"""
COMMIT = """PERFORM idem_commit('{table}', 'charge-wallet', id{result});"""


def by_hand(table, result=False):
    update = UPDATE.format(table=table, result=""", result = '{"balance": 90}'""" if result else "")
    return INSERT.format(table=table) + f"IF go_on THEN {update} END IF;"


def by_idem(table, result=False, acquire=ACQUIRE):
    commit = COMMIT.format(table=table, result=""", result => '{"balance": 90}'""" if result else "")
    return acquire.format(table=table) + f"IF go_on THEN {commit} END IF;"


@dataclass
class Comparison:
    idem: str
    hand: str
    cpu_target: float = None
    wal_target: float = None


@dataclass
class Group:
    title: str
    sides: dict                 # name -> statements of the loop's body
    comparisons: list
    duplicates: bool = False    # ids of known events instead of new ones
    first_id: int = 1           # where new ids start
    warm_up: int = 10_000       # calls before the first chunk: they fill caches and map shared memory
    lead: int = 0               # calls before each chunk, where the sides do not fit a cache together


GROUPS = [
    Group("new event, no result", {
        "hand-written": by_hand("processed_event_c"),
        "hand-written, twin": by_hand("processed_event_twin"),
        "hand-written, en-US": by_hand("processed_event_en"),
        "idem": by_idem("webhook"),
        "idem, expression": by_idem("webhook_expression", acquire=ACQUIRE_IN_EXPRESSION),
    }, [
        Comparison("hand-written, twin", "hand-written"),
        Comparison("idem", "hand-written", cpu_target=0.40, wal_target=0.48),
        Comparison("idem", "hand-written, en-US", cpu_target=0.40, wal_target=0.48),
        Comparison("idem, expression", "hand-written", cpu_target=0.40),
    ]),
    Group("new event, with result", {
        "hand-written": by_hand("processed_event_c", result=True),
        "hand-written, en-US": by_hand("processed_event_en", result=True),
        "idem": by_idem("webhook", result=True),
    }, [
        Comparison("idem", "hand-written", cpu_target=0.40, wal_target=0.75),
        Comparison("idem", "hand-written, en-US", cpu_target=0.40, wal_target=0.75),
    ], first_id=10_000_001),
    Group("claim alone", {
        "hand-written": """INSERT INTO claimed_key
            VALUES (md5('charge-wallet:' || id)::uuid, clock_timestamp(), clock_timestamp() + '30 days')
            ON CONFLICT DO NOTHING;
            go_on := FOUND;""",
        "idem_accept": "SELECT acquired INTO go_on FROM idem_accept('webhook_accept', 'charge-wallet', id);",
        "idem_accept, expression":
            "claim := idem_accept('webhook_accept_expression', 'charge-wallet', id); go_on := claim.acquired;",
    }, [
        Comparison("idem_accept", "hand-written", cpu_target=0.90),
        Comparison("idem_accept, expression", "hand-written", cpu_target=0.90),
    ], first_id=20_000_001),
    Group("duplicate of a known event", {
        "hand-written": INSERT.format(table="processed_event_c_full"),
        "hand-written, en-US": INSERT.format(table="processed_event_en_full"),
        "idem": ACQUIRE.format(table="webhook_full"),
        "idem, expression": ACQUIRE_IN_EXPRESSION.format(table="webhook_full"),
        "idem, 4 generations": ACQUIRE.format(table="webhook_ring"),
    }, [
        Comparison("idem", "hand-written", cpu_target=0.50),
        Comparison("idem", "hand-written, en-US", cpu_target=0.50),
        Comparison("idem, expression", "hand-written", cpu_target=0.50),
        Comparison("idem, 4 generations", "hand-written"),
    ], duplicates=True, warm_up=100_000),
    Group("new event, no result, among the known ones", {
        "hand-written": by_hand("processed_event_c_full"),
        "hand-written, en-US": by_hand("processed_event_en_full"),
        "idem": by_idem("webhook_full"),
        "idem, 4 generations": by_idem("webhook_ring"),
    }, [
        Comparison("idem", "hand-written"),
        Comparison("idem", "hand-written, en-US"),
        Comparison("idem, 4 generations", "hand-written"),
    ], first_id=30_000_001, warm_up=100_000),
]

LOOP = """CREATE OR REPLACE FUNCTION pg_temp.loop(first int, calls int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    id text;
    go_on boolean;
    claim idem_claim;
BEGIN
    FOR i IN first .. first + calls - 1 LOOP
        id := 'evt_' || left(md5(({number})::text), 24);
        {statements}
        IF go_on IS DISTINCT FROM {expected} THEN
            RAISE 'event % is % new', id, CASE WHEN go_on THEN 'unexpectedly' ELSE 'not' END;
        END IF;
    END LOOP;
END $body$"""


class Side:
    """A session whose loop runs one side; its server process does nothing else. `number` is SQL which makes the number
    that an event's id is made of; `expected` says whether the events are new, null that nothing is called."""

    def __init__(self, statements, number="i", expected="true"):
        self.cursor = session()
        self.cursor.execute(LOOP.format(number=number, statements=statements, expected=expected))
        self.process = process_of(self.cursor)
        self.cpu, self.wal = [], []

    def run(self, first, calls):
        if calls == 0:
            return 0
        before = cpu_ns(self.process)
        self.cursor.execute("SELECT pg_temp.loop(%s, %s)", (first, calls))
        return (cpu_ns(self.process) - before) / calls / 1000

    def close(self):
        self.cursor.connection.close()


def one_of(first, last):
    """A number of an event between these."""
    return f"{first} + floor(random() * {last - first + 1})::int"


def take_turns(sides, first, calls, turns, observer, number="i", lead=0):
    """Fills the sides' lists of CPU and WAL per call, that of the empty loop subtracted; returns the empty loop's side.
    So many calls as `lead` come before each chunk without being measured."""
    loop = Side("", number, "NULL")
    loop.run(first, 10_000)
    everybody = [loop, *sides]
    for turn in range(turns):
        for side in everybody if turn % 2 == 0 else reversed(everybody):
            side.run(first, lead)
            before = wal_position(observer)
            side.cpu.append(side.run(first + lead, calls))
            side.wal.append((wal_position(observer) - before) / calls)
        first += lead + calls
    for side in sides:
        side.cpu = [gross - empty for gross, empty in zip(side.cpu, loop.cpu)]
    print(f"  event id and loop, subtracted below: {median_of(loop.cpu)} µs")
    return loop


def measure(group, calls, turns, known, observer):
    number, expected = (one_of(1, known), "false") if group.duplicates else ("i", "true")
    sides = {name: Side(statements, number, expected) for name, statements in group.sides.items()}
    print(f"\n{group.title}")
    for side in sides.values():
        side.run(group.first_id, group.warm_up)
    # To be closed at the end: a session that ends drops its function, and so writes.
    loop = take_turns(sides.values(), group.first_id + group.warm_up, calls, turns, observer, number,
                      group.lead)

    print_sides(sides)
    for c in group.comparisons:
        idem, hand = sides[c.idem], sides[c.hand]
        report(f"{c.idem} / {c.hand}, CPU", ratios(idem.cpu, hand.cpu), c.cpu_target)
        if not group.duplicates:
            report(f"{c.idem} / {c.hand}, WAL", ratios(idem.wal, hand.wal), c.wal_target)
    if group.duplicates:
        duplicates_write_nothing(sides["idem"], calls)
    for side in [loop, *sides.values()]:
        side.close()


def print_sides(sides):
    for name, side in sides.items():
        print(f"  {name:24} {median_of(side.cpu):>22} µs CPU {median_of(side.wal, 0):>16} bytes of WAL")


def report(what, values, target):
    print(f"  {what:46} {median_of(values):>18}  "
          + (verdict(statistics.median(values) <= target, f"<= {target:.2f}") if target else ""))


def duplicates_write_nothing(side, calls):
    side.cursor.connection.autocommit = False
    before = wal_position(side.cursor)
    side.run(1, calls)
    written = wal_position(side.cursor) - before
    side.cursor.execute("SELECT pg_current_xact_id_if_assigned()")
    xid = side.cursor.fetchone()[0]
    side.cursor.connection.rollback()
    print(f"  idem: {written} bytes of WAL in {calls} calls, transaction id {xid}  "
          + verdict(written == 0 and xid is None, "0 bytes, no transaction id"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000, help="calls in a chunk")
    parser.add_argument("--turns", type=int, default=151, help="chunks of each side")
    parser.add_argument("--known", type=int, default=1_000_000, help="known events, as schema.sql has made them")
    parser.add_argument("--only", default="", help="groups whose title contains this")
    arguments = parser.parse_args()

    observer = session()
    for group in GROUPS:
        if arguments.only in group.title:
            measure(group, arguments.calls, arguments.turns, arguments.known, observer)


if __name__ == "__main__":
    main()
