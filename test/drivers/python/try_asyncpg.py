"""asyncpg, each call run to its end."""

import asyncio
import datetime
import json

import asyncpg

from scenario import run


class Driver:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.session = self.loop.run_until_complete(asyncpg.connect())

    def ask(self, statement, *parameters):
        return [dict(row) for row in self.loop.run_until_complete(self.session.fetch(statement, *parameters))]

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
        return datetime.timedelta(seconds=seconds)

    def sqlstate(self, error):
        return error.sqlstate


run(Driver())
