"""psycopg 3 as an application uses it."""

import datetime
import decimal
import threading
import time
import uuid

import psycopg
from psycopg import sql
from psycopg.rows import class_row, dict_row
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.json import Jsonb

from checks import URL, check, equal, main, refused

SCHEMA = """
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE place AS (street text, number int);
CREATE TABLE owner (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CONSTRAINT owner_name_once UNIQUE
);
CREATE TABLE account (
    id serial PRIMARY KEY,
    owner_id bigint NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
    key uuid NOT NULL DEFAULT gen_random_uuid(),
    balance numeric(14, 2) NOT NULL DEFAULT 0 CONSTRAINT account_not_below CHECK (balance >= 0),
    mood mood NOT NULL DEFAULT 'ok',
    tags text[] NOT NULL DEFAULT '{}',
    detail jsonb,
    opened timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX account_owner ON account (owner_id, opened DESC);
CREATE TABLE item (id int PRIMARY KEY, label text);
CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE after numeric;
BEGIN
    UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002', HINT = 'open one';
    END IF;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
"""


def connect(**arguments):
    return psycopg.connect(URL, **arguments)


def one(connection, query, arguments=None):
    row = connection.execute(query, arguments).fetchone()
    return row[0] if row is not None and len(row) == 1 else row


def usable(connection):
    equal(one(connection, "SELECT 40 + 2"), 42)


@check
def migrates_with_many_statements_at_once():
    with connect() as connection:
        connection.execute(SCHEMA)
        equal(one(connection, "SELECT count(*) FROM pg_class WHERE relname = 'account_owner'"), 1)


@check
def says_what_it_connected_to():
    with connect() as connection:
        equal(connection.info.server_version // 10000, 15)
        equal(connection.info.parameter_status("server_encoding"), "UTF8")
        equal(connection.info.parameter_status("standard_conforming_strings"), "on")
        equal(connection.info.transaction_status.name, "IDLE")
        usable(connection)
        equal(connection.info.transaction_status.name, "INTRANS")


@check
def values_come_back_as_they_went():
    with connect() as connection:
        register_enum(EnumInfo.fetch(connection, "mood"), connection)
        info = CompositeInfo.fetch(connection, "place")
        register_composite(info, connection)
        values = [
            (True, "boolean"),
            (-7, "smallint"),
            (2**31 - 1, "integer"),
            (-(2**63), "bigint"),
            (0.1, "double precision"),
            (decimal.Decimal("12345678901234567890.0123456789"), "numeric"),
            ("žluťoučký \n'\\", "text"),
            (b"\x00\xff\x01", "bytea"),
            (datetime.date(1999, 12, 31), "date"),
            (datetime.time(23, 59, 59, 999999), "time"),
            (datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "timestamp"),
            (datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc), "timestamptz"),
            (datetime.timedelta(days=3, seconds=5), "interval"),
            (uuid.UUID("12345678-1234-5678-1234-567812345678"), "uuid"),
            ([1, None, 3], "int[]"),
            (["a", "b,c", '"'], "text[]"),
            ([[1, 2], [3, 4]], "int[]"),
            (None, "text"),
        ]
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                for value, kind in values:
                    for place in ("%s", "%b", "%t"):
                        if place == "%b" and kind == "text[]":
                            continue
                        got = cursor.execute(f"SELECT {place}::{kind}", (value,)).fetchone()[0]
                        equal((kind, got), (kind, value))
                equal(cursor.execute("SELECT %s", (Jsonb({"a": [1, None]}),)).fetchone()[0], {"a": [1, None]})
                equal(cursor.execute("SELECT 'happy'::mood").fetchone()[0].name, "happy")
                got = cursor.execute("SELECT ROW('Main', 5)::place").fetchone()[0]
                equal((got.street, got.number), ("Main", 5))
                got = cursor.execute("SELECT %s::place", (info.python_type("Side", 6),)).fetchone()[0]
                equal((got.street, got.number), ("Side", 6))


@check
def rows_are_written_read_changed_and_deleted():
    with connect() as connection:
        owner = one(connection, "INSERT INTO owner (name) VALUES (%s) RETURNING id", ("ann",))
        account = one(
            connection,
            "INSERT INTO account (owner_id, balance, tags, detail, mood) VALUES (%s, %s, %s, %s, %s) RETURNING id",
            (owner, decimal.Decimal("10.50"), ["x", "y"], Jsonb({"k": 1}), "happy"),
        )
        with connection.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute("SELECT * FROM account WHERE id = %(id)s", {"id": account}).fetchone()
        equal(list(row), ["id", "owner_id", "key", "balance", "mood", "tags", "detail", "opened"])
        equal((row["balance"], row["tags"], row["detail"]), (decimal.Decimal("10.50"), ["x", "y"], {"k": 1}))
        assert isinstance(row["key"], uuid.UUID) and row["opened"].tzinfo is not None
        cursor = connection.execute("UPDATE account SET balance = balance * 2 WHERE 'x' = ANY (tags)")
        equal((cursor.rowcount, cursor.statusmessage), (1, "UPDATE 1"))
        equal(one(connection, "SELECT detail ->> 'k' FROM account WHERE detail @> %s", (Jsonb({"k": 1}),)), "1")
        equal(one(connection, "SELECT count(*) FROM account WHERE id = ANY (%s)", ([account, -1],)), 1)
        equal(connection.execute("DELETE FROM owner WHERE id = %s", (owner,)).rowcount, 1)
        equal(one(connection, "SELECT count(*) FROM account"), 0)


@check
def columns_are_described():
    with connect() as connection:
        cursor = connection.execute("SELECT id, balance, tags, opened FROM account")
        equal([c.name for c in cursor.description], ["id", "balance", "tags", "opened"])
        equal([c.type_code for c in cursor.description], [23, 1700, 1009, 1184])
        equal((cursor.description[1].precision, cursor.description[1].scale), (14, 2))


@check
def transactions_and_savepoints_nest():
    with connect(autocommit=True) as connection:
        with connection.transaction():
            connection.execute("INSERT INTO item VALUES (1, 'kept')")
            try:
                with connection.transaction():
                    connection.execute("INSERT INTO item VALUES (2, 'gone')")
                    raise psycopg.Rollback
            except psycopg.Rollback:
                raise AssertionError("a Rollback does not leave its block") from None
            with refused("23505"):
                with connection.transaction():
                    connection.execute("INSERT INTO item VALUES (1, 'again')")
            connection.execute("INSERT INTO item VALUES (3, 'kept')")
        equal(connection.execute("SELECT id FROM item ORDER BY id").fetchall(), [(1,), (3,)])
        connection.execute("TRUNCATE item")


@check
def isolation_level_and_read_only_are_set():
    with connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        connection.read_only = True
        equal(one(connection, "SHOW transaction_isolation"), "serializable")
        equal(one(connection, "SHOW transaction_read_only"), "on")
        with refused("25006"):
            connection.execute("INSERT INTO item VALUES (1)")
        connection.rollback()
        connection.read_only = None
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        equal(one(connection, "SHOW transaction_isolation"), "repeatable read")


@check
def many_rows_are_inserted_at_once():
    with connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", [(n, f"n{n}") for n in range(1000)])
        equal(cursor.rowcount, 1000)
        equal(one(connection, "SELECT sum(id) FROM item"), 499500)
        cursor.executemany(
            "UPDATE item SET label = %s WHERE id = %s RETURNING id", [("a", 1), ("b", 2)], returning=True
        )
        got = [cursor.fetchone()]
        while cursor.nextset():
            got.append(cursor.fetchone())
        equal(got, [(1,), (2,)])
        connection.rollback()


@check
def copy_goes_both_ways():
    with connect() as connection, connection.cursor() as cursor:
        with cursor.copy("COPY item (id, label) FROM STDIN") as copy:
            for n in range(5000):
                copy.write_row((n, None if n % 7 == 0 else f"tab\t{n}\\"))
        equal(cursor.rowcount, 5000)
        with cursor.copy("COPY (SELECT id, label FROM item WHERE id < 10 ORDER BY id) TO STDOUT") as copy:
            rows = list(copy.rows())
        equal(rows[0], ("0", None))
        equal(rows[1], ("1", "tab\t1\\"))
        equal(len(rows), 10)
        with refused("22P02"):
            with cursor.copy("COPY item FROM STDIN") as copy:
                copy.write("x\ty\n")
        connection.rollback()
        try:
            with cursor.copy("COPY item FROM STDIN") as copy:
                copy.write("1\ty\n")
                raise ValueError("changed my mind")
        except ValueError:
            pass
        connection.rollback()
        usable(connection)


@check
def a_statement_is_prepared_after_some_runs():
    with connect(autocommit=True) as connection:
        connection.prepare_threshold = 2
        for n in range(6):
            equal(one(connection, "SELECT %s::int * 2", (n,)), n * 2)
        names = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]
        equal(names, 1)
        for _ in range(2):
            equal(connection.execute("SELECT * FROM item WHERE id = %s", (1,), prepare=True).fetchall(), [])
        with connect(autocommit=True) as other:
            other.execute("ALTER TABLE item ADD COLUMN more int")
        with refused("0A000") as error:
            connection.execute("SELECT * FROM item WHERE id = %s", (1,), prepare=True)
        equal(error.value.diag.message_primary, "cached plan must not change result type")
        with connect(autocommit=True) as other:
            other.execute("ALTER TABLE item DROP COLUMN more")
        equal(connection.execute("SELECT * FROM item WHERE id = %s", (1,), prepare=True).fetchall(), [])
        connection.execute("DISCARD ALL")
        usable(connection)


@check
def a_pipeline_answers_in_order():
    with connect(autocommit=True) as connection, connection.pipeline() as pipeline:
        cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(50)]
        equal([cursor.fetchone()[0] for cursor in cursors], list(range(50)))
        connection.execute("INSERT INTO item VALUES (1)")
        pipeline.sync()
        equal(one(connection, "SELECT count(*) FROM item"), 1)
        connection.execute("DELETE FROM item")


@check
def a_failing_pipeline_ends_at_its_sync():
    with connect(autocommit=True) as connection:
        # The error may be there before the next statement is sent, or with the sync.
        with refused("22012"):
            with connection.pipeline() as pipeline:
                connection.execute("INSERT INTO item VALUES (1)")
                connection.execute("SELECT 1 / %s", (0,))
                connection.execute("INSERT INTO item VALUES (2)")
                pipeline.sync()
        usable(connection)
        equal(one(connection, "SELECT count(*) FROM item"), 0)


@check
def an_error_inside_a_pipeline_comes_before_its_sync():
    with connect(autocommit=True) as connection:
        with refused("42601"):
            with connection.pipeline():
                one(connection, "SELEC 1")
        usable(connection)


@check
def a_named_cursor_reads_in_steps():
    with connect() as connection:
        connection.execute("INSERT INTO item SELECT n, 'l' || n FROM generate_series(1, 1000) AS n")
        with connection.cursor("steps") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT id, label FROM item WHERE id > %s ORDER BY id", (0,))
            equal([c.name for c in cursor.description], ["id", "label"])
            equal(cursor.fetchone(), (1, "l1"))
            equal(cursor.fetchmany(3), [(2, "l2"), (3, "l3"), (4, "l4")])
            equal(sum(1 for _ in cursor), 996)
        with connection.cursor("there and back", scrollable=True) as cursor:
            cursor.execute("SELECT id FROM item ORDER BY id")
            cursor.scroll(500, mode="absolute")
            equal(cursor.fetchone(), (501,))
            cursor.scroll(-2)
            equal(cursor.fetchone(), (500,))
            equal(len(cursor.fetchall()), 500)
        with connection.cursor("binary", binary=True) as cursor:
            cursor.execute("SELECT id, label FROM item ORDER BY id")
            equal(cursor.fetchmany(2), [(1, "l1"), (2, "l2")])
        with connection.cursor("where it stands") as cursor:
            cursor.execute("SELECT id FROM item ORDER BY id FOR UPDATE")
            cursor.fetchone()
            equal(connection.execute('UPDATE item SET label = %s WHERE CURRENT OF "where it stands"', ("x",)).rowcount, 1)
        equal(one(connection, "SELECT label FROM item WHERE id = 1"), "x")
        connection.rollback()


@check
def a_named_cursor_can_outlive_its_transaction():
    with connect() as connection:
        cursor = connection.cursor("held", withhold=True)
        cursor.execute("SELECT n FROM generate_series(1, 10) AS n")
        equal(cursor.fetchone(), (1,))
        connection.commit()
        equal(cursor.fetchmany(2), [(2,), (3,)])
        cursor.close()
        connection.commit()
        equal(one(connection, "SELECT count(*) FROM pg_cursors"), 0)


@check
def a_cursor_of_a_function_is_read_by_name():
    with connect() as connection:
        connection.execute(
            "CREATE FUNCTION numbers(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$"
            " BEGIN OPEN c FOR SELECT n FROM generate_series(1, 5) AS n; RETURN c; END $$"
        )
        equal(one(connection, "SELECT numbers('named')"), "named")
        cursor = psycopg.ServerCursor(connection, "named")
        equal(cursor.fetchmany(2), [(1,), (2,)])
        equal(cursor.fetchall(), [(3,), (4,), (5,)])
        connection.rollback()


@check
def rows_can_be_streamed():
    with connect() as connection, connection.cursor() as cursor:
        seen = 0
        for row in cursor.stream("SELECT n FROM generate_series(1, %s) AS n", (3000,)):
            seen += row[0]
        equal(seen, 3000 * 3001 // 2)
        usable(connection)


@check
def notifications_arrive():
    with connect(autocommit=True) as listener, connect() as sender:
        listener.execute("LISTEN news")
        sender.execute("SELECT pg_notify('news', %s)", ("first",))
        sender.execute("NOTIFY news, 'second'")
        sender.commit()
        got = [(n.channel, n.payload, n.pid) for n in listener.notifies(timeout=10, stop_after=2)]
        pid = sender.info.backend_pid
        equal(got, [("news", "first", pid), ("news", "second", pid)])


@check
def notices_arrive():
    with connect(autocommit=True) as connection:
        got = []
        connection.add_notice_handler(lambda diag: got.append((diag.severity, diag.sqlstate, diag.message_primary)))
        connection.execute("DO $$ BEGIN RAISE NOTICE 'hello %', 1; RAISE WARNING 'careful'; END $$")
        connection.execute("DROP TABLE IF EXISTS nothing_of_that_name")
        equal(got, [
            ("NOTICE", "00000", "hello 1"),
            ("WARNING", "01000", "careful"),
            ("NOTICE", "00000", 'table "nothing_of_that_name" does not exist, skipping'),
        ])


@check
def functions_and_procedures_are_called():
    with connect() as connection:
        owner = one(connection, "INSERT INTO owner (name) VALUES ('bob') RETURNING id")
        account = one(connection, "INSERT INTO account (owner_id) VALUES (%s) RETURNING id", (owner,))
        equal(one(connection, "SELECT deposit(%s, %s)", (account, decimal.Decimal("2.5"))), decimal.Decimal("2.50"))
        equal(one(connection, "CALL rename(%s, %s)", (owner, "bert")), "BERT")
        with refused("P0002") as error:
            connection.execute("SELECT deposit(%s, %s)", (-1, 1))
        equal(error.value.diag.message_primary, "no account -1")
        equal(error.value.diag.message_hint, "open one")
        equal(error.value.diag.context, "PL/pgSQL function deposit(integer,numeric) line 6 at RAISE")
        connection.rollback()


@check
def a_syntax_error_leaves_the_connection_usable():
    for prepare in (False, True):
        with connect(autocommit=True) as connection:
            with refused("42601") as error:
                connection.execute("SELEC %s", (1,), prepare=prepare)
            diag = error.value.diag
            equal(diag.message_primary, 'syntax error at or near "SELEC"')
            equal((diag.statement_position, diag.severity_nonlocalized), ("1", "ERROR"))
            usable(connection)
            with refused("42P01"):
                connection.execute("SELECT * FROM nowhere WHERE a = %s", (1,), prepare=prepare)
            with refused("42703") as error:
                connection.execute("SELECT lable FROM item", prepare=prepare)
            equal(error.value.diag.message_hint, 'Perhaps you meant to reference the column "item.label".')
            usable(connection)


@check
def a_violation_names_its_constraint():
    with connect(autocommit=True) as connection:
        connection.execute("INSERT INTO owner (name) VALUES ('cid')")
        with refused("23505") as error:
            connection.execute("INSERT INTO owner (name) VALUES (%s)", ("cid",))
        diag = error.value.diag
        equal((diag.schema_name, diag.table_name, diag.constraint_name), ("public", "owner", "owner_name_once"))
        equal(diag.message_detail, "Key (name)=(cid) already exists.")
        with refused("23503") as error:
            connection.execute("INSERT INTO account (owner_id) VALUES (-1)")
        equal(error.value.diag.constraint_name, "account_owner_id_fkey")
        with refused("23514") as error:
            connection.execute("INSERT INTO account (owner_id, balance) SELECT id, -1 FROM owner LIMIT 1")
        equal(error.value.diag.constraint_name, "account_not_below")
        with refused("23502") as error:
            connection.execute("INSERT INTO owner (name) VALUES (NULL)")
        equal(error.value.diag.column_name, "name")
        usable(connection)


@check
def an_error_fails_the_transaction_until_rollback():
    with connect() as connection:
        connection.execute("INSERT INTO item VALUES (77, 'x')")
        with refused("22012"):
            connection.execute("SELECT 1 / %s", (0,))
        equal(connection.info.transaction_status.name, "INERROR")
        with refused("25P02"):
            connection.execute("SELECT 1")
        connection.rollback()
        usable(connection)
        equal(one(connection, "SELECT count(*) FROM item WHERE id = 77"), 0)


@check
def a_running_query_is_cancelled():
    for way in ("cancel", "cancel_safe"):
        with connect(autocommit=True) as connection:
            timer = threading.Timer(0.3, getattr(connection, way))
            timer.start()
            with refused("57014") as error:
                connection.execute("SELECT pg_sleep(20)")
            equal(error.value.diag.message_primary, "canceling statement due to user request")
            timer.join()
            usable(connection)


@check
def a_statement_times_out():
    with connect(autocommit=True, options="-c statement_timeout=200") as connection:
        equal(one(connection, "SHOW statement_timeout"), "200ms")
        with refused("57014") as error:
            connection.execute("SELECT pg_sleep(20)")
        equal(error.value.diag.message_primary, "canceling statement due to statement timeout")
        usable(connection)


@check
def waiting_for_a_lock_times_out():
    with connect() as first, connect() as second:
        first.execute("INSERT INTO item VALUES (5, 'five')")
        first.commit()
        first.execute("UPDATE item SET label = 'six' WHERE id = 5")
        second.execute("SET lock_timeout = '200ms'")
        second.commit()
        with refused("55P03"):
            second.execute("UPDATE item SET label = 'seven' WHERE id = 5")
        second.rollback()
        with refused("55P03"):
            second.execute("SELECT * FROM item WHERE id = 5 FOR UPDATE NOWAIT")
        second.rollback()
        equal(second.execute("SELECT * FROM item WHERE id = 5 FOR UPDATE SKIP LOCKED").fetchall(), [])
        second.rollback()
        first.commit()
        equal(one(second, "SELECT label FROM item WHERE id = 5"), "six")
        second.execute("DELETE FROM item")


@check
def of_two_transactions_that_cannot_both_be_one_fails():
    with connect() as first, connect() as second:
        first.execute("INSERT INTO item VALUES (1, 'a'), (2, 'b')")
        first.commit()
        for connection in (first, second):
            connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        outcomes = []

        def run(connection, read, write):
            try:
                with connection.transaction():
                    one(connection, "SELECT label FROM item WHERE id = %s", (read,))
                    barrier.wait(5)
                    connection.execute("UPDATE item SET label = 'c' WHERE id = %s", (write,))
                outcomes.append("committed")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate)

        barrier = threading.Barrier(2)
        threads = [threading.Thread(target=run, args=a, daemon=True) for a in ((first, 1, 2), (second, 2, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(outcomes) in (["40001", "committed"], ["40P01", "committed"]), outcomes
        usable(first)
        usable(second)
        first.rollback()
        with connect(autocommit=True) as connection:
            connection.execute("DELETE FROM item")


@check
def a_backend_is_seen():
    with connect(autocommit=True) as connection:
        pid = connection.info.backend_pid
        equal(one(connection, "SELECT pg_backend_pid()"), pid)
        equal(one(connection, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)), 1)


@check
def a_terminated_backend_says_so():
    with connect(autocommit=True) as victim, connect(autocommit=True) as other:
        equal(one(other, "SELECT pg_terminate_backend(%s)", (victim.info.backend_pid,)), True)
        deadline = time.monotonic() + 10
        while not victim.closed and time.monotonic() < deadline:
            try:
                victim.execute("SELECT 1")
            except psycopg.OperationalError:
                break
            time.sleep(0.05)
        assert victim.broken or victim.closed
        usable(other)


@check
def settings_follow_transactions():
    with connect() as connection:
        connection.execute("SET TIME ZONE 'Europe/Prague'")
        equal(connection.info.timezone.key, "Europe/Prague")
        got = one(connection, "SELECT timestamptz '2024-07-01 12:00+00'")
        equal(got.utcoffset(), datetime.timedelta(hours=2))
        connection.rollback()
        assert str(connection.info.timezone) != "Europe/Prague"
        equal(one(connection, "SELECT set_config('my.tenant', %s, true)", ("seven",)), "seven")
        equal(one(connection, "SELECT current_setting('my.tenant')"), "seven")


@check
def statements_are_composed():
    with connect() as connection:
        query = sql.SQL("SELECT {} FROM {} WHERE {} = {}").format(
            sql.Identifier("label"), sql.Identifier("public", "item"), sql.Identifier("id"), sql.Literal(1)
        )
        equal(query.as_string(connection), 'SELECT "label" FROM "public"."item" WHERE "id" = 1')
        equal(connection.execute(query).fetchall(), [])


@check
def row_comparisons_take_parameters():
    with connect() as connection:
        connection.execute("INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        got = connection.execute(
            "SELECT id FROM item WHERE (id, label) > (%s, %s) ORDER BY id, label LIMIT %s", (1, "a", 10)
        ).fetchall()
        equal(got, [(2,), (3,)])
        got = connection.execute("SELECT id FROM item WHERE (id, label) IN ((%s, %s), (%s, %s)) ORDER BY 1", (1, "a", 3, "x"))
        equal(got.fetchall(), [(1,)])
        connection.rollback()


@check
def asynchronous_connections_work_alike():
    import asyncio

    async def body():
        async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as connection:
            cursor = await connection.execute("SELECT %s::int", (7,))
            equal(await cursor.fetchone(), (7,))
            task = asyncio.create_task(connection.execute("SELECT pg_sleep(20)"))
            await asyncio.sleep(0.3)
            task.cancel()
            try:
                await task
                raise AssertionError("a cancelled task has a result")
            except asyncio.CancelledError:
                pass
            cursor = await connection.execute("SELECT 8")
            equal(await cursor.fetchone(), (8,))

    asyncio.run(body())


@check
def classes_are_filled_from_rows():
    class Item:
        def __init__(self, id, label):
            self.id, self.label = id, label

    with connect() as connection:
        connection.execute("INSERT INTO item VALUES (1, 'a')")
        with connection.cursor(row_factory=class_row(Item)) as cursor:
            equal(cursor.execute("SELECT * FROM item").fetchone().label, "a")
        connection.rollback()


@check
def rows_are_copied_in_binary():
    kinds = ["int4", "text", "numeric", "timestamptz", "text[]", "jsonb", "uuid", "bytea"]
    row = (
        1,
        "žluť",
        decimal.Decimal("10.50"),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc),
        ["a", None],
        Jsonb({"k": 1}),
        uuid.UUID("12345678-1234-5678-1234-567812345678"),
        b"\x00\xff",
    )
    with connect() as connection, connection.cursor() as cursor:
        columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(kinds))
        cursor.execute(f"CREATE TEMP TABLE packed ({columns})")
        with cursor.copy("COPY packed FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(kinds)
            for _ in range(2000):
                copy.write_row(row)
            copy.write_row([None] * len(kinds))
        equal(cursor.rowcount, 2001)
        with cursor.copy("COPY packed TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(kinds)
            rows = list(copy.rows())
        equal(rows[0], row[:5] + ({"k": 1},) + row[6:])
        equal((len(rows), rows[2000]), (2001, (None,) * len(kinds)))
        with refused("22P04"):
            with cursor.copy("COPY item FROM STDIN (FORMAT binary)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\x00" + bytes(8) + b"\x00\x03")
        connection.rollback()
        usable(connection)


@check
def procedures_have_out_parameters():
    with connect() as connection:
        connection.execute(
            "CREATE PROCEDURE split(p_text text, OUT p_first text, OUT p_length int, INOUT p_rest refcursor)"
            " LANGUAGE plpgsql AS $$ BEGIN p_first := left(p_text, 1); p_length := length(p_text);"
            " OPEN p_rest FOR SELECT substr(p_text, n, 1) FROM generate_series(2, length(p_text)) AS n; END $$"
        )
        for prepare in (False, True):
            row = connection.execute("CALL split(%s, NULL, NULL, %s)", ("abc", "rest"), prepare=prepare).fetchone()
            equal(row, ("a", 3, "rest"))
            equal(connection.execute("FETCH ALL FROM rest").fetchall(), [("b",), ("c",)])
            connection.execute("CLOSE rest")
        connection.rollback()


@check
def a_session_is_made_as_new():
    with connect(autocommit=True) as connection:
        connection.execute("SET search_path TO pg_catalog; CREATE TEMP TABLE passing (a int); LISTEN news")
        connection.execute("SELECT pg_advisory_lock(3)")
        connection.execute("SELECT %s::int", (1,), prepare=True)
        connection.execute("DECLARE held CURSOR WITH HOLD FOR SELECT 1")
        connection.execute("DISCARD ALL")
        equal(one(connection, "SHOW search_path"), '"$user", public')
        for what in ("pg_prepared_statements", "pg_cursors", "pg_listening_channels()"):
            equal(one(connection, f"SELECT count(*) FROM {what}"), 0)
        equal(one(connection, "SELECT to_regclass('passing')"), None)
        equal(one(connection, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"), 0)
        with refused("25001"):
            with connection.transaction():
                connection.execute("DISCARD ALL")
        usable(connection)


# Those of secured servers, behind the others.
import secured  # noqa: E402, F401

main()
