"""pgcli as a person uses it: its commands, what it completes with, and errors that leave it usable."""

import os
import subprocess
import sys
import tempfile

# Of its own: nobody's settings, and none left behind.
HOME = tempfile.mkdtemp(prefix="pgcli-")
os.environ |= {"HOME": HOME, "XDG_CONFIG_HOME": HOME, "PAGER": "cat"}

from pgcli.pgexecute import PGExecute

from checks import URL, check, equal, main, other_root, url_with

PGCLI = os.path.join(os.path.dirname(sys.executable), "pgcli")
SCHEMA = """
DROP SCHEMA public CASCADE; CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN few AS int CHECK (VALUE < 9);
CREATE TABLE owner (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE account (
    id serial PRIMARY KEY,
    owner_id bigint NOT NULL REFERENCES owner (id),
    balance numeric(14, 2) NOT NULL DEFAULT 0 CHECK (balance >= 0),
    mood mood
);
CREATE VIEW rich AS SELECT id FROM account WHERE balance > 1000;
CREATE FUNCTION add(a int, b int DEFAULT 1) RETURNS int LANGUAGE sql AS $$ SELECT a + b $$;
CREATE FUNCTION twice(a int, OUT b int, OUT c text) RETURNS SETOF record LANGUAGE sql AS $$ SELECT a, 'x' $$;
"""


def pgcli(*commands, url=URL):
    """What it prints for these commands, and its exit status."""
    words = [word for command in commands for word in ("-c", command)]
    done = subprocess.run([PGCLI, "--less-chatty", "-w", *words, url], capture_output=True, text=True, timeout=25, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr, done.returncode


def shows(output, *texts):
    for text in texts:
        assert text in output, f"{text!r} is not in {output}"


@check
def migrates_with_many_statements_at_once():
    output, status = pgcli(SCHEMA)
    equal(("ERROR" in output, status), (False, 0))


@check
def its_commands_describe_what_there_is():
    names = ["\\dt", "\\d account", "\\d+ owner", "\\df add", "\\dv", "\\ds", "\\di", "\\dT+ mood", "\\dn", "\\du", "\\l", "\\sf add", "\\dD", "\\dp owner", "\\db"]
    output, status = pgcli(*names)
    equal(status, 0)
    shows(output, "| public | account", "numeric(14,2)", "account_owner_id_fkey", "add", "rich", "account_id_seq")
    shows(output, "owner_name_key", "happy", "archipel", "CREATE OR REPLACE FUNCTION public.add(a integer, b integer DEFAULT 1)", "few")
    assert "does not exist" not in output and "not supported" not in output, output


@check
def statements_run_and_errors_are_shown():
    output, _ = pgcli("INSERT INTO owner (name) VALUES ('ann') RETURNING id, name", "SELECT name, NULL AS nothing FROM owner")
    shows(output, "INSERT 0 1", "ann", "<null>")
    output, _ = pgcli("SELECT lable FROM owner")
    shows(output, 'column "lable" does not exist')
    output, _ = pgcli("EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT 1")
    shows(output, "QUERY PLAN")


@check
def it_completes_with_what_there_is():
    executor = PGExecute(dsn=URL)
    equal(executor.schemata().count("public"), 1)
    equal(sorted(table for table in executor.tables() if table[0] == "public"), [("public", "account"), ("public", "owner")])
    equal([view for view in executor.views() if view[0] == "public"], [("public", "rich")])
    columns = [column for column in executor.table_columns() if column[:2] == ("public", "account")]
    equal([(c[2], c[3], c[4]) for c in columns][:3],
          [("id", "integer", True), ("owner_id", "bigint", False), ("balance", "numeric", True)])
    equal([tuple(c)[:3] for c in executor.view_columns() if c[0] == "public"], [("public", "rich", "id")])
    keys = [tuple(key) for key in executor.foreignkeys()]
    equal(keys, [("public", "owner", "id", "public", "account", "owner_id")])
    functions = {function.func_name: function for function in executor.functions() if function.schema_name == "public"}
    equal(sorted(functions), ["add", "twice"])
    equal(functions["twice"].is_set_returning, True)
    equal(sorted(t[1] for t in executor.datatypes() if t[0] == "public" and t[1] in ("mood", "few")), ["few", "mood"])
    equal("archipel" in executor.databases(), True)
    equal(executor.view_definition("rich").split()[0], "CREATE")
    executor.conn.close()


@check(secured=True)
def it_comes_by_tls():
    output, _ = pgcli("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", url=url_with(channel_binding="require"))
    shows(output, "True")
    output, status = pgcli("SELECT 1", url=url_with(sslrootcert=other_root()))
    shows(output, "certificate verify failed")
    equal(status, 1)


main()
