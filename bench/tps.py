#!/usr/bin/python3 -Bu
# Transactions per second of whole transactions, by pgbench with prepared statements: idem's and the hand-written one
# take turns, and the ratio is taken within a turn. The first seconds of each run are left out: there new server
# processes map the shared memory.

import argparse
import os
import statistics

from figures import ratios, median_of, verdict
from server import tps

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pgbench")

# What is compared, and with which settings of synchronous_commit: a duplicate writes nothing, so there it has no effect.
COMPARISONS = [
    ("pair", "new event: claim, work, settle", ("off", "on")),
    ("one_statement", "new event in one statement, FROM", ("off", "on")),
    ("expression", "new event in one statement, expression", ("off", "on")),
    ("answered", "new event in one statement, with the answer", ("off", "on")),
    ("duplicate", "duplicate of a known event", ("off",)),
]


def script_of(name):
    with open(os.path.join(SCRIPTS, name + ".sql")) as script:
        return script.read()


def verdict_of(values, target):
    """The machine does not resolve small differences: only what all turns agree on is called missed."""
    if statistics.median(values) >= target:
        return verdict(True, f">= {target:.2f}")
    if max(values) >= target:
        return f"target >= {target:.2f}: undecided, turns differ"
    return verdict(False, f">= {target:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="length of a run")
    parser.add_argument("--drop", type=int, default=1, help="seconds left out at the start of a run")
    parser.add_argument("--synchronous-commit", nargs="+", default=["off", "on"])
    parser.add_argument("--known", type=int, default=1_000_000, help="known events, as schema.sql has made them")
    parser.add_argument("--only", default="", help="comparisons whose script is named like this")
    arguments = parser.parse_args()

    measured = {}
    for turn in range(arguments.turns):
        for name, _, settings in COMPARISONS:
            for setting in settings:
                if arguments.only not in name or setting not in arguments.synchronous_commit:
                    continue
                for clients in arguments.clients:
                    for side in ("hand", "idem") if turn % 2 == 0 else ("idem", "hand"):
                        rate = statistics.mean(tps(script_of(f"{name}_{side}"), clients, arguments.seconds,
                                                   arguments.drop, setting, known=arguments.known))
                        measured.setdefault((name, setting, clients), {}).setdefault(side, []).append(rate)

    for name, title, settings in COMPARISONS:
        for (measured_name, setting, clients), sides in measured.items():
            if measured_name != name:
                continue
            ratio = ratios(sides["idem"], sides["hand"])
            print(f"{title}, synchronous_commit {setting}, {clients} clients: "
                  f"hand-written {median_of(sides['hand'], 0)} tps, idem {median_of(sides['idem'], 0)} tps, "
                  f"ratio {median_of(ratio)}  " + (verdict_of(ratio, 1.0) if name == "one_statement" else ""))


if __name__ == "__main__":
    main()
