"""The report of the demo: what the senders heard, what took effect, what failed, and what should have come of it."""

import collections
import math

import job
import receiver

# Counts the effects in a table, and those among them which are not their event's first.
EFFECTS = """
    SELECT handler, sum(effects)::bigint AS effects, sum(effects - 1)::bigint AS doubles, sum(cents)::bigint AS cents
    FROM (SELECT handler, count(*) AS effects, sum(cents) AS cents FROM {} GROUP BY handler, event_id, batch) AS event
    GROUP BY handler"""

UNSETTLED = "SELECT count(*) FROM (TABLE inbox UNION ALL TABLE outside) AS event WHERE state <> 'done'"

NOTES = "SELECT count(*) FROM inbox WHERE state = 'done' AND extra ->> 'note' = %s"

STATISTICS = """
    SELECT s.handler, s.acquired, s.duplicate, s.conflict, a.redelivered, extract(epoch FROM a.span_p99)::float8 AS span
    FROM idem_stat s, idem_window_advice(s.dedup, s.handler) a ORDER BY s.handler"""

TURNS = "SELECT min(turned) FROM idem_purge_status"

# What the operator says of an event that he does by hand.
NOTE = "entered into the CRM by hand"

Effects = collections.namedtuple("Effects", "effects doubles cents", defaults=(0, 0, 0))

WITH_IDEM = "{:<21}{:>10,}{:>11,}{:>10,}{:>8,}{:>9,}{:>8,} |{:>9,}{:>10,}{:>8,}{:>14,}  {}"
STATISTIC = "{:<21}{:>11,}{:>12,}{:>11,}{:>13,}{:>11} |{:>10,}{:>12,}{:>11,}{:>11}"
WITHOUT_IDEM = "{:<21}{:>10,}{:>11,}{:>10,}{:>14,}{:>17,}"


def print_report(db, expected, log, sessions, forgeries, tries, letters, given_up):
    """Prints the report and returns the exit status: 0 where all is as expected, else 1."""
    wanted = {handler: Effects(effect["effects"], 0, effect["cents"])
              for handler, effect in expected["per_handler"].items()}
    found = effects_in(db, "(TABLE ledger UNION ALL TABLE outside_world) AS effect")
    naive = effects_in(db, "ledger_without_idem")
    heard = collections.Counter((call.handler, kind_of(answer.outcome)) for call, answer in log)
    final = [(call, answer) for call, answer in log if answer.outcome not in (None, "busy")]
    conflicts = [answer.outcome for call, answer in final if call.forged]
    kinds = ("acquired", "duplicate", "conflict", "failed", "busy", None)

    print(f"{expected['deliveries']:,} deliveries of {expected['events']:,} events: {len(final):,} calls of handlers,"
          f" up to {sessions} at the same time.")
    print(f"{heard_in_all(heard, None):,} sessions died over a call, {heard_in_all(heard, 'busy'):,} calls found their"
          f" event busy; these calls came again.")
    print()
    print(f"{'with idem':<21}{'what the senders heard':>56} |{'what took effect':>31}")
    print(f"{'handler':<21}  acquired  duplicate  conflict  failed     busy nothing |  effects  expected  double"
          "         cents")
    for handler in sorted(wanted.keys() | found.keys()):
        mine, right = found.get(handler, Effects()), wanted.get(handler, Effects())
        print(WITH_IDEM.format(handler, *(heard[handler, kind] for kind in kinds),
                               mine.effects, right.effects, mine.doubles, mine.cents, verdict(mine == right)))
    mine, right = add_up(found), add_up(wanted)
    print(WITH_IDEM.format("all", *(heard_in_all(heard, kind) for kind in kinds),
                           mine.effects, right.effects, mine.doubles, mine.cents, verdict(found == wanted)))
    print()
    print_tries(tries, letters)
    print()
    print(f"{'without idem':<21}   effects   expected    double         cents   cents too many")
    for handler in sorted(naive):
        print_without_idem(handler, naive[handler], wanted[handler])
    print_without_idem("all", add_up(naive), add_up(wanted))
    print()
    print_statistics(db, log, heard)
    print()
    refused = [answer.outcome for _, answer in forgeries].count("refused")
    checks = {
        "every effect of expected.json is there once, and no other": found == wanted,
        f"{refused:,} of {len(forgeries):,} calls with a forged signature were refused before they could occupy an"
        " event's id, and no honest one":
            refused == len(forgeries) and all(answer.outcome != "refused" for _, answer in log),
        f"{conflicts.count('conflict'):,} of {len(conflicts):,} calls with a forged amount were refused, and no honest"
        " one":
            all((answer.outcome == "conflict") == call.forged for call, answer in final),
        "every duplicate was answered with the stored result of the first":
            all(answer.result == {"cents": call.cents} for call, answer in final if answer.outcome == "duplicate"),
        f"what failed was tried again, and given up only where that was no use ({len(letters):,} of {len(given_up):,})":
            {(letter.handler, letter.event_id, letter.batch) for letter in letters} == given_up,
        "no event is left unsettled, and what was done by hand says so":
            count(db, UNSETTLED) == 0 and count(db, NOTES, [NOTE]) == 1,
        f"{count(db, TURNS):,} turns of each ring went on beside it": count(db, TURNS) == job.TURNS,
    }
    for check, holds in checks.items():
        print(f"{verdict(holds):<10} {check}")
    return 0 if all(checks.values()) else 1


def print_statistics(db, log, heard):
    """What idem tells of the traffic, beside what the senders know of it."""
    first, last, deliveries = {}, {}, collections.Counter()
    for call, answer in log:
        first.setdefault(call.event, answer.at)
        last[call.event] = answer.at
        deliveries[call.event] += 1
    print(f"{'what idem tells':<21}{'told by idem_stat and idem_window_advice':>62} |{'what the senders know':>44}")
    print(f"{'handler':<21}     events  duplicates  conflicts  redelivered   span p99 |"
          "    events  duplicates  conflicts   span p99")
    with db.cursor() as cursor:
        cursor.execute(STATISTICS)
        for row in cursor:
            spans = sorted(last[event] - first[event] for event, times in deliveries.items()
                           if event[0] == row.handler and times > 1)
            events = sum(event[0] == row.handler for event in deliveries)
            known = f"{spans[math.ceil(0.99 * len(spans)) - 1]:.3f} s" if spans else ""
            told = f"{row.span:.3f} s" if row.span is not None else ""
            print(STATISTIC.format(row.handler, row.acquired, row.duplicate, row.conflict, row.redelivered, told,
                                   events, heard[row.handler, "duplicate"], heard[row.handler, "conflict"], known))


def print_tries(tries, letters):
    """What the compensating job did, and the dead letters that it left."""
    outcomes = collections.Counter(kind_of(outcome) for _, outcome in tries)
    print(f"What failed, or was left behind with a lease, is kept. A job in {job.SESSIONS} sessions tried again"
          f" {len(tries):,} times: {outcomes['acquired']:,} times it")
    print(f"succeeded, {outcomes['failed']:,} times it failed again, and {outcomes[None]:,} times a session died over"
          " it. These were given up:")
    print()
    print(f"{'dead letter':<21}{'event':<35}{'failures':>8}  {'error':<34}and then")
    for letter in letters:
        then = "done by hand, with a note" if letter.error == receiver.UNKNOWN_CUSTOMER else "bug fixed, requeued"
        print(f"{letter.handler:<21}{letter.event_id:<35}{letter.failures:>8,}  {letter.error:<34}{then}")


def kind_of(outcome):
    """An outcome as the report counts it: what failed is kept, whether it will be tried again or not."""
    return "failed" if outcome in ("backoff", "dead") else outcome


def print_without_idem(handler, mine, right):
    print(WITHOUT_IDEM.format(handler, mine.effects, right.effects, mine.doubles, mine.cents, mine.cents - right.cents))


def verdict(holds):
    return "ok" if holds else "DIFFERENT"


def heard_in_all(heard, kind):
    """How often any handler gave this answer."""
    return sum(times for (_, answer), times in heard.items() if answer == kind)


def add_up(per_handler):
    """The effects of all handlers together."""
    return Effects(*map(sum, zip(Effects(), *per_handler.values())))


def effects_in(db, table):
    """The effects in a table, per handler."""
    with db.cursor() as cursor:
        cursor.execute(EFFECTS.format(table))
        return {row.handler: Effects(row.effects, row.doubles, row.cents) for row in cursor}


def count(db, query, parameters=None):
    """The one number that a query returns."""
    with db.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchone()[0]
