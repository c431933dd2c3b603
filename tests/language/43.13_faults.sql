-- Where errors are found and what they say of it: faulty routines in every statement of the
-- language, at CREATE and when they run, and what handlers learn of them.
CREATE TABLE t (id int PRIMARY KEY, v text, n numeric CHECK (n > 0));
INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5);
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'deep' USING HINT = 'none'; END $$;
CREATE FUNCTION calls() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM fails(); RETURN 1; END $$;
-- case: a condition of IF and of ELSIF, by its line
CREATE FUNCTION a1(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF i > 0 THEN
    RETURN 1 / (i - 1);
  ELSIF i / 0 = 1 THEN
    RETURN 2;
  END IF;
END $$;
SELECT a1(1);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function a1(integer) line 4 at RETURN
SELECT a1(0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function a1(integer) line 3 at IF
-- case: every stacked field of a caught error
CREATE FUNCTION a2() RETURNS text LANGUAGE plpgsql AS $$
DECLARE ctx text; det text; hin text; msg text; st text; sch text; tab text; col text; con text; typ text;
BEGIN
  PERFORM calls();
  RETURN 'fine';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS ctx = PG_EXCEPTION_CONTEXT, det = PG_EXCEPTION_DETAIL, hin = PG_EXCEPTION_HINT, msg = MESSAGE_TEXT, st = RETURNED_SQLSTATE, sch = SCHEMA_NAME, tab = TABLE_NAME, col = COLUMN_NAME, con = CONSTRAINT_NAME, typ = PG_DATATYPE_NAME;
  RETURN format('%s|%s|%s|%s|%s|%s|%s|%s|%s|%s', ctx, det, hin, msg, st, sch, tab, col, con, typ);
END $$;
SELECT a2();
--> a2
-->   PL/pgSQL function fails() line 1 at RAISE\nSQL statement "SELECT fails()"\nPL/pgSQL function calls() line 1 at PERFORM\nSQL statement "SELECT calls()"\nPL/pgSQL function a2() line 4 at PERFORM||none|deep|P0001|||||
-- case: stacked fields of constraints
CREATE FUNCTION a3() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE sch text; tab text; col text; con text; det text; ctx text;
BEGIN
  BEGIN
    INSERT INTO t VALUES (1, 'x', 1);
  EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS sch = SCHEMA_NAME, tab = TABLE_NAME, col = COLUMN_NAME, con = CONSTRAINT_NAME, det = PG_EXCEPTION_DETAIL, ctx = PG_EXCEPTION_CONTEXT;
    RETURN NEXT concat_ws('|', sch, tab, col, con, det, ctx);
  END;
  BEGIN
    INSERT INTO t VALUES (NULL, 'x', 1);
  EXCEPTION WHEN not_null_violation THEN
    GET STACKED DIAGNOSTICS sch = SCHEMA_NAME, tab = TABLE_NAME, col = COLUMN_NAME, con = CONSTRAINT_NAME, det = PG_EXCEPTION_DETAIL, ctx = PG_EXCEPTION_CONTEXT;
    RETURN NEXT concat_ws('|', sch, tab, col, con, det, ctx);
  END;
  BEGIN
    UPDATE t SET n = -1;
  EXCEPTION WHEN check_violation THEN
    GET STACKED DIAGNOSTICS sch = SCHEMA_NAME, tab = TABLE_NAME, col = COLUMN_NAME, con = CONSTRAINT_NAME, det = PG_EXCEPTION_DETAIL, ctx = PG_EXCEPTION_CONTEXT;
    RETURN NEXT concat_ws('|', sch, tab, col, con, det, ctx);
  END;
END $$;
SELECT * FROM a3();
--> a3
-->   public|t||t_pkey|Key (id)=(1) already exists.|SQL statement "INSERT INTO t VALUES (1, 'x', 1)"\nPL/pgSQL function a3() line 5 at SQL statement
-->   public|t|id||Failing row contains (null, x, 1).|SQL statement "INSERT INTO t VALUES (NULL, 'x', 1)"\nPL/pgSQL function a3() line 11 at SQL statement
-->   public|t||t_n_check|Failing row contains (1, a, -1).|SQL statement "UPDATE t SET n = -1"\nPL/pgSQL function a3() line 17 at SQL statement
-- case: stacked fields that RAISE has given
CREATE FUNCTION a4() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text; k text; ctx text;
BEGIN
  RAISE EXCEPTION 'm %', 1 USING ERRCODE = 'P1234', DETAIL = 'd', HINT = 'h', COLUMN = 'c', CONSTRAINT = 'k', DATATYPE = 'dt', TABLE = 'tb', SCHEMA = 'sc';
EXCEPTION WHEN SQLSTATE 'P1234' THEN
  GET STACKED DIAGNOSTICS r = COLUMN_NAME, k = CONSTRAINT_NAME, ctx = PG_EXCEPTION_CONTEXT;
  RETURN concat_ws('|', r, k, ctx, SQLERRM, SQLSTATE);
END $$;
SELECT a4();
--> a4
-->   c|k|PL/pgSQL function a4() line 4 at RAISE|m 1|P1234
-- case: contexts through both languages and procedures
CREATE FUNCTION b3() RETURNS int LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN SELECT 1 INTO x FROM calls(); RETURN x; END $$;
CREATE FUNCTION b4() RETURNS int LANGUAGE sql AS $$ SELECT 5; SELECT b3() $$;
CREATE FUNCTION b5() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN b4() + 1; END $$;
SELECT b5();
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     SQL statement "SELECT 1        FROM calls()"
-->     PL/pgSQL function b3() line 1 at SQL statement
-->     SQL function "b4" statement 2
-->     PL/pgSQL function b5() line 1 at RETURN
CREATE PROCEDURE b6() LANGUAGE plpgsql AS $$ DECLARE y int; BEGIN y := b5(); END $$;
CALL b6();
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     SQL statement "SELECT 1        FROM calls()"
-->     PL/pgSQL function b3() line 1 at SQL statement
-->     SQL function "b4" statement 2
-->     PL/pgSQL function b5() line 1 at RETURN
-->     PL/pgSQL function b6() line 1 at assignment
DO $$ BEGIN CALL b6(); END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     SQL statement "SELECT 1        FROM calls()"
-->     PL/pgSQL function b3() line 1 at SQL statement
-->     SQL function "b4" statement 2
-->     PL/pgSQL function b5() line 1 at RETURN
-->     PL/pgSQL function b6() line 1 at assignment
-->     SQL statement "CALL b6()"
-->     PL/pgSQL function inline_code_block line 1 at CALL
DO $$ BEGIN EXECUTE 'CALL b6()'; END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     SQL statement "SELECT 1        FROM calls()"
-->     PL/pgSQL function b3() line 1 at SQL statement
-->     SQL function "b4" statement 2
-->     PL/pgSQL function b5() line 1 at RETURN
-->     PL/pgSQL function b6() line 1 at assignment
-->     SQL statement "CALL b6()"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: contexts below loops and EXECUTE
DO $$ BEGIN EXECUTE 'SELECT calls()'; END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     SQL statement "SELECT calls()"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ DECLARE r record; BEGIN FOR r IN SELECT calls() LOOP NULL; END LOOP; END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     PL/pgSQL function inline_code_block line 1 at FOR over SELECT rows
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT calls()' LOOP NULL; END LOOP; END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     PL/pgSQL function inline_code_block line 1 at FOR over EXECUTE statement
DO $$ BEGIN FOR i IN 1..calls() LOOP NULL; END LOOP; END $$;
--> ERROR P0001: deep
-->   HINT: none
-->   CONTEXT: PL/pgSQL function fails() line 1 at RAISE
-->     SQL statement "SELECT fails()"
-->     PL/pgSQL function calls() line 1 at PERFORM
-->     PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: contexts name a routine outside the search path with its schema
CREATE SCHEMA other;
CREATE FUNCTION other.f(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1/i; END $$;
SELECT other.f(0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function other.f(integer) line 1 at RETURN
CREATE FUNCTION other."Odd Name"(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN other.f(i); END $$;
SELECT other."Odd Name"(0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function other.f(integer) line 1 at RETURN
-->     PL/pgSQL function other."Odd Name"(integer) line 1 at RETURN
SET client_min_messages = warning;
DROP SCHEMA other CASCADE;
-- case: a loop over EXECUTE of no query
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'DELETE FROM t' LOOP NULL; END LOOP; END $$;
--> ERROR 42P11: cannot open DELETE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over EXECUTE statement
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT nope' LOOP NULL; END LOOP; END $$;
--> ERROR 42703: column "nope" does not exist
-->   QUERY: SELECT nope
-->   AT: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over EXECUTE statement
-- case: rounds that divide by zero
DO $$ BEGIN FOR i IN 1..3 LOOP PERFORM 1 / (2 - i); END LOOP; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / (2 - i)"
-->     PL/pgSQL function inline_code_block line 1 at PERFORM
DO $$ DECLARE i int := 0; BEGIN WHILE 1 / (3 - i) > -5 LOOP i := i + 1; END LOOP; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at WHILE
DO $$ DECLARE i int := 0; BEGIN LOOP i := i + 1; EXIT WHEN 1 / (3 - i) < -5; END LOOP; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXIT
-- case: bounds of loops that are none
DO $$ BEGIN FOR i IN 1..10 BY 0 LOOP NULL; END LOOP; END $$;
--> ERROR 22023: BY value of FOR loop must be greater than zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
DO $$ BEGIN FOR i IN 1..NULL LOOP NULL; END LOOP; END $$;
--> ERROR 22004: upper bound of FOR loop cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
DO $$ DECLARE a int[]; x int; BEGIN FOREACH x IN ARRAY a LOOP NULL; END LOOP; END $$;
--> ERROR 22004: FOREACH expression must not be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: faults in CASE
DO $$ DECLARE i int := 0; BEGIN CASE 1 / i WHEN 1 THEN NULL; END CASE; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CASE
DO $$ DECLARE i int := 0; BEGIN CASE i WHEN 1 THEN NULL; WHEN 1 / i THEN NULL; END CASE; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CASE
DO $$ DECLARE i int := 0; BEGIN CASE WHEN i = 1 THEN NULL; END CASE; END $$;
--> ERROR 20000: case not found
-->   HINT: CASE statement is missing ELSE part.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CASE
DO $$ DECLARE i int := 0; BEGIN CASE i WHEN 1 THEN NULL; END CASE; END $$;
--> ERROR 20000: case not found
-->   HINT: CASE statement is missing ELSE part.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CASE
-- case: initial values that fail
DO $$ DECLARE i int := 1 / 0; BEGIN NULL; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
DO $$ DECLARE i int NOT NULL := NULL; BEGIN NULL; END $$;
--> ERROR 22004: null value cannot be assigned to variable "i" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
DO $$ DECLARE i varchar(2) := 'abc'; BEGIN NULL; END $$;
--> ERROR 22001: value too long for type character varying(2)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: assignments that do not convert
DO $$ DECLARE i int; BEGIN i := 'x'; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "x"
-->   QUERY: i := 'x'
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
DO $$ DECLARE i smallint; BEGIN i := 100000; END $$;
--> ERROR 22003: smallint out of range
-->   CONTEXT: PL/pgSQL assignment "i := 100000"
-->     PL/pgSQL function inline_code_block line 1 at assignment
DO $$ DECLARE i numeric(3,1); BEGIN i := 1000; END $$;
--> ERROR 22003: numeric field overflow
-->   DETAIL: A field with precision 3, scale 1 must round to an absolute value less than 10^2.
-->   CONTEXT: PL/pgSQL assignment "i := 1000"
-->     PL/pgSQL function inline_code_block line 1 at assignment
DO $$ DECLARE i date; BEGIN i := '2020-13-01'; END $$;
--> ERROR 22008: date/time field value out of range: "2020-13-01"
-->   HINT: Perhaps you need a different "datestyle" setting.
-->   QUERY: i := '2020-13-01'
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
DO $$ DECLARE b bool; BEGIN b := 'maybe'; END $$;
--> ERROR 22P02: invalid input syntax for type boolean: "maybe"
-->   QUERY: b := 'maybe'
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: records without the field that is read
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.x; END $$;
--> ERROR 55000: record "r" is not assigned yet
-->   DETAIL: The tuple structure of a not-yet-assigned record is indeterminate.
-->   CONTEXT: SQL expression "r.x"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ DECLARE r record; BEGIN r := ROW(1, 2); RAISE NOTICE '%', r.x; END $$;
--> ERROR 42703: record "r" has no field "x"
-->   CONTEXT: SQL expression "r.x"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ DECLARE r t; BEGIN r.nope := 1; END $$;
--> ERROR 42703: record "r" has no field "nope"
-->   CONTEXT: PL/pgSQL assignment "r.nope := 1"
-->     PL/pgSQL function inline_code_block line 1 at assignment
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t LOOP RAISE NOTICE '%', r.nope; END LOOP; END $$;
--> ERROR 42703: record "r" has no field "nope"
-->   CONTEXT: SQL expression "r.nope"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record as a whole before and after NULL is assigned
DO $$ DECLARE r record; BEGIN RAISE NOTICE '% %', r, r IS NULL; END $$;
--> NOTICE 00000: <NULL> t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ DECLARE r t NOT NULL := ROW(1, 'x', 1)::t; BEGIN r.v := NULL; RAISE NOTICE '%', r; r := NULL; END $$;
--> NOTICE 00000: (1,,1)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22004: null value cannot be assigned to variable "r" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: INTO STRICT of none and of two
DO $$ DECLARE r t; BEGIN SELECT * INTO STRICT r FROM t; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ DECLARE r t; BEGIN SELECT * INTO STRICT r FROM t WHERE id = 9; END $$;
--> ERROR P0002: query returned no rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ DECLARE r t; BEGIN UPDATE t SET v = 'q' RETURNING * INTO r; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: cursors that are not open, or open twice
DO $$ DECLARE c CURSOR FOR SELECT * FROM t; r t; BEGIN FETCH c INTO r; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
DO $$ DECLARE c CURSOR FOR SELECT * FROM t; BEGIN OPEN c; OPEN c; END $$;
--> ERROR 42P03: cursor "c" already in use
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
DO $$ DECLARE c refcursor; BEGIN CLOSE c; END $$;
--> ERROR 22004: cursor variable "c" is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CLOSE
DO $$ DECLARE c refcursor := 'nope'; r record; BEGIN FETCH c INTO r; END $$;
--> ERROR 34000: cursor "nope" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'DELETE FROM t'; END $$;
--> ERROR 42P11: cannot open DELETE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
DO $$ BEGIN UPDATE t SET v = 'z' WHERE CURRENT OF nocursor; END $$;
--> ERROR 34000: cursor "nocursor" does not exist
-->   CONTEXT: SQL statement "UPDATE t SET v = 'z' WHERE CURRENT OF nocursor"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: assertions that fail, and fail to be computed
DO $$ BEGIN ASSERT false; END $$;
--> ERROR P0004: assertion failed
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
DO $$ BEGIN ASSERT 1 / 0 = 1; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0 = 1"
-->     PL/pgSQL function inline_code_block line 1 at ASSERT
DO $$ BEGIN ASSERT false, 'told ' || 1; END $$;
--> ERROR P0004: told 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at ASSERT
-- case: RAISE that fails itself
DO $$ BEGIN RAISE EXCEPTION '%', 1 / 0; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = 'a', ERRCODE = 'xx'; END $$;
--> ERROR 42704: unrecognized exception condition "xx"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = NULL; END $$;
--> ERROR 22004: RAISE statement option cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ BEGIN RAISE; END $$;
--> ERROR 0Z002: RAISE without parameters cannot be used outside an exception handler
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE of nothing, of nonsense, of too few values
DO $$ BEGIN EXECUTE NULL; END $$;
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ BEGIN EXECUTE 'SELEC 1'; END $$;
--> ERROR 42601: syntax error at or near "SELEC"
-->   QUERY: SELEC 1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ BEGIN EXECUTE 'SELECT $1 + $2' USING 1; END $$;
--> ERROR 42P02: there is no parameter $2
-->   QUERY: SELECT $1 + $2
-->   AT: 13
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ BEGIN EXECUTE 'SELECT nope'; END $$;
--> ERROR 42703: column "nope" does not exist
-->   QUERY: SELECT nope
-->   AT: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: what EXECUTE does not run
DO $$ BEGIN EXECUTE 'COMMIT'; END $$;
--> ERROR 0A000: EXECUTE of transaction commands is not implemented
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ BEGIN EXECUTE 'SAVEPOINT a'; END $$;
--> ERROR 0A000: EXECUTE of transaction commands is not implemented
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
DO $$ DECLARE a int; BEGIN EXECUTE 'UPDATE t SET v = NULL' INTO a; END $$;
--> ERROR 42601: INTO used with a command that cannot return data
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: statements about what is not there
DO $$ BEGIN INSERT INTO t (id, nope) VALUES (1, 2); END $$;
--> ERROR 42703: column "nope" of relation "t" does not exist
-->   QUERY: INSERT INTO t (id, nope) VALUES (1, 2)
-->   AT: 20
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ BEGIN UPDATE t SET id = 'x'; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "x"
-->   QUERY: UPDATE t SET id = 'x'
-->   AT: 19
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ BEGIN PERFORM * FROM nope; END $$;
--> ERROR 42P01: relation "nope" does not exist
-->   QUERY: SELECT * FROM nope
-->   AT: 15
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at PERFORM
DO $$ BEGIN DELETE FROM t WHERE nofunc(id); END $$;
--> ERROR 42883: function nofunc(integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: DELETE FROM t WHERE nofunc(id)
-->   AT: 21
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ BEGIN CALL nope(); END $$;
--> ERROR 42883: procedure nope() does not exist
-->   HINT: No procedure matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: CALL nope()
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
DO $$ BEGIN DROP TABLE nope; END $$;
--> ERROR 42P01: table "nope" does not exist
-->   CONTEXT: SQL statement "DROP TABLE nope"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: a query without a place for its rows
DO $$ BEGIN SELECT 1; END $$;
--> ERROR 42601: query has no destination for result data
-->   HINT: If you want to discard the results of a SELECT, use PERFORM instead.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ BEGIN PERFORM; END $$;
-- case: variables that are not there
DO $$ BEGIN x := 1; END $$;
--> ERROR 42601: "x" is not a known variable
-->   POSITION: 13
DO $$ BEGIN GET DIAGNOSTICS x = ROW_COUNT; END $$;
--> ERROR 42601: "x" is not a known variable
-->   POSITION: 29
DO $$ DECLARE x int; BEGIN GET STACKED DIAGNOSTICS x = MESSAGE_TEXT; END $$;
--> ERROR 0Z002: GET STACKED DIAGNOSTICS cannot be used outside an exception handler
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at GET STACKED DIAGNOSTICS
DO $$ DECLARE x int; BEGIN GET DIAGNOSTICS x = MESSAGE_TEXT; END $$;
--> ERROR 42601: diagnostics item MESSAGE_TEXT is not allowed in GET CURRENT DIAGNOSTICS
-->   POSITION: 28
-- case: a diagnostic that its variable does not take
DO $$ DECLARE x int; BEGIN BEGIN x := 1 / 0; EXCEPTION WHEN division_by_zero THEN GET STACKED DIAGNOSTICS x = MESSAGE_TEXT; END; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "division by zero"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at GET STACKED DIAGNOSTICS
-- case: COMMIT inside of a block with a handler
DO $$ BEGIN COMMIT; BEGIN COMMIT; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $$;
--> NOTICE 00000: 2D000 cannot commit while a subtransaction is active
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: COPY to the client and from it
DO $$ BEGIN COPY t TO STDOUT; END $$;
--> ERROR 0A000: cannot COPY to/from client in PL/pgSQL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ BEGIN COPY t FROM STDIN; END $$;
--> ERROR 0A000: cannot COPY to/from client in PL/pgSQL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: faults in a trigger, by statement and by routine
CREATE FUNCTION tr() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id > 100 THEN
    RAISE EXCEPTION 'id too large: %', NEW.id USING ERRCODE = 'check_violation', HINT = 'smaller';
  END IF;
  IF NEW.id = 50 THEN
    NEW.n := 1 / (NEW.id - 50);
  END IF;
  IF NEW.id = 51 THEN RETURN 5; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tr BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tr();
INSERT INTO t VALUES (200, 'x', 1);
--> ERROR 23514: id too large: 200
-->   HINT: smaller
-->   CONTEXT: PL/pgSQL function tr() line 4 at RAISE
INSERT INTO t VALUES (50, 'x', 1);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function tr() line 7 at assignment
INSERT INTO t VALUES (51, 'x', 1);
--> ERROR 42804: cannot return non-composite value from function returning composite type
-->   CONTEXT: PL/pgSQL function tr() line 9 at RETURN
UPDATE t SET id = 300 WHERE id = 1;
--> ERROR 23514: id too large: 300
-->   HINT: smaller
-->   CONTEXT: PL/pgSQL function tr() line 4 at RAISE
DO $$ BEGIN
  INSERT INTO t
  VALUES (200, 'x', 1);
END $$;
--> ERROR 23514: id too large: 200
-->   HINT: smaller
-->   CONTEXT: PL/pgSQL function tr() line 4 at RAISE
-->     SQL statement "INSERT INTO t
-->       VALUES (200, 'x', 1)"
-->     PL/pgSQL function inline_code_block line 2 at SQL statement
-- case: a statement over several lines in contexts
CREATE FUNCTION ins(i int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t
  VALUES (i, 'x', -i);
END $$;
SELECT ins(3);
--> ERROR 23514: new row for relation "t" violates check constraint "t_n_check"
-->   DETAIL: Failing row contains (3, x, -3).
-->   CONTEXT: SQL statement "INSERT INTO t
-->       VALUES (i, 'x', -i)"
-->     PL/pgSQL function ins(integer) line 3 at SQL statement
-->   SCHEMA: public
-->   TABLE: t
-->   CONSTRAINT: t_n_check
SELECT ins(NULL);
--> ERROR 23502: null value in column "id" of relation "t" violates not-null constraint
-->   DETAIL: Failing row contains (null, x, null).
-->   CONTEXT: SQL statement "INSERT INTO t
-->       VALUES (i, 'x', -i)"
-->     PL/pgSQL function ins(integer) line 3 at SQL statement
-->   SCHEMA: public
-->   TABLE: t
-->   COLUMN: id
-- case: the second statement of a SQL function
CREATE FUNCTION ins2(i int) RETURNS void LANGUAGE sql AS $$ INSERT INTO t VALUES (i, 'x', 1); INSERT INTO t VALUES (i, 'x', 1) $$;
SELECT ins2(7);
--> ERROR 23505: duplicate key value violates unique constraint "t_pkey"
-->   DETAIL: Key (id)=(7) already exists.
-->   CONTEXT: SQL function "ins2" statement 2
-->   SCHEMA: public
-->   TABLE: t
-->   CONSTRAINT: t_pkey
-- case: PG_CONTEXT through callers of both languages
CREATE FUNCTION d2() RETURNS text LANGUAGE plpgsql AS $$
DECLARE c text;
BEGIN
  GET DIAGNOSTICS c = PG_CONTEXT;
  RETURN c;
END $$;
CREATE FUNCTION d3() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN d2(); END $$;
CREATE FUNCTION d4() RETURNS text LANGUAGE sql AS $$ SELECT d3() || '' $$;
SELECT d2();
--> d2
-->   PL/pgSQL function d2() line 4 at GET DIAGNOSTICS
SELECT d3();
--> d3
-->   PL/pgSQL function d2() line 4 at GET DIAGNOSTICS\nPL/pgSQL function d3() line 1 at RETURN
SELECT d4();
--> d4
-->   PL/pgSQL function d2() line 4 at GET DIAGNOSTICS\nPL/pgSQL function d3() line 1 at RETURN
DO $$ DECLARE x text; BEGIN EXECUTE 'SELECT d3()' INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: PL/pgSQL function d2() line 4 at GET DIAGNOSTICS
-->     PL/pgSQL function d3() line 1 at RETURN
-->     SQL statement "SELECT d3()"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: errors raised again, and others in their place
CREATE FUNCTION r1() RETURNS int LANGUAGE plpgsql AS $$ BEGIN BEGIN RAISE EXCEPTION 'inner'; EXCEPTION WHEN OTHERS THEN RAISE; END; END $$;
SELECT r1();
--> ERROR P0001: inner
-->   CONTEXT: PL/pgSQL function r1() line 1 at RAISE
CREATE FUNCTION r2() RETURNS int LANGUAGE plpgsql AS $$ BEGIN BEGIN RAISE EXCEPTION 'inner'; EXCEPTION WHEN OTHERS THEN RAISE EXCEPTION 'outer: %', SQLERRM USING DETAIL = 'd'; END; END $$;
SELECT r2();
--> ERROR P0001: outer: inner
-->   DETAIL: d
-->   CONTEXT: PL/pgSQL function r2() line 1 at RAISE
CREATE FUNCTION r3() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM r2(); EXCEPTION WHEN raise_exception THEN RAISE NOTICE '%', SQLERRM; RETURN 1/0; END $$;
SELECT r3();
--> NOTICE 00000: outer: inner
-->   CONTEXT: PL/pgSQL function r3() line 1 at RAISE
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1/0"
-->     PL/pgSQL function r3() line 1 at RETURN
-- case: results that fail after some rows
CREATE FUNCTION m1() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; RETURN NEXT 1 / 0; END $$;
SELECT * FROM m1();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function m1() line 1 at RETURN NEXT
SELECT m1();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function m1() line 1 at RETURN NEXT
CREATE FUNCTION m2() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1 / (id - 2) FROM t ORDER BY id; END $$;
SELECT * FROM m2();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / (id - 2) FROM t ORDER BY id"
-->     PL/pgSQL function m2() line 1 at RETURN QUERY
CREATE FUNCTION m3() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'SELECT 1 / (id - $1) FROM t ORDER BY id' USING 2; END $$;
SELECT * FROM m3();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / (id - $1) FROM t ORDER BY id"
-->     PL/pgSQL function m3() line 1 at RETURN QUERY
-- case: results of another structure
CREATE FUNCTION m4() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT v FROM t; END $$;
SELECT * FROM m4();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Returned type text does not match expected type integer in column 1.
-->   CONTEXT: SQL statement "SELECT v FROM t"
-->     PL/pgSQL function m4() line 1 at RETURN QUERY
CREATE FUNCTION m5() RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1; END $$;
SELECT * FROM m5();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Number of returned columns (1) does not match expected column count (2).
-->   CONTEXT: SQL statement "SELECT 1"
-->     PL/pgSQL function m5() line 1 at RETURN QUERY
CREATE FUNCTION m6() RETURNS int LANGUAGE plpgsql AS $$ BEGIN END $$;
SELECT m6();
--> ERROR 2F005: control reached end of function without RETURN
-->   CONTEXT: PL/pgSQL function m6()
-- case: results and arguments that do not convert
CREATE FUNCTION m7(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN a := 'q'; RETURN a; END $$;
SELECT m7(1);
--> ERROR 22P02: invalid input syntax for type integer: "q"
-->   QUERY: a := 'q'
-->   AT: 6
-->   CONTEXT: PL/pgSQL function m7(integer) line 1 at assignment
CREATE FUNCTION m8() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 'zz'; END $$;
SELECT m8();
--> ERROR 22P02: invalid input syntax for type integer: "zz"
-->   CONTEXT: PL/pgSQL function m8() while casting return value to function's return type
-- case: procedures that fail
CREATE PROCEDURE p1(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x / 0; END $$;
CALL p1(1);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function p1(integer) line 1 at assignment
DO $$ DECLARE y int := 1; BEGIN CALL p1(y); END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function p1(integer) line 1 at assignment
-->     SQL statement "CALL p1(y)"
-->     PL/pgSQL function inline_code_block line 1 at CALL
DO $$ BEGIN CALL p1(1); END $$;
--> ERROR 42601: procedure parameter "x" is an output parameter but corresponding argument is not writable
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
CREATE PROCEDURE p2() LANGUAGE plpgsql AS $$ BEGIN COMMIT; RAISE EXCEPTION 'after'; END $$;
CALL p2();
--> ERROR P0001: after
-->   CONTEXT: PL/pgSQL function p2() line 1 at RAISE
BEGIN;
CALL p2();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p2() line 1 at COMMIT
ROLLBACK;
CREATE FUNCTION p3() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
SELECT p3();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p3() line 1 at COMMIT
-- case: what a function that promises less may not do
CREATE FUNCTION q1() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN INSERT INTO t VALUES (9, 'x', 1); RETURN 1; END $$;
SELECT q1();
--> ERROR 0A000: INSERT is not allowed in a non-volatile function
-->   CONTEXT: SQL statement "INSERT INTO t VALUES (9, 'x', 1)"
-->     PL/pgSQL function q1() line 1 at SQL statement
CREATE FUNCTION q2() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN CREATE TABLE zz (a int); RETURN 1; END $$;
SELECT q2();
--> ERROR 0A000: CREATE TABLE is not allowed in a non-volatile function
-->   CONTEXT: SQL statement "CREATE TABLE zz (a int)"
-->     PL/pgSQL function q2() line 1 at SQL statement
-- case: domains in every place
CREATE DOMAIN pos AS int CHECK (VALUE > 0);
CREATE FUNCTION q10(a pos) RETURNS pos LANGUAGE plpgsql AS $$ DECLARE b pos; BEGIN b := a - 5; RETURN b; END $$;
SELECT q10(3);
--> ERROR 23514: value for domain pos violates check constraint "pos_check"
-->   CONTEXT: PL/pgSQL function q10(pos) line 1 at assignment
-->   SCHEMA: public
-->   DATATYPE: pos
-->   CONSTRAINT: pos_check
SELECT q10(-1);
--> ERROR 23514: value for domain pos violates check constraint "pos_check"
-->   SCHEMA: public
-->   DATATYPE: pos
-->   CONSTRAINT: pos_check
CREATE FUNCTION q11(a int) RETURNS pos LANGUAGE plpgsql AS $$ BEGIN RETURN a; END $$;
SELECT q11(-3);
--> ERROR 23514: value for domain pos violates check constraint "pos_check"
-->   CONTEXT: PL/pgSQL function q11(integer) while casting return value to function's return type
-->   SCHEMA: public
-->   DATATYPE: pos
-->   CONSTRAINT: pos_check
DO $$ DECLARE x pos := -1; BEGIN END $$;
--> ERROR 23514: value for domain pos violates check constraint "pos_check"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-->   SCHEMA: public
-->   DATATYPE: pos
-->   CONSTRAINT: pos_check
-- case: polymorphic and variadic routines that fail
CREATE FUNCTION q7(x anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN x / 0; END $$;
SELECT q7(1);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function q7(anyelement) line 1 at RETURN
SELECT q7(1.5);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function q7(anyelement) line 1 at RETURN
SELECT q7('a'::text);
--> ERROR 42883: operator does not exist: text / integer
-->   HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: x / 0
-->   AT: 3
-->   CONTEXT: PL/pgSQL function q7(anyelement) line 1 at RETURN
CREATE FUNCTION q8(VARIADIC a int[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a[1] / a[2]; END $$;
SELECT q8(1, 0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function q8(integer[]) line 1 at RETURN
-- case: at CREATE: a missing semicolon
CREATE FUNCTION c1() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  x int;
BEGIN
  x = 1
  RETURN x;
END $$;
--> ERROR 42601: syntax error at or near "x"
-->   POSITION: 97
-- case: at CREATE: a missing END IF
CREATE FUNCTION c2() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF true THEN
    RETURN 1;
END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 96
-- case: at CREATE: an END too many
CREATE FUNCTION c3() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 1;
END IF;
END $$;
--> ERROR 42601: syntax error at or near "IF"
-->   POSITION: 79
-- case: at CREATE: a type that is not there
CREATE FUNCTION c4() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x nosuchtype;
BEGIN
  RETURN 1;
END $$;
--> ERROR 42704: type "nosuchtype" does not exist
-->   POSITION: 67
-- case: at CREATE: a variable declared twice
CREATE FUNCTION c5() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int; x text;
BEGIN
  RETURN 1;
END $$;
--> ERROR 42601: duplicate declaration at or near "x"
-->   POSITION: 72
-- case: at CREATE: EXIT to a label that is not there
CREATE FUNCTION c6() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..3 LOOP
    EXIT nolabel;
  END LOOP;
END $$;
--> ERROR 42601: there is no label "nolabel" attached to any block or loop enclosing this statement
-->   POSITION: 93
-- case: at CREATE: EXIT outside of a loop
CREATE FUNCTION c7() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  EXIT;
END $$;
--> ERROR 42601: EXIT cannot be used outside a loop, unless it has a label
-->   POSITION: 65
-- case: at CREATE: a value for a function that returns void
CREATE FUNCTION c8() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RETURN 1;
END $$;
--> ERROR 42804: RETURN cannot have a parameter in function returning void
-->   POSITION: 73
-- case: at CREATE: RETURN without a value
CREATE FUNCTION c9() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN;
END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 71
-- case: at CREATE: RETURN NEXT where there is no set
CREATE FUNCTION c10() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN NEXT 1;
END $$;
--> ERROR 42804: cannot use RETURN NEXT in a non-SETOF function
-->   POSITION: 66
-- case: at CREATE: RETURN of a value where there is a set
CREATE FUNCTION c11() RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 5;
END $$;
--> ERROR 42804: RETURN cannot have a parameter in function returning set
-->   HINT: Use RETURN NEXT or RETURN QUERY.
-->   POSITION: 79
-- case: at CREATE: RETURN of a value where there is OUT
CREATE FUNCTION c12(OUT a int) LANGUAGE plpgsql AS $$
BEGIN
  RETURN 5;
END $$;
--> ERROR 42804: RETURN cannot have a parameter in function with OUT parameters
-->   POSITION: 70
-- case: at CREATE: a statement cut short
CREATE FUNCTION c13() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  SELECT 1 +;
  RETURN 1;
END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 76
-- case: at CREATE: INTO what is no variable
CREATE FUNCTION c14() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  SELECT 1 INTO y FROM t;
  RETURN 1;
END $$;
--> ERROR 42601: "y" is not a known variable
-->   POSITION: 80
-- case: at CREATE: a parenthesis that is not closed
CREATE FUNCTION c15() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN (1;
END $$;
--> ERROR 42601: mismatched parentheses at or near ";"
-->   POSITION: 75
-- case: at CREATE: too few values for RAISE
CREATE FUNCTION c17() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'a %';
  RETURN 1;
END $$;
--> ERROR 42601: too few parameters specified for RAISE
-->   CONTEXT: compilation of PL/pgSQL function "c17" near line 3
-- case: at CREATE: RAISE of an unknown condition
CREATE FUNCTION c18() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RAISE division_by_zeroo;
END $$;
--> ERROR 42704: unrecognized exception condition "division_by_zeroo"
-->   CONTEXT: compilation of PL/pgSQL function "c18" near line 3
-- case: at CREATE: a handler for an unknown condition
CREATE FUNCTION c19() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  NULL;
EXCEPTION WHEN nonsense THEN RETURN 1;
END $$;
--> ERROR 42704: unrecognized exception condition "nonsense"
-->   CONTEXT: compilation of PL/pgSQL function "c19" near line 4
-- case: at CREATE: a handler for no SQLSTATE
CREATE FUNCTION c20() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  NULL;
EXCEPTION WHEN SQLSTATE '12' THEN RETURN 1;
END $$;
--> ERROR 42601: invalid SQLSTATE code at or near "'12'"
-->   POSITION: 96
-- case: at CREATE: another label behind END
CREATE FUNCTION c21() RETURNS int LANGUAGE plpgsql AS $$
<<lab>>
BEGIN
  NULL;
END other $$;
--> ERROR 42601: end label "other" differs from block's label "lab"
-->   POSITION: 84
-- case: at CREATE: a query for a bound cursor
CREATE FUNCTION c22() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
  OPEN c FOR SELECT 2;
END $$;
--> ERROR 42601: syntax error at or near "FOR"
-->   POSITION: 104
-- case: at CREATE: a cursor without its arguments
CREATE FUNCTION c23() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a int) FOR SELECT a;
BEGIN
  OPEN c;
END $$;
--> ERROR 42601: cursor "c" has arguments
-->   POSITION: 111
-- case: at CREATE: a cursor with too many arguments
CREATE FUNCTION c24() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a int) FOR SELECT a;
BEGIN
  OPEN c(1, 2);
END $$;
--> ERROR 42601: too many arguments for cursor "c"
-->   POSITION: 113
-- case: at CREATE: a constant that is assigned
CREATE FUNCTION c25() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x CONSTANT int := 1;
BEGIN
  x := 2; RETURN x;
END $$;
--> ERROR 22005: variable "x" is declared CONSTANT
-->   POSITION: 95
-- case: at CREATE: NOT NULL without a value
CREATE FUNCTION c26() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int NOT NULL;
BEGIN
  RETURN x;
END $$;
--> ERROR 22004: variable "x" must have a default value, since it's declared NOT NULL
-->   POSITION: 72
-- case: at CREATE: an unknown diagnostic
CREATE FUNCTION c28() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int;
BEGIN
  GET DIAGNOSTICS x = NONSENSE;
END $$;
--> ERROR 42601: unrecognized GET DIAGNOSTICS item at or near "NONSENSE"
-->   POSITION: 101
-- case: at CREATE: a loop variable that is not there
CREATE FUNCTION c29() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  FOR r IN SELECT 1 LOOP NULL; END LOOP;
END $$;
--> ERROR 42601: loop variable of loop over rows must be a record variable or list of scalar variables
-->   POSITION: 70
-- case: at CREATE: a FOREACH variable that is not there
CREATE FUNCTION c30() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  FOREACH x IN ARRAY ARRAY[1] LOOP NULL; END LOOP;
END $$;
--> ERROR 42601: loop variable of FOREACH must be a known variable or list of variables
-->   POSITION: 74
-- case: at CREATE: END instead of END CASE
CREATE FUNCTION c31() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  CASE WHEN true THEN RETURN 1; ELSE RETURN 2; END;
END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 114
-- case: at CREATE: END instead of END LOOP
CREATE FUNCTION c32() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  WHILE true LOOP
    RETURN 1;
  END;
END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 101
-- case: at CREATE: EXECUTE of nothing at all
CREATE FUNCTION c34() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE;
  RETURN 1;
END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 73
-- case: at CREATE: a parameter named twice
CREATE FUNCTION c36(a int, a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42P13: parameter name "a" used more than once
-- case: at CREATE: a parameter of an unknown type
CREATE FUNCTION c37(nosuch) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42704: type nosuch does not exist
-- case: at CREATE: a column that is not there in a SQL function
CREATE FUNCTION c38() RETURNS int LANGUAGE sql AS $$ SELECT nope FROM t $$;
--> ERROR 42703: column "nope" does not exist
-->   POSITION: 61
-- case: at CREATE: a SQL function of another type
CREATE FUNCTION c39() RETURNS int LANGUAGE sql AS $$ SELECT 'a'::text $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Actual return type is text.
-->   CONTEXT: SQL function "c39"
-- case: at CREATE: a SQL function of too many columns
CREATE FUNCTION c40() RETURNS int LANGUAGE sql AS $$ SELECT 1, 2 $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Final statement must return exactly one column.
-->   CONTEXT: SQL function "c40"
-- case: at CREATE: a SQL function of nonsense
CREATE FUNCTION c41() RETURNS int LANGUAGE sql AS $$ SELEC 1 $$;
--> ERROR 42601: syntax error at or near "SELEC"
-->   POSITION: 54
-- case: at CREATE: a SQL function without a final query
CREATE FUNCTION c43() RETURNS int LANGUAGE sql AS $$ INSERT INTO t VALUES (5) $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.
-->   CONTEXT: SQL function "c43"
-- case: at CREATE: a language that is not there
CREATE FUNCTION c44() RETURNS int LANGUAGE nolang AS $$ INSERT INTO t VALUES (5) $$;
--> ERROR 42704: language "nolang" does not exist
-- case: at CREATE: a parameter that is not there in a SQL function
CREATE FUNCTION c45() RETURNS int LANGUAGE sql AS $$ SELECT $1 $$;
--> ERROR 42P02: there is no parameter $1
-->   POSITION: 61
-- case: at CREATE: an alias of a parameter that is not there
CREATE FUNCTION c47(int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE a ALIAS FOR $2; BEGIN RETURN a; END $$;
--> ERROR 42704: variable "$2" does not exist
-->   POSITION: 81
-- case: at CREATE: a condition cut short
CREATE FUNCTION c48() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 1;
EXCEPTION
  WHEN OTHERS THEN
    RETURN nope;
  WHEN division_by_zero OR THEN
    NULL;
END $$;
--> ERROR 42601: syntax error at or near "THEN"
-->   POSITION: 149
-- case: at CREATE: a default cut short
CREATE FUNCTION c49() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int DEFAULT;
BEGIN
  RETURN 1;
END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 79
-- case: at CREATE: %TYPE of a column that is not there
CREATE FUNCTION c50() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x t.nope%TYPE;
BEGIN
  RETURN 1;
END $$;
--> ERROR 42601: syntax error at or near "%"
-->   POSITION: 74
-->   CONTEXT: invalid type name "t.nope%TYPE"
-- case: at CREATE: %ROWTYPE of a table that is not there
CREATE FUNCTION c51() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x nope%ROWTYPE;
BEGIN
  RETURN 1;
END $$;
--> ERROR 42P01: relation "nope" does not exist
-->   CONTEXT: compilation of PL/pgSQL function "c51" near line 2
-- case: at CREATE: RETURN QUERY where there is no set
CREATE FUNCTION c52() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT 1;
END $$;
--> ERROR 42804: cannot use RETURN QUERY in a non-SETOF function
-->   POSITION: 66
-- case: at CREATE: RETURN NEXT in a trigger
CREATE FUNCTION c53() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN NEXT NEW;
END $$;
--> ERROR 42804: cannot use RETURN NEXT in a non-SETOF function
-->   POSITION: 70
-- case: at CREATE: FETCH of several rows
CREATE FUNCTION c55() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c refcursor; x int;
BEGIN
  FETCH ALL FROM c INTO x;
END $$;
--> ERROR 0A000: FETCH statement cannot return multiple rows
-->   POSITION: 94
-- case: at CREATE: two targets without a comma
CREATE FUNCTION c56() RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int;
BEGIN
  SELECT 1, 2 INTO x x FROM t;
END $$;
-- case: at CREATE: a field of an unknown variable
CREATE FUNCTION c57() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  x.y := 1;
END $$;
--> ERROR 42601: "x.y" is not a known variable
-->   POSITION: 66
-- case: at CREATE: COMMIT cut short
CREATE FUNCTION c58() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  COMMIT AND;
END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 76
-- case: at CREATE: ASSERT of nothing
CREATE FUNCTION c59() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  ASSERT;
END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 72
-- case: at CREATE: two records in INTO
CREATE FUNCTION c62() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r record; s record; BEGIN SELECT 1, 2 INTO r, s; END $$;
--> ERROR 42601: record variable cannot be part of multiple-item INTO list
-->   POSITION: 110
-- case: at CREATE: INTO STRICT of nothing
CREATE FUNCTION c63() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SELECT 1 INTO STRICT; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 84
-- case: at CREATE: EXIT WHEN nothing
CREATE FUNCTION c64() RETURNS int LANGUAGE plpgsql AS $$ BEGIN LOOP EXIT WHEN; END LOOP; END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 78
-- case: at CREATE: REVERSE over a query
CREATE FUNCTION c66() RETURNS int LANGUAGE plpgsql AS $$ BEGIN FOR i IN REVERSE 1 LOOP NULL; END LOOP; END $$;
--> ERROR 42601: cannot specify REVERSE in query FOR loop
-->   POSITION: 73
-- case: at CREATE: IF without THEN
CREATE FUNCTION c67() RETURNS int LANGUAGE plpgsql AS $$ DECLARE i int; BEGIN IF i = 1 RETURN 1; END IF; END $$;
--> ERROR 42601: missing "THEN" at end of SQL expression
-->   POSITION: 96
-- case: at CREATE: ELSE IF without its END
CREATE FUNCTION c68() RETURNS int LANGUAGE plpgsql AS $$ DECLARE i int; BEGIN IF i = 1 THEN RETURN 1; ELSE IF i = 2 THEN RETURN 2; END IF; END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 144
-- case: at CREATE: a block without its END
CREATE FUNCTION c69() RETURNS int LANGUAGE plpgsql AS $$ BEGIN BEGIN RETURN 1; END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 84
