# The server that is measured: sessions on it, what its processes use, and pgbench.

import os
import re
import subprocess

import psycopg2


def session():
    """A cursor of a connection of its own, which commits after each statement."""
    connection = psycopg2.connect("")
    connection.autocommit = True
    return connection.cursor()


def value(cursor, query, arguments=None):
    cursor.execute(query, arguments)
    return cursor.fetchone()[0]


def process_of(cursor):
    return value(cursor, "SELECT pg_backend_pid()")


def cpu_ns(process):
    """CPU time of a process, as the kernel accounts it."""
    with open(f"/proc/{process}/schedstat") as schedstat:
        return int(schedstat.read().split()[0])


def private_kb(process):
    """Memory which a process shares with nobody."""
    with open(f"/proc/{process}/status") as status:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", status.read(), re.MULTILINE)[1])


def wal_position(cursor):
    return int(value(cursor, "SELECT pg_current_wal_insert_lsn() - '0/0'"))


def set_setting(cursor, name, setting):
    """Sets what a reload can change, and waits until this session has it."""
    cursor.execute(f"ALTER SYSTEM SET {name} = '{setting}'")
    cursor.execute("SELECT pg_reload_conf()")
    while value(cursor, f"SHOW {name}") != setting:
        pass


def tps(script, clients, seconds, dropped, synchronous_commit="off", **variables):
    """Transactions per second that pgbench reports for each second but the first ones; script is its text."""
    environment = dict(os.environ, PGOPTIONS=f"-c synchronous_commit={synchronous_commit}")
    run = subprocess.run(
        ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(seconds),
         "-P", "1", *[f"-D{name}={setting}" for name, setting in variables.items()], "-f", "-"],
        env=environment, input=script, capture_output=True, text=True)
    failed = re.search(r"number of failed transactions: (\d+)", run.stdout)
    if run.returncode != 0 or not failed or int(failed[1]) > 0:
        raise SystemExit(f"pgbench failed on\n{script}\n{run.stdout}{run.stderr}")
    rates = [float(rate) for rate in re.findall(r"^progress: [\d.]+ s, ([\d.]+) tps", run.stderr, re.MULTILINE)]
    if len(rates) <= dropped:
        raise SystemExit(f"pgbench reported too few seconds of\n{script}\n{run.stderr}")
    return rates[dropped:]
