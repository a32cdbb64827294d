"""Django, by a raw cursor."""

import json
import os

from django.conf import settings

settings.configure(USE_TZ=True, DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"],
    "PASSWORD": os.environ["PGPASSWORD"], "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"]}})

from django.db import connection, transaction

from scenario import run, with_placeholders


class Driver:
    def ask(self, statement, *parameters):
        with connection.cursor() as cursor:
            cursor.execute(with_placeholders(statement, lambda _: "%s"), parameters)
            if not cursor.description:
                return []
            names = [column.name for column in cursor.description]
            return [dict(zip(names, row)) for row in cursor.fetchall()]

    def begin(self):
        transaction.set_autocommit(False)

    def commit(self):
        transaction.commit()
        transaction.set_autocommit(True)

    def bytes(self, value):
        return value

    def json(self, value):
        return json.dumps(value)

    def texts(self, values):
        return values

    def interval(self, seconds):
        return f"{seconds} seconds"

    def sqlstate(self, error):
        return error.__cause__.pgcode


run(Driver())
