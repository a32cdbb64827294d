"""The receiver of the demo's webhooks: what its handlers do with a delivery, and how the demo lets them fail and die.

Every thread is a session with a connection of its own. A handler function takes a connection, a call (one delivery to
one handler) and the death that is planned for it, and returns the answer to the sender.
"""

import functools
import os
import socket
import sys
import threading
import time
from typing import NamedTuple, Optional

import psycopg2
import psycopg2.extras

LEASE_SECONDS = 1  # the hot window in schema.sql

# Ways to die. A killed session (by the server) and a vanished one (its machine is gone) die before COMMIT, or before
# the message goes out; an unanswered one dies after all is done, but before it tells its sender.
KILLED, VANISHED, UNANSWERED = "killed", "vanished", "unanswered"

# What must not differ between two deliveries of an event. Stripe's pending_webhooks and request.id may, so only what
# the handlers act on counts; GitHub sends the same bytes again; for WeCom nothing is checked.
FINGERPRINT = {
    "stripe": "idem_fingerprint(%(body)s::jsonb, 'type', '{data,object,amount}', '{data,object,currency}')",
    "github": "idem_fingerprint(%(body)s::text)",
    "wecom": "NULL",
}

# What a handler stores with a settled event, and a duplicate is answered with.
RESULT = "jsonb_build_object('cents', %(cents)s)"

NOT_FINAL = "ID004"


class Call(NamedTuple):
    """One delivery to one handler; its fields are the parameters of the SQL below."""

    number: int
    source: str
    handler: str
    event_id: str
    batch: Optional[str]
    body: str
    cents: int
    forged: bool = False
    signature: Optional[str] = None

    @property
    def event(self):
        """What idem knows the event by."""
        return self.handler, self.event_id, self.batch


class Answer(NamedTuple):
    """What the sender hears; outcome None: nothing, the connection broke."""

    outcome: Optional[str]
    attempt: int = 1
    result: Optional[dict] = None
    at: float = 0  # when, by the sender's clock


class Died(Exception):
    """The session is no more."""


class Failed(Exception):
    """The handler could not do its work; a further try may."""

    retry = True


class Hopeless(Failed):
    """No further try can do it either."""

    retry = False


# How many attempts fail, the first ones, by event; set by replay.py.
failing_attempts = {}

OVERLOADED, UNKNOWN_CUSTOMER = "the service is overloaded", "the CRM knows no such customer"


def in_one_transaction(db, call, death):
    """Claim, business write and settling share a transaction, so that a death leaves nothing behind."""
    with db.cursor() as cursor:
        cursor.execute(
            "SELECT acquired, outcome, attempt, result FROM idem_acquire('inbox', %(handler)s, %(event_id)s, %(batch)s,"
            f" payload => %(body)s, fingerprint => {FINGERPRINT[call.source]})", call._asdict())
        claim = cursor.fetchone()
        outcome = work_and_settle(cursor, call, claim.attempt) if claim.acquired else claim.outcome
    die_early(db, death)
    db.commit()
    return Answer(outcome, claim.attempt, claim.result)


def work_and_settle(cursor, call, attempt):
    """Does the work and commits the claim. If the work fails, undoes it and keeps the event with its error."""
    cursor.execute("SAVEPOINT work")
    try:
        if call.handler == "wecom/store-message":
            cursor.execute("SELECT store_message(%(body)s)", call._asdict())
        else:
            book("ledger", cursor, call)
        fail_early(call, attempt)
    except (Failed, psycopg2.ProgrammingError) as error:
        cursor.execute("ROLLBACK TO SAVEPOINT work")
        cursor.execute(
            "SELECT outcome FROM idem_release('inbox', %(handler)s, %(event_id)s, %(batch)s, error => %(error)s,"
            " retry => %(retry)s)",
            {**call._asdict(), "error": first_line(error), "retry": getattr(error, "retry", True)})
        return cursor.fetchone().outcome
    cursor.execute(
        f"SELECT idem_commit('inbox', %(handler)s, %(event_id)s, %(batch)s, result => {RESULT})", call._asdict())
    return "acquired"


def in_one_call(db, call, death):
    """Where the work is a function of the database, idem_once does all of it, also when it fails."""
    with db.cursor() as cursor:
        cursor.execute(
            "SELECT outcome, attempt, result FROM idem_once('inbox', %(handler)s, %(event_id)s, 'store_message(jsonb)',"
            " jsonb_build_object('event_id', %(event_id)s, 'batch', %(batch)s, 'message', %(body)s::jsonb),"
            " batch => %(batch)s)", call._asdict())
        claim = cursor.fetchone()
    die_early(db, death)
    db.commit()
    return Answer(claim.outcome, claim.attempt, claim.result)


def in_one_statement(db, call, death):
    """Where the business write is one statement and its result known beforehand, that statement is all it takes."""
    with db.cursor() as cursor:
        try:
            cursor.execute(
                "WITH accept AS MATERIALIZED ("
                "  SELECT * FROM idem_accept('inbox', %(handler)s, %(event_id)s, %(batch)s,"
                f"   result => {RESULT})),"
                " effect AS ("
                "  INSERT INTO ledger (handler, event_id, batch, cents)"
                "  SELECT %(handler)s, %(event_id)s, %(batch)s, %(cents)s FROM accept WHERE acquired)"
                " SELECT outcome, attempt, result FROM accept", call._asdict())
        except psycopg2.Error as error:
            if error.pgcode != NOT_FINAL:
                raise
            # In the hands of a session which may yet fail: the sender has to come again.
            db.rollback()
            return Answer("busy")
        claim = cursor.fetchone()
    die_early(db, death)
    db.commit()
    return Answer(claim.outcome, claim.attempt, claim.result)


def with_lease(db, call, death):
    """A message that left cannot be rolled back: commit the claim, send the message, settle the claim.

    The demo's sessions die before the message: the lease runs out, and a later delivery takes over. A death between
    message and idem_commit would send it twice, with idem as with anything else that does not sit at the other end.
    What helps there is a message service that takes an idempotency key, or can be asked what it has sent.
    """
    claimed_at = time.monotonic()
    with db.cursor() as cursor:
        cursor.execute(
            "SELECT acquired, outcome, attempt, result FROM idem_acquire('outside', %(handler)s, %(event_id)s,"
            f" %(batch)s, payload => %(body)s, fingerprint => {FINGERPRINT[call.source]})", call._asdict())
        claim = cursor.fetchone()
    db.commit()
    if not claim.acquired:
        return Answer(claim.outcome, claim.attempt, claim.result)
    die_early(db, death)
    return Answer(send_and_settle(db, call, claim.attempt, claimed_at), claim.attempt)


def send_and_settle(db, call, attempt, claimed_at):
    """Sends the message of a committed claim, and settles that as done; or as failed, if it could not be sent."""
    if time.monotonic() - claimed_at > LEASE_SECONDS / 2:
        # On a stalled machine the lease might end while the message goes out; leave it to whoever comes after.
        return "busy"
    with db.cursor() as cursor:
        try:
            fail_early(call, attempt)
            with shared_connection("message service").cursor() as service:
                book("outside_world", service, call)
            outcome = "acquired"
            cursor.execute(
                "SELECT idem_commit('outside', %(handler)s, %(event_id)s, %(batch)s, attempt => %(attempt)s,"
                f" result => {RESULT})", {**call._asdict(), "attempt": attempt})
        except Failed as error:
            cursor.execute(
                "SELECT outcome FROM idem_release('outside', %(handler)s, %(event_id)s, %(batch)s,"
                " attempt => %(attempt)s, error => %(error)s, retry => %(retry)s)",
                {**call._asdict(), "attempt": attempt, "error": first_line(error), "retry": error.retry})
            outcome = cursor.fetchone().outcome
    db.commit()
    return outcome


def without_idem(db, call, death):
    """Every delivery takes effect."""
    with db.cursor() as cursor:
        book("ledger_without_idem", cursor, call)
    die_early(db, death)
    db.commit()
    return Answer("acquired")


def book(table, cursor, call):
    """The effect of an event."""
    cursor.execute(
        f"INSERT INTO {table} (handler, event_id, batch, cents)"
        " VALUES (%(handler)s, %(event_id)s, %(batch)s, %(cents)s)", call._asdict())


def cents(handler, body):
    """What a handler has to book."""
    return body["data"]["object"]["amount"] if handler == "stripe/charge-wallet" else 0


def first_line(error):
    """What went wrong, as it is kept with the event."""
    return str(error).splitlines()[0]


def fail_early(call, attempt):
    """Fails, if so planned: for a while, or for good."""
    attempts = failing_attempts.get(call.event, 0)
    if attempt <= attempts:
        raise Hopeless(UNKNOWN_CUSTOMER) if attempts == sys.maxsize else Failed(OVERLOADED)


this_thread = threading.local()


def connection():
    """The connection of this thread, a new one after a death."""
    if not hasattr(this_thread, "db") or this_thread.db.closed:
        this_thread.db = psycopg2.connect("", cursor_factory=psycopg2.extras.NamedTupleCursor)
    return this_thread.db


@functools.lru_cache(maxsize=None)
def shared_connection(name):
    """A connection which takes no part in anybody's transaction."""
    db = psycopg2.connect("", application_name=name, cursor_factory=psycopg2.extras.NamedTupleCursor)
    db.autocommit = True
    return db


def die_early(db, death):
    """Breaks the session in the middle of its transaction, if so planned."""
    if death == KILLED:
        with shared_connection("administrator").cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, timeout => 10000)", [db.info.backend_pid])
        raise Died
    if death == VANISHED:
        with socket.socket(fileno=os.dup(db.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        raise Died


def is_genuine(db, call):
    """Whether the sender has signed the delivery. Who has not must not get as far as to occupy the event's id."""
    with db.cursor() as cursor:
        cursor.execute(
            "SELECT idem_verify_signature(source, convert_to(%(body)s, 'UTF8'), %(signature)s, secret) AS genuine"
            " FROM webhook_secret WHERE source = %(source)s", call._asdict())
        return cursor.fetchone().genuine


def receive(handle, call, death):
    """Hands a call to its handler and returns the answer; whoever dies does not answer."""
    db = connection()
    try:
        if call.signature is not None and not is_genuine(db, call):
            db.rollback()
            return Answer("refused")
        answer = handle(db, call, death)
        if death == UNANSWERED:
            raise Died
        return answer
    except Died:
        db.close()
        return Answer(None)
