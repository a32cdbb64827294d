"""The receiver of the demo's webhooks: what its handlers do with a delivery, and how the demo lets them die over it.

Every thread is a session with a connection of its own. A handler function takes a connection, a call (one delivery to
one handler) and the death that is planned for it, and returns the answer to the sender.
"""

import functools
import os
import socket
import threading
import time
from typing import NamedTuple, Optional

import psycopg2
import psycopg2.extras

LEASE_SECONDS = 1

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


class Call(NamedTuple):
    """One delivery to one handler; its fields are the parameters of the SQL below."""

    number: int
    source: str
    handler: str
    event_id: str
    batch: Optional[str]
    body: str
    cents: int
    forged: bool


class Answer(NamedTuple):
    """What the sender hears; outcome None: nothing, the connection broke."""

    outcome: Optional[str]
    attempt: int = 1
    result: Optional[dict] = None


class Died(Exception):
    """The session is no more."""


def in_one_transaction(db, call, death):
    """Claim, business write and settling share a transaction, so that a death leaves nothing behind."""
    with db.cursor() as cursor:
        cursor.execute(
            "SELECT acquired, outcome, attempt, result FROM idem_acquire('inbox', %(handler)s, %(event_id)s, %(batch)s,"
            f" fingerprint => {FINGERPRINT[call.source]})", call._asdict())
        claim = cursor.fetchone()
        if claim.acquired:
            book("ledger", cursor, call)
            cursor.execute(
                "SELECT idem_commit('inbox', %(handler)s, %(event_id)s, %(batch)s,"
                f" result => {RESULT})", call._asdict())
    die_early(db, death)
    db.commit()
    return Answer(claim.outcome, claim.attempt, claim.result)


def in_one_statement(db, call, death):
    """Where the business write is one statement and its result known beforehand, that statement is all it takes."""
    with db.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger (handler, event_id, batch, cents)"
            " SELECT %(handler)s, %(event_id)s, %(batch)s, %(cents)s"
            " FROM idem_accept('inbox', %(handler)s, %(event_id)s, %(batch)s,"
            f" result => {RESULT}) WHERE acquired", call._asdict())
        answer = Answer("acquired")
        if cursor.rowcount == 0:
            # Done before, or in the hands of a session which may yet fail? Only a committed row says done.
            cursor.execute(
                "SELECT state, result FROM idem_lookup('inbox', %(handler)s, %(event_id)s, %(batch)s)", call._asdict())
            event = cursor.fetchone()
            answer = Answer("duplicate", result=event.result) if event.state == "done" else Answer("busy")
    die_early(db, death)
    db.commit()
    return answer


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
            f" %(batch)s, fingerprint => {FINGERPRINT[call.source]}, hot_window => make_interval(secs => %(lease)s))",
            {**call._asdict(), "lease": LEASE_SECONDS})
        claim = cursor.fetchone()
        db.commit()
        if not claim.acquired:
            return Answer(claim.outcome, claim.attempt, claim.result)
        die_early(db, death)
        if time.monotonic() - claimed_at > LEASE_SECONDS / 2:
            # On a stalled machine the lease might end while the message goes out; leave it to whoever comes after.
            return Answer("busy")
        with shared_connection("message service").cursor() as service:
            book("outside_world", service, call)
        cursor.execute(
            "SELECT idem_commit('outside', %(handler)s, %(event_id)s, %(batch)s, attempt => %(attempt)s,"
            f" result => {RESULT})", {**call._asdict(), "attempt": claim.attempt})
        db.commit()
    return Answer(claim.outcome, claim.attempt)


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


this_thread = threading.local()


def connection():
    """The connection of this thread, a new one after a death."""
    if not hasattr(this_thread, "db") or this_thread.db.closed:
        this_thread.db = psycopg2.connect("", cursor_factory=psycopg2.extras.NamedTupleCursor)
    return this_thread.db


@functools.lru_cache(maxsize=None)
def shared_connection(name):
    """A connection which takes no part in anybody's transaction."""
    db = psycopg2.connect("", application_name=name)
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


def receive(handle, call, death):
    """Hands a call to its handler and returns the answer; whoever dies does not answer."""
    db = connection()
    try:
        answer = handle(db, call, death)
        if death == UNANSWERED:
            raise Died
        return answer
    except Died:
        db.close()
        return Answer(None)
