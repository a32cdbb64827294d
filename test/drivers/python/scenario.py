"""What every Python program of test/drivers runs, by a driver that has

    ask(statement, *parameters) → [{column: value}]    $1, $2, … are its parameters; outside begin() it commits by itself
    begin(), commit(), rollback()
    bytes, json, texts, interval                       a parameter of that type, in the form that docs/drivers.md tells
    sqlstate(error)                                    of an error of the driver's

and prints what came back as a line of JSON, with the types of what one answer is made of.
"""

import datetime
import json
import re
import sys
from pathlib import Path

STATEMENTS = dict(line.split(": ", 1) for line in (Path(__file__).parents[1] / "statements").read_text().splitlines())
CENTS = {"cents": 1000}


def with_placeholders(statement, placeholder):
    """The statement with $1, $2, … as what placeholder(number) says; each stands there once, in order."""
    return re.sub(r"\$(\d)", lambda found: placeholder(int(found[1])), statement)


def plain(value):
    return value.timestamp() if isinstance(value, datetime.datetime) else value


def run(driver):
    body_file, signature, secret = sys.argv[1:]
    body = Path(body_file).read_bytes()
    headers = {"X-Hub-Signature-256": signature, "User-Agent": "张三"}

    def ask(name, *parameters):
        return driver.ask(STATEMENTS[name], *parameters)

    def attempt(name, *parameters):
        """The one value that came back, or the SQLSTATE."""
        try:
            [row] = ask(name, *parameters)
        except Exception as error:
            return driver.sqlstate(error)
        return next(iter(row.values()))

    seen = {}
    for what, event, fingerprint in ("new", "evt_1", body), ("duplicate", "evt_1", body), ("conflict", "evt_1", b"other"):
        [seen[what]] = ask("accept", event, driver.bytes(fingerprint), driver.json(CENTS))
    types = {name: type(value).__name__ for name, value in seen["duplicate"].items()}

    driver.begin()
    [seen["acquired"]] = ask("acquire", "evt_2")
    ask("effect", "evt_2")
    [remembered] = ask("commit", "evt_2", driver.json(CENTS))
    driver.commit()
    [seen["effects"]] = ask("effects", "evt_2")
    seen["remembered_until"] = remembered["remembered_until"]
    types["remembered_until"] = type(remembered["remembered_until"]).__name__

    [seen["lease"]] = ask("lease", "evt_3")
    [seen["released"]] = ask("release", "evt_3", seen["lease"]["attempt"], "timeout", driver.interval(90))
    types["retry_after"] = type(seen["released"]["retry_after"]).__name__

    seen["verified"] = attempt("verify", driver.bytes(body), signature, secret)
    seen["forged"] = attempt("verify", driver.bytes(body + b"x"), signature, secret)
    seen["verified by headers"] = attempt("verify_headers", driver.bytes(body), driver.json(headers), secret)
    seen["held"] = attempt("held", "evt_held")

    driver.begin()
    seen["many"] = ask("many", driver.texts(["evt_4", "evt_5"]))
    ask("many_done", driver.texts(["evt_4", "evt_5"]))
    driver.commit()

    uncast = {
        "bytes": attempt("uncast_bytes", driver.bytes(body), signature, secret),
        "headers": attempt("uncast_headers", driver.bytes(body), driver.json(headers), secret),
        "json": attempt("uncast_json", "evt_6", driver.json(CENTS)),
    }
    print(json.dumps({"seen": seen, "types": types, "uncast": uncast}, default=plain))
