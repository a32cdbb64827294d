"""SQLAlchemy, on psycopg2."""

import json

import sqlalchemy
from sqlalchemy import text

from scenario import run, with_placeholders


class Driver:
    def __init__(self):
        engine = sqlalchemy.create_engine("postgresql+psycopg2://", isolation_level="AUTOCOMMIT")
        self.session = engine.connect()

    def ask(self, statement, *parameters):
        result = self.session.execute(
            text(with_placeholders(statement, lambda number: f"(:p{number})")),
            {f"p{number}": value for number, value in enumerate(parameters, 1)})
        return [dict(row) for row in result.mappings()] if result.returns_rows else []

    def begin(self):
        self.ask("BEGIN")

    def commit(self):
        self.ask("COMMIT")

    def bytes(self, value):
        return value

    def json(self, value):
        return json.dumps(value)

    def texts(self, values):
        return values

    def interval(self, seconds):
        return f"{seconds} seconds"

    def sqlstate(self, error):
        return error.orig.pgcode


run(Driver())
