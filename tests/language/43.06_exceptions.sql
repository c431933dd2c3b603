-- 43.6.8 and 43.6.9: EXCEPTION, conditions, GET STACKED DIAGNOSTICS, contexts.
CREATE TABLE mytab (firstname text PRIMARY KEY, lastname text NOT NULL, age int CHECK (age > 0), boss text REFERENCES mytab);
INSERT INTO mytab VALUES ('Tom', 'Jones', 30);
--> changed 1
-- case: the manual's division
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int := 1; y int := 0;
BEGIN
    UPDATE mytab SET firstname = 'Joe' WHERE lastname = 'Jones';
    BEGIN
        UPDATE mytab SET lastname = 'Smith' WHERE firstname = 'Joe';
        x := x + 1;
        y := x / 0;
    EXCEPTION
        WHEN division_by_zero THEN
            RAISE NOTICE 'caught division_by_zero';
            RETURN x;
    END;
    RETURN -1;
END $$;
SELECT f();
--> NOTICE 00000: caught division_by_zero
-->   CONTEXT: PL/pgSQL function f() line 11 at RAISE
--> f
-->   2
SELECT firstname, lastname FROM mytab;
--> firstname | lastname
-->   Joe | Jones
-- case: the manual's merge_db
CREATE TABLE db (a INT PRIMARY KEY, b TEXT);
CREATE FUNCTION merge_db(key INT, data TEXT) RETURNS VOID AS
$$
BEGIN
    LOOP
        UPDATE db SET b = data WHERE a = key;
        IF found THEN
            RETURN;
        END IF;
        BEGIN
            INSERT INTO db(a,b) VALUES (key, data);
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            -- Do nothing, and loop to try the UPDATE again.
        END;
    END LOOP;
END;
$$
LANGUAGE plpgsql;
SELECT merge_db(1, 'david');
--> merge_db
-->
SELECT merge_db(1, 'dennis');
--> merge_db
-->
SELECT * FROM db;
--> a | b
-->   1 | dennis
-- case: OTHERS
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END $$;
--> NOTICE 00000: 22012 division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the first matching handler
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'u'; WHEN division_by_zero THEN RAISE NOTICE 'd'; WHEN OTHERS THEN RAISE NOTICE 'o'; END $$;
--> NOTICE 00000: d
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OTHERS before the condition that fits
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'o'; WHEN division_by_zero THEN RAISE NOTICE 'd'; END $$;
--> NOTICE 00000: o
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: conditions joined by OR
DO $$ BEGIN INSERT INTO mytab VALUES ('Tom', 'x'); EXCEPTION WHEN not_null_violation OR unique_violation OR check_violation THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: duplicate key value violates unique constraint "mytab_pkey"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition by SQLSTATE
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN SQLSTATE '22012' THEN RAISE NOTICE 'state'; END $$;
--> NOTICE 00000: state
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a category catches its class
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN data_exception THEN RAISE NOTICE 'data'; END $$;
--> NOTICE 00000: data
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a category by SQLSTATE
DO $$ BEGIN INSERT INTO mytab VALUES ('A', NULL); EXCEPTION WHEN SQLSTATE '23000' THEN RAISE NOTICE '%', SQLSTATE; END $$;
--> NOTICE 00000: 23502
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a condition of another class passes by
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN integrity_constraint_violation THEN RAISE NOTICE 'never'; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: an unknown condition
DO $$ BEGIN NULL; EXCEPTION WHEN no_such_condition THEN NULL; END $$;
--> ERROR 42704: unrecognized exception condition "no_such_condition"
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: a malformed SQLSTATE
DO $$ BEGIN NULL; EXCEPTION WHEN SQLSTATE '2201' THEN NULL; END $$;
--> ERROR 42601: invalid SQLSTATE code at or near "'2201'"
-->   POSITION: 43
-- case: a SQLSTATE with lower case
DO $$ BEGIN NULL; EXCEPTION WHEN SQLSTATE 'abcde' THEN NULL; END $$;
--> ERROR 42601: invalid SQLSTATE code at or near "'abcde'"
-->   POSITION: 43
-- case: a handler without conditions
DO $$ BEGIN NULL; EXCEPTION WHEN THEN NULL; END $$;
--> ERROR 42601: syntax error at or near "THEN"
-->   POSITION: 34
-- case: EXCEPTION without WHEN
DO $$ BEGIN NULL; EXCEPTION END $$;
--> ERROR 42601: syntax error at or near "END"
-->   POSITION: 29
-- case: an error inside a handler
DO $$ BEGIN
  PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
  PERFORM 'a'::int;
END $$;
--> ERROR 22P02: invalid input syntax for type integer: "a"
-->   QUERY: SELECT 'a'::int
-->   AT: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at PERFORM
-- case: an error inside a handler caught outside
DO $$ BEGIN BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE EXCEPTION 'second'; END; EXCEPTION WHEN raise_exception THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: second
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an error passes through a block that does not catch it
DO $$ BEGIN BEGIN PERFORM 1 / 0; EXCEPTION WHEN no_data_found THEN RAISE NOTICE 'n'; END; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'outer'; END $$;
--> NOTICE 00000: outer
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: RAISE without parameters rethrows
DO $$ BEGIN BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'seen'; RAISE; END; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'again %', SQLERRM; END $$;
--> NOTICE 00000: seen
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: again division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: RAISE without parameters keeps the message and its details
DO $$ BEGIN RAISE EXCEPTION 'm' USING DETAIL = 'd', HINT = 'h', ERRCODE = 'ZX001'; EXCEPTION WHEN OTHERS THEN RAISE; END $$;
--> ERROR ZX001: m
-->   DETAIL: d
-->   HINT: h
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: RAISE without parameters outside a handler
DO $$ BEGIN RAISE; END $$;
--> ERROR 0Z002: RAISE without parameters cannot be used outside an exception handler
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: RAISE without parameters in a routine called by a handler
CREATE FUNCTION rethrow() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE; END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN PERFORM rethrow(); END $$;
--> ERROR 0Z002: RAISE without parameters cannot be used outside an exception handler
-->   CONTEXT: PL/pgSQL function rethrow() line 1 at RAISE
-->     SQL statement "SELECT rethrow()"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: RAISE in a nested block of a handler
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN BEGIN RAISE; END; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: SQLSTATE and SQLERRM outside a handler
DO $$ BEGIN RAISE NOTICE '%', SQLERRM; END $$;
--> ERROR 42703: column "sqlerrm" does not exist
-->   QUERY: SQLERRM
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SQLSTATE outside a handler
DO $$ BEGIN RAISE NOTICE '%', SQLSTATE; END $$;
--> ERROR 42703: column "sqlstate" does not exist
-->   QUERY: SQLSTATE
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SQLERRM of nested handlers
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN BEGIN PERFORM 'x'::int; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END; RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: invalid input syntax for type integer: "x"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SQLERRM cannot be assigned
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN SQLERRM := 'x'; RAISE NOTICE '%', SQLERRM; END $$;
--> ERROR 22005: variable "sqlerrm" is declared CONSTANT
-->   POSITION: 55
-- case: variables keep their values, the database does not
DO $$ DECLARE n int := 0; BEGIN BEGIN n := 1; INSERT INTO mytab VALUES ('New', 'One'); n := 2; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '% %', n, (SELECT count(*) FROM mytab); END $$;
--> NOTICE 00000: 2 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: arrays and records keep their values too
DO $$ DECLARE a int[] := '{1}'; r record; BEGIN r := ROW(1, 'a'); BEGIN a[2] := 5; r := ROW(2, 'b', true); PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '% %', a, r; END $$;
--> NOTICE 00000: {1,5} (2,b,t)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a failed assignment leaves the variable
DO $$ DECLARE n int := 5; BEGIN BEGIN n := 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '%', n; BEGIN n := 'q'; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a failed INTO leaves the variables
DO $$ DECLARE n int := 5; BEGIN BEGIN SELECT age INTO STRICT n FROM mytab WHERE false; EXCEPTION WHEN no_data_found THEN NULL; END; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: what a handler does stays
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN INSERT INTO mytab VALUES ('H', 'andler'); END $$;
SELECT count(*) FROM mytab;
--> count
-->   2
-- case: what stood before the inner block stays
DO $$ BEGIN INSERT INTO mytab VALUES ('B', 'efore'); BEGIN INSERT INTO mytab VALUES ('I', 'nside'); PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; INSERT INTO mytab VALUES ('A', 'fter'); END $$;
SELECT firstname FROM mytab ORDER BY 1;
--> firstname
-->   A
-->   B
-->   Tom
-- case: a table made inside is gone
DO $$ BEGIN BEGIN CREATE TABLE gone (a int); PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '%', to_regclass('gone') IS NULL; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a setting changed inside is restored
DO $$ BEGIN SET application_name = 'before'; BEGIN SET application_name = 'inside'; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', current_setting('application_name'); END; END $$;
--> NOTICE 00000: before
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a sequence is not restored
CREATE SEQUENCE s;
DO $$ BEGIN BEGIN PERFORM nextval('s'); PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; RAISE NOTICE '%', nextval('s'); END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: three levels of subtransactions
DO $$ BEGIN
  INSERT INTO mytab VALUES ('l1', 'x');
  BEGIN
    INSERT INTO mytab VALUES ('l2', 'x');
    BEGIN
      INSERT INTO mytab VALUES ('l3', 'x');
      RAISE EXCEPTION 'three';
    EXCEPTION WHEN raise_exception THEN INSERT INTO mytab VALUES ('h3', 'x');
    END;
    RAISE EXCEPTION 'two';
  EXCEPTION WHEN raise_exception THEN INSERT INTO mytab VALUES ('h2', 'x');
  END;
END $$;
SELECT string_agg(firstname, ' ' ORDER BY firstname) FROM mytab;
--> string_agg
-->   Tom h2 l1
-- case: updates of one row at several levels
DO $$ BEGIN UPDATE mytab SET age = 31; BEGIN UPDATE mytab SET age = 32; BEGIN UPDATE mytab SET age = 33; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', (SELECT age FROM mytab); END; UPDATE mytab SET age = -1; EXCEPTION WHEN check_violation THEN RAISE NOTICE '%', (SELECT age FROM mytab); END; END $$;
--> NOTICE 00000: 32
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 31
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a subtransaction per loop turn
DO $$ DECLARE ok int := 0; bad int := 0; BEGIN FOR i IN 1..10 LOOP BEGIN INSERT INTO mytab VALUES ('n' || i % 4, 'x'); ok := ok + 1; EXCEPTION WHEN unique_violation THEN bad := bad + 1; END; END LOOP; RAISE NOTICE '% %', ok, bad; END $$;
--> NOTICE 00000: 4 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a block with EXCEPTION that returns from inside
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN BEGIN INSERT INTO mytab VALUES ('kept', 'x'); RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 2; END; END $$;
SELECT f();
--> f
-->   1
SELECT count(*) FROM mytab;
--> count
-->   2
-- case: an error in DECLARE is not caught by the same block
DO $$ DECLARE n int := 1 / 0; BEGIN NULL; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'never'; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: an error in DECLARE is caught by the block around
DO $$ BEGIN DECLARE n int := 1 / 0; BEGIN NULL; END; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught'; END $$;
--> NOTICE 00000: caught
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OTHERS does not catch a failed assertion
DO $$ BEGIN ASSERT false, 'no'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'never'; END $$;
--> ERROR P0004: no
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: assert_failure by name
DO $$ BEGIN ASSERT false, 'no'; EXCEPTION WHEN assert_failure THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END $$;
--> NOTICE 00000: P0004 no
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OTHERS does not catch a cancelled query
SET statement_timeout = '50ms';
DO $$ BEGIN PERFORM pg_sleep(5); EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'never'; END $$;
--> ERROR 57014: canceling statement due to statement timeout
-->   CONTEXT: SQL statement "SELECT pg_sleep(5)"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: query_canceled by name
SET statement_timeout = '50ms';
DO $$ BEGIN PERFORM pg_sleep(5); EXCEPTION WHEN query_canceled THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: canceling statement due to statement timeout
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: errors of a called function caught by the caller
CREATE FUNCTION g(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO mytab VALUES ('by g', 'x'); RETURN 1 / a; END $$;
DO $$ BEGIN PERFORM g(0); EXCEPTION WHEN division_by_zero THEN RAISE NOTICE '%', (SELECT count(*) FROM mytab WHERE firstname = 'by g'); END $$;
--> NOTICE 00000: 0
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: errors of dynamic SQL caught
DO $$ BEGIN EXECUTE 'SELEC'; EXCEPTION WHEN syntax_error THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: syntax error at or near "SELEC"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: undefined_table, undefined_column and undefined_function
DO $$ BEGIN
  BEGIN PERFORM * FROM nosuch; EXCEPTION WHEN undefined_table THEN RAISE NOTICE 'table'; END;
  BEGIN PERFORM nosuch FROM mytab; EXCEPTION WHEN undefined_column THEN RAISE NOTICE 'column'; END;
  BEGIN PERFORM nosuch(); EXCEPTION WHEN undefined_function THEN RAISE NOTICE 'function'; END; END $$;
--> NOTICE 00000: table
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: column
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: function
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
-- case: each integrity violation by name
DO $$ BEGIN
  BEGIN INSERT INTO mytab VALUES ('Tom', 'x'); EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'unique %', SQLSTATE; END;
  BEGIN INSERT INTO mytab VALUES ('x'); EXCEPTION WHEN not_null_violation THEN RAISE NOTICE 'null %', SQLSTATE; END;
  BEGIN INSERT INTO mytab VALUES ('x', 'y', -1); EXCEPTION WHEN check_violation THEN RAISE NOTICE 'check %', SQLSTATE; END;
  BEGIN INSERT INTO mytab VALUES ('x', 'y', 1, 'z'); EXCEPTION WHEN foreign_key_violation THEN RAISE NOTICE 'foreign %', SQLSTATE; END; END $$;
--> NOTICE 00000: unique 23505
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: null 23502
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: check 23514
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: foreign 23503
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
-- case: each data exception by name
DO $$ BEGIN
  BEGIN PERFORM 2147483647 + 1; EXCEPTION WHEN numeric_value_out_of_range THEN RAISE NOTICE 'range'; END;
  BEGIN PERFORM 'x'::int; EXCEPTION WHEN invalid_text_representation THEN RAISE NOTICE 'text'; END;
  BEGIN PERFORM 'abc'::char(2)::varchar(1), sqrt(-1); EXCEPTION WHEN invalid_argument_for_power_function THEN RAISE NOTICE 'sqrt'; END;
  BEGIN PERFORM ln(0); EXCEPTION WHEN invalid_argument_for_logarithm THEN RAISE NOTICE 'log'; END;
  BEGIN PERFORM '2020-13-01'::date; EXCEPTION WHEN datetime_field_overflow THEN RAISE NOTICE 'date'; END;
  BEGIN PERFORM 'nodate'::date; EXCEPTION WHEN invalid_datetime_format THEN RAISE NOTICE 'format'; END;
  BEGIN PERFORM substring('a', 1, -1); EXCEPTION WHEN substring_error THEN RAISE NOTICE 'substring'; END;
  BEGIN PERFORM 'a' ~ '('; EXCEPTION WHEN invalid_regular_expression THEN RAISE NOTICE 'regex'; END;
  BEGIN PERFORM ARRAY[[1], [2, 3]]; EXCEPTION WHEN array_subscript_error THEN RAISE NOTICE 'array'; END; END $$;
--> NOTICE 00000: range
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: text
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: sqrt
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: log
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
--> NOTICE 00000: date
-->   CONTEXT: PL/pgSQL function inline_code_block line 6 at RAISE
--> NOTICE 00000: format
-->   CONTEXT: PL/pgSQL function inline_code_block line 7 at RAISE
--> NOTICE 00000: substring
-->   CONTEXT: PL/pgSQL function inline_code_block line 8 at RAISE
--> NOTICE 00000: regex
-->   CONTEXT: PL/pgSQL function inline_code_block line 9 at RAISE
--> NOTICE 00000: array
-->   CONTEXT: PL/pgSQL function inline_code_block line 10 at RAISE
-- case: a too long string by name
CREATE TABLE narrow (c varchar(2));
DO $$ BEGIN INSERT INTO narrow VALUES ('abc'); EXCEPTION WHEN string_data_right_truncation THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: value too long for type character varying(2)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: duplicate objects by name
DO $$ BEGIN BEGIN CREATE TABLE mytab (a int); EXCEPTION WHEN duplicate_table THEN RAISE NOTICE '%', SQLERRM; END; BEGIN ALTER TABLE mytab ADD age int; EXCEPTION WHEN duplicate_column THEN RAISE NOTICE '%', SQLERRM; END; END $$;
--> NOTICE 00000: relation "mytab" already exists
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: column "age" of relation "mytab" already exists
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: cardinality_violation
DO $$ DECLARE n int; BEGIN INSERT INTO mytab VALUES ('Z', 'z'); n := (SELECT age FROM mytab); EXCEPTION WHEN cardinality_violation THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: more than one row returned by a subquery used as an expression
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: feature_not_supported
DO $$ BEGIN EXECUTE 'COMMIT'; EXCEPTION WHEN feature_not_supported THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: EXECUTE of transaction commands is not implemented
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET STACKED DIAGNOSTICS, the manual's items
DO $$
DECLARE
  text_var1 text;
  text_var2 text;
  text_var3 text;
BEGIN
  RAISE EXCEPTION 'main' USING DETAIL = 'the detail', HINT = 'the hint';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS text_var1 = MESSAGE_TEXT,
                          text_var2 = PG_EXCEPTION_DETAIL,
                          text_var3 = PG_EXCEPTION_HINT;
  RAISE NOTICE '% / % / %', text_var1, text_var2, text_var3;
END $$;
--> NOTICE 00000: main / the detail / the hint
-->   CONTEXT: PL/pgSQL function inline_code_block line 12 at RAISE
-- case: GET STACKED DIAGNOSTICS without details
DO $$ DECLARE d text; h text; BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT; RAISE NOTICE '[%] [%]', d, h; END $$;
--> NOTICE 00000: [] []
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET STACKED DIAGNOSTICS of a constraint
DO $$ DECLARE s text; c text; t text; n text; col text; typ text; BEGIN INSERT INTO mytab VALUES ('Tom', 'x'); EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS s = RETURNED_SQLSTATE, c = CONSTRAINT_NAME, t = TABLE_NAME, n = SCHEMA_NAME, col = COLUMN_NAME, typ = PG_DATATYPE_NAME;
  RAISE NOTICE '% [%] [%] [%] [%] [%]', s, c, t, n, col, typ; END $$;
--> NOTICE 00000: 23505 [mytab_pkey] [mytab] [public] [] []
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
-- case: GET STACKED DIAGNOSTICS of a column
DO $$ DECLARE t text; c text; BEGIN INSERT INTO mytab (firstname) VALUES ('x'); EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS t = TABLE_NAME, c = COLUMN_NAME; RAISE NOTICE '% %', t, c; END $$;
--> NOTICE 00000: mytab lastname
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET STACKED DIAGNOSTICS of a domain
CREATE DOMAIN pos AS int CONSTRAINT pos_only CHECK (VALUE > 0);
DO $$ DECLARE d text; c text; p pos; BEGIN p := -1; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS d = PG_DATATYPE_NAME, c = CONSTRAINT_NAME; RAISE NOTICE '% %', d, c; END $$;
--> NOTICE 00000: pos pos_only
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET STACKED DIAGNOSTICS of the context
CREATE FUNCTION fail(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 1 / a;
END $$;
DO $$
DECLARE c text;
BEGIN
  PERFORM fail(0);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS c = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%', c;
END $$;
--> NOTICE 00000: PL/pgSQL function fail(integer) line 3 at RETURN
-->     SQL statement "SELECT fail(0)"
-->     PL/pgSQL function inline_code_block line 4 at PERFORM
-->   CONTEXT: PL/pgSQL function inline_code_block line 7 at RAISE
-- case: GET STACKED DIAGNOSTICS raised by the routine itself
DO $$ DECLARE a text; b text; c text; BEGIN RAISE EXCEPTION 'q' USING COLUMN = 'some column', CONSTRAINT = 'some constraint', DATATYPE = 'some type', TABLE = 'some table', SCHEMA = 'some schema'; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS a = COLUMN_NAME, b = CONSTRAINT_NAME, c = SCHEMA_NAME; RAISE NOTICE '% % %', a, b, c; END $$;
--> NOTICE 00000: some column some constraint some schema
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET STACKED DIAGNOSTICS in a nested handler tells of the inner error
DO $$ DECLARE a text; BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN BEGIN PERFORM 'x'::int; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS a = MESSAGE_TEXT; RAISE NOTICE '%', a; END; GET STACKED DIAGNOSTICS a = MESSAGE_TEXT; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: invalid input syntax for type integer: "x"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: PG_CONTEXT in a handler
DO $$ DECLARE c text; BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN GET DIAGNOSTICS c = PG_CONTEXT; RAISE NOTICE '%', c; END $$;
--> NOTICE 00000: PL/pgSQL function inline_code_block line 1 at GET DIAGNOSTICS
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: contexts through assignment, PERFORM, IF, RETURN and FOR
CREATE FUNCTION boom(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / a; END $$;
CREATE FUNCTION via(how text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int; r record;
BEGIN
  CASE how
    WHEN 'assign' THEN n := boom(0);
    WHEN 'perform' THEN PERFORM boom(0);
    WHEN 'if' THEN IF boom(0) > 0 THEN NULL; END IF;
    WHEN 'return' THEN RETURN boom(0);
    WHEN 'while' THEN WHILE boom(0) > 0 LOOP NULL; END LOOP;
    WHEN 'fori' THEN FOR i IN 1..boom(0) LOOP NULL; END LOOP;
    WHEN 'fors' THEN FOR r IN SELECT boom(0) LOOP NULL; END LOOP;
    WHEN 'into' THEN SELECT boom(0) INTO n;
    WHEN 'sql' THEN INSERT INTO mytab VALUES (boom(0));
    WHEN 'execute' THEN EXECUTE 'SELECT boom(0)' INTO n;
    WHEN 'raise' THEN RAISE NOTICE '%', boom(0);
    WHEN 'exit' THEN LOOP EXIT WHEN boom(0) = 0; END LOOP;
    WHEN 'case' THEN CASE boom(0) WHEN 1 THEN NULL; END CASE;
    WHEN 'assert' THEN ASSERT boom(0) = 1;
    WHEN 'foreach' THEN FOREACH n IN ARRAY ARRAY[boom(0)] LOOP NULL; END LOOP;
    WHEN 'declare' THEN DECLARE q int := boom(0); BEGIN NULL; END;
  END CASE;
  RETURN 0;
END $$;
SELECT via('assign');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 5 at assignment
SELECT via('perform');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     SQL statement "SELECT boom(0)"
-->     PL/pgSQL function via(text) line 6 at PERFORM
SELECT via('if');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 7 at IF
SELECT via('return');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 8 at RETURN
SELECT via('while');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 9 at WHILE
SELECT via('fori');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 10 at FOR with integer loop variable
SELECT via('fors');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 11 at FOR over SELECT rows
SELECT via('into');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     SQL statement "SELECT boom(0)"
-->     PL/pgSQL function via(text) line 12 at SQL statement
SELECT via('sql');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     SQL statement "INSERT INTO mytab VALUES (boom(0))"
-->     PL/pgSQL function via(text) line 13 at SQL statement
SELECT via('execute');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     SQL statement "SELECT boom(0)"
-->     PL/pgSQL function via(text) line 14 at EXECUTE
SELECT via('raise');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 15 at RAISE
SELECT via('exit');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 16 at EXIT
SELECT via('case');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 17 at CASE
SELECT via('assert');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 18 at ASSERT
SELECT via('foreach');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 19 at FOREACH over array
SELECT via('declare');
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function boom(integer) line 1 at RETURN
-->     PL/pgSQL function via(text) line 20 during statement block local variable initialization
-- case: the context of an error in a handler
CREATE FUNCTION h() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 / 0;
  RETURN 1;
EXCEPTION WHEN division_by_zero THEN
  RETURN
    'x'::int;
END $$;
SELECT h();
--> ERROR 22P02: invalid input syntax for type integer: "x"
-->   QUERY: 'x'::int
-->   AT: 1
-->   CONTEXT: PL/pgSQL function h() line 6 at RETURN
-- case: a notice's context in a nested call
CREATE FUNCTION n1() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'deep'; END $$;
CREATE FUNCTION n2() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM n1();
END $$;
CREATE FUNCTION n3() RETURNS void LANGUAGE sql AS $$ SELECT n2() $$;
SELECT n3();
--> NOTICE 00000: deep
-->   CONTEXT: PL/pgSQL function n1() line 1 at RAISE
-->     SQL statement "SELECT n1()"
-->     PL/pgSQL function n2() line 3 at PERFORM
--> n3
-->
-- case: a handler for all but some
DO $$ BEGIN BEGIN RAISE unique_violation; EXCEPTION WHEN unique_violation THEN RAISE; WHEN OTHERS THEN RAISE NOTICE 'swallowed'; END; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLSTATE; END $$;
--> NOTICE 00000: 23505
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: retry with a counter
CREATE FUNCTION retry(n int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE tries int := 0; BEGIN LOOP tries := tries + 1; BEGIN IF tries < n THEN RAISE serialization_failure; END IF; RETURN tries; EXCEPTION WHEN serialization_failure OR deadlock_detected THEN CONTINUE; END; END LOOP; END $$;
SELECT retry(4);
--> retry
-->   4
-- case: an aborted transaction refuses more, a handled one does not
BEGIN;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END $$;
SELECT 1 AS still_open;
--> still_open
-->   1
DO $$ BEGIN PERFORM 1 / 0; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
DO $$ BEGIN NULL; END $$;
--> ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
ROLLBACK;
