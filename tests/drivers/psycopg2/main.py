"""psycopg 2 as an application uses it: the old driver, which sends text and interpolates by itself."""

import datetime
import decimal
import io
import select
import tempfile
import threading
import time
import uuid

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import psycopg2.pool
from psycopg2 import sql

import checks
from checks import URL, check, equal, main, other_root, url_with

SCHEMA = """
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE place AS (street text, number int);
CREATE TABLE item (id int PRIMARY KEY, label text CONSTRAINT item_label_once UNIQUE);
CREATE FUNCTION add(a int, b int) RETURNS int LANGUAGE sql AS $$ SELECT a + b $$;
CREATE FUNCTION numbers() RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE c refcursor := 'numbers';
BEGIN OPEN c FOR SELECT n FROM generate_series(1, 5) AS n; RETURN c; END $$;
CREATE PROCEDURE split(p_text text, OUT p_first text, OUT p_length int) LANGUAGE plpgsql
AS $$ BEGIN p_first := left(p_text, 1); p_length := length(p_text); END $$;
"""


class refused(checks.refused):
    """As everywhere; this driver calls the SQLSTATE otherwise."""

    def __exit__(self, kind, value, trace):
        if isinstance(value, psycopg2.Error):
            value.sqlstate = value.pgcode
        return super().__exit__(kind, value, trace)


def connect(**arguments):
    return psycopg2.connect(URL, **arguments)


def one(connection, query, arguments=None):
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        return cursor.fetchone()[0]


@check
def migrates_with_many_statements_at_once():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(SCHEMA)
    with connect() as connection:
        equal(connection.server_version // 10000, 15)
        equal(one(connection, "SELECT 40 + %s", (2,)), 42)


@check
def values_come_back_as_they_went():
    with connect() as connection, connection.cursor() as cursor:
        psycopg2.extras.register_uuid(conn_or_curs=connection)
        psycopg2.extras.register_composite("place", connection)
        for value, kind in [
            (True, "boolean"),
            (2**63 - 1, "bigint"),
            (0.1, "double precision"),
            (decimal.Decimal("12345678901234567890.0123456789"), "numeric"),
            ("žluťoučký \n'\\", "text"),
            (datetime.date(1999, 12, 31), "date"),
            (datetime.time(23, 59, 59, 999999), "time"),
            (datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc), "timestamptz"),
            (datetime.timedelta(days=3, seconds=5), "interval"),
            (uuid.UUID("12345678-1234-5678-1234-567812345678"), "uuid"),
            ([1, None, 3], "int[]"),
            (["a", "b,c", '"'], "text[]"),
            ([[1, 2], [3, 4]], "int[]"),
            (None, "text"),
            ("happy", "mood"),
        ]:
            cursor.execute(f"SELECT %s::{kind}", (value,))
            equal((kind, cursor.fetchone()[0]), (kind, value))
        cursor.execute("SELECT %s, %s::jsonb, ROW('Main', 5)::place", (b"\x00\xff", psycopg2.extras.Json({"a": [1, None]})))
        raw, detail, place = cursor.fetchone()
        equal((bytes(raw), detail, (place.street, place.number)), (b"\x00\xff", {"a": [1, None]}, ("Main", 5)))
        equal([c.type_code for c in cursor.description[:2]], [17, 3802])


@check
def many_rows_are_inserted_at_once():
    with connect() as connection, connection.cursor() as cursor:
        rows = [(n, f"n{n}") for n in range(2000)]
        got = psycopg2.extras.execute_values(cursor, "INSERT INTO item VALUES %s RETURNING id", rows, fetch=True)
        equal(len(got), 2000)
        psycopg2.extras.execute_batch(cursor, "UPDATE item SET label = %s WHERE id = %s", [(f"m{n}", n) for n in range(300)])
        equal(one(connection, "SELECT count(*) FROM item WHERE label LIKE 'm%'"), 300)
        cursor.executemany("DELETE FROM item WHERE id = %s", [(n,) for n in range(10)])
        equal(one(connection, "SELECT count(*) FROM item"), 1990)
        connection.rollback()


@check
def copy_goes_both_ways():
    with connect() as connection, connection.cursor() as cursor:
        cursor.copy_from(io.StringIO("".join(f"{n}\tlabel {n}\n" for n in range(3000))), "item")
        out = io.BytesIO()
        cursor.copy_expert("COPY item TO STDOUT (FORMAT binary)", out)
        cursor.execute("TRUNCATE item")
        out.seek(0)
        cursor.copy_expert("COPY item FROM STDIN (FORMAT binary)", out)
        equal(cursor.rowcount, 3000)
        text = io.StringIO()
        cursor.copy_to(text, "item", sep="|", columns=("label", "id"))
        equal(text.getvalue().splitlines()[1], "label 1|1")
        with refused("22P02"):
            cursor.copy_from(io.StringIO("x\ty\n"), "item")
        connection.rollback()
        equal(one(connection, "SELECT count(*) FROM item"), 0)


@check
def large_objects_are_files():
    with connect() as connection:
        large = connection.lobject(0, "wb")
        equal((large.write(b"one two three"), large.tell()), (13, 13))
        equal((large.seek(4), large.write(b"TWO")), (4, 3))
        oid = large.oid
        large.close()
        connection.commit()
        large = connection.lobject(oid, "rb")
        equal((large.read(7), large.seek(-5, 2), large.read()), (b"one TWO", 8, b"three"))
        large.seek(0)
        large.close()
        large = connection.lobject(oid, "rwb")
        large.truncate(3)
        equal(large.read(), b"one")
        large.seek(5_000_000_000)
        large.write(b"far")
        equal(large.tell(), 5_000_000_003)
        large.truncate(0)
        large.seek(0)
        large.write(bytes(range(256)) * 4096)
        connection.commit()
        large = connection.lobject(oid, "rb")
        equal(large.read(), bytes(range(256)) * 4096)
        connection.rollback()
        with refused("42704"):
            one(connection, "SELECT loread(0, 1)")
        connection.rollback()
        with tempfile.NamedTemporaryFile() as file:
            connection.lobject(oid).export(file.name)
            copy = connection.lobject(0, "r", 0, file.name)
            equal(one(connection, "SELECT lo_get(%s) = lo_get(%s)", (copy.oid, oid)), True)
            copy.unlink()
        connection.lobject(oid).unlink()
        equal(one(connection, "SELECT count(*) FROM pg_largeobject WHERE loid = %s", (oid,)), 0)


@check
def transactions_and_savepoints_nest():
    with connect() as connection:
        connection.set_session(isolation_level="SERIALIZABLE", readonly=True)
        equal(one(connection, "SHOW transaction_isolation"), "serializable")
        with refused("25006"):
            one(connection, "DELETE FROM item RETURNING id")
        with refused("25P02"):
            one(connection, "SELECT 1")
        connection.rollback()
        connection.set_session(isolation_level="DEFAULT", readonly=False)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO item VALUES (1, 'kept'); SAVEPOINT one")
            with refused("23505") as error:
                cursor.execute("INSERT INTO item VALUES (2, 'kept')")
            assert isinstance(error.value, psycopg2.errors.UniqueViolation)
            equal(error.value.diag.constraint_name, "item_label_once")
            cursor.execute("ROLLBACK TO one")
        connection.rollback()


@check
def a_named_cursor_reads_in_steps():
    with connect() as connection:
        with connection.cursor("steps") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT n FROM generate_series(1, 1000) AS n")
            equal(sum(row[0] for row in cursor), 500500)
        with connection.cursor("there", scrollable=True, withhold=True) as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 100) AS n")
            connection.commit()
            cursor.scroll(50, mode="absolute")
            equal(cursor.fetchone(), (51,))
            cursor.scroll(-2)
            equal(cursor.fetchone(), (50,))
        connection.rollback()


@check
def functions_and_procedures_are_called():
    with connect() as connection, connection.cursor() as cursor:
        cursor.callproc("add", (40, 2))
        equal(cursor.fetchone(), (42,))
        cursor.callproc("add", {"b": 1, "a": 2})
        equal(cursor.fetchone(), (3,))
        cursor.callproc("numbers")
        with connection.cursor(cursor.fetchone()[0]) as named:
            equal(named.fetchmany(2), [(1,), (2,)])
            equal(len(named.fetchall()), 3)
        cursor.execute("CALL split(%s, NULL, NULL)", ("abc",))
        equal(cursor.fetchone(), ("a", 3))


@check
def rows_are_of_many_kinds():
    with connect(cursor_factory=psycopg2.extras.RealDictCursor) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT 1 AS {}, %(b)s AS b").format(sql.Identifier("A b")), {"b": "x"})
        equal(dict(cursor.fetchone()), {"A b": 1, "b": "x"})
    with connect() as connection, connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor) as cursor:
        cursor.execute("SELECT 7 AS seven")
        equal(cursor.fetchone().seven, 7)


@check
def notifications_and_notices_arrive():
    listener, sender = connect(), connect()
    listener.autocommit = sender.autocommit = True
    with listener.cursor() as cursor:
        cursor.execute("LISTEN news")
    one(sender, "SELECT pg_notify('news', 'first')")
    deadline = time.monotonic() + 10
    while not listener.notifies and time.monotonic() < deadline:
        select.select([listener], [], [], 1)
        listener.poll()
    equal([(n.channel, n.payload) for n in listener.notifies], [("news", "first")])
    with sender.cursor() as cursor:
        cursor.execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
    equal(sender.notices, ["NOTICE:  hello\n"])
    listener.close()
    sender.close()


@check
def a_running_query_is_cancelled():
    with connect() as connection:
        threading.Timer(0.3, connection.cancel).start()
        with refused("57014"):
            one(connection, "SELECT pg_sleep(20)")
        connection.rollback()
        equal(one(connection, "SELECT 1"), 1)
    with connect(options="-c statement_timeout=200") as connection:
        with refused("57014"):
            one(connection, "SELECT pg_sleep(20)")
        connection.rollback()


@check
def an_asynchronous_connection_is_polled():
    connection = psycopg2.connect(URL, async_=True)

    def wait():
        while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
            reading = [connection] if state == psycopg2.extensions.POLL_READ else []
            select.select(reading, [] if reading else [connection], [], 10)

    wait()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        wait()
        equal(cursor.fetchone(), (42,))
    connection.close()


@check
def a_pool_hands_out_clean_connections():
    pool = psycopg2.pool.ThreadedConnectionPool(1, 4, URL)
    connection = pool.getconn()
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO pg_catalog; INSERT INTO public.item VALUES (1)")
    pool.putconn(connection)
    connection = pool.getconn()
    equal(one(connection, "SELECT count(*) FROM public.item"), 0)
    connection.reset()
    equal(one(connection, "SHOW search_path"), '"$user", public')
    pool.closeall()


@check(secured=True)
def a_connection_is_encrypted_and_bound_to_its_server():
    with psycopg2.connect(url_with(channel_binding="require")) as connection:
        equal((connection.info.ssl_in_use, connection.info.ssl_attribute("protocol")), (True, "TLSv1.3"))
        equal(one(connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), True)
    for url, said in [
        (url_with("wrong"), "password authentication failed"),
        (url_with(sslmode="disable"), "no pg_hba.conf entry"),
        (url_with(sslrootcert=other_root()), "certificate verify failed"),
    ]:
        try:
            psycopg2.connect(url)
            raise AssertionError("is let in")
        except psycopg2.OperationalError as error:
            assert said in str(error), error


main()
