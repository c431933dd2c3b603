-- 43.9 Errors and messages: RAISE in every form, ASSERT.
-- case: each level
SET client_min_messages = debug1;
DO $$ BEGIN RAISE DEBUG 'd'; RAISE LOG 'l'; RAISE INFO 'i'; RAISE NOTICE 'n'; RAISE WARNING 'w'; RAISE EXCEPTION 'e'; END $$;
--> DEBUG 00000: d
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> LOG 00000: l
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> INFO 00000: i
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: n
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> WARNING 01000: w
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR P0001: e
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: levels below the client's are not sent
SET client_min_messages = warning;
DO $$ BEGIN RAISE NOTICE 'n'; RAISE INFO 'i'; RAISE WARNING 'w'; END $$;
--> INFO 00000: i
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> WARNING 01000: w
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: client_min_messages = error
SET client_min_messages = error;
DO $$ BEGIN RAISE WARNING 'w'; RAISE INFO 'always'; END $$;
--> INFO 00000: always
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXCEPTION is the default level
DO $$ BEGIN RAISE 'no level'; END $$;
--> ERROR P0001: no level
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: placeholders
DO $$ DECLARE v_job_id int := 9; BEGIN RAISE NOTICE 'Calling cs_create_job(%)', v_job_id; END $$;
--> NOTICE 00000: Calling cs_create_job(9)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a doubled percent sign
DO $$ BEGIN RAISE NOTICE '100%% of %', 'it'; END $$;
--> NOTICE 00000: 100% of it
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: three percent signs
DO $$ BEGIN RAISE NOTICE '%%%', 1; END $$;
--> NOTICE 00000: %1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: placeholders side by side
DO $$ BEGIN RAISE NOTICE '%-%%-%', 1, 2; RAISE NOTICE '%%', 'x'; END $$;
--> ERROR 42601: too many parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: placeholders directly after each other
DO $$ BEGIN RAISE NOTICE '% %%', 1, 2; END $$;
--> ERROR 42601: too many parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: too few parameters
DO $$ BEGIN RAISE NOTICE '% %', 1; END $$;
--> ERROR 42601: too few parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: too many parameters
DO $$ BEGIN RAISE NOTICE '%', 1, 2; END $$;
--> ERROR 42601: too many parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: parameters without a placeholder
DO $$ BEGIN RAISE NOTICE 'plain', 1; END $$;
--> ERROR 42601: too many parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: a NULL parameter
DO $$ BEGIN RAISE NOTICE '[%]', NULL::int; END $$;
--> NOTICE 00000: [<NULL>]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: parameters of every kind
DO $$ BEGIN RAISE NOTICE '% % % % % %', true, 1.50, 'a'::char(3), ARRAY[1, NULL], ROW(1, NULL, 'x y'), '{"a":1}'::jsonb; END $$;
--> NOTICE 00000: t 1.50 a   {1,NULL} (1,,"x y") {"a": 1}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: parameters that are date and time values
SET datestyle = 'ISO, DMY';
SET intervalstyle = postgres;
DO $$ BEGIN RAISE NOTICE '% % %', date '2020-12-31', timestamp '2020-12-31 01:02:03.5', interval '1 mon -2 days'; END $$;
--> NOTICE 00000: 2020-12-31 2020-12-31 01:02:03.5 1 mon -2 days
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a date in another DateStyle
SET datestyle = 'German';
DO $$ BEGIN RAISE NOTICE '%', date '2020-12-31'; END $$;
--> NOTICE 00000: 31.12.2020
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: floats in a message
DO $$ BEGIN RAISE NOTICE '% % % %', 0.1::float8, 1e20::float8, 'infinity'::float4, 1::float8 / 3; END $$;
--> NOTICE 00000: 0.1 1e+20 Infinity 0.3333333333333333
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an expression that fails in RAISE
DO $$ BEGIN RAISE NOTICE '%', 1 / 0; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a query as a parameter
DO $$ BEGIN RAISE NOTICE '%', (SELECT string_agg(g::text, '') FROM generate_series(1, 3) g); END $$;
--> NOTICE 00000: 123
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a message of several lines
DO $$ BEGIN RAISE NOTICE E'a\nb\tc'; END $$;
--> NOTICE 00000: a
-->     b	c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a message in dollar quotes
DO $x$ BEGIN RAISE NOTICE $$it's %$$, 1; END $x$;
--> NOTICE 00000: it's 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a message that is an expression is refused
DO $$ BEGIN RAISE NOTICE 'a' || 'b'; END $$;
--> ERROR 42601: syntax error at or near "||"
-->   POSITION: 30
-- case: a message that is a variable is refused
DO $$ DECLARE m text := 'x'; BEGIN RAISE NOTICE m; END $$;
--> ERROR 42601: syntax error at or near "m"
-->   POSITION: 49
-- case: an empty message
DO $$ BEGIN RAISE NOTICE ''; END $$;
--> NOTICE 00000:
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING HINT
DO $$ DECLARE user_id int := 7; BEGIN RAISE EXCEPTION 'Nonexistent ID --> %', user_id USING HINT = 'Please check your user ID'; END $$;
--> ERROR P0001: Nonexistent ID --> 7
-->   HINT: Please check your user ID
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING ERRCODE by name
DO $$ DECLARE user_id int := 7; BEGIN RAISE 'Duplicate user ID: %', user_id USING ERRCODE = 'unique_violation'; END $$;
--> ERROR 23505: Duplicate user ID: 7
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING ERRCODE by code
DO $$ DECLARE user_id int := 7; BEGIN RAISE 'Duplicate user ID: %', user_id USING ERRCODE = '23505'; END $$;
--> ERROR 23505: Duplicate user ID: 7
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an ERRCODE of one's own
DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = 'AR123'; END $$;
--> ERROR AR123: mine
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an ERRCODE that is neither
DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'no such'; END $$;
--> ERROR 42704: unrecognized exception condition "no such"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an ERRCODE of the class of success
DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '00000'; END $$;
--> ERROR P0001: x
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING everything
DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = 'm', DETAIL = 'd', HINT = 'h', ERRCODE = '22012', COLUMN = 'c', CONSTRAINT = 'k', DATATYPE = 't', TABLE = 'tab', SCHEMA = 's'; END $$;
--> ERROR 22012: m
-->   DETAIL: d
-->   HINT: h
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-->   SCHEMA: s
-->   TABLE: tab
-->   COLUMN: c
-->   DATATYPE: t
-->   CONSTRAINT: k
-- case: USING everything on a notice
DO $$ BEGIN RAISE NOTICE USING MESSAGE = 'm', DETAIL = 'd', HINT = 'h', ERRCODE = '01004', TABLE = 'tab'; END $$;
--> NOTICE 01004: m
-->   DETAIL: d
-->   HINT: h
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-->   TABLE: tab
-- case: USING with :=
DO $$ BEGIN RAISE EXCEPTION 'x' USING HINT := 'h'; END $$;
--> ERROR P0001: x
-->   HINT: h
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING expressions
DO $$ DECLARE n int := 3; BEGIN RAISE WARNING 'n is %', n USING DETAIL = 'twice is ' || n * 2, HINT = upper('try') || (SELECT 4); END $$;
--> WARNING 01000: n is 3
-->   DETAIL: twice is 6
-->   HINT: TRY4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING NULL
DO $$ BEGIN RAISE EXCEPTION 'x' USING DETAIL = NULL; END $$;
--> ERROR 22004: RAISE statement option cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an option twice
DO $$ BEGIN RAISE EXCEPTION 'x' USING HINT = 'a', HINT = 'b'; END $$;
--> ERROR 42601: RAISE option already specified: HINT
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING MESSAGE beside a format
DO $$ BEGIN RAISE EXCEPTION 'x' USING MESSAGE = 'y'; END $$;
--> ERROR 42601: RAISE option already specified: MESSAGE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING ERRCODE beside a condition
DO $$ BEGIN RAISE division_by_zero USING ERRCODE = '22013'; END $$;
--> ERROR 42601: RAISE option already specified: ERRCODE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an unknown option
DO $$ BEGIN RAISE EXCEPTION 'x' USING COLOUR = 'red'; END $$;
--> ERROR 42601: unrecognized RAISE statement option at or near "COLOUR"
-->   POSITION: 39
-- case: a condition by name
DO $$ BEGIN RAISE division_by_zero; END $$;
--> ERROR 22012: division_by_zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition by SQLSTATE
DO $$ BEGIN RAISE SQLSTATE '22012'; END $$;
--> ERROR 22012: 22012
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition by name with a level
DO $$ BEGIN RAISE WARNING division_by_zero; RAISE NOTICE SQLSTATE '01000'; END $$;
--> WARNING 22012: division_by_zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 01000: 01000
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition with a message
DO $$ BEGIN RAISE unique_violation USING MESSAGE = 'Duplicate user ID: ' || 9; END $$;
--> ERROR 23505: Duplicate user ID: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition with a detail
DO $$ BEGIN RAISE check_violation USING DETAIL = 'd'; END $$;
--> ERROR 23514: check_violation
-->   DETAIL: d
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an unknown condition
DO $$ BEGIN RAISE no_such_condition; END $$;
--> ERROR 42704: unrecognized exception condition "no_such_condition"
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: a malformed SQLSTATE
DO $$ BEGIN RAISE SQLSTATE '123'; END $$;
--> ERROR 42601: invalid SQLSTATE code at or near "'123'"
-->   POSITION: 28
-- case: a SQLSTATE of one's own, caught by it
DO $$ BEGIN RAISE SQLSTATE 'UX001' USING MESSAGE = 'own'; EXCEPTION WHEN SQLSTATE 'UX001' THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END $$;
--> NOTICE 00000: UX001 own
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: raise_exception catches plain exceptions
DO $$ BEGIN RAISE EXCEPTION 'p'; EXCEPTION WHEN raise_exception THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END $$;
--> NOTICE 00000: P0001 p
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: plpgsql_error is the class of raise_exception
DO $$ BEGIN RAISE EXCEPTION 'p'; EXCEPTION WHEN plpgsql_error THEN RAISE NOTICE 'class'; END $$;
--> NOTICE 00000: class
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: conditions of other classes raised and caught
DO $$ BEGIN BEGIN RAISE insufficient_privilege; EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE '%', SQLSTATE; END; BEGIN RAISE lock_not_available; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLSTATE; END; BEGIN RAISE too_many_connections; EXCEPTION WHEN insufficient_resources THEN RAISE NOTICE '%', SQLSTATE; END; END $$;
--> NOTICE 00000: 42501
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 55P03
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 53300
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a caught error raised again with another text
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE EXCEPTION 'wrapped: %', SQLERRM USING ERRCODE = SQLSTATE; END $$;
--> ERROR 22012: wrapped: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the chain of contexts in a wrapped error
CREATE FUNCTION low(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / a; END $$;
CREATE FUNCTION high(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN low(a);
EXCEPTION WHEN division_by_zero THEN
  RAISE EXCEPTION 'high failed: %', SQLERRM;
END $$;
SELECT high(0);
--> ERROR P0001: high failed: division by zero
-->   CONTEXT: PL/pgSQL function high(integer) line 5 at RAISE
-- case: an error raised in a procedure called by CALL
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'from p' USING DETAIL = 'more';
END $$;
CALL p();
--> ERROR P0001: from p
-->   DETAIL: more
-->   CONTEXT: PL/pgSQL function p() line 3 at RAISE
-- case: an error raised in an SQL function's query
CREATE FUNCTION inner_raise() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'deep'; END $$;
CREATE FUNCTION sql_raise() RETURNS int LANGUAGE sql AS $$ SELECT inner_raise() $$;
SELECT sql_raise();
--> ERROR P0001: deep
-->   CONTEXT: PL/pgSQL function inner_raise() line 1 at RAISE
-- case: a notice per row of a query
CREATE FUNCTION shout(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', a; RETURN a; END $$;
SELECT shout(g) FROM generate_series(1, 3) g;
--> NOTICE 00000: row 1
-->   CONTEXT: PL/pgSQL function shout(integer) line 1 at RAISE
--> NOTICE 00000: row 2
-->   CONTEXT: PL/pgSQL function shout(integer) line 1 at RAISE
--> NOTICE 00000: row 3
-->   CONTEXT: PL/pgSQL function shout(integer) line 1 at RAISE
--> shout
-->   1
-->   2
-->   3
-- case: a warning in a loop
DO $$ BEGIN FOR i IN 1..2 LOOP RAISE WARNING 'turn %', i USING HINT = 'h' || i; END LOOP; END $$;
--> WARNING 01000: turn 1
-->   HINT: h1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> WARNING 01000: turn 2
-->   HINT: h2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: notices before an error arrive
DO $$ BEGIN RAISE NOTICE 'one'; RAISE NOTICE 'two'; RAISE EXCEPTION 'three'; END $$;
--> NOTICE 00000: one
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: two
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR P0001: three
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: notices of a failed subtransaction arrive
DO $$ BEGIN BEGIN RAISE NOTICE 'inside'; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'handler'; END; END $$;
--> NOTICE 00000: inside
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: handler
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: RAISE with a level that does not exist
DO $$ BEGIN RAISE FATAL 'x'; END $$;
--> ERROR 42704: unrecognized exception condition "fatal"
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: RAISE with a level alone
DO $$ BEGIN RAISE NOTICE; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 25
-- case: RAISE without a semicolon
DO $$ BEGIN RAISE NOTICE 'x' RAISE NOTICE 'y'; END $$;
--> ERROR 42601: syntax error at or near "RAISE"
-->   POSITION: 30
-- case: format() makes a message
DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = format('%s of %I', 3, 'Some Table'); END $$;
--> ERROR P0001: 3 of "Some Table"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a message with placeholders for row fields
CREATE TABLE t (id int, name text);
INSERT INTO t VALUES (1, 'n');
--> changed 1
DO $$ DECLARE r t; BEGIN SELECT * INTO r FROM t; RAISE NOTICE '% % %', r, r.id, r.name; END $$;
--> NOTICE 00000: (1,n) 1 n
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ASSERT that holds
DO $$ BEGIN ASSERT 1 = 1; ASSERT true, 'unused'; RAISE NOTICE 'ok'; END $$;
--> NOTICE 00000: ok
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ASSERT that fails
DO $$ BEGIN ASSERT 1 = 2; END $$;
--> ERROR P0004: assertion failed
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT with a message
DO $$ DECLARE n int := 3; BEGIN ASSERT n < 2, 'n is ' || n; END $$;
--> ERROR P0004: n is 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT of NULL
DO $$ BEGIN ASSERT NULL; END $$;
--> ERROR P0004: assertion failed
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT with a NULL message
DO $$ BEGIN ASSERT false, NULL; END $$;
--> ERROR P0004: assertion failed
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT with a message that is no text
DO $$ BEGIN ASSERT false, 42; END $$;
--> ERROR P0004: 42
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT whose condition fails
DO $$ BEGIN ASSERT 1 / 0 = 1; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0 = 1"
-->     PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT whose message is only evaluated when it fails
DO $$ BEGIN ASSERT true, (1 / 0)::text; RAISE NOTICE 'ok'; END $$;
--> NOTICE 00000: ok
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ASSERT with a query
CREATE TABLE t (id int);
DO $$ BEGIN ASSERT (SELECT count(*) FROM t) > 0, 't is empty'; END $$;
--> ERROR P0004: t is empty
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: ASSERT switched off
SET plpgsql.check_asserts = off;
DO $$ BEGIN ASSERT false, 'never seen'; RAISE NOTICE 'off'; END $$;
--> NOTICE 00000: off
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ASSERT with EXISTS in a function
CREATE TABLE t (id int);
CREATE FUNCTION must(i int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN ASSERT EXISTS (SELECT FROM t WHERE id = i), format('no %s', i); END $$;
SELECT must(4);
--> ERROR P0004: no 4
-->   CONTEXT: PL/pgSQL function must(integer) line 1 at ASSERT
-- case: ASSERT without a condition
DO $$ BEGIN ASSERT; END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 19
-- case: a unique violation keeps its fields
CREATE TABLE u (a int CONSTRAINT u_key UNIQUE);
INSERT INTO u VALUES (1);
--> changed 1
DO $$ BEGIN INSERT INTO u VALUES (1); END $$;
--> ERROR 23505: duplicate key value violates unique constraint "u_key"
-->   DETAIL: Key (a)=(1) already exists.
-->   CONTEXT: SQL statement "INSERT INTO u VALUES (1)"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: u
-->   CONSTRAINT: u_key
-- case: a check violation keeps its fields
CREATE TABLE u (a int CONSTRAINT positive CHECK (a > 0), b text);
CREATE FUNCTION add_u(a int, b text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO u VALUES (add_u.a, add_u.b); END $$;
SELECT add_u(-1, 'x');
--> ERROR 23514: new row for relation "u" violates check constraint "positive"
-->   DETAIL: Failing row contains (-1, x).
-->   CONTEXT: SQL statement "INSERT INTO u VALUES (add_u.a, add_u.b)"
-->     PL/pgSQL function add_u(integer,text) line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: u
-->   CONSTRAINT: positive
-- case: a not-null violation keeps its fields
CREATE TABLE u (a int NOT NULL, b text);
CREATE PROCEDURE add_u(b text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO u (b) VALUES (add_u.b); END $$;
CALL add_u('x');
--> ERROR 23502: null value in column "a" of relation "u" violates not-null constraint
-->   DETAIL: Failing row contains (null, x).
-->   CONTEXT: SQL statement "INSERT INTO u (b) VALUES (add_u.b)"
-->     PL/pgSQL function add_u(text) line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: u
-->   COLUMN: a
-- case: a foreign key violation keeps its fields
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE chi (id int CONSTRAINT to_par REFERENCES par);
DO $$ BEGIN INSERT INTO chi VALUES (3); END $$;
--> ERROR 23503: insert or update on table "chi" violates foreign key constraint "to_par"
-->   DETAIL: Key (id)=(3) is not present in table "par".
-->   CONTEXT: SQL statement "INSERT INTO chi VALUES (3)"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: chi
-->   CONSTRAINT: to_par
-- case: a foreign key violation from the other side
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE chi (id int REFERENCES par);
INSERT INTO par VALUES (1);
--> changed 1
INSERT INTO chi VALUES (1);
--> changed 1
DO $$ BEGIN DELETE FROM par; END $$;
--> ERROR 23503: update or delete on table "par" violates foreign key constraint "chi_id_fkey" on table "chi"
-->   DETAIL: Key (id)=(1) is still referenced from table "chi".
-->   CONTEXT: SQL statement "DELETE FROM par"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: chi
-->   CONSTRAINT: chi_id_fkey
-- case: an exclusion of a long string
CREATE TABLE s (v varchar(3));
DO $$ BEGIN INSERT INTO s VALUES ('long'); END $$;
--> ERROR 22001: value too long for type character varying(3)
-->   CONTEXT: SQL statement "INSERT INTO s VALUES ('long')"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: an error's text with a percent sign passes through RAISE
DO $$ BEGIN BEGIN RAISE EXCEPTION '5%% off'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; RAISE; END; END $$;
--> NOTICE 00000: 5% off
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR P0001: 5% off
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an error's text is not a format in USING MESSAGE
DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = '100% sure'; END $$;
--> ERROR P0001: 100% sure
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
