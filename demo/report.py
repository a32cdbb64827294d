"""The report of the demo: what the senders heard, what took effect, and what expected.json says should have."""

import collections

# Counts the effects in a table, and those among them which are not their event's first.
EFFECTS = """
    SELECT handler, sum(effects)::bigint AS effects, sum(effects - 1)::bigint AS doubles, sum(cents)::bigint AS cents
    FROM (SELECT handler, count(*) AS effects, sum(cents) AS cents FROM {} GROUP BY handler, event_id, batch) AS event
    GROUP BY handler"""

UNSETTLED = "SELECT count(*) FROM (TABLE inbox UNION ALL TABLE outside) AS event WHERE state <> 'done'"

Effects = collections.namedtuple("Effects", "effects doubles cents", defaults=(0, 0, 0))

WITH_IDEM = "{:<21}{:>10,}{:>11,}{:>10,}{:>9,}{:>8,} |{:>9,}{:>10,}{:>8,}{:>14,}  {}"
WITHOUT_IDEM = "{:<21}{:>10,}{:>11,}{:>10,}{:>14,}{:>17,}"


def print_report(db, expected, log, sessions):
    """Prints the report and returns the exit status: 0 where all is as expected, else 1."""
    wanted = {handler: Effects(effect["effects"], 0, effect["cents"])
              for handler, effect in expected["per_handler"].items()}
    found = effects_in(db, "(TABLE ledger UNION ALL TABLE outside_world) AS effect")
    naive = effects_in(db, "ledger_without_idem")
    heard = collections.Counter((call.handler, answer.outcome) for call, answer in log)
    final = [(call, answer) for call, answer in log if answer.outcome not in (None, "busy")]
    forged = [answer.outcome for call, answer in final if call.forged]
    took_over = sum(answer.outcome == "acquired" and answer.attempt > 1 for _, answer in final)
    outcomes = ("acquired", "duplicate", "conflict", "busy", None)

    print(f"{expected['deliveries']:,} deliveries of {expected['events']:,} events: {len(final):,} calls of handlers,"
          f" up to {sessions} at the same time.")
    print(f"{heard_in_all(heard, None):,} sessions died over a call, {heard_in_all(heard, 'busy'):,} calls found their event"
          f" busy; these calls came again. {took_over:,} leases of the dead were taken over.")
    print()
    print(f"{'with idem':<21}{'what the senders heard':>48} |{'what took effect':>31}")
    print(f"{'handler':<21}  acquired  duplicate  conflict     busy nothing |  effects  expected  double         cents")
    for handler in sorted(wanted.keys() | found.keys()):
        mine, right = found.get(handler, Effects()), wanted.get(handler, Effects())
        print(WITH_IDEM.format(handler, *(heard[handler, outcome] for outcome in outcomes),
                               mine.effects, right.effects, mine.doubles, mine.cents, verdict(mine == right)))
    mine, right = add_up(found), add_up(wanted)
    print(WITH_IDEM.format("all", *(heard_in_all(heard, outcome) for outcome in outcomes),
                           mine.effects, right.effects, mine.doubles, mine.cents, verdict(found == wanted)))
    print()
    print(f"{'without idem':<21}   effects   expected    double         cents   cents too many")
    for handler in sorted(naive):
        print_without_idem(handler, naive[handler], wanted[handler])
    print_without_idem("all", add_up(naive), add_up(wanted))
    print()
    checks = {
        "every effect of expected.json is there once, and no other": found == wanted,
        f"{forged.count('conflict'):,} of {len(forged):,} calls with a forged amount were refused, and no honest one":
            all((answer.outcome == "conflict") == call.forged for call, answer in final),
        "every duplicate was answered with the stored result of the first":
            all(answer.result == {"cents": call.cents} for call, answer in final if answer.outcome == "duplicate"),
        "no claim is left unsettled": unsettled(db) == 0,
    }
    for check, holds in checks.items():
        print(f"{verdict(holds):<10} {check}")
    return 0 if all(checks.values()) else 1


def print_without_idem(handler, mine, right):
    print(WITHOUT_IDEM.format(handler, mine.effects, right.effects, mine.doubles, mine.cents, mine.cents - right.cents))


def verdict(holds):
    return "ok" if holds else "DIFFERENT"


def heard_in_all(heard, outcome):
    """How often any handler gave this answer."""
    return sum(count for (_, answer), count in heard.items() if answer == outcome)


def add_up(per_handler):
    """The effects of all handlers together."""
    return Effects(*map(sum, zip(Effects(), *per_handler.values())))


def effects_in(db, table):
    """The effects in a table, per handler."""
    with db.cursor() as cursor:
        cursor.execute(EFFECTS.format(table))
        return {row.handler: Effects(row.effects, row.doubles, row.cents) for row in cursor}


def unsettled(db):
    """How many events in the dedup tables are not done."""
    with db.cursor() as cursor:
        cursor.execute(UNSETTLED)
        return cursor.fetchone().count
