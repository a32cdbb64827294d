"""psycopg2."""

import psycopg2
from psycopg2.extras import Json, RealDictCursor

from scenario import run, with_placeholders


class Driver:
    def __init__(self):
        self.session = psycopg2.connect("")
        self.session.autocommit = True
        self.cursor = self.session.cursor(cursor_factory=RealDictCursor)

    def ask(self, statement, *parameters):
        self.cursor.execute(with_placeholders(statement, lambda _: "%s"), parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    def begin(self):
        self.ask("BEGIN")

    def commit(self):
        self.ask("COMMIT")

    def bytes(self, value):
        return value

    def json(self, value):
        return Json(value)

    def texts(self, values):
        return values

    def interval(self, seconds):
        return f"{seconds} seconds"

    def sqlstate(self, error):
        return error.pgcode


run(Driver())
