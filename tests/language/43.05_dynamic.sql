-- 43.5.4 and 43.5.5: EXECUTE, quoting, format(), GET DIAGNOSTICS, FOUND.
CREATE TABLE emp (id int PRIMARY KEY, name text UNIQUE, pay numeric(10,2) CHECK (pay >= 0));
INSERT INTO emp VALUES (1, 'ada', 300), (2, 'bob', 200), (3, 'cyd', 100);
--> changed 3
-- case: EXECUTE of a literal
DO $$ BEGIN EXECUTE 'UPDATE emp SET pay = 1 WHERE id = 1'; END $$;
SELECT pay FROM emp WHERE id = 1;
--> pay
-->   1.00
-- case: EXECUTE of an expression
DO $$ DECLARE tab text := 'emp'; n int; BEGIN EXECUTE 'SELECT count(*) FROM ' || tab || ' WHERE id > ' || 1 INTO n; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the manual's EXECUTE with USING
CREATE FUNCTION paid(low numeric, high numeric) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE c bigint;
BEGIN
  EXECUTE 'SELECT count(*) FROM emp WHERE pay >= $1 AND pay < $2'
     INTO c
     USING low, high;
  RETURN c;
END $$;
SELECT paid(100, 300), paid(0, 1000), paid(NULL, 3);
--> paid | paid | paid
-->   2 | 3 | 0
-- case: USING before INTO
DO $$ DECLARE n text; BEGIN EXECUTE 'SELECT name FROM emp WHERE id = $1' USING 2 INTO n; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: bob
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING expressions of several types
DO $$ DECLARE r record; BEGIN EXECUTE 'SELECT $1 + 1 AS a, $2 || $3 AS b, $4 AS c' INTO r USING 1, 'x'::text, upper('y'), now() IS NOT NULL; RAISE NOTICE '% % %', r.a, r.b, r.c; END $$;
--> NOTICE 00000: 2 xY t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an untyped literal
DO $$ DECLARE t text; BEGIN EXECUTE 'SELECT pg_typeof($1)' INTO t USING 'abc'; RAISE NOTICE '%', t; END $$;
--> NOTICE 00000: text
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING too few values
DO $$ BEGIN EXECUTE 'SELECT $1, $2' USING 1; END $$;
--> ERROR 42P02: there is no parameter $2
-->   QUERY: SELECT $1, $2
-->   AT: 12
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: USING more values than needed
DO $$ DECLARE n int; BEGIN EXECUTE 'SELECT $1' INTO n USING 1, 2, 3; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING a NULL
DO $$ DECLARE b bool; BEGIN EXECUTE 'SELECT $1 IS NULL' INTO b USING NULL::int; RAISE NOTICE '%', b; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: USING an array and a row
DO $$ DECLARE n int; e emp; BEGIN SELECT * INTO e FROM emp WHERE id = 2; EXECUTE 'SELECT $1[2] + ($2).id' INTO n USING ARRAY[10, 20], e; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 22
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the routine's variables are not visible inside
DO $$ DECLARE k int := 1; BEGIN EXECUTE 'SELECT k'; END $$;
--> ERROR 42703: column "k" does not exist
-->   QUERY: SELECT k
-->   AT: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: the routine's parameters are not visible inside
CREATE FUNCTION hidden(a int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN EXECUTE 'SELECT $1' INTO r; RETURN r; END $$;
SELECT hidden(3);
--> ERROR 42P02: there is no parameter $1
-->   QUERY: SELECT $1
-->   AT: 8
-->   CONTEXT: PL/pgSQL function hidden(integer) line 1 at EXECUTE
-- case: INTO a row, a record, several scalars
DO $$ DECLARE e emp; r record; a int; b text; BEGIN
  EXECUTE 'SELECT * FROM emp WHERE id = 1' INTO e;
  EXECUTE 'SELECT id AS i FROM emp WHERE id = 2' INTO r;
  EXECUTE 'SELECT id, name FROM emp WHERE id = 3' INTO a, b;
  RAISE NOTICE '% % % %', e.name, r.i, a, b; END $$;
--> NOTICE 00000: ada 2 3 cyd
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
-- case: INTO with no row leaves NULLs
DO $$ DECLARE a int := 5; BEGIN EXECUTE 'SELECT id FROM emp WHERE false' INTO a; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO takes the first of several rows
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT id FROM emp ORDER BY id DESC' INTO a; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO STRICT without a row
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT id FROM emp WHERE false' INTO STRICT a; END $$;
--> ERROR P0002: query returned no rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: INTO STRICT with several rows
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT id FROM emp' INTO STRICT a; END $$;
--> ERROR P0003: query returned more than one row
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: INTO STRICT with print_strict_params
SET plpgsql.print_strict_params = on;
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT id FROM emp WHERE id > $1 AND name <> $2' INTO STRICT a USING 10, 'x'; END $$;
--> ERROR P0002: query returned no rows
-->   DETAIL: parameters: $1 = '10', $2 = 'x'
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: INTO from a command without rows
DO $$ DECLARE a int; BEGIN EXECUTE 'UPDATE emp SET pay = 1' INTO a; END $$;
--> ERROR 42601: INTO used with a command that cannot return data
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: INTO from UPDATE RETURNING
DO $$ DECLARE a int; p numeric; BEGIN EXECUTE 'UPDATE emp SET pay = pay + $1 WHERE id = $2 RETURNING id, pay' INTO a, p USING 5, 3; RAISE NOTICE '% %', a, p; END $$;
--> NOTICE 00000: 3 105.00
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a SELECT whose rows nobody takes
DO $$ BEGIN EXECUTE 'SELECT * FROM emp'; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE does not change FOUND
DO $$ BEGIN PERFORM 1 FROM emp WHERE false; EXECUTE 'SELECT 1'; RAISE NOTICE '%', FOUND; EXECUTE 'UPDATE emp SET pay = 0'; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE changes ROW_COUNT
DO $$ DECLARE n int; BEGIN EXECUTE 'UPDATE emp SET pay = 0 WHERE id < 3'; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE of NULL
DO $$ BEGIN EXECUTE NULL; END $$;
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of an empty string
DO $$ BEGIN EXECUTE ''; RAISE NOTICE 'nothing'; END $$;
--> NOTICE 00000: nothing
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE of a comment
DO $$ BEGIN EXECUTE '-- only this'; RAISE NOTICE 'nothing'; END $$;
--> NOTICE 00000: nothing
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE of several commands
DO $$ BEGIN EXECUTE 'UPDATE emp SET pay = 7 WHERE id = 1; DELETE FROM emp WHERE id = 2'; END $$;
SELECT id, pay FROM emp ORDER BY id;
--> id | pay
-->   1 | 7.00
-->   3 | 100.00
-- case: EXECUTE of several commands with USING
DO $$ BEGIN EXECUTE 'UPDATE emp SET pay = $1; DELETE FROM emp WHERE id = $1' USING 2; END $$;
SELECT id, pay FROM emp ORDER BY id;
--> id | pay
-->   1 | 2.00
-->   3 | 2.00
-- case: EXECUTE with a syntax error
DO $$ BEGIN EXECUTE 'SELEC 1'; END $$;
--> ERROR 42601: syntax error at or near "SELEC"
-->   QUERY: SELEC 1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of what fails at run time
DO $$ BEGIN EXECUTE 'SELECT 1 / $1' USING 0; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / $1"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE with an unknown table
DO $$ BEGIN EXECUTE 'DELETE FROM ' || quote_ident('No Table'); END $$;
--> ERROR 42P01: relation "No Table" does not exist
-->   QUERY: DELETE FROM "No Table"
-->   AT: 13
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of transaction commands
DO $$ BEGIN EXECUTE 'COMMIT'; END $$;
--> ERROR 0A000: EXECUTE of transaction commands is not implemented
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of SAVEPOINT
DO $$ BEGIN EXECUTE 'SAVEPOINT a'; END $$;
--> ERROR 0A000: EXECUTE of transaction commands is not implemented
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of SELECT INTO a table
DO $$ BEGIN EXECUTE 'SELECT 1 AS a INTO other'; END $$;
--> ERROR 0A000: EXECUTE of SELECT ... INTO is not implemented
-->   HINT: You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of CREATE TABLE AS
DO $$ BEGIN EXECUTE 'CREATE TABLE other AS SELECT id FROM emp'; RAISE NOTICE '%', (SELECT count(*) FROM other); END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE creates, fills and drops a table
DO $$ DECLARE n int; BEGIN
  FOR i IN 1..3 LOOP
    EXECUTE format('CREATE TABLE part_%s (x int CHECK (x = %s))', i, i);
    EXECUTE format('INSERT INTO part_%s VALUES (%L)', i, i);
  END LOOP;
  EXECUTE 'SELECT sum(x) FROM (TABLE part_1 UNION ALL TABLE part_2 UNION ALL TABLE part_3) a' INTO n;
  RAISE NOTICE '%', n;
  EXECUTE 'DROP TABLE part_1, part_2, part_3'; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 7 at RAISE
-- case: EXECUTE of a DO block
DO $$ BEGIN EXECUTE 'DO $x$ BEGIN RAISE NOTICE ''inside''; END $x$'; END $$;
--> NOTICE 00000: inside
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-->     SQL statement "DO $x$ BEGIN RAISE NOTICE 'inside'; END $x$"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE of CREATE FUNCTION and its call
DO $$ DECLARE n int; BEGIN EXECUTE 'CREATE FUNCTION made(a int) RETURNS int LANGUAGE sql AS $f$ SELECT a * 2 $f$'; n := made(4); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE of CALL
CREATE PROCEDURE add_emp(i int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp VALUES (i); END $$;
DO $$ BEGIN EXECUTE 'CALL add_emp($1)' USING 9; END $$;
SELECT count(*) FROM emp;
--> count
-->   4
-- case: EXECUTE with an expression that is no text
DO $$ BEGIN EXECUTE 1; END $$;
--> ERROR 42601: syntax error at or near "1"
-->   QUERY: 1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: EXECUTE in a loop with changing text
DO $$ DECLARE v text; c text; BEGIN FOREACH c IN ARRAY ARRAY['id', 'name', 'pay'] LOOP EXECUTE 'SELECT ' || quote_ident(c) || '::text FROM emp WHERE id = 1' INTO v; RAISE NOTICE '%=%', c, v; END LOOP; END $$;
--> NOTICE 00000: id=1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: name=ada
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: pay=300.00
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: quote_ident
DO $$ BEGIN RAISE NOTICE '% % % % %', quote_ident('plain'), quote_ident('Mixed'), quote_ident('a b'), quote_ident('select'), quote_ident('q"q'); END $$;
--> NOTICE 00000: plain "Mixed" "a b" "select" "q""q"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: quote_literal
DO $$ BEGIN RAISE NOTICE '% % % %', quote_literal('it''s'), quote_literal(E'a\\b'), quote_literal(42), quote_literal(NULL) IS NULL; END $$;
--> NOTICE 00000: 'it''s' E'a\\b' '42' t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: quote_nullable
DO $$ BEGIN RAISE NOTICE '% %', quote_nullable(NULL), quote_nullable('x'); END $$;
--> NOTICE 00000: NULL 'x'
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: NULL in a concatenated command
DO $$ DECLARE v text; BEGIN EXECUTE 'UPDATE emp SET name = ' || quote_literal(v) || ' WHERE id = 1'; END $$;
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: quote_nullable in a concatenated command
DO $$ DECLARE v text; BEGIN EXECUTE 'UPDATE emp SET name = ' || quote_nullable(v) || ' WHERE id = 1'; END $$;
SELECT name IS NULL AS emptied FROM emp WHERE id = 1;
--> emptied
-->   t
-- case: format %I, %L and %s
DO $$ BEGIN RAISE NOTICE '%', format('UPDATE %I SET %I = %L WHERE id = %s', 'my table', 'col', 'it''s', 5); END $$;
--> NOTICE 00000: UPDATE "my table" SET col = 'it''s' WHERE id = 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format with NULLs
DO $$ BEGIN RAISE NOTICE '% %', format('%s|%L', NULL, NULL), format('%s', ''); END $$;
--> NOTICE 00000: |NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format %I with NULL
DO $$ BEGIN RAISE NOTICE '%', format('%I', NULL); END $$;
--> ERROR 22004: null values cannot be formatted as an SQL identifier
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format with positions and widths
DO $$ BEGIN RAISE NOTICE '%', format('%2$s %1$s|%10s|%-10s|%*s|%%', 'a', 'b', 'c', 5, 'd'); END $$;
--> NOTICE 00000: b a|         b|c         |    d|%
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format with too few arguments
DO $$ BEGIN RAISE NOTICE '%', format('%s %s', 1); END $$;
--> ERROR 22023: too few arguments for format()
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format with an unknown conversion
DO $$ BEGIN RAISE NOTICE '%', format('%d', 1); END $$;
--> ERROR 22023: unrecognized format() type specifier "d"
-->   HINT: For a single "%" use "%%".
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format with VARIADIC
DO $$ BEGIN RAISE NOTICE '%', format('%s-%s', VARIADIC ARRAY['x', 'y']); END $$;
--> NOTICE 00000: x-y
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format of arrays, rows and booleans
DO $$ BEGIN RAISE NOTICE '%', format('%s %L %s', ARRAY[1, 2], true, ROW(1, 'a')); END $$;
--> NOTICE 00000: {1,2} 't' (1,a)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: format and USING together
DO $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %I WHERE %I > $1', 'emp', 'pay') INTO n USING 150; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a whole-row USING in INSERT
CREATE FUNCTION put(e emp) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO emp SELECT ($1).*' USING e; END $$;
SELECT put(ROW(10, 'jon', 1));
--> put
-->
SELECT * FROM emp WHERE id = 10;
--> id | name | pay
-->   10 | jon | 1.00
-- case: RETURN QUERY EXECUTE
CREATE FUNCTION pick(col text, low int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT %I::text FROM emp WHERE id >= $1 ORDER BY id', col) USING low;
END $$;
SELECT * FROM pick('name', 2);
--> pick
-->   bob
-->   cyd
SELECT * FROM pick('pay', 1);
--> pick
-->   300.00
-->   200.00
-->   100.00
SELECT * FROM pick('nosuch', 1);
--> ERROR 42703: column "nosuch" does not exist
-->   QUERY: SELECT nosuch::text FROM emp WHERE id >= $1 ORDER BY id
-->   AT: 8
-->   CONTEXT: PL/pgSQL function pick(text,integer) line 3 at RETURN QUERY
-- case: FOR over EXECUTE
CREATE FUNCTION walk(w text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; out text := '';
BEGIN
  FOR r IN EXECUTE 'SELECT name, pay FROM emp WHERE ' || w || ' ORDER BY id' LOOP
    out := out || r.name || '=' || r.pay || ' ';
  END LOOP;
  RETURN out;
END $$;
SELECT walk('pay > 100');
--> walk
-->   ada=300.00 bob=200.00
SELECT walk('name ~ ''d''');
--> walk
-->   ada=300.00 cyd=100.00
SELECT walk('nosuch');
--> ERROR 42703: column "nosuch" does not exist
-->   QUERY: SELECT name, pay FROM emp WHERE nosuch ORDER BY id
-->   AT: 33
-->   CONTEXT: PL/pgSQL function walk(text) line 4 at FOR over EXECUTE statement
-- case: FOR over EXECUTE of NULL
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE NULL LOOP NULL; END LOOP; END $$;
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over EXECUTE statement
-- case: FOR over EXECUTE of a command without rows
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'UPDATE emp SET pay = 1' LOOP NULL; END LOOP; END $$;
--> ERROR 42P11: cannot open UPDATE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over EXECUTE statement
-- case: the manual's dynamic CASE of a key and value
CREATE FUNCTION set_col(colname text, newvalue text, keyvalue int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('UPDATE emp SET %I = $1::%s WHERE id = $2', colname, (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'emp'::regclass AND attname = colname)) USING newvalue, keyvalue;
END $$;
SELECT set_col('name', 'zoe', 1);
--> set_col
-->
SELECT set_col('pay', '12.5', 1);
--> set_col
-->
SELECT * FROM emp WHERE id = 1;
--> id | name | pay
-->   1 | zoe | 12.50
-- case: GET DIAGNOSTICS ROW_COUNT after each command
DO $$ DECLARE n bigint; BEGIN
  INSERT INTO emp VALUES (20), (21); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE 'insert %', n;
  UPDATE emp SET pay = 1 WHERE id >= 20; GET DIAGNOSTICS n := ROW_COUNT; RAISE NOTICE 'update %', n;
  DELETE FROM emp WHERE id = 20; GET CURRENT DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE 'delete %', n;
  PERFORM * FROM emp; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE 'perform %', n;
END $$;
--> NOTICE 00000: insert 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: update 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: delete 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: perform 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
-- case: ROW_COUNT after SELECT INTO and loops
DO $$ DECLARE n int; r record; BEGIN
  SELECT id INTO n FROM emp ORDER BY id; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n;
  FOR r IN SELECT * FROM emp LOOP NULL; END LOOP; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n;
  n := 5; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n;
END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
-- case: ROW_COUNT at the start of a routine
CREATE FUNCTION rc() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END $$;
SELECT rc();
--> rc
-->   0
-- case: ROW_COUNT of a called routine stays its own
CREATE FUNCTION touch() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE emp SET pay = pay; END $$;
DO $$ DECLARE n int; BEGIN DELETE FROM emp WHERE id = 1; PERFORM touch(); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET DIAGNOSTICS PG_CONTEXT
CREATE FUNCTION inner_func() RETURNS integer AS $$
DECLARE
  stack text;
BEGIN
  GET DIAGNOSTICS stack = PG_CONTEXT;
  RAISE NOTICE E'--- Call Stack ---\n%', stack;
  RETURN 1;
END;
$$ LANGUAGE plpgsql;
CREATE FUNCTION outer_func() RETURNS integer AS $$
BEGIN
  RETURN inner_func();
END;
$$ LANGUAGE plpgsql;
SELECT outer_func();
--> NOTICE 00000: --- Call Stack ---
-->     PL/pgSQL function inner_func() line 5 at GET DIAGNOSTICS
-->     PL/pgSQL function outer_func() line 3 at RETURN
-->   CONTEXT: PL/pgSQL function inner_func() line 6 at RAISE
-->     PL/pgSQL function outer_func() line 3 at RETURN
--> outer_func
-->   1
-- case: several items at once
DO $$ DECLARE n int; c text; BEGIN UPDATE emp SET pay = 2; GET DIAGNOSTICS n = ROW_COUNT, c = PG_CONTEXT; RAISE NOTICE '% %', n, c; END $$;
--> NOTICE 00000: 3 PL/pgSQL function inline_code_block line 1 at GET DIAGNOSTICS
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET DIAGNOSTICS into a text
DO $$ DECLARE n text; BEGIN UPDATE emp SET pay = 2; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n || ' rows'; END $$;
--> NOTICE 00000: 3 rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET DIAGNOSTICS into a row's field and an array's element
DO $$ DECLARE e emp; BEGIN UPDATE emp SET pay = 2; GET DIAGNOSTICS e.id = ROW_COUNT; RAISE NOTICE '%', e.id; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: GET DIAGNOSTICS with an unknown item
DO $$ DECLARE n int; BEGIN GET DIAGNOSTICS n = ROWS; END $$;
--> ERROR 42601: unrecognized GET DIAGNOSTICS item at or near "ROWS"
-->   POSITION: 48
-- case: GET DIAGNOSTICS with an item of errors only
DO $$ DECLARE n text; BEGIN GET DIAGNOSTICS n = MESSAGE_TEXT; END $$;
--> ERROR 42601: diagnostics item MESSAGE_TEXT is not allowed in GET CURRENT DIAGNOSTICS
-->   POSITION: 29
-- case: GET STACKED DIAGNOSTICS with ROW_COUNT
DO $$ DECLARE n int; BEGIN NULL; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS n = ROW_COUNT; END $$;
--> ERROR 42601: diagnostics item ROW_COUNT is not allowed in GET STACKED DIAGNOSTICS
-->   POSITION: 61
-- case: GET STACKED DIAGNOSTICS outside a handler
DO $$ DECLARE n text; BEGIN GET STACKED DIAGNOSTICS n = MESSAGE_TEXT; END $$;
--> ERROR 0Z002: GET STACKED DIAGNOSTICS cannot be used outside an exception handler
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at GET STACKED DIAGNOSTICS
-- case: FOUND is false at first
DO $$ BEGIN RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND after SELECT INTO
DO $$ DECLARE n int; BEGIN SELECT id INTO n FROM emp WHERE id = 1; RAISE NOTICE '%', FOUND; SELECT id INTO n FROM emp WHERE id = 100; RAISE NOTICE '%', FOUND; SELECT max(id) INTO n FROM emp WHERE id = 100; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND after UPDATE, INSERT, DELETE
DO $$ BEGIN UPDATE emp SET pay = 1 WHERE id = 100; RAISE NOTICE '%', FOUND; INSERT INTO emp SELECT 90 WHERE true; RAISE NOTICE '%', FOUND; INSERT INTO emp SELECT 91 WHERE false; RAISE NOTICE '%', FOUND; DELETE FROM emp WHERE id = 90; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND after FOR loops
DO $$ DECLARE r record; BEGIN
  FOR i IN 1..0 LOOP NULL; END LOOP; RAISE NOTICE 'int none %', FOUND;
  FOR i IN 1..2 LOOP NULL; END LOOP; RAISE NOTICE 'int some %', FOUND;
  FOR r IN SELECT 1 WHERE false LOOP NULL; END LOOP; RAISE NOTICE 'query none %', FOUND;
  FOR r IN SELECT 1 LOOP NULL; END LOOP; RAISE NOTICE 'query some %', FOUND;
  FOR r IN EXECUTE 'SELECT 1 WHERE false' LOOP NULL; END LOOP; RAISE NOTICE 'execute none %', FOUND; END $$;
--> NOTICE 00000: int none f
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: int some t
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: query none f
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: query some t
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
--> NOTICE 00000: execute none f
-->   CONTEXT: PL/pgSQL function inline_code_block line 6 at RAISE
-- case: FOUND after FOREACH
DO $$ DECLARE x int; BEGIN FOREACH x IN ARRAY '{}'::int[] LOOP NULL; END LOOP; RAISE NOTICE '%', FOUND; FOREACH x IN ARRAY '{1}'::int[] LOOP NULL; END LOOP; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND inside a loop is what its statements leave
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM emp ORDER BY id LIMIT 2 LOOP RAISE NOTICE 'before %', FOUND; PERFORM 1 FROM emp WHERE false; RAISE NOTICE 'after %', FOUND; END LOOP; RAISE NOTICE 'end %', FOUND; END $$;
--> NOTICE 00000: before f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: after f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: before f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: after f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: end t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND when a loop ends by EXIT
DO $$ BEGIN FOR i IN 1..3 LOOP PERFORM 1 WHERE false; EXIT; END LOOP; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND is not changed by WHILE and LOOP
DO $$ DECLARE n int := 0; BEGIN PERFORM 1; WHILE n < 2 LOOP n := n + 1; END LOOP; RAISE NOTICE '%', FOUND; PERFORM 1 WHERE false; LOOP EXIT; END LOOP; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND after RETURN QUERY
CREATE FUNCTION rq() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1 WHERE false; RAISE NOTICE '%', FOUND; RETURN QUERY SELECT 2; RAISE NOTICE '%', FOUND; RETURN QUERY EXECUTE 'SELECT 3 WHERE false'; RAISE NOTICE '%', FOUND; END $$;
SELECT * FROM rq();
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function rq() line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function rq() line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function rq() line 1 at RAISE
--> rq
-->   2
-- case: FOUND is each call's own
CREATE FUNCTION finds() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$;
DO $$ DECLARE n int; BEGIN SELECT 1 INTO n WHERE false; n := (SELECT 1 FROM finds()); RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND assigned
DO $$ BEGIN FOUND := true; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND hidden by a variable
DO $$ DECLARE found text := 'mine'; BEGIN PERFORM 1; RAISE NOTICE '%', found; END $$;
--> NOTICE 00000: mine
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND survives a handled exception
DO $$ BEGIN PERFORM 1; BEGIN PERFORM 1 WHERE false; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE '%', FOUND; END; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOUND after DDL and assignments
DO $$ DECLARE n int; BEGIN PERFORM 1; CREATE TABLE z (a int); RAISE NOTICE '%', FOUND; n := (SELECT 1 WHERE false); RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: IF NOT FOUND
CREATE FUNCTION need(i int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE n text; BEGIN SELECT name INTO n FROM emp WHERE id = i; IF NOT FOUND THEN RAISE EXCEPTION 'employee % not found', i; END IF; RETURN n; END $$;
SELECT need(2);
--> need
-->   bob
SELECT need(200);
--> ERROR P0001: employee 200 not found
-->   CONTEXT: PL/pgSQL function need(integer) line 1 at RAISE
