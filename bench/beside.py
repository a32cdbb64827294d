#!/usr/bin/python3 -Bu
# What those who receive events notice of a purge: transactions per second of new events while the background worker
# retires and empties a generation, turns the ring and seals another generation; and by hand while as many events are
# deleted in batches and the table is vacuumed. Each is compared with the mean of two runs without a purge, just before
# and just after it.

import argparse
import math
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from figures import median_of
from fill import fill_by_hand, fill_generation
from purge import delete_in_batches
from server import session, set_setting, tps, value
from tps import verdict_of

IDEM = """\\set event random(1, 9223372036854775807)
INSERT INTO ledger SELECT 'evt_' || :event, 1000
    FROM idem_accept('beside', 'charge-wallet', 'evt_' || :event) WHERE acquired;"""

BY_HAND = """\\set event random(1, 9223372036854775807)
WITH claim AS (
    INSERT INTO deleted (handler, event_id, status, created_at, expires_at)
        VALUES ('charge-wallet', 'evt_' || :event, 'done', now(), now() + '30 days')
        ON CONFLICT DO NOTHING RETURNING event_id)
INSERT INTO ledger SELECT event_id, 1000 FROM claim;"""


def make_ring(events):
    """A generation to be emptied, and one to be sealed that takes new events still."""
    cursor = session()
    cursor.execute("DROP TABLE IF EXISTS beside, deleted")
    cursor.execute("CALL idem_purge()")     # gives the memory of its filter back
    cursor.execute("SELECT idem_create_table('beside')")
    fill_generation("beside", 0, 1, events, "-31 days")
    cursor.execute("CALL idem_rotate('beside')")
    fill_generation("beside", 1, events + 1, 2 * events)
    # As if it had been opened a generation's span ago.
    cursor.execute("UPDATE idem_generation SET opened_at = opened_at - '5 days'::interval "
                   "WHERE dedup = 'beside'::regclass AND generation = 1")


# The tables beneath the views: those look at the partitions' sizes, and so get into the way of TRUNCATE.
PURGED = """SELECT retired = 1 AND bytes_freed > 0 AND turned = 2 AND 1 = ANY ((idem_filter(dedup)).slots)
            FROM idem_purge_state WHERE dedup = 'beside'::regclass"""


def let_worker_purge(cursor):
    set_setting(cursor, "idem.purge", "on")
    while not value(cursor, PURGED):
        time.sleep(0.1)
    set_setting(cursor, "idem.purge", "off")


def purge_by_hand(cursor, batch):
    delete_in_batches(cursor, "deleted", batch)
    cursor.execute("VACUUM deleted")


def side(script, purge, arguments):
    """TPS with the purge in it over TPS without, and the worst second of each."""
    cursor = session()

    def run(seconds):
        return tps(script, arguments.clients, seconds, arguments.drop, arguments.synchronous_commit)

    def timed():
        time.sleep(arguments.drop + 1)
        start = time.perf_counter()
        purge(cursor)
        return time.perf_counter() - start

    before = run(arguments.seconds // 2 + arguments.drop)
    with ThreadPoolExecutor(max_workers=1) as pool:
        purging = pool.submit(timed)
        during = run(arguments.seconds + arguments.drop)
        late = not purging.done()
        took = purging.result()
    after = run(arguments.seconds // 2 + arguments.drop)
    without = before + after
    # The purge began a second after the first one that counts. Neighbouring seconds of one run drift the least.
    end = 2 + math.ceil(took)
    within, rest = during[1:end], during[:1] + during[end:]
    return {"its seconds": statistics.mean(within) / statistics.mean(rest),
            "without": statistics.mean(without), "with": statistics.mean(during),
            "ratio": statistics.mean(during) / statistics.mean(without),
            "worst second": min(during) / min(without), "took": took, "late": late}


def print_side(name, turns):
    def of(figure, digits=2):
        return median_of([turn[figure] for turn in turns], digits)

    late = sum(turn["late"] for turn in turns)
    print(f"  {name}: purge took {of('took', 1)} s{f', longer than {late} of the runs' if late else ''}; {of('without', 0)} "
          f"tps without it, {of('with', 0)} with it, ratio {of('ratio')}; of the worst seconds {of('worst second')}; "
          f"its seconds over the others of the same run {of('its seconds')}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=5_000_000, help="events that expire, and as many that stay")
    parser.add_argument("--batch", type=int, default=10_000, help="rows that one DELETE removes")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=60, help="length of a run with a purge in it")
    parser.add_argument("--drop", type=int, default=2, help="seconds left out at the start of a run")
    parser.add_argument("--synchronous-commit", default="off")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()

    sides = {"idem": [], "by hand": []}
    for turn in range(arguments.turns):
        make_ring(arguments.events)
        fill_by_hand("deleted", 2 * arguments.events, arguments.events)
        runs = [("idem", IDEM, let_worker_purge),
                ("by hand", BY_HAND, lambda cursor: purge_by_hand(cursor, arguments.batch))]
        for name, script, purge in runs if turn % 2 == 0 else reversed(runs):
            session().execute("CHECKPOINT")
            sides[name].append(side(script, purge, arguments))
    print(f"{arguments.events} expired events, {arguments.clients} clients, {arguments.seconds} s")
    for name, turns in sides.items():
        print_side(name, turns)
    print("  idem, with / without  " + verdict_of([turn["ratio"] for turn in sides["idem"]], 0.9))


if __name__ == "__main__":
    main()
