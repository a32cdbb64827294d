"""The compensating job of the demo: sessions which try again what failed, and what a dead session left behind.

They run beside the deliveries. Which of them die over an event, once, is planned as for the deliveries. Beside them
somebody turns the rings of the dedup tables, as idem's worker would within days.
"""

import concurrent.futures
import json
import sys
import threading
import time

import psycopg2

import receiver

SESSIONS = 4
EVENTS = 5  # that a session takes at once
RENEWED_SECONDS = receiver.LEASE_SECONDS / 4  # after which it renews the leases of those it has not come to yet
PAUSE_SECONDS = 0.05  # before it looks again
TURNS = 5  # of each ring
SECONDS_A_TURN = 1
PATIENCE_SECONDS = 60

UNFINISHED = "SELECT count(*) FROM (TABLE inbox UNION ALL TABLE outside) AS event WHERE state NOT IN ('done', 'dead')"


class Job:
    """Starts when it is made. `tries` is every (event, outcome) that it tried, outcome None where a session died."""

    def __init__(self, deaths):
        self.deaths = dict(deaths)
        self.tries = []
        self.over = threading.Event()
        pool = concurrent.futures.ThreadPoolExecutor(SESSIONS + 1)
        self.sessions = [pool.submit(self.compensate) for _ in range(SESSIONS)] + [pool.submit(self.turn)]

    def compensate(self):
        """A session of the job."""
        while not self.over.is_set():
            if not self.try_in_transaction() + self.try_with_lease():
                self.over.wait(PAUSE_SECONDS)

    def try_in_transaction(self):
        """Claims what is due, works and settles in one transaction; returns how many events there were."""
        db, tried = receiver.connection(), []
        with db.cursor() as cursor:
            cursor.execute("SELECT * FROM idem_due('inbox', max_events => %s)", [EVENTS])
            due = cursor.fetchall()
            for event in due:
                call = call_of(event)
                if self.dies(db, call):
                    return len(due)  # nothing of what this transaction did takes effect
                tried.append((call.event, receiver.work_and_settle(cursor, call, event.attempt)))
        db.commit()
        self.tries += tried
        return len(due)

    def try_with_lease(self):
        """Claims what is due, commits, sends the message and settles; returns how many events there were."""
        db, claimed_at = receiver.connection(), time.monotonic()
        with db.cursor() as cursor:
            cursor.execute("SELECT * FROM idem_due('outside', max_events => %s)", [EVENTS])
            due = cursor.fetchall()
        db.commit()
        left = list(due)
        while left:
            if time.monotonic() - claimed_at > RENEWED_SECONDS:
                claimed_at = time.monotonic()
                left = self.renew(db, left)
                continue
            event = left.pop(0)
            call = call_of(event)
            if self.dies(db, call):
                break  # the leases of all that are left run out
            self.tries.append((call.event, receiver.send_and_settle(db, call, event.attempt, claimed_at)))
        return len(due)

    def renew(self, db, events):
        """The heartbeat of all that a session has not come to yet; returns those which are still its own."""
        kept = []
        with db.cursor() as cursor:
            for handler, batch in dict.fromkeys((event.handler, event.batch) for event in events):
                mine = [event for event in events if (event.handler, event.batch) == (handler, batch)]
                cursor.execute(
                    "SELECT extended FROM idem_extend_many('outside', %s, %s, %s, attempts => %s)",
                    [handler, [event.event_id for event in mine], batch, [event.attempt for event in mine]])
                kept += [event for event, lease in zip(mine, cursor.fetchall()) if lease.extended]
        db.commit()
        return kept

    def dies(self, db, call):
        """Whether the session dies now; the next one will have a new connection."""
        try:
            receiver.die_early(db, self.deaths.pop(call.event, None))
        except receiver.Died:
            db.close()
            self.tries.append((call.event, None))
            return True
        return False

    def turn(self):
        """Opens new generations beside all this, and purges."""
        turned = 0
        with receiver.shared_connection("purge").cursor() as cursor:
            while turned < TURNS or not self.over.is_set():
                try:
                    if turned < TURNS:
                        cursor.execute("CALL idem_rotate('inbox')")
                        cursor.execute("CALL idem_rotate('outside')")
                        turned += 1
                    cursor.execute("CALL idem_purge()")
                except psycopg2.errors.LockNotAvailable:
                    pass  # too busy just now
                self.over.wait(SECONDS_A_TURN)

    def wait(self):
        """Returns when every event is done or dead."""
        patience_ends = time.monotonic() + PATIENCE_SECONDS
        with receiver.shared_connection("onlooker").cursor() as cursor:
            cursor.execute(UNFINISHED)
            while cursor.fetchone().count > 0:
                if time.monotonic() > patience_ends or any(session.done() for session in self.sessions):
                    self.stop()
                    sys.exit(f"job.py: there are events which were neither done nor dead after {PATIENCE_SECONDS} s")
                time.sleep(PAUSE_SECONDS)
                cursor.execute(UNFINISHED)

    def stop(self):
        """Ends its sessions, and raises what they have raised."""
        self.over.set()
        for session in self.sessions:
            session.result()


def call_of(event):
    """The call that an event of idem_due was kept from."""
    return receiver.Call(
        number=-1,
        source=event.handler.split("/")[0],
        handler=event.handler,
        event_id=event.event_id,
        batch=event.batch,
        body=json.dumps(event.payload, ensure_ascii=False),
        cents=receiver.cents(event.handler, event.payload))


def dead_letters():
    """What was given up."""
    with receiver.shared_connection("operator").cursor() as cursor:
        cursor.execute("SELECT handler, event_id, batch, failures, error FROM idem_dead_letters('inbox')"
                       " UNION ALL SELECT handler, event_id, batch, failures, error FROM idem_dead_letters('outside')"
                       " ORDER BY handler, event_id")
        return cursor.fetchall()


def requeue(letter):
    """Lets the job try a dead event again."""
    with receiver.shared_connection("operator").cursor() as cursor:
        cursor.execute("SELECT idem_requeue('inbox', %s, %s, %s)", [letter.handler, letter.event_id, letter.batch])


def resolve(letter, note):
    """Does by hand what the handler should have done, and says so, in one statement."""
    with receiver.shared_connection("operator").cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger SELECT %(handler)s, %(event_id)s, %(batch)s, 0"
            " FROM idem_resolve('inbox', %(handler)s, %(event_id)s, %(batch)s, note => %(note)s,"
            " result => '{\"cents\": 0}') WHERE outcome = 'duplicate'", {**letter._asdict(), "note": note})
