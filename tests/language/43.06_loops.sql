-- 43.6.5 to 43.6.7: LOOP, EXIT, CONTINUE, WHILE, FOR over integers, queries and arrays.
CREATE TABLE m (id int PRIMARY KEY, k text, v int);
INSERT INTO m VALUES (1, 'a', 5), (2, 'b', 3), (3, 'c', NULL);
--> changed 3
-- case: LOOP with EXIT and IF
DO $$ DECLARE count int := 0; BEGIN LOOP count := count + 1; IF count > 3 THEN EXIT; END IF; END LOOP; RAISE NOTICE '%', count; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: LOOP with EXIT WHEN
DO $$ DECLARE count int := 0; BEGIN LOOP count := count + 1; EXIT WHEN count > 3; END LOOP; RAISE NOTICE '%', count; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT WHEN NULL stays
DO $$ DECLARE n int := 0; BEGIN LOOP n := n + 1; EXIT WHEN NULL; EXIT WHEN n = 3; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT from the outer loop by its label
DO $$ BEGIN <<o>> FOR i IN 1..3 LOOP FOR j IN 1..3 LOOP EXIT o WHEN i * j = 4; RAISE NOTICE '% %', i, j; END LOOP; END LOOP; END $$;
--> NOTICE 00000: 1 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT from the inner loop by its label
DO $$ BEGIN FOR i IN 1..2 LOOP <<n>> LOOP EXIT n; END LOOP n; RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT with a label that is not there
DO $$ BEGIN LOOP EXIT nosuch; END LOOP; END $$;
--> ERROR 42601: there is no label "nosuch" attached to any block or loop enclosing this statement
-->   POSITION: 23
-- case: EXIT outside any loop
DO $$ BEGIN EXIT; END $$;
--> ERROR 42601: EXIT cannot be used outside a loop, unless it has a label
-->   POSITION: 13
-- case: EXIT from a block inside a loop by the block's label
DO $$ BEGIN <<ablock>> BEGIN FOR i IN 1..5 LOOP IF i > 2 THEN EXIT ablock; END IF; RAISE NOTICE '%', i; END LOOP; RAISE NOTICE 'skipped'; END; RAISE NOTICE 'end'; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: end
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT inside a block with an exception clause
DO $$ BEGIN FOR i IN 1..3 LOOP BEGIN EXIT WHEN i = 2; RAISE NOTICE '%', i; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'never'; END; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT from a handler
DO $$ DECLARE n int := 0; BEGIN LOOP BEGIN n := n + 1; PERFORM 1 / (3 - n); EXCEPTION WHEN division_by_zero THEN EXIT; END; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE
DO $$ BEGIN FOR i IN 1..6 LOOP CONTINUE WHEN i % 2 = 0; RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE without WHEN
DO $$ DECLARE n int := 0; BEGIN LOOP n := n + 1; IF n < 3 THEN CONTINUE; END IF; EXIT; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE of the outer loop
DO $$ BEGIN <<o>> FOR i IN 1..3 LOOP FOR j IN 1..3 LOOP CONTINUE o WHEN j = i; RAISE NOTICE '% %', i, j; END LOOP; END LOOP; END $$;
--> NOTICE 00000: 2 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE in WHILE evaluates its condition
DO $$ DECLARE n int := 0; BEGIN WHILE n < 3 LOOP n := n + 1; CONTINUE; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE in FOR over a query
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM m ORDER BY id LOOP CONTINUE WHEN r.v IS NULL OR r.v < 4; RAISE NOTICE '%', r.k; END LOOP; END $$;
--> NOTICE 00000: a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONTINUE outside any loop
DO $$ BEGIN CONTINUE; END $$;
--> ERROR 42601: CONTINUE cannot be used outside a loop
-->   POSITION: 13
-- case: CONTINUE with a block's label
DO $$ BEGIN <<b>> BEGIN LOOP CONTINUE b; END LOOP; END; END $$;
--> ERROR 42601: block label "b" cannot be used in CONTINUE
-->   POSITION: 39
-- case: CONTINUE from a handler
DO $$ BEGIN FOR i IN -1..1 LOOP BEGIN RAISE NOTICE '%', 6 / i; EXCEPTION WHEN division_by_zero THEN CONTINUE; END; RAISE NOTICE 'after %', i; END LOOP; END $$;
--> NOTICE 00000: -6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: after -1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: after 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WHILE
DO $$ DECLARE owed int := 20; paid int := 0; BEGIN WHILE owed > 0 AND paid < 15 LOOP owed := owed - 5; paid := paid + 5; END LOOP; RAISE NOTICE '% %', owed, paid; END $$;
--> NOTICE 00000: 5 15
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WHILE NOT
DO $$ DECLARE done bool := false; BEGIN WHILE NOT done LOOP done := true; RAISE NOTICE 'once'; END LOOP; END $$;
--> NOTICE 00000: once
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WHILE NULL never runs
DO $$ DECLARE b bool; BEGIN WHILE b LOOP RAISE NOTICE 'never'; END LOOP; END $$;
-- case: WHILE whose condition fails
DO $$ DECLARE n int := 2; BEGIN WHILE 10 / n > 0 LOOP n := n - 1; END LOOP; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at WHILE
-- case: WHILE with a label and its end
DO $$ DECLARE n int := 0; BEGIN <<w>> WHILE true LOOP n := n + 1; EXIT w WHEN n = 4; END LOOP w; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WHILE EXISTS over a table that is emptied
DO $$ DECLARE n int := 0; BEGIN WHILE EXISTS (SELECT FROM m) LOOP DELETE FROM m WHERE id = (SELECT min(id) FROM m); n := n + 1; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a loop's end label that differs
DO $$ BEGIN <<a>> LOOP EXIT; END LOOP b; END $$;
--> ERROR 42601: end label "b" differs from block's label "a"
-->   POSITION: 39
-- case: a loop without END LOOP
DO $$ BEGIN LOOP EXIT; END; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 27
-- case: FOR over integers
DO $$ BEGIN FOR i IN 1..3 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR REVERSE
DO $$ BEGIN FOR i IN REVERSE 3..1 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR REVERSE BY
DO $$ BEGIN FOR i IN REVERSE 10..1 BY 4 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR BY
DO $$ BEGIN FOR i IN 1..10 BY 4 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over an empty range
DO $$ BEGIN FOR i IN 3..1 LOOP RAISE NOTICE 'never'; END LOOP; FOR i IN REVERSE 1..3 LOOP RAISE NOTICE 'never'; END LOOP; END $$;
-- case: FOR BY zero
DO $$ BEGIN FOR i IN 1..3 BY 0 LOOP NULL; END LOOP; END $$;
--> ERROR 22023: BY value of FOR loop must be greater than zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR BY a negative step
DO $$ DECLARE s int := -1; BEGIN FOR i IN 3..1 BY s LOOP NULL; END LOOP; END $$;
--> ERROR 22023: BY value of FOR loop must be greater than zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR from NULL
DO $$ DECLARE a int; BEGIN FOR i IN a..3 LOOP NULL; END LOOP; END $$;
--> ERROR 22004: lower bound of FOR loop cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR to NULL
DO $$ DECLARE a int; BEGIN FOR i IN 1..a LOOP NULL; END LOOP; END $$;
--> ERROR 22004: upper bound of FOR loop cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR BY NULL
DO $$ DECLARE a int; BEGIN FOR i IN 1..3 BY a LOOP NULL; END LOOP; END $$;
--> ERROR 22004: BY value of FOR loop cannot be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR ends at the largest integer
DO $$ DECLARE n int := 0; BEGIN FOR i IN 2147483646..2147483647 LOOP n := n + 1; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR with a step over the largest integer
DO $$ BEGIN FOR i IN 2147483640..2147483647 BY 5 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 2147483640
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2147483645
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR REVERSE ends at the smallest integer
DO $$ BEGIN FOR i IN REVERSE -2147483647..-2147483648 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: -2147483647
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: -2147483648
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR beyond integers
DO $$ BEGIN FOR i IN 1..3000000000 LOOP NULL; END LOOP; END $$;
--> ERROR 22003: integer out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR bounds are evaluated once
DO $$ DECLARE n int := 3; BEGIN FOR i IN 1..n LOOP n := 10; RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR's variable assigned inside
DO $$ BEGIN FOR i IN 1..5 LOOP RAISE NOTICE '%', i; i := i + 1; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR's variable is its own
DO $$ DECLARE i int := 42; BEGIN FOR i IN 1..2 LOOP NULL; END LOOP; RAISE NOTICE '%', i; END $$;
--> NOTICE 00000: 42
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR's variable by the loop's label
DO $$ DECLARE i int := 42; BEGIN <<l>> FOR i IN 1..1 LOOP DECLARE i int := 7; BEGIN RAISE NOTICE '% %', i, l.i; END; END LOOP; END $$;
--> NOTICE 00000: 7 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR bounds of other types round
DO $$ BEGIN FOR i IN 0.6..2.5 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR bounds from texts
DO $$ DECLARE a text := '2'; BEGIN FOR i IN a..'3' LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR bounds that are no numbers
DO $$ BEGIN FOR i IN 'a'..'c' LOOP NULL; END LOOP; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "a"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR bounds that are queries and calls
DO $$ BEGIN FOR i IN (SELECT min(id) FROM m)..array_length(ARRAY[1, 2], 1) LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR bounds that fail
DO $$ BEGIN FOR i IN 1..1 / 0 LOOP NULL; END LOOP; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable
-- case: FOR with two targets over integers
DO $$ BEGIN FOR i, j IN 1..2 LOOP NULL; END LOOP; END $$;
--> ERROR 42601: "i" is not a known variable
-->   POSITION: 17
-- case: nested FORs with one name
DO $$ BEGIN FOR i IN 1..2 LOOP FOR i IN 10..11 LOOP RAISE NOTICE '%', i; END LOOP; RAISE NOTICE 'outer %', i; END LOOP; END $$;
--> NOTICE 00000: 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: outer 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: outer 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR bounds that use the variable of the outer FOR
DO $$ DECLARE n int := 0; BEGIN FOR i IN 1..4 LOOP FOR j IN i..4 LOOP n := n + i * j; END LOOP; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 65
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with a record
DO $$ DECLARE r record; BEGIN FOR r IN SELECT k, v FROM m ORDER BY v NULLS LAST LOOP RAISE NOTICE '% %', r.k, r.v; END LOOP; END $$;
--> NOTICE 00000: b 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: a 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: c <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with a row variable
DO $$ DECLARE r m; BEGIN FOR r IN SELECT * FROM m WHERE v IS NOT NULL ORDER BY id LOOP RAISE NOTICE '%', r; END LOOP; END $$;
--> NOTICE 00000: (1,a,5)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: (2,b,3)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with scalars
DO $$ DECLARE a int; b text; BEGIN FOR a, b IN SELECT id, k FROM m ORDER BY id LOOP RAISE NOTICE '% %', a, b; END LOOP; RAISE NOTICE 'last % %', a, b; END $$;
--> NOTICE 00000: 1 a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: last 3 c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with one scalar
DO $$ DECLARE a text; BEGIN FOR a IN SELECT k FROM m ORDER BY k DESC LOOP RAISE NOTICE '%', a; END LOOP; END $$;
--> NOTICE 00000: c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with an undeclared variable
DO $$ BEGIN FOR r IN SELECT * FROM m LOOP NULL; END LOOP; END $$;
--> ERROR 42601: loop variable of loop over rows must be a record variable or list of scalar variables
-->   POSITION: 17
-- case: FOR over a query with fewer variables than columns
DO $$ DECLARE a int; BEGIN FOR a IN SELECT id, k FROM m ORDER BY id LOOP RAISE NOTICE '%', a; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with more variables than columns
DO $$ DECLARE a int; b int := 3; BEGIN FOR a, b IN SELECT id FROM m ORDER BY id LOOP RAISE NOTICE '% %', a, b; END LOOP; END $$;
--> NOTICE 00000: 1 <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query whose value does not fit the variable
DO $$ DECLARE a int; BEGIN FOR a IN SELECT k FROM m ORDER BY id LOOP NULL; END LOOP; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "a"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over SELECT rows
-- case: FOR over a query without rows leaves the record
DO $$ DECLARE r record; BEGIN FOR r IN SELECT id, k FROM m WHERE false LOOP NULL; END LOOP; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query: the record after the loop
DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM m ORDER BY id LOOP NULL; END LOOP; RAISE NOTICE '%', r.id; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query sees what was there before the loop
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT * FROM m LOOP INSERT INTO m VALUES (r.id + 100, 'n', 1); n := n + 1; END LOOP; RAISE NOTICE '% %', n, (SELECT count(*) FROM m); END $$;
--> NOTICE 00000: 3 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query updating the rows it reads
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM m ORDER BY id LOOP UPDATE m SET v = coalesce(v, 0) + r.id WHERE id = r.id; END LOOP; END $$;
SELECT v FROM m ORDER BY id;
--> v
-->   6
-->   5
-->   3
-- case: FOR over a query FOR UPDATE
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM m WHERE v < 10 ORDER BY id FOR UPDATE LOOP UPDATE m SET v = 99 WHERE id = r.id; END LOOP; END $$;
SELECT * FROM m ORDER BY id;
--> id | k | v
-->   1 | a | 99
-->   2 | b | 99
-->   3 | c | <null>
-- case: FOR over UPDATE RETURNING
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN UPDATE m SET v = 1 RETURNING id, v LOOP n := n + r.id * r.v; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over INSERT RETURNING
DO $$ DECLARE a int; BEGIN FOR a IN INSERT INTO m VALUES (10), (11) RETURNING id LOOP RAISE NOTICE '%', a; END LOOP; END $$;
--> NOTICE 00000: 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over DELETE without RETURNING
DO $$ DECLARE r record; BEGIN FOR r IN DELETE FROM m LOOP NULL; END LOOP; END $$;
--> ERROR 42P11: cannot open DELETE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over SELECT rows
-- case: FOR over VALUES and a function
DO $$ DECLARE r record; BEGIN FOR r IN VALUES (1, 'x'), (2, 'y') LOOP RAISE NOTICE '%', r.column2; END LOOP; FOR r IN SELECT * FROM unnest(ARRAY['p', 'q']) WITH ORDINALITY u(e, n) LOOP RAISE NOTICE '% %', r.e, r.n; END LOOP; END $$;
--> NOTICE 00000: x
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: y
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: p 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: q 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over WITH
DO $$ DECLARE r record; BEGIN FOR r IN WITH w AS (SELECT id * 2 AS d FROM m) SELECT d FROM w ORDER BY d LOOP RAISE NOTICE '%', r.d; END LOOP; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query in parentheses
DO $$ DECLARE r record; BEGIN FOR r IN (SELECT 1 AS a) UNION ALL (SELECT 2) ORDER BY a LOOP RAISE NOTICE '%', r.a; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with variables and the loop's own target
DO $$ DECLARE r record; lim int := 2; BEGIN FOR r IN SELECT * FROM m WHERE id <= lim ORDER BY id LOOP lim := 0; RAISE NOTICE '%', r.id; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over EXPLAIN
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN EXPLAIN SELECT 1 LOOP n := n + 1; END LOOP; RAISE NOTICE '%', n > 0; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query that fails in the middle
DO $$ DECLARE r record; BEGIN FOR r IN SELECT 6 / (3 - id) AS q FROM m ORDER BY id LOOP RAISE NOTICE '%', r.q; END LOOP; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over SELECT rows
-- case: FOR over a query with an error in its body
DO $$ DECLARE r record; BEGIN
  FOR r IN SELECT * FROM m ORDER BY id LOOP
    RAISE NOTICE '%', 10 / (r.id - 2);
  END LOOP; END $$;
--> NOTICE 00000: -10
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
-- case: FOR over a query with EXIT and FOUND
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM m ORDER BY id LOOP EXIT WHEN r.id = 2; END LOOP; RAISE NOTICE '% %', FOUND, r.id; END $$;
--> NOTICE 00000: t 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query of many rows
DO $$ DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT g FROM generate_series(1, 1000) g LOOP s := s + r.g; END LOOP; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 500500
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over nested queries
DO $$ DECLARE a record; b record; BEGIN FOR a IN SELECT id FROM m ORDER BY id LOOP FOR b IN SELECT k FROM m WHERE id > a.id ORDER BY id LOOP RAISE NOTICE '% %', a.id, b.k; END LOOP; END LOOP; END $$;
--> NOTICE 00000: 1 b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1 c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over EXECUTE with USING
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT id FROM m WHERE id > $1 ORDER BY id' USING 1 LOOP RAISE NOTICE '%', r.id; END LOOP; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a query with only a label and CONTINUE
DO $$ DECLARE r record; s record; BEGIN <<o>> FOR r IN SELECT id FROM m ORDER BY id LOOP FOR s IN SELECT 1 LOOP CONTINUE o WHEN r.id = 2; RAISE NOTICE '%', r.id; END LOOP; END LOOP o; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over what is neither
DO $$ BEGIN FOR i IN 5 LOOP NULL; END LOOP; END $$;
--> ERROR 42601: syntax error at or near "5"
-->   POSITION: 22
-- case: FOR without IN
DO $$ BEGIN FOR i OF 1..2 LOOP NULL; END LOOP; END $$;
--> ERROR 42601: syntax error at or near "OF"
-->   POSITION: 19
-- case: FOR over a query with CONSTANT target
DO $$ DECLARE c CONSTANT int := 1; BEGIN FOR c IN SELECT 1 LOOP NULL; END LOOP; END $$;
--> ERROR 22005: variable "c" is declared CONSTANT
-->   POSITION: 46
-- case: FOREACH
CREATE FUNCTION total(int[]) RETURNS int8 AS $$
DECLARE
  s int8 := 0;
  x int;
BEGIN
  FOREACH x IN ARRAY $1
  LOOP
    s := s + x;
  END LOOP;
  RETURN s;
END;
$$ LANGUAGE plpgsql;
SELECT total(ARRAY[1, 2, 3]), total('{}');
--> total | total
-->   6 | 0
-- case: FOREACH over NULL
DO $$ DECLARE x int; a int[]; BEGIN FOREACH x IN ARRAY a LOOP NULL; END LOOP; END $$;
--> ERROR 22004: FOREACH expression must not be null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: FOREACH with NULL elements
DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY['a', NULL, 'c'] LOOP RAISE NOTICE '%', x; END LOOP; END $$;
--> NOTICE 00000: a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH over a matrix
DO $$ DECLARE x int; BEGIN FOREACH x IN ARRAY ARRAY[[1, 2], [3, 4]] LOOP RAISE NOTICE '%', x; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH SLICE 1
CREATE FUNCTION scan_rows(int[]) RETURNS void AS $$
DECLARE
  x int[];
BEGIN
  FOREACH x SLICE 1 IN ARRAY $1
  LOOP
    RAISE NOTICE 'row = %', x;
  END LOOP;
END;
$$ LANGUAGE plpgsql;
SELECT scan_rows(ARRAY[[1, 2, 3], [4, 5, 6]]);
--> NOTICE 00000: row = {1,2,3}
-->   CONTEXT: PL/pgSQL function scan_rows(integer[]) line 7 at RAISE
--> NOTICE 00000: row = {4,5,6}
-->   CONTEXT: PL/pgSQL function scan_rows(integer[]) line 7 at RAISE
--> scan_rows
-->
SELECT scan_rows(ARRAY[7, 8]);
--> NOTICE 00000: row = {7,8}
-->   CONTEXT: PL/pgSQL function scan_rows(integer[]) line 7 at RAISE
--> scan_rows
-->
-- case: FOREACH SLICE 2 of three dimensions
DO $$ DECLARE x int[]; BEGIN FOREACH x SLICE 2 IN ARRAY '{{{1,2},{3,4}},{{5,6},{7,8}}}'::int[] LOOP RAISE NOTICE '% %', x, array_dims(x); END LOOP; END $$;
--> NOTICE 00000: {{1,2},{3,4}} [1:2][1:2]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: {{5,6},{7,8}} [1:2][1:2]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH SLICE beyond the dimensions
DO $$ DECLARE x int[]; BEGIN FOREACH x SLICE 3 IN ARRAY ARRAY[[1, 2]] LOOP NULL; END LOOP; END $$;
--> ERROR 2202E: slice dimension (3) is out of the valid range 0..2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: FOREACH SLICE into a scalar
DO $$ DECLARE x int; BEGIN FOREACH x SLICE 1 IN ARRAY ARRAY[[1, 2]] LOOP NULL; END LOOP; END $$;
--> ERROR 42804: FOREACH ... SLICE loop variable must be of an array type
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: FOREACH without SLICE into an array
DO $$ DECLARE x int[]; BEGIN FOREACH x IN ARRAY ARRAY[1, 2] LOOP NULL; END LOOP; END $$;
--> ERROR 42804: FOREACH loop variable must not be of an array type
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: FOREACH over what is no array
DO $$ DECLARE x int; BEGIN FOREACH x IN ARRAY 5 LOOP NULL; END LOOP; END $$;
--> ERROR 42804: FOREACH expression must yield an array, not type integer
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOREACH over array
-- case: FOREACH with a record over rows
DO $$ DECLARE r m; BEGIN FOREACH r IN ARRAY ARRAY(SELECT m FROM m ORDER BY id) LOOP RAISE NOTICE '% %', r.id, r.k; END LOOP; END $$;
--> NOTICE 00000: 1 a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH with scalars over rows
DO $$ DECLARE a int; b text; c int; BEGIN FOREACH a, b, c IN ARRAY ARRAY(SELECT m FROM m ORDER BY id) LOOP RAISE NOTICE '% % %', a, b, c; END LOOP; END $$;
--> NOTICE 00000: 1 a 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 b 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 c <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH converts the elements
DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY[1.50, 2] LOOP RAISE NOTICE '%', x; END LOOP; END $$;
--> NOTICE 00000: 1.50
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH evaluates the array once
DO $$ DECLARE a int[] := '{1,2}'; x int; BEGIN FOREACH x IN ARRAY a LOOP a := a || x; END LOOP; RAISE NOTICE '%', a; END $$;
--> NOTICE 00000: {1,2,1,2}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH keeps the last element in the variable
DO $$ DECLARE x int := 9; BEGIN FOREACH x IN ARRAY ARRAY[4, 5] LOOP NULL; END LOOP; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH with EXIT, CONTINUE and a label
DO $$ DECLARE x int; BEGIN <<f>> FOREACH x IN ARRAY ARRAY[1, 2, 3, 4] LOOP CONTINUE f WHEN x = 2; EXIT f WHEN x = 4; RAISE NOTICE '%', x; END LOOP f; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH with an undeclared variable
DO $$ BEGIN FOREACH x IN ARRAY ARRAY[1] LOOP NULL; END LOOP; END $$;
--> ERROR 42601: loop variable of FOREACH must be a known variable or list of variables
-->   POSITION: 21
-- case: FOREACH over an array with other lower bounds
DO $$ DECLARE x int; BEGIN FOREACH x IN ARRAY '[5:6]={1,2}'::int[] LOOP RAISE NOTICE '%', x; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOREACH with a negative SLICE
DO $$ DECLARE x int[]; BEGIN FOREACH x SLICE -1 IN ARRAY ARRAY[1] LOOP NULL; END LOOP; END $$;
--> ERROR 42601: syntax error at or near "-"
-->   POSITION: 46
-- case: arrays by index
DO $$ DECLARE a text[] := '{x,y,z}'; BEGIN FOR i IN array_lower(a, 1)..array_upper(a, 1) LOOP RAISE NOTICE '% %', i, a[i]; END LOOP; END $$;
--> NOTICE 00000: 1 x
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 y
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 z
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: generate_subscripts in a loop
DO $$ DECLARE a int[] := '{{1,2},{3,4}}'; i int; j int; BEGIN FOR i IN SELECT generate_subscripts(a, 1) LOOP FOR j IN SELECT generate_subscripts(a, 2) LOOP RAISE NOTICE '%', a[i][j]; END LOOP; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a bubble sort
CREATE FUNCTION sorted(a int[]) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE n int := array_length(a, 1); swapped bool; t int;
BEGIN
  LOOP
    swapped := false;
    FOR i IN 1..n - 1 LOOP
      IF a[i] > a[i + 1] THEN t := a[i]; a[i] := a[i + 1]; a[i + 1] := t; swapped := true; END IF;
    END LOOP;
    EXIT WHEN NOT swapped;
  END LOOP;
  RETURN a;
END $$;
SELECT sorted(ARRAY[5, 3, 9, 1]);
--> sorted
-->   {1,3,5,9}
-- case: a sieve
CREATE FUNCTION primes(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE s bool[] := array_fill(true, ARRAY[n]);
BEGIN
  FOR i IN 2..n LOOP
    CONTINUE WHEN NOT s[i];
    RETURN NEXT i;
    FOR j IN i * i..n BY i LOOP s[j] := false; END LOOP;
  END LOOP;
END $$;
SELECT array_agg(p) FROM primes(30) p;
--> array_agg
-->   {2,3,5,7,11,13,17,19,23,29}
-- case: the greatest common divisor
CREATE FUNCTION gcd_of(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN WHILE b <> 0 LOOP SELECT b, a % b INTO a, b; END LOOP; RETURN a; END $$;
SELECT gcd_of(84, 36);
--> gcd_of
-->   12
-- case: Fibonacci by recursion
CREATE FUNCTION fib(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n < 2 THEN RETURN n; END IF; RETURN fib(n - 1) + fib(n - 2); END $$;
SELECT fib(15);
--> fib
-->   610
-- case: two functions that call each other
CREATE FUNCTION is_even(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN IF n = 0 THEN RETURN true; END IF; RETURN is_odd(n - 1); END $$;
CREATE FUNCTION is_odd(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN IF n = 0 THEN RETURN false; END IF; RETURN is_even(n - 1); END $$;
SELECT is_even(10), is_odd(10);
--> is_even | is_odd
-->   t | f
-- case: recursion with a bound of its own
CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n > 50 THEN RAISE EXCEPTION 'too deep'; END IF; RETURN deep(n + 1); EXCEPTION WHEN raise_exception THEN RETURN n; END $$;
SELECT deep(1);
--> deep
-->   51
