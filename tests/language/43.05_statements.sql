-- 43.5 Basic statements: assignment, SQL commands, PERFORM, SELECT INTO, STRICT.
CREATE TABLE emp (id int PRIMARY KEY, name text UNIQUE, boss int REFERENCES emp, pay numeric(10,2) CHECK (pay >= 0), hired date NOT NULL DEFAULT '2020-01-01');
INSERT INTO emp VALUES (1, 'ada', NULL, 300), (2, 'bob', 1, 200), (3, 'cyd', 1, 100), (4, 'dan', 2, 50);
--> changed 4
-- case: assignment with both operators
DO $$ DECLARE tax numeric; subtotal numeric := 10; BEGIN tax := subtotal * 0.06; subtotal = subtotal + tax; RAISE NOTICE '% %', tax, subtotal; END $$;
--> NOTICE 00000: 0.60 10.60
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment converts int to numeric and back
DO $$ DECLARE i int; n numeric(6,2); BEGIN n := 7; i := n / 2; RAISE NOTICE '% %', n, i; END $$;
--> NOTICE 00000: 7.00 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment converts by text
DO $$ DECLARE i int; t text; d date; BEGIN t := 5; i := '6'::text; d := '2020-03-01'::text; RAISE NOTICE '% % %', t, i, d; END $$;
--> NOTICE 00000: 5 6 2020-03-01
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment that cannot be converted
DO $$ DECLARE d date; BEGIN d := 5; END $$;
--> ERROR 22007: invalid input syntax for type date: "5"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment of a boolean to an int
DO $$ DECLARE i int; BEGIN i := true; RAISE NOTICE '%', i; i := (1 = 2); END $$;
--> ERROR 22P02: invalid input syntax for type integer: "t"
-->   CONTEXT: PL/pgSQL assignment "i := true"
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment of an int array to a text array
DO $$ DECLARE t text[]; BEGIN t := ARRAY[1, 2]; RAISE NOTICE '%', t; END $$;
--> NOTICE 00000: {1,2}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment of timestamp to date
DO $$ DECLARE d date; BEGIN d := timestamp '2020-05-06 23:59'; RAISE NOTICE '%', d; END $$;
--> NOTICE 00000: 2020-05-06
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment to an array element beyond the end
DO $$ DECLARE a int[]; BEGIN a[3] := 5; RAISE NOTICE '% %', a, array_dims(a); a[-1] := 1; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: [3:3]={5} [3:3]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: [-1:3]={1,NULL,NULL,NULL,5}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment to an array slice
DO $$ DECLARE a int[] := '{1,2,3,4}'; BEGIN a[2:3] := '{20,30}'; RAISE NOTICE '%', a; a[1:3] := '{9}'; END $$;
--> NOTICE 00000: {1,20,30,4}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 2202E: source array too small
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment to an element of a matrix
DO $$ DECLARE m int[] := '{{1,2},{3,4}}'; BEGIN m[2][1] := 30; RAISE NOTICE '%', m; m[3][1] := 1; END $$;
--> NOTICE 00000: {{1,2},{30,4}}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 2202E: array subscript out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment with a NULL subscript
DO $$ DECLARE a int[] := '{1}'; i int; BEGIN a[i] := 2; END $$;
--> ERROR 22004: array subscript in assignment must not be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment of a wrong number of subscripts
DO $$ DECLARE m int[] := '{{1,2},{3,4}}'; BEGIN m[1] := 5; END $$;
--> ERROR 2202E: wrong number of array subscripts
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: assignment with a subscript that is an expression
DO $$ DECLARE a text[] := '{a,b,c}'; i int := 1; BEGIN a[i + 1] := a[array_upper(a, 1)] || i; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: {a,c1,c}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an element of something that is no array
DO $$ DECLARE n int; BEGIN n[1] := 1; END $$;
--> ERROR 42804: cannot subscript type integer because it does not support subscripting
-->   QUERY: n[1] := 1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: a field of something that is no row
DO $$ DECLARE n int; BEGIN n.a := 1; END $$;
--> ERROR 42601: "n.a" is not a known variable
-->   POSITION: 28
-- case: assignment to a row's field, with the label
DO $$ <<b>> DECLARE e emp; BEGIN b.e.name := 'x'; b.e := ROW(1, 'y', NULL, 1, '2021-01-01'); RAISE NOTICE '%', b.e.name; END $$;
--> NOTICE 00000: y
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment to an array field of a row
CREATE TABLE bag (id int, xs int[]);
DO $$ DECLARE b bag; BEGIN b.xs[2] := 7; b.id := 1; RAISE NOTICE '%', b; END $$;
--> NOTICE 00000: (1,[2:2]={7})
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment to an unknown variable
DO $$ BEGIN nosuch := 1; END $$;
--> ERROR 42601: "nosuch" is not a known variable
-->   POSITION: 13
-- case: assignment of a subscripted jsonb
DO $$ DECLARE j jsonb := '{"a":1}'; BEGIN j['b'] := '2'; j['c']['d'] := '"x"'; RAISE NOTICE '%', j; END $$;
--> NOTICE 00000: {"a": 1, "b": 2, "c": {"d": "x"}}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: assignment of a row to several shapes
DO $$ DECLARE e emp; r record; BEGIN SELECT * INTO e FROM emp WHERE id = 1; r := e; RAISE NOTICE '% %', r.name, (r).id; END $$;
--> NOTICE 00000: ada 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an SQL command with variables
DO $$ DECLARE k int := 5; nm text := 'eve'; BEGIN INSERT INTO emp (id, name, pay) VALUES (k, nm, k * 10); UPDATE emp SET pay = pay + k WHERE id = k; DELETE FROM emp WHERE name = nm AND pay > k; END $$;
SELECT count(*) FROM emp;
--> count
-->   4
-- case: SELECT without a destination
DO $$ BEGIN SELECT 1; END $$;
--> ERROR 42601: query has no destination for result data
-->   HINT: If you want to discard the results of a SELECT, use PERFORM instead.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: VALUES without a destination
DO $$ BEGIN VALUES (1); END $$;
--> ERROR 42601: query has no destination for result data
-->   HINT: If you want to discard the results of a SELECT, use PERFORM instead.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: WITH without a destination
DO $$ BEGIN WITH w AS (SELECT 1) SELECT * FROM w; END $$;
--> ERROR 42601: query has no destination for result data
-->   HINT: If you want to discard the results of a SELECT, use PERFORM instead.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: RETURNING without a destination
DO $$ BEGIN DELETE FROM emp WHERE id = 4 RETURNING id; END $$;
--> ERROR 42601: query has no destination for result data
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: PERFORM
DO $$ BEGIN PERFORM pg_sleep(0), 1; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: PERFORM with FROM sets FOUND
DO $$ BEGIN PERFORM * FROM emp WHERE pay > 1000; RAISE NOTICE '%', FOUND; PERFORM 1 FROM emp WHERE boss = 1; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: PERFORM of a function with side effects
CREATE FUNCTION raise_pay(i int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE emp SET pay = pay * 2 WHERE id = i; END $$;
DO $$ BEGIN PERFORM raise_pay(id) FROM emp WHERE boss = 1 ORDER BY id; END $$;
SELECT id, pay FROM emp ORDER BY id;
--> id | pay
-->   1 | 300.00
-->   2 | 400.00
-->   3 | 200.00
-->   4 | 50.00
-- case: PERFORM with WITH in a subquery
DO $$ BEGIN PERFORM (WITH w AS (SELECT 1 AS a) SELECT a FROM w); RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: PERFORM followed by SELECT
DO $$ BEGIN PERFORM SELECT 1; END $$;
--> ERROR 42601: syntax error at or near "SELECT"
-->   POSITION: 21
-- case: SELECT INTO scalars
DO $$ DECLARE a int; b text; BEGIN SELECT id, name INTO a, b FROM emp WHERE id = 2; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 2 bob
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO at the end
DO $$ DECLARE a int; BEGIN SELECT max(id) FROM emp INTO a; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO before the columns
DO $$ DECLARE a int; b text; BEGIN SELECT INTO a, b id, name FROM emp WHERE id = 3; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 3 cyd
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO in the middle of a clause
DO $$ DECLARE a int; BEGIN SELECT id FROM emp WHERE id > 1 INTO a ORDER BY id LIMIT 1; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO twice
DO $$ DECLARE a int; BEGIN SELECT 1 INTO a INTO a; END $$;
--> ERROR 42601: INTO specified more than once at or near "INTO"
-->   POSITION: 44
-- case: INTO an unknown variable
DO $$ BEGIN SELECT 1 INTO nosuch; END $$;
--> ERROR 42601: "nosuch" is not a known variable
-->   POSITION: 27
-- case: INTO a record and a scalar together
DO $$ DECLARE r record; a int; BEGIN SELECT 1, 2 INTO r, a; END $$;
--> ERROR 42601: record variable cannot be part of multiple-item INTO list
-->   POSITION: 56
-- case: INTO fewer variables than columns
DO $$ DECLARE a int; BEGIN SELECT id, name INTO a FROM emp WHERE id = 1; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO more variables than columns
DO $$ DECLARE a int; b int := 9; BEGIN SELECT id INTO a, b FROM emp WHERE id = 1; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 1 <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the extra check strict_multi_assignment warns
DO $$ DECLARE a int; b int; BEGIN SET plpgsql.extra_warnings TO 'strict_multi_assignment'; EXECUTE 'DO $x$ DECLARE a int; b int; BEGIN SELECT 1 INTO a, b; SELECT 1, 2 INTO a; END $x$'; END $$;
--> WARNING 42804: number of source and target fields in assignment does not match
-->   DETAIL: strict_multi_assignment check of extra_warnings is active.
-->   HINT: Make sure the query returns the exact list of columns.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-->     SQL statement "DO $x$ DECLARE a int; b int; BEGIN SELECT 1 INTO a, b; SELECT 1, 2 INTO a; END $x$"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
--> WARNING 42804: number of source and target fields in assignment does not match
-->   DETAIL: strict_multi_assignment check of extra_warnings is active.
-->   HINT: Make sure the query returns the exact list of columns.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-->     SQL statement "DO $x$ DECLARE a int; b int; BEGIN SELECT 1 INTO a, b; SELECT 1, 2 INTO a; END $x$"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
-- case: the extra check strict_multi_assignment refuses
SET plpgsql.extra_errors TO 'strict_multi_assignment';
DO $$ DECLARE a int; b int; BEGIN SELECT 1 INTO a, b; END $$;
--> ERROR 42804: number of source and target fields in assignment does not match
-->   DETAIL: strict_multi_assignment check of extra_errors is active.
-->   HINT: Make sure the query returns the exact list of columns.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
DO $$ DECLARE a int; b int; BEGIN SELECT 1, 2, 3 INTO a, b; END $$;
--> ERROR 42804: number of source and target fields in assignment does not match
-->   DETAIL: strict_multi_assignment check of extra_errors is active.
-->   HINT: Make sure the query returns the exact list of columns.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: the extra check too_many_rows
SET plpgsql.extra_warnings TO 'too_many_rows';
DO $$ DECLARE a int; BEGIN SELECT id INTO a FROM emp ORDER BY id; RAISE NOTICE '%', a; END $$;
--> WARNING P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SET plpgsql.extra_errors TO 'too_many_rows';
DO $$ DECLARE a int; BEGIN SELECT id INTO a FROM emp ORDER BY id; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: INTO a row variable
DO $$ DECLARE e emp%ROWTYPE; BEGIN SELECT * INTO e FROM emp WHERE id = 2; RAISE NOTICE '% %', e.name, e; END $$;
--> NOTICE 00000: bob (2,bob,1,200.00,2020-01-01)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO a row variable in another column order
DO $$ DECLARE e emp%ROWTYPE; BEGIN SELECT name, id INTO e FROM emp WHERE id = 2; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "bob"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: INTO a row variable's fields
DO $$ DECLARE e emp%ROWTYPE; BEGIN SELECT name, id INTO e.name, e.id FROM emp WHERE id = 2; RAISE NOTICE '%', e; END $$;
--> NOTICE 00000: (2,bob,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO a row variable from a whole-row column
DO $$ DECLARE e emp; BEGIN SELECT emp INTO e FROM emp WHERE id = 1; RAISE NOTICE '%', e.name; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "(1,ada,,300.00,2020-01-01)"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: INTO a record from a whole-row column
DO $$ DECLARE r record; BEGIN SELECT emp INTO r FROM emp WHERE id = 1; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: ("(1,ada,,300.00,2020-01-01)")
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO array elements
DO $$ DECLARE a int[]; BEGIN SELECT 1, 2 INTO a[1], a[2]; RAISE NOTICE '%', a; END $$;
--> ERROR 42601: syntax error at or near "["
-->   POSITION: 48
-- case: INTO converts
DO $$ DECLARE n int; t varchar(3); BEGIN SELECT 2.7, 'abc' INTO n, t; RAISE NOTICE '% %', n, t; SELECT 'abcd' INTO t; END $$;
--> NOTICE 00000: 3 abc
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22001: value too long for type character varying(3)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: INTO without a row sets NULL and FOUND
DO $$ DECLARE a int := 1; b text := 'x'; BEGIN SELECT id, name INTO a, b FROM emp WHERE id = 99; RAISE NOTICE '% % %', a, b, FOUND; END $$;
--> NOTICE 00000: <NULL> <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO takes the first of several rows
DO $$ DECLARE a int; BEGIN SELECT id INTO a FROM emp ORDER BY id DESC; RAISE NOTICE '% %', a, FOUND; END $$;
--> NOTICE 00000: 4 t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO STRICT with one row
DO $$ DECLARE a int; BEGIN SELECT id INTO STRICT a FROM emp WHERE name = 'bob'; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INTO STRICT without a row
DO $$ DECLARE a int; BEGIN SELECT id INTO STRICT a FROM emp WHERE name = 'zed'; END $$;
--> ERROR P0002: query returned no rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: INTO STRICT with several rows
DO $$ DECLARE a int; BEGIN SELECT id INTO STRICT a FROM emp WHERE boss = 1; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: the manual's STRICT with NO_DATA_FOUND and TOO_MANY_ROWS
CREATE FUNCTION get_pay(who text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE e emp;
BEGIN
  SELECT * INTO STRICT e FROM emp WHERE name LIKE who;
  RETURN e.pay;
EXCEPTION
  WHEN NO_DATA_FOUND THEN RETURN 'employee ' || who || ' not found';
  WHEN TOO_MANY_ROWS THEN RETURN 'employee ' || who || ' not unique';
END $$;
SELECT get_pay('ada'), get_pay('q%'), get_pay('%d%');
--> get_pay | get_pay | get_pay
-->   300.00 | employee q% not found | employee %d% not unique
-- case: STRICT with print_strict_params
CREATE FUNCTION get_userid(username text) RETURNS int AS $$
#print_strict_params on
DECLARE
userid int;
BEGIN
    SELECT emp.id INTO STRICT userid FROM emp WHERE emp.name = get_userid.username;
    RETURN userid;
END;
$$ LANGUAGE plpgsql;
SELECT get_userid('nobody');
--> ERROR P0002: query returned no rows
-->   DETAIL: parameters: username = 'nobody'
-->   CONTEXT: PL/pgSQL function get_userid(text) line 6 at SQL statement
-- case: print_strict_params with several parameters of several types
CREATE FUNCTION pick(a int, b text, c date, d numeric) RETURNS int LANGUAGE plpgsql AS $$
#print_strict_params on
DECLARE r int; loc bool := true;
BEGIN
  SELECT id INTO STRICT r FROM emp WHERE id >= a AND (b IS NULL OR name <> b) AND hired < c AND pay > d AND loc;
  RETURN r;
END $$;
SELECT pick(1, NULL, '2021-01-01', 1.50);
--> ERROR P0003: query returned more than one row
-->   DETAIL: parameters: a = '1', b = NULL, c = '2021-01-01', d = '1.50', loc = 't'
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function pick(integer,text,date,numeric) line 5 at SQL statement
SELECT pick(100, 'it''s', '2021-01-01', 1);
--> ERROR P0002: query returned no rows
-->   DETAIL: parameters: a = '100', b = 'it''s', c = '2021-01-01', d = '1', loc = 't'
-->   CONTEXT: PL/pgSQL function pick(integer,text,date,numeric) line 5 at SQL statement
-- case: print_strict_params as a setting
SET plpgsql.print_strict_params = on;
DO $$ DECLARE a int; k int := 99; BEGIN SELECT id INTO STRICT a FROM emp WHERE id = k; END $$;
--> ERROR P0002: query returned no rows
-->   DETAIL: parameters: k = '99'
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: print_strict_params with a query without parameters
SET plpgsql.print_strict_params = on;
DO $$ DECLARE a int; BEGIN SELECT id INTO STRICT a FROM emp WHERE false; END $$;
--> ERROR P0002: query returned no rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: print_strict_params cuts long values
CREATE FUNCTION long_value(a text) RETURNS int LANGUAGE plpgsql AS $$
#print_strict_params on
DECLARE r int;
BEGIN
  SELECT id INTO STRICT r FROM emp WHERE name = a;
  RETURN r;
END $$;
SELECT long_value(repeat('x', 300));
--> ERROR P0002: query returned no rows
-->   DETAIL: parameters: a = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
-->   CONTEXT: PL/pgSQL function long_value(text) line 5 at SQL statement
-- case: INSERT RETURNING INTO
DO $$ DECLARE a int; d date; BEGIN INSERT INTO emp VALUES (9, 'ivy') RETURNING id, hired INTO a, d; RAISE NOTICE '% % %', a, d, FOUND; END $$;
--> NOTICE 00000: 9 2020-01-01 t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INSERT RETURNING * INTO a row
DO $$ DECLARE e emp; BEGIN INSERT INTO emp (id, name) VALUES (9, 'ivy') RETURNING * INTO e; RAISE NOTICE '%', e; END $$;
--> NOTICE 00000: (9,ivy,,,2020-01-01)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: INSERT of several rows RETURNING INTO
DO $$ DECLARE a int; BEGIN INSERT INTO emp (id) VALUES (8), (9) RETURNING id INTO a; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: UPDATE RETURNING INTO
DO $$ DECLARE p numeric; n text; BEGIN UPDATE emp SET pay = pay + 1 WHERE id = 3 RETURNING pay, upper(name) INTO p, n; RAISE NOTICE '% %', p, n; END $$;
--> NOTICE 00000: 101.00 CYD
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: UPDATE RETURNING INTO with several rows
DO $$ DECLARE p numeric; BEGIN UPDATE emp SET pay = pay + 1 RETURNING pay INTO p; END $$;
--> ERROR P0003: query returned more than one row
-->   HINT: Make sure the query returns a single row, or use LIMIT 1.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: UPDATE RETURNING INTO without a row
DO $$ DECLARE p numeric := 3; BEGIN UPDATE emp SET pay = 1 WHERE id = 55 RETURNING pay INTO p; RAISE NOTICE '% %', p, FOUND; END $$;
--> NOTICE 00000: <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: UPDATE RETURNING INTO STRICT without a row
DO $$ DECLARE p numeric; BEGIN UPDATE emp SET pay = 1 WHERE id = 55 RETURNING pay INTO STRICT p; END $$;
--> ERROR P0002: query returned no rows
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: DELETE RETURNING INTO
DO $$ DECLARE e emp; BEGIN DELETE FROM emp WHERE id = 4 RETURNING * INTO e; RAISE NOTICE '%', e.name; END $$;
--> NOTICE 00000: dan
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DELETE USING RETURNING INTO
DO $$ DECLARE a text; b text; BEGIN DELETE FROM emp e USING emp m WHERE e.boss = m.id AND e.id = 4 RETURNING e.name, m.name INTO a, b; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: dan bob
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: UPDATE FROM with variables
DO $$ DECLARE f numeric := 1.5; BEGIN UPDATE emp e SET pay = e.pay * f FROM emp m WHERE m.id = e.boss AND m.name = 'ada'; END $$;
SELECT id, pay FROM emp ORDER BY id;
--> id | pay
-->   1 | 300.00
-->   2 | 300.00
-->   3 | 150.00
-->   4 | 50.00
-- case: INSERT SELECT with variables
DO $$ DECLARE shift int := 10; BEGIN INSERT INTO emp SELECT id + shift, name || shift, NULL, pay FROM emp WHERE id < 3; END $$;
SELECT id, name FROM emp WHERE id > 10 ORDER BY id;
--> id | name
-->   11 | ada10
-->   12 | bob10
-- case: INSERT ON CONFLICT DO UPDATE
CREATE FUNCTION put(i int, p numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r numeric;
BEGIN
  INSERT INTO emp (id, pay) VALUES (i, p) ON CONFLICT (id) DO UPDATE SET pay = emp.pay + excluded.pay RETURNING pay INTO r;
  RETURN r;
END $$;
SELECT put(1, 5), put(77, 5);
--> put | put
-->   305.00 | 5.00
-- case: INSERT ON CONFLICT DO NOTHING and FOUND
DO $$ BEGIN INSERT INTO emp (id) VALUES (1) ON CONFLICT DO NOTHING; RAISE NOTICE '%', FOUND; INSERT INTO emp (id) VALUES (60) ON CONFLICT DO NOTHING; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: MERGE
DO $$ DECLARE n int; BEGIN
  MERGE INTO emp USING (VALUES (1, 1.5), (70, 2.5)) v(k, p) ON emp.id = v.k
  WHEN MATCHED THEN UPDATE SET pay = v.p WHEN NOT MATCHED THEN INSERT (id, pay) VALUES (v.k, v.p);
  GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% %', n, FOUND; END $$;
--> NOTICE 00000: 2 t
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
SELECT id, pay FROM emp WHERE id IN (1, 70) ORDER BY id;
--> id | pay
-->   1 | 1.50
-->   70 | 2.50
-- case: WITH that changes, INTO
DO $$ DECLARE n int; BEGIN WITH gone AS (DELETE FROM emp WHERE id > 2 RETURNING id) SELECT count(*) INTO n FROM gone; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an error of a constraint inside
DO $$ BEGIN UPDATE emp SET pay = -1 WHERE id = 1; END $$;
--> ERROR 23514: new row for relation "emp" violates check constraint "emp_pay_check"
-->   DETAIL: Failing row contains (1, ada, null, -1.00, 2020-01-01).
-->   CONTEXT: SQL statement "UPDATE emp SET pay = -1 WHERE id = 1"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: emp
-->   CONSTRAINT: emp_pay_check
-- case: a unique violation inside
DO $$ BEGIN INSERT INTO emp (id, name) VALUES (50, 'ada'); END $$;
--> ERROR 23505: duplicate key value violates unique constraint "emp_name_key"
-->   DETAIL: Key (name)=(ada) already exists.
-->   CONTEXT: SQL statement "INSERT INTO emp (id, name) VALUES (50, 'ada')"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: emp
-->   CONSTRAINT: emp_name_key
-- case: a foreign key violation inside
DO $$ BEGIN INSERT INTO emp (id, boss) VALUES (50, 51); END $$;
--> ERROR 23503: insert or update on table "emp" violates foreign key constraint "emp_boss_fkey"
-->   DETAIL: Key (boss)=(51) is not present in table "emp".
-->   CONTEXT: SQL statement "INSERT INTO emp (id, boss) VALUES (50, 51)"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: emp
-->   CONSTRAINT: emp_boss_fkey
-- case: a not-null violation inside
DO $$ BEGIN UPDATE emp SET hired = NULL WHERE id = 1; END $$;
--> ERROR 23502: null value in column "hired" of relation "emp" violates not-null constraint
-->   DETAIL: Failing row contains (1, ada, null, 300.00, null).
-->   CONTEXT: SQL statement "UPDATE emp SET hired = NULL WHERE id = 1"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: emp
-->   COLUMN: hired
-- case: a numeric overflow inside
DO $$ BEGIN UPDATE emp SET pay = 1e9 WHERE id = 1; END $$;
--> ERROR 22003: numeric field overflow
-->   DETAIL: A field with precision 10, scale 2 must round to an absolute value less than 10^8.
-->   CONTEXT: SQL statement "UPDATE emp SET pay = 1e9 WHERE id = 1"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: a table that is not there
DO $$ BEGIN DELETE FROM nosuch; END $$;
--> ERROR 42P01: relation "nosuch" does not exist
-->   QUERY: DELETE FROM nosuch
-->   AT: 13
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: a table that appears later in the same call
DO $$ BEGIN CREATE TABLE fresh (a int); INSERT INTO fresh VALUES (1); RAISE NOTICE '%', (SELECT count(*) FROM fresh); END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a statement on a column that is not there
DO $$ BEGIN UPDATE emp SET nosuch = 1; END $$;
--> ERROR 42703: column "nosuch" of relation "emp" does not exist
-->   QUERY: UPDATE emp SET nosuch = 1
-->   AT: 16
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: a variable and a column of one name
CREATE FUNCTION clash(id int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT name FROM emp WHERE id = id LIMIT 1); END $$;
SELECT clash(2);
--> ERROR 42702: column reference "id" is ambiguous
-->   DETAIL: It could refer to either a PL/pgSQL variable or a table column.
-->   QUERY: (SELECT name FROM emp WHERE id = id LIMIT 1)
-->   AT: 29
-->   CONTEXT: PL/pgSQL function clash(integer) line 1 at RETURN
-- case: variable_conflict use_variable
CREATE FUNCTION clash(id int) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN RETURN (SELECT count(*) FROM emp WHERE id = id); END $$;
SELECT clash(2);
--> clash
-->   4
-- case: variable_conflict use_column
CREATE FUNCTION clash(id int) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN RETURN (SELECT count(*) FROM emp WHERE id = clash.id); END $$;
SELECT clash(2);
--> clash
-->   1
-- case: variable_conflict as a setting
SET plpgsql.variable_conflict = use_column;
CREATE FUNCTION clash(name text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM emp WHERE name = name); END $$;
SELECT clash('ada');
--> clash
-->   4
-- case: the manual's stamp_user
CREATE FUNCTION stamp_user(id int, name text) RETURNS void AS $$
    #variable_conflict use_variable
    DECLARE
        curtime date := '2022-02-02';
    BEGIN
        UPDATE emp SET hired = curtime, name = name
          WHERE emp.id = id;
    END;
$$ LANGUAGE plpgsql;
SELECT stamp_user(2, 'robert');
--> stamp_user
-->
SELECT * FROM emp WHERE id = 2;
--> id | name | boss | pay | hired
-->   2 | robert | 1 | 200.00 | 2022-02-02
-- case: a variable as INSERT's column name stays a column
CREATE FUNCTION ins(id int, name text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO emp (id, name) VALUES (ins.id, ins.name); END $$;
SELECT ins(33, 'x');
--> ins
-->
SELECT name FROM emp WHERE id = 33;
--> name
-->   x
-- case: a variable cannot be a table's name
DO $$ DECLARE tab text := 'emp'; BEGIN PERFORM * FROM tab; END $$;
--> ERROR 42P01: relation "tab" does not exist
-->   QUERY: SELECT * FROM tab
-->   AT: 15
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: an alias that is a variable's name
DO $$ DECLARE e int := 5; n int; BEGIN SELECT e.id INTO n FROM emp e WHERE e.name = 'bob'; RAISE NOTICE '% %', n, e; END $$;
--> NOTICE 00000: 2 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SELECT INTO a table is not this INTO
DO $$ BEGIN CREATE TABLE copy1 AS SELECT id FROM emp; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SELECT count(*) FROM copy1;
--> count
-->   4
-- case: NULL as a statement
CREATE FUNCTION ignore() RETURNS int LANGUAGE plpgsql AS $$ DECLARE x int := 1; y int; BEGIN y := x / 0; RETURN y; EXCEPTION WHEN division_by_zero THEN NULL; RETURN -1; END $$;
SELECT ignore();
--> ignore
-->   -1
-- case: DDL inside: indexes, views, sequences
DO $$ BEGIN CREATE INDEX ON emp (pay); CREATE VIEW rich AS SELECT id FROM emp WHERE pay > 150; CREATE SEQUENCE q START 5; END $$;
SELECT * FROM rich ORDER BY id;
--> id
-->   1
-->   2
SELECT nextval('q');
--> nextval
-->   5
-- case: DDL inside: ALTER TABLE and what comes after
DO $$ BEGIN ALTER TABLE emp ADD COLUMN note text DEFAULT 'n'; UPDATE emp SET note = 'm' WHERE id = 1; DROP TABLE IF EXISTS nothing_here; END $$;
--> NOTICE 00000: table "nothing_here" does not exist, skipping
-->   CONTEXT: SQL statement "DROP TABLE IF EXISTS nothing_here"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
SELECT id, note FROM emp ORDER BY id;
--> id | note
-->   1 | m
-->   2 | n
-->   3 | n
-->   4 | n
-- case: TRUNCATE inside
DO $$ BEGIN CREATE TABLE log (a int); INSERT INTO log VALUES (1), (2); TRUNCATE log; RAISE NOTICE '% %', (SELECT count(*) FROM log), FOUND; END $$;
--> NOTICE 00000: 0 t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SET and SHOW inside
DO $$ BEGIN SET application_name = 'inside'; RAISE NOTICE '%', current_setting('application_name'); PERFORM set_config('my.flag', 'on', true); RAISE NOTICE '%', current_setting('my.flag'); END $$;
--> NOTICE 00000: inside
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: on
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: BEGIN as an SQL command
DO $$ BEGIN BEGIN; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 18
-- case: SAVEPOINT is refused
DO $$ BEGIN SAVEPOINT a; END $$;
--> ERROR 0A000: unsupported transaction command in PL/pgSQL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: COPY to the client is refused
DO $$ BEGIN COPY emp TO STDOUT; END $$;
--> ERROR 0A000: cannot COPY to/from client in PL/pgSQL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: NOTIFY and LISTEN inside
DO $$ BEGIN LISTEN ch; NOTIFY ch, 'p'; RAISE NOTICE 'sent'; END $$;
--> NOTICE 00000: sent
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXPLAIN INTO
DO $$ DECLARE t text; BEGIN EXPLAIN (COSTS off) SELECT 1 INTO t; RAISE NOTICE '%', t IS NOT NULL; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a temporary table of the call
CREATE FUNCTION scratch(n int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS work;
  CREATE TEMP TABLE work ON COMMIT DROP AS SELECT g FROM generate_series(1, n) g;
  RETURN (SELECT sum(g) FROM work);
END $$;
SELECT scratch(4);
--> NOTICE 00000: table "work" does not exist, skipping
-->   CONTEXT: SQL statement "DROP TABLE IF EXISTS work"
-->     PL/pgSQL function scratch(integer) line 3 at SQL statement
--> scratch
-->   10
SELECT scratch(5);
--> NOTICE 00000: table "work" does not exist, skipping
-->   CONTEXT: SQL statement "DROP TABLE IF EXISTS work"
-->     PL/pgSQL function scratch(integer) line 3 at SQL statement
--> scratch
-->   15
