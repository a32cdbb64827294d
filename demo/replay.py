#!/usr/bin/python3
"""Replays the trace of this folder against the database that libpq's environment names, and reports what took effect.

Deliveries with almost equal `at` arrive truly together, each at one session for every handler of its source. Some
sessions die over their work, some handlers fail. What was answered `busy` or not at all is delivered again, as senders
do, until every delivery has a final answer; what failed is kept, and a job tries it again. Some events can't be handled
until somebody fixes a bug, or does it by hand. Then the same traffic, with the same deaths, meets a receiver without
idem. Exit status 1 where anything differs from expected.json, or from what was planned here.
"""

import concurrent.futures
import hashlib
import hmac
import itertools
import json
import pathlib
import random
import sys
import threading
import time

import job
import receiver
import report

FOLDER = pathlib.Path(__file__).parent
BURST_SECONDS = 2  # deliveries of the trace which follow each other within this time arrive together
SESSIONS = 36  # the longest burst of the trace, 12 deliveries to 3 handlers
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.001, 0.2  # before a delivery comes again; doubled each time
PATIENCE_SECONDS = 60  # a delivery without a final answer by then is a fault
DEATHS = {"lease": 10, "transaction": 30}  # sessions that die; fewer with a lease, which has to run out then
FAILING = {  # events that a handler fails at once or twice
    "stripe/charge-wallet": 20, "stripe/crm-push": 30, "stripe/mail-receipt": 15,
    "wecom/crm-push": 20, "wecom/bot-reply": 15}
HOPELESS = "stripe/crm-push"  # a handler that never succeeds with one of its events
JOB_DEATHS = 10  # sessions of the job that die over one of them
FORGERIES = 30  # calls with a forged signature, before the event itself
SEED = 20261129

# As in schema.sql.
SECRETS = {"stripe": "whsec_bm90IGEgc2VjcmV0LCBidXQgYSBkZW1v", "github": "It's a Secret to Everybody"}

LEASE_HANDLERS = {"stripe/mail-receipt", "wecom/bot-reply"}
ONE_STATEMENT_HANDLERS = {"github/audit-log"}
ONE_CALL_HANDLERS = {"wecom/store-message"}


def with_idem(call):
    """The handler function which protects this call."""
    if call.handler in LEASE_HANDLERS:
        return receiver.with_lease
    if call.handler in ONE_STATEMENT_HANDLERS:
        return receiver.in_one_statement
    if call.handler in ONE_CALL_HANDLERS:
        return receiver.in_one_call
    return receiver.in_one_transaction


def read_bursts(expected):
    """The calls of the trace, in the bursts in which they arrive."""
    events = [json.loads(line) for line in (FOLDER / "events.jsonl").open(encoding="utf-8")]
    bursts, last_at, numbers = [], float("-inf"), itertools.count()
    for line in (FOLDER / "deliveries.jsonl").open(encoding="utf-8"):
        delivery = json.loads(line)
        if delivery["at"] - last_at > BURST_SECONDS:
            bursts.append([])
        last_at = delivery["at"]
        body = events[delivery["payload"]]["body"]
        event_id = delivery["event_id"] or business_key(body)
        for name in expected["handlers"][delivery["source"]]:
            bursts[-1].append(receiver.Call(
                number=next(numbers),
                source=delivery["source"],
                handler=f"{delivery['source']}/{name}",
                event_id=event_id,
                batch=delivery["batch"],
                body=json.dumps(body, ensure_ascii=False),
                cents=receiver.cents(f"{delivery['source']}/{name}", body),
                forged=delivery["conflict"]))
    return bursts


def side_by_side(bursts):
    """Lets successive bursts arrive together, as many as there are sessions for, as long as no two share an event."""
    groups = [[]]
    for burst in bursts:
        shared = {call.event_id for call in groups[-1]} & {call.event_id for call in burst}
        if shared or len(groups[-1]) + len(burst) > SESSIONS:
            groups.append([])
        groups[-1] += burst
    return groups


def business_key(body):
    """The event id of a WeCom event, which comes without one: what every event has, and what tells those of one second
    apart. FromUserName alone does not: it is "sys" for events of contacts, customers and approvals."""
    required = [body["FromUserName"], str(body["CreateTime"]), body["MsgType"], body["Event"]]
    optional = [body.get(field) or None for field in ("ChangeType", "EventKey", "UserID", "ExternalUserID")]
    with receiver.connection().cursor() as cursor:
        cursor.execute("SELECT idem_business_key(%s, optional => %s::text[]) AS event_id", [required, optional])
        return cursor.fetchone().event_id


def plan_deaths(groups):
    """Which calls meet which death at their first delivery."""
    dice = random.Random(SEED)
    calls = [call for group in groups for call in group]
    leased = [call.number for call in calls if call.handler in LEASE_HANDLERS]
    others = [call.number for call in calls if call.handler not in LEASE_HANDLERS]
    doomed = sorted(dice.sample(leased, DEATHS["lease"]) + dice.sample(others, DEATHS["transaction"]))
    return {number: dice.choice([receiver.KILLED, receiver.VANISHED, receiver.UNANSWERED]) for number in doomed}


def plan_failures(calls):
    """How many attempts fail, by event."""
    dice = random.Random(SEED)
    failures = {}
    for handler, count in FAILING.items():
        events = sorted({call.event for call in calls if call.handler == handler}, key=str)
        failures |= {event: dice.randint(1, 2) for event in dice.sample(events, count)}
        if handler == HOPELESS:
            failures[dice.choice(events)] = sys.maxsize
    return failures


def plan_job_deaths(failures):
    """The sessions of the job that die over an event."""
    dice = random.Random(SEED)
    doomed = dice.sample(sorted(failures, key=str), JOB_DEATHS)
    return {event: dice.choice([receiver.KILLED, receiver.VANISHED]) for event in doomed}


def find_given_up(calls, failures):
    """The events that end as dead letters: the hopeless one, and those which the bug of store_message meets."""
    met = {call.event for call in calls if call.handler in ONE_CALL_HANDLERS
           and json.loads(call.body).get("Event") == "subscribe" and "'" in json.loads(call.body)["FromUserName"]}
    return met | {event for event, attempts in failures.items() if attempts == sys.maxsize}


def sign(call, secret=None):
    """The delivery as its sender signs it now; WeCom's is as it was."""
    secret = secret or SECRETS.get(call.source, "")

    def digest(signed):
        return hmac.new(secret.encode(), signed.encode(), hashlib.sha256).hexdigest()

    if call.source == "stripe":
        now = int(time.time())
        return call._replace(signature=f"t={now},v1={digest(f'{now}.{call.body}')}")
    if call.source == "github":
        return call._replace(signature=f"sha256={digest(call.body)}")
    return call


def forge(calls):
    """Deliveries of somebody who knows the ids of events to come, but no secret."""
    stripe = [call for call in calls if call.source == "stripe" and not call.forged]
    return [sign(call._replace(body=call.body.replace('"amount": ', '"amount": 9')), secret="a guess")
            for call in random.Random(SEED).sample(stripe, FORGERIES)]


def replay(pool, groups, choose_handler, deaths, sent=lambda call: call):
    """Delivers all groups, one after the other, and returns every (call, answer), the refused ones too."""
    deaths, log = dict(deaths), []
    for group in groups:
        waiting, pause, patience_ends = group, FIRST_PAUSE_SECONDS, time.monotonic() + PATIENCE_SECONDS
        while True:
            answers = deliver_together(pool, [sent(call) for call in waiting], choose_handler, deaths)
            log += answers
            waiting = [call for call, answer in answers if answer.outcome in (None, "busy")]
            if not waiting:
                break
            if time.monotonic() > patience_ends:
                sys.exit(f"replay.py: no final answer in {PATIENCE_SECONDS} s: {waiting[0]}")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    return log


def deliver_together(pool, calls, choose_handler, deaths):
    """Delivers each call in a session of its own, all at the same time."""
    start = threading.Barrier(len(calls))

    def session(call):
        receiver.connection()
        start.wait(timeout=PATIENCE_SECONDS)
        answer = receiver.receive(choose_handler(call), call, deaths.pop(call.number, None))
        return call, answer._replace(at=time.monotonic())

    return list(pool.map(session, calls))


def end_dead_letters(letters):
    """What an operator does: has the bug fixed and lets its events be tried again; does the rest by hand."""
    with receiver.shared_connection("operator").cursor() as cursor:
        cursor.execute((FOLDER / "fix.sql").read_text(encoding="utf-8"))
    for letter in letters:
        if letter.handler == HOPELESS:
            job.resolve(letter, report.NOTE)
        else:
            job.requeue(letter)


def main():
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    groups = side_by_side(read_bursts(expected))
    calls = [call for group in groups for call in group]
    deaths = plan_deaths(groups)
    failures = plan_failures(calls)
    receiver.failing_attempts.update(failures)
    with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        forgeries = deliver_together(pool, forge(calls), with_idem, {})
        compensating = job.Job(plan_job_deaths(failures))
        log = replay(pool, groups, with_idem, deaths, sent=sign)
        compensating.wait()
        letters = job.dead_letters()
        end_dead_letters(letters)
        compensating.wait()
        compensating.stop()
        replay(pool, groups, lambda call: receiver.without_idem, deaths)
    return report.print_report(
        receiver.connection(), expected, log, SESSIONS, forgeries, compensating.tries, letters,
        find_given_up(calls, failures))


if __name__ == "__main__":
    sys.exit(main())
