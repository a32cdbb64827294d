"""psycopg 3."""

import datetime

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json

from scenario import run, with_placeholders


class Driver:
    def __init__(self):
        self.session = psycopg.connect("", autocommit=True, row_factory=dict_row)

    def ask(self, statement, *parameters):
        cursor = self.session.execute(with_placeholders(statement, lambda _: "%s"), parameters)
        return cursor.fetchall() if cursor.description else []

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
        return datetime.timedelta(seconds=seconds)

    def sqlstate(self, error):
        return error.sqlstate


run(Driver())
