#!/usr/bin/env bash
# psql as a person and as a script use it.
set -uo pipefail

passed=0 failed=0
LIMIT_S=30

# psql without anybody's ~/.psqlrc, unaligned, and bounded.
client() {
    timeout "$LIMIT_S" psql -X -A -t -P pager=off -d "$DATABASE_URL" "$@" 2>&1
}

# compare NAME EXPECTED GOT
compare() {
    if [ "$3" = "$2" ]; then
        passed=$((passed + 1))
        echo "ok      $1"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: %s where PostgreSQL has %s\n' "$1" "${3//$'\n'/ | }" "${2//$'\n'/ | }"
    fi
}

# check NAME EXPECTED ARGUMENT...: what psql prints for the script on standard input.
check() {
    local name="$1" expected="$2"
    shift 2
    compare "$name" "$expected" "$(client "$@")"
}

# check_exit NAME STATUS ARGUMENT...
check_exit() {
    local name="$1" expected="$2" got output
    shift 2
    output="$(client "$@")"
    got=$?
    if [ "$got" = "$expected" ]; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: exit %s where PostgreSQL has %s: %s\n' "$name" "$got" "$expected" "${output//$'\n'/ | }"
    fi
}

check_exit "migrates a file in one transaction" 0 -q -1 -v ON_ERROR_STOP=1 -f - <<'SQL'
SET client_min_messages TO warning;
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE owner (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CONSTRAINT owner_name_once UNIQUE
);
CREATE TABLE account (
    id serial PRIMARY KEY,
    owner_id bigint NOT NULL REFERENCES owner (id),
    key uuid NOT NULL DEFAULT gen_random_uuid(),
    balance numeric(14, 2) NOT NULL DEFAULT 0,
    mood mood NOT NULL DEFAULT 'ok',
    tags text[] NOT NULL DEFAULT '{}',
    detail jsonb,
    opened timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX account_owner ON account (owner_id);
CREATE TABLE item (id int PRIMARY KEY, label text);
CREATE FUNCTION add(a int, b int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END $$;
CREATE PROCEDURE fill(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO item SELECT m, 'l' || m FROM generate_series(1, n) AS m;
    n := n * 2;
END $$;
SQL

check "says what it connected to" $'archipel\n15' <<'SQL'
\if :{?SERVER_VERSION_NUM}
SELECT 'archipel';
SELECT :SERVER_VERSION_NUM / 10000;
\endif
SQL

user="$(client -c 'SELECT current_user')"
check "lists tables" "public|account|table|$user
public|item|table|$user
public|owner|table|$user" <<'SQL'
\dt
SQL

check "describes a table" $'id|bigint||not null|generated always as identity\nname|text||not null|' <<'SQL'
\d owner
SQL

check "describes a table's columns, indexes and keys" 'Table "public.account"
Column|Type|Collation|Nullable|Default
id|integer||not null|nextval('"'account_id_seq'"'::regclass)
owner_id|bigint||not null|
key|uuid||not null|gen_random_uuid()
balance|numeric(14,2)||not null|0
mood|mood||not null|'"'ok'"'::mood
tags|text[]||not null|'"'{}'"'::text[]
detail|jsonb|||
opened|timestamp with time zone||not null|now()
Indexes:
    "account_pkey" PRIMARY KEY, btree (id)
    "account_owner" btree (owner_id)
Foreign-key constraints:
    "account_owner_id_fkey" FOREIGN KEY (owner_id) REFERENCES owner(id)' <<'SQL'
\t off
\d account
SQL

check "shows a function" 'CREATE OR REPLACE FUNCTION public.add(a integer, b integer DEFAULT 1)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$ BEGIN RETURN a + b; END $function$' <<'SQL'
\sf add
SQL

content="$(mktemp)"
head -c 300000 /dev/urandom > "$content"
compare "large objects come from files and go to files" "lo_import N
N|$user|from a file
300000 bytes
lo_export
same
lo_unlink N
ERROR:  large object 1 does not exist" "$(client <<SQL | sed -E 's/^(lo_[a-z]+ )?[0-9]+(\||$)/\1N\2/'
\lo_import $content 'from a file'
\set object :LASTOID
\lo_list
SELECT length(lo_get(:object)) || ' bytes';
\lo_export :object $content.copy
\! cmp $content $content.copy && echo same
\lo_unlink :object
\lo_list
\lo_unlink 1
SQL
)"
rm -f "$content" "$content.copy"

check "lists types and functions" $'public|mood|\npublic|add|integer|a integer, b integer DEFAULT 1|func\npublic|fill||INOUT n integer|proc' <<'SQL'
\dT
\df
SQL

check "describes a query without running it" $'id|integer\nlabel|text\nn|numeric(14,2)' <<'SQL'
SELECT id, label, 1::numeric(14, 2) AS n FROM item \gdesc
SQL

check "runs what a query gives" $'1\n2' <<'SQL'
SELECT format('SELECT %s', n) FROM generate_series(1, 2) AS n \gexec
SQL

check "keeps a row's columns as variables" "it is 7" <<'SQL'
SELECT 7 AS seven \gset is_
\echo it is :is_seven
SQL

check "pivots" $'a|x|y\n1|p|q' <<'SQL'
\t off
\pset footer off
SELECT * FROM (VALUES (1, 'x', 'p'), (1, 'y', 'q')) AS v (a, b, c) \crosstabview
SQL

check "calls functions and procedures" $'42\n10\nCOUNT|5' <<'SQL'
SELECT add(41);
CALL fill(5);
SELECT 'COUNT', count(*) FROM item;
SQL

check "reads in steps" $'15|5' <<'SQL'
\set FETCH_COUNT 2
SELECT sum(id), count(*) FROM item;
SELECT id FROM item ORDER BY id \g /dev/null
SQL

check "shows rows that were read in steps" $'1\n2\n3\n4\n5' <<'SQL'
\set FETCH_COUNT 2
SELECT id FROM item ORDER BY id;
SQL

check "copies both ways" $'COPY 2\n6,six\n7,"se,ven"' <<'SQL'
\copy item FROM STDIN WITH (FORMAT csv)
6,six
7,"se,ven"
\.
\copy (SELECT * FROM item WHERE id > 5 ORDER BY id) TO STDOUT WITH (FORMAT csv)
SQL

check "prepares and executes" $'PREPARE\nl2\nDEALLOCATE' <<'SQL'
PREPARE by_id (int) AS SELECT label FROM item WHERE id = $1;
EXECUTE by_id(2);
DEALLOCATE by_id;
SQL

check "nests savepoints" $'BEGIN\nINSERT 0 1\nSAVEPOINT\nERROR:  duplicate key value violates unique constraint "item_pkey"\nDETAIL:  Key (id)=(100) already exists.\nERROR:  current transaction is aborted, commands ignored until end of transaction block\nROLLBACK\nINSERT 0 1\nCOMMIT\n2' <<'SQL'
BEGIN;
INSERT INTO item VALUES (100, 'kept');
SAVEPOINT one;
INSERT INTO item VALUES (100, 'again');
SELECT 1;
ROLLBACK TO one;
INSERT INTO item VALUES (101, 'kept');
COMMIT;
WITH gone AS (DELETE FROM item WHERE id >= 100 RETURNING id) SELECT count(*) FROM gone;
SQL

check "goes on after errors in a transaction" $'BEGIN\nERROR:  division by zero\n1\nCOMMIT' <<'SQL'
\set ON_ERROR_ROLLBACK on
BEGIN;
SELECT 1 / 0;
SELECT 1;
COMMIT;
SQL

check "moves cursors" $'BEGIN\nDECLARE CURSOR\n1\n2\nMOVE 2\n5\n4\nCLOSE CURSOR\nROLLBACK' <<'SQL'
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM item ORDER BY id;
FETCH 2 FROM c;
MOVE 2 IN c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
CLOSE c;
ROLLBACK;
SQL

check "shows errors with their place and hint" 'ERROR:  column "lable" does not exist
LINE 1: SELECT lable FROM item;
               ^
HINT:  Perhaps you meant to reference the column "item.label".
ERROR:  42601' <<'SQL'
SELECT lable FROM item;
\set VERBOSITY sqlstate
SELEC 1;
SQL

check "shows what variables say of the last error" 'ERROR:  insert or update on table "account" violates foreign key constraint "account_owner_id_fkey"
DETAIL:  Key (owner_id)=(-1) is not present in table "owner".
23503|0|true' <<'SQL'
INSERT INTO account (owner_id) VALUES (-1);
\echo :SQLSTATE|:ROW_COUNT|:ERROR
SQL

check "shows notices and where they came from" $'NOTICE:  hello 1\nERROR:  division by zero\nCONTEXT:  SQL statement "SELECT 1 / 0"\nPL/pgSQL function inline_code_block line 1 at PERFORM' <<'SQL'
\set QUIET on
DO $$ BEGIN RAISE NOTICE 'hello %', 1; END $$;
DO $$ BEGIN PERFORM 1 / 0; END $$;
SQL

heard="$(client <<<"LISTEN news; SELECT pg_notify('news', 'first');")"
compare "hears notifications" \
    'Asynchronous notification "news" with payload "first" received from server process with PID' \
    "$(grep -o 'Asynchronous .* PID' <<<"$heard")"

check "times out" $'SET\nERROR:  canceling statement due to statement timeout\n1' <<'SQL'
SET statement_timeout = '200ms';
SELECT pg_sleep(20);
SELECT 1;
SQL

# A person presses Ctrl-C.
script="$(mktemp)"
echo 'SELECT pg_sleep(20);' >"$script"
got="$(timeout --foreground -s INT 1 psql -X -A -t -d "$DATABASE_URL" -f "$script" 2>&1)"
rm -f "$script"
compare "is interrupted" "Cancel request sent
psql:$script:1: ERROR:  canceling statement due to user request" "$got"

check_exit "stops at an error when asked to" 3 -q -v ON_ERROR_STOP=1 -f - <<'SQL'
SELEC 1;
SQL
check_exit "says by its exit that -c failed" 1 -c 'SELECT 1 / 0' </dev/null
check_exit "cannot connect to a database that is not there" 2 -d "dbname=no_such_database host=127.0.0.1 port=$(sed 's#.*:\([0-9]*\)/.*#\1#' <<<"$DATABASE_URL")" </dev/null

check "copies in binary, to a file and back" $'COPY 7\nTRUNCATE TABLE\nCOPY 7\n28' <<SQL
\copy item TO '$script' (FORMAT binary)
TRUNCATE item;
\copy item FROM '$script' (FORMAT binary)
SELECT sum(id) FROM item;
SQL
rm -f "$script"

if [[ "$DATABASE_URL" == *sslmode=verify-full* ]]; then
    check "is encrypted" t -d "$DATABASE_URL&channel_binding=require" <<'SQL'
SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();
SQL
    # outside NAME EXPECTED URL: what psql says when it is not let in.
    outside() {
        compare "$1" "$2" "$(client -c 'SELECT 1' -d "$3" </dev/null | sed -n "s/.*\($2\).*/\1/p" | tail -n 1)"
    }
    outside "needs the password" 'password authentication failed for user "archipel"' "$(sed 's/:[^:@]*@/:wrong@/' <<<"$DATABASE_URL")"
    outside "needs TLS" 'no pg_hba.conf entry for host' "${DATABASE_URL/verify-full/disable}"
    outside "knows its server" 'certificate verify failed' "${DATABASE_URL/root.crt/other.crt}"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
