#!/usr/bin/python3 -Bu
# What the row itself can tell, beside an event that is remembered: transactions per second by pgbench, each statement a
# transaction of its own. The sides take turns, and ratios are taken within a turn.

import argparse
import statistics

from figures import ratios, median_of
from server import session, tps

ROWS = 100_000

# Tables alike, so that no side works on pages which another has filled. A step leads to and fro, so that each is one.
SCHEMA = """
SET client_min_messages = warning;
DROP TABLE IF EXISTS steps_condition, steps_trigger, steps_idem, news_condition, news_trigger, news_idem, natural_ledger;
CREATE TABLE natural_ledger (event_id bigint, row_id int);
"""
STEPS = """
CREATE TABLE {0} (id int PRIMARY KEY, status text NOT NULL) WITH (fillfactor = 50);
INSERT INTO {0} SELECT i, 'on' FROM generate_series(1, {1}) i;
"""
NEWS = """
CREATE TABLE {0} (id int PRIMARY KEY, name text, version bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO {0} SELECT i, 'name', 1 FROM generate_series(1, {1}) i;
"""
TRIGGERS = """
CREATE TRIGGER steps BEFORE UPDATE ON steps_trigger FOR EACH ROW
    EXECUTE FUNCTION idem_transition('status', 'on > off', 'off > on');
CREATE TRIGGER newer BEFORE UPDATE ON news_trigger FOR EACH ROW EXECUTE FUNCTION idem_newer('version');
"""

EVENT = f"\\set event random(1, 9223372036854775807)\n\\set row random(1, {ROWS})\n"
FLIP = "SET status = CASE status WHEN 'on' THEN 'off' ELSE 'on' END"
BOOK = "INSERT INTO natural_ledger SELECT :event, id FROM moved;"
UPSERT = ("INSERT INTO {0} VALUES (:row, 'name', {1}) ON CONFLICT (id) DO UPDATE "
          "SET name = EXCLUDED.name, version = EXCLUDED.version")
CLAIM = "(SELECT FROM idem_accept('webhook', 'natural', 'evt_' || :event) WHERE acquired)"
KNOWN = "(SELECT FROM idem_accept('webhook_full', 'charge-wallet', 'evt_' || left(md5(:known::text), 24)) WHERE acquired)"

COMPARISONS = {
    "a step and a row in a ledger": {
        "condition": f"WITH moved AS (UPDATE steps_condition {FLIP} WHERE id = :row AND status IN ('on', 'off') "
                     f"RETURNING id) {BOOK}",
        "trigger": f"WITH moved AS (UPDATE steps_trigger {FLIP} WHERE id = :row RETURNING id) {BOOK}",
        "idem": f"WITH claim AS MATERIALIZED {CLAIM}, moved AS (UPDATE steps_idem {FLIP} FROM claim WHERE id = :row "
                f"RETURNING id) {BOOK}",
    },
    "the step again": {
        "condition": "UPDATE steps_condition SET status = 'off' WHERE id = :row AND status = 'none';",
        "trigger": "UPDATE steps_trigger SET status = status WHERE id = :row;",
        "idem": f"\\set known random(1, :known)\nWITH claim AS MATERIALIZED {KNOWN} "
                f"UPDATE steps_idem {FLIP} FROM claim WHERE id = :row;",
    },
    "newer news": {
        "condition": UPSERT.format("news_condition", "(SELECT version + 1 FROM news_condition WHERE id = :row)")
                     + " WHERE news_condition.version < EXCLUDED.version;",
        "trigger": UPSERT.format("news_trigger", "(SELECT version + 1 FROM news_trigger WHERE id = :row)") + ";",
        "idem": f"WITH claim AS MATERIALIZED {CLAIM} "
                + UPSERT.format("news_idem", "0").replace(
                    "VALUES (:row, 'name', 0)", "SELECT id, name, version + 1 FROM news_idem, claim WHERE id = :row") + ";",
    },
    "older news": {
        "condition": UPSERT.format("news_condition", "0") + " WHERE news_condition.version < EXCLUDED.version;",
        "trigger": UPSERT.format("news_trigger", "0") + ";",
    },
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="length of a run")
    parser.add_argument("--known", type=int, default=1_000_000, help="known events, as schema.sql has made them")
    arguments = parser.parse_args()

    cursor = session()
    cursor.execute(SCHEMA)
    for side in ("condition", "trigger", "idem"):
        cursor.execute(STEPS.format("steps_" + side, ROWS) + NEWS.format("news_" + side, ROWS))
    cursor.execute(TRIGGERS)
    cursor.execute("VACUUM ANALYZE")

    for title, sides in COMPARISONS.items():
        rates = {side: [] for side in sides}
        for turn in range(arguments.turns):
            for side in list(sides)[::1 if turn % 2 == 0 else -1]:
                rates[side].append(statistics.mean(tps(EVENT + sides[side], arguments.clients, arguments.seconds, 1,
                                                       known=arguments.known)))
        print(f"{title}, synchronous_commit off, {arguments.clients} clients: "
              + ", ".join(f"{side} {median_of(rates[side], 0)} tps" for side in sides))
        for side in list(sides)[1:]:
            print(f"  {side} / condition {median_of(ratios(rates[side], rates['condition']))}")


if __name__ == "__main__":
    main()
