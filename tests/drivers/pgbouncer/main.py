"""pgbouncer in front of the server: sessions and transactions of clients share its connections."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from urllib.parse import parse_qsl, urlsplit

import psycopg

import checks
from checks import URL, check, equal, main, refused

PLACE = urlsplit(URL)
PARAMETERS = dict(parse_qsl(PLACE.query))
POOL = 2


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Bouncer:
    """A pgbouncer with a pool of two connections for each of `session`, `transaction` and `statement`."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pgbouncer-")
        self.port = free_port()
        # It takes no root for its user.
        self.user = "nobody" if os.geteuid() == 0 else None
        server = f"host={PLACE.hostname} port={PLACE.port} dbname={PLACE.path.strip('/')} user={PLACE.username}"
        if PLACE.password:
            server += f" password={PLACE.password}"
        modes = [f"{mode} = {server} pool_mode={mode}" for mode in ("session", "transaction", "statement")]
        settings = [
            "listen_addr = 127.0.0.1",
            f"listen_port = {self.port}",
            "unix_socket_dir =",
            f"auth_type = {'scram-sha-256' if PLACE.password else 'trust'}",
            f"auth_file = {self.folder}/users",
            f"admin_users = {PLACE.username}",
            f"default_pool_size = {POOL}",
            "max_client_conn = 200",
            "server_reset_query = DISCARD ALL",
            "ignore_startup_parameters = extra_float_digits",
            f"logfile = {self.folder}/log",
        ]
        if checks.SECURED:
            self.write("root.crt", open(PARAMETERS["sslrootcert"]).read())
            settings += ["server_tls_sslmode = verify-full", f"server_tls_ca_file = {self.folder}/root.crt"]
        self.write("users", f'"{PLACE.username}" "{PLACE.password or ""}"\n')
        self.write("ini", "\n".join(["[databases]", *modes, "[pgbouncer]", *settings]) + "\n")
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        # Where it lies is not on everybody's path.
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        command = [program, "-q", *(["-u", self.user] if self.user else []), f"{self.folder}/ini"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"pgbouncer does not listen: {open(self.folder + '/log').read()}")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        if self.user:
            os.chown(path, pwd.getpwnam(self.user).pw_uid, -1)

    def connect(self, mode, password=PLACE.password, **arguments):
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=mode, user=PLACE.username, password=password, connect_timeout=10, **arguments
        )


BOUNCER = Bouncer()
connect = BOUNCER.connect


def one(connection, query, arguments=None):
    return connection.execute(query, arguments).fetchone()[0]


@check
def a_session_migrates():
    with connect("session") as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE item (id int PRIMARY KEY, label text)")
        equal(connection.info.server_version // 10000, 15)
        equal(one(connection, "SELECT 40 + %s", (2,)), 42)


@check
def a_session_leaves_nothing_to_the_next():
    for _ in range(2 * POOL):
        with connect("session", autocommit=True) as connection:
            equal(one(connection, "SHOW search_path"), '"$user", public')
            equal(one(connection, "SELECT count(*) FROM pg_prepared_statements"), 0)
            equal(one(connection, "SELECT count(*) FROM pg_listening_channels()"), 0)
            equal(one(connection, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"), 0)
            connection.execute("SET search_path TO pg_catalog; CREATE TEMP TABLE passing (a int); LISTEN news")
            connection.execute("SELECT pg_advisory_lock(5)")
            connection.execute("SELECT %s::int", (1,), prepare=True)


@check
def a_session_uses_cursors_copy_and_savepoints():
    with connect("session") as connection:
        with connection.cursor() as cursor, cursor.copy("COPY item FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "text"])
            for n in range(1000):
                copy.write_row((n, f"l{n}"))
        with connection.cursor("steps") as cursor:
            cursor.itersize = 100
            equal(sum(row[0] for row in cursor.execute("SELECT id FROM item")), 499500)
        with refused("23505"):
            with connection.transaction():
                connection.execute("INSERT INTO item VALUES (1)")
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(20)]
        equal([cursor.fetchone()[0] for cursor in cursors], list(range(20)))
        connection.rollback()


@check
def many_clients_share_few_connections():
    seen, errors = set(), []

    def work(n):
        try:
            with connect("transaction", prepare_threshold=None) as connection:
                for _ in range(5):
                    with connection.transaction():
                        connection.execute("INSERT INTO item VALUES (%s, 'x') ON CONFLICT (id) DO UPDATE SET label = 'y'", (n % 7,))
                        seen.add(one(connection, "SELECT pg_backend_pid()"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(errors, [])
    assert len(seen) <= POOL, seen


@check
def what_a_transaction_sets_is_its_own():
    with connect("transaction", prepare_threshold=None) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL search_path TO pg_catalog")
            equal(one(connection, "SELECT set_config('my.tenant', 'seven', true)"), "seven")
            equal(one(connection, "SELECT pg_try_advisory_xact_lock(9)"), True)
    with connect("transaction", prepare_threshold=None) as connection:
        equal(one(connection, "SHOW search_path"), '"$user", public')
        equal(one(connection, "SELECT current_setting('my.tenant', true)") or "", "")


@check
def parameters_of_a_client_follow_it():
    with connect("transaction", prepare_threshold=None, application_name="mine") as first:
        with connect("transaction", prepare_threshold=None, application_name="yours") as second:
            for connection, name in ((first, "mine"), (second, "yours"), (first, "mine")):
                with connection.transaction():
                    equal(one(connection, "SHOW application_name"), name)
            first.execute("SET TIME ZONE 'Europe/Prague'")
            first.commit()
            equal((one(first, "SHOW TimeZone"), one(second, "SHOW TimeZone") != "Europe/Prague"), ("Europe/Prague", True))


@check
def a_running_query_is_cancelled():
    with connect("transaction", prepare_threshold=None) as connection:
        threading.Timer(0.3, connection.cancel).start()
        with refused("57014"):
            connection.execute("SELECT pg_sleep(20)")
        connection.rollback()
        equal(one(connection, "SELECT 1"), 1)


@check
def an_error_leaves_the_connection_to_others():
    for mode in ("session", "transaction"):
        for state, query in (("42601", "SELEC"), ("42P01", "SELECT * FROM nowhere"), ("22012", "SELECT 1 / 0")):
            with connect(mode, prepare_threshold=None) as connection:
                with refused(state):
                    connection.execute(query)
                connection.rollback()
    with connect("statement", autocommit=True, prepare_threshold=None) as connection:
        equal(one(connection, "SELECT %s::int", (7,)), 7)


@check
def a_client_that_goes_takes_its_transaction_with_it():
    connection = connect("transaction", prepare_threshold=None)
    connection.execute("INSERT INTO item VALUES (5000)")
    connection.pgconn.finish()
    deadline = time.monotonic() + 10
    with connect("transaction", autocommit=True, prepare_threshold=None) as other:
        while time.monotonic() < deadline:
            if one(other, "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'") == 0:
                break
            time.sleep(0.05)
        equal(one(other, "SELECT count(*) FROM item WHERE id = 5000"), 0)


@check
def it_is_paused_and_told_about():
    with connect("pgbouncer", autocommit=True) as console:
        # Its console speaks the simple protocol alone.
        for command in (b"PAUSE transaction", b"RESUME transaction", b"RECONNECT transaction", b"SHOW POOLS"):
            result = console.pgconn.exec_(command)
            assert result.status in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK), result.error_message
    with connect("transaction", autocommit=True, prepare_threshold=None) as connection:
        equal(one(connection, "SELECT 1"), 1)


@check(secured=True)
def its_connections_are_encrypted():
    with connect("session") as connection:
        equal(one(connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), True)
    try:
        connect("session", password="wrong").close()
        raise AssertionError("is let in")
    except psycopg.OperationalError as error:
        assert "SASL authentication failed" in str(error) or "password authentication failed" in str(error), error


main(cleanup=BOUNCER.process.terminate)
