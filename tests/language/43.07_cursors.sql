-- 43.7 Cursors: declaring, opening, fetching, moving, positioned changes, returning.
CREATE TABLE tenk (id int PRIMARY KEY, k text, v int);
INSERT INTO tenk SELECT g, chr(96 + g), g * 10 FROM generate_series(1, 5) g;
--> changed 5
-- case: a bound cursor
DO $$ DECLARE c CURSOR FOR SELECT k FROM tenk ORDER BY id; x text; BEGIN OPEN c; FETCH c INTO x; RAISE NOTICE '%', x; CLOSE c; END $$;
--> NOTICE 00000: a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CURSOR IS
DO $$ DECLARE c CURSOR IS SELECT 7; x int; BEGIN OPEN c; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 7
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a bound cursor with parameters
DO $$ DECLARE c CURSOR (low int, high int) FOR SELECT id FROM tenk WHERE id BETWEEN low AND high ORDER BY id; x int; BEGIN OPEN c(2, 3); LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; RAISE NOTICE '%', x; END LOOP; CLOSE c; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: parameters by name
DO $$ DECLARE c CURSOR (low int, high int) FOR SELECT count(*) FROM tenk WHERE id BETWEEN low AND high; x int; BEGIN OPEN c(high := 4, low := 2); FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: parameters by name with the arrow
DO $$ DECLARE c CURSOR (low int) FOR SELECT low; BEGIN OPEN c(low => 5); END $$;
--> ERROR 42601: syntax error at or near "=>"
-->   POSITION: 67
-- case: parameters by position and name mixed
DO $$ DECLARE c CURSOR (low int, high int) FOR SELECT low, high; a int; b int; BEGIN OPEN c(1, high := 2); FETCH c INTO a, b; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a parameter given twice
DO $$ DECLARE c CURSOR (low int, high int) FOR SELECT low, high; BEGIN OPEN c(1, low := 2); END $$;
--> ERROR 42601: value for parameter "low" of cursor "c" specified more than once
-->   POSITION: 82
-- case: a parameter that is not there
DO $$ DECLARE c CURSOR (low int) FOR SELECT low; BEGIN OPEN c(nosuch := 2); END $$;
--> ERROR 42601: cursor "c" has no argument named "nosuch"
-->   POSITION: 63
-- case: too few parameters
DO $$ DECLARE c CURSOR (low int, high int) FOR SELECT low, high; BEGIN OPEN c(1); END $$;
--> ERROR 42601: not enough arguments for cursor "c"
-->   POSITION: 80
-- case: too many parameters
DO $$ DECLARE c CURSOR (low int) FOR SELECT low; BEGIN OPEN c(1, 2); END $$;
--> ERROR 42601: too many arguments for cursor "c"
-->   POSITION: 64
-- case: parameters for a cursor without any
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c(1); END $$;
--> ERROR 42601: cursor "c" has no arguments
-->   POSITION: 50
-- case: no parentheses for a cursor with parameters
DO $$ DECLARE c CURSOR (low int) FOR SELECT low; BEGIN OPEN c; END $$;
--> ERROR 42601: cursor "c" has arguments
-->   POSITION: 62
-- case: a parameter hides a variable
DO $$ DECLARE n int := 100; c CURSOR (n int) FOR SELECT n; x int; BEGIN OPEN c(5); FETCH c INTO x; RAISE NOTICE '% %', x, n; END $$;
--> NOTICE 00000: 5 100
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: parameters are expressions
DO $$ DECLARE n int := 2; c CURSOR (a int, b text) FOR SELECT a, b; x int; y text; BEGIN OPEN c(n * 2 + 1, 'q' || n); FETCH c INTO x, y; RAISE NOTICE '% %', x, y; END $$;
--> NOTICE 00000: 5 q2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a bound cursor's variables are read when it opens
DO $$ DECLARE n int := 1; c CURSOR FOR SELECT n; x int; BEGIN n := 2; OPEN c; n := 3; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an unbound cursor opened for a query
DO $$ DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT * FROM tenk WHERE id = 3; FETCH c INTO r; RAISE NOTICE '% %', r.k, r.v; CLOSE c; END $$;
--> NOTICE 00000: c 30
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an unbound cursor opened twice for different queries
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c FOR SELECT 1; CLOSE c; OPEN c FOR SELECT 2; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OPEN FOR EXECUTE
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c FOR EXECUTE 'SELECT v FROM tenk WHERE id > $1 ORDER BY id' USING 3; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 40
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OPEN FOR EXECUTE with format
DO $$ DECLARE c refcursor; x text; BEGIN OPEN c FOR EXECUTE format('SELECT %I FROM %I ORDER BY id DESC', 'k', 'tenk'); FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: e
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OPEN FOR EXECUTE of NULL
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE NULL; END $$;
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
-- case: OPEN FOR EXECUTE of a command without rows
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'DELETE FROM tenk'; END $$;
--> ERROR 42P11: cannot open DELETE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
-- case: OPEN FOR of a command without rows
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR UPDATE tenk SET v = 0; END $$;
--> ERROR 42P11: cannot open UPDATE query as cursor
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
-- case: OPEN FOR of DELETE RETURNING
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c FOR DELETE FROM tenk WHERE id = 1 RETURNING id; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OPEN of a bound cursor FOR another query
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c FOR SELECT 2; END $$;
--> ERROR 42601: syntax error at or near "FOR"
-->   POSITION: 51
-- case: OPEN of an unbound cursor without a query
DO $$ DECLARE c refcursor; BEGIN OPEN c; END $$;
--> ERROR 42601: syntax error, expected "FOR" at or near ";"
-->   POSITION: 40
-- case: OPEN of what is no cursor
DO $$ DECLARE c int; BEGIN OPEN c FOR SELECT 1; END $$;
--> ERROR 42804: variable "c" must be of type cursor or refcursor
-->   POSITION: 33
-- case: OPEN of an undeclared cursor
DO $$ BEGIN OPEN nosuch FOR SELECT 1; END $$;
--> ERROR 42601: "nosuch" is not a known variable
-->   POSITION: 18
-- case: OPEN of an open cursor
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; OPEN c; END $$;
--> ERROR 42P03: cursor "c" already in use
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
-- case: OPEN of an open refcursor
DO $$ DECLARE c refcursor := 'mine'; BEGIN OPEN c FOR SELECT 1; OPEN c FOR SELECT 2; END $$;
--> ERROR 42P03: cursor "mine" already in use
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at OPEN
-- case: FETCH from a cursor that is not open
DO $$ DECLARE c refcursor; x int; BEGIN FETCH c INTO x; END $$;
--> ERROR 22004: cursor variable "c" is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: FETCH from a closed cursor
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN OPEN c; CLOSE c; FETCH c INTO x; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: FETCH from a name that no cursor has
DO $$ DECLARE c refcursor := 'nobody'; x int; BEGIN FETCH c INTO x; END $$;
--> ERROR 34000: cursor "nobody" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: CLOSE of a cursor that is not open
DO $$ DECLARE c refcursor; BEGIN CLOSE c; END $$;
--> ERROR 22004: cursor variable "c" is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CLOSE
-- case: CLOSE twice
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; CLOSE c; CLOSE c; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CLOSE
-- case: FETCH beyond the end
DO $$ DECLARE c CURSOR FOR SELECT 1; x int := 5; BEGIN OPEN c; FETCH c INTO x; RAISE NOTICE '% %', x, FOUND; FETCH c INTO x; RAISE NOTICE '% %', x, FOUND; FETCH c INTO x; RAISE NOTICE '% %', x, FOUND; END $$;
--> NOTICE 00000: 1 t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH beyond the end into a record
DO $$ DECLARE c CURSOR FOR SELECT 1 AS a; r record; BEGIN OPEN c; FETCH c INTO r; FETCH c INTO r; RAISE NOTICE '% %', r, r.a IS NULL; END $$;
--> NOTICE 00000: () t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH into a row variable
DO $$ DECLARE c CURSOR FOR SELECT * FROM tenk ORDER BY id; r tenk; BEGIN OPEN c; FETCH c INTO r; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (1,a,10)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH into too few variables
DO $$ DECLARE c CURSOR FOR SELECT 1, 2; x int; BEGIN OPEN c; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH converts
DO $$ DECLARE c CURSOR FOR SELECT '12', 3.7; x int; y int; BEGIN OPEN c; FETCH c INTO x, y; RAISE NOTICE '% %', x, y; END $$;
--> NOTICE 00000: 12 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH of what does not convert
DO $$ DECLARE c CURSOR FOR SELECT 'abc'; x int; BEGIN OPEN c; FETCH c INTO x; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "abc"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: FETCH without INTO
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; FETCH c; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 59
-- case: FETCH FROM and FETCH IN
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; y int; BEGIN OPEN c; FETCH FROM c INTO x; FETCH IN c INTO y; RAISE NOTICE '% %', x, y; END $$;
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH NEXT, PRIOR, FIRST, LAST
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c;
  FETCH NEXT FROM c INTO x; RAISE NOTICE 'next %', x; FETCH LAST FROM c INTO x; RAISE NOTICE 'last %', x;
  FETCH PRIOR FROM c INTO x; RAISE NOTICE 'prior %', x; FETCH FIRST FROM c INTO x; RAISE NOTICE 'first %', x;
  FETCH PRIOR FROM c INTO x; RAISE NOTICE 'prior % %', x, FOUND; FETCH NEXT FROM c INTO x; RAISE NOTICE 'next %', x; END $$;
--> NOTICE 00000: next 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: last 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: prior 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: first 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: prior <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: next 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
-- case: FETCH ABSOLUTE and RELATIVE
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c;
  FETCH ABSOLUTE 3 FROM c INTO x; RAISE NOTICE '%', x; FETCH RELATIVE -2 FROM c INTO x; RAISE NOTICE '%', x;
  FETCH RELATIVE 3 FROM c INTO x; RAISE NOTICE '%', x; FETCH ABSOLUTE -1 FROM c INTO x; RAISE NOTICE '%', x;
  FETCH ABSOLUTE 0 FROM c INTO x; RAISE NOTICE '% %', x, FOUND; FETCH RELATIVE 0 FROM c INTO x; RAISE NOTICE '%', FOUND;
  FETCH ABSOLUTE 99 FROM c INTO x; RAISE NOTICE '% %', x, FOUND; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 4 at RAISE
--> NOTICE 00000: <NULL> f
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
-- case: FETCH with an expression as its count
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; n int := 2; BEGIN OPEN c; FETCH ABSOLUTE n + 2 FROM c INTO x; RAISE NOTICE '%', x; FETCH RELATIVE -n FROM c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH with NULL as its count
DO $$ DECLARE c SCROLL CURSOR FOR SELECT 1; x int; n int; BEGIN OPEN c; FETCH ABSOLUTE n FROM c INTO x; END $$;
--> ERROR 22004: relative or absolute cursor position is null
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: FETCH FORWARD and BACKWARD
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c; FETCH FORWARD FROM c INTO x; RAISE NOTICE '%', x; FETCH FORWARD FROM c INTO x; FETCH BACKWARD FROM c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH of several rows is refused
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN OPEN c; FETCH 2 FROM c INTO x; END $$;
--> ERROR 0A000: FETCH statement cannot return multiple rows
-->   POSITION: 59
-- case: FETCH ALL is refused
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN OPEN c; FETCH ALL FROM c INTO x; END $$;
--> ERROR 0A000: FETCH statement cannot return multiple rows
-->   POSITION: 59
-- case: FETCH FORWARD 2 is refused
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN OPEN c; FETCH FORWARD 2 FROM c INTO x; END $$;
--> ERROR 0A000: FETCH statement cannot return multiple rows
-->   POSITION: 59
-- case: NO SCROLL refuses to go back
DO $$ DECLARE c NO SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c; FETCH c INTO x; FETCH PRIOR FROM c INTO x; END $$;
--> ERROR 55000: cursor can only scan forward
-->   HINT: Declare it with SCROLL option to enable backward scan.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: OPEN SCROLL FOR
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c SCROLL FOR SELECT id FROM tenk ORDER BY id; FETCH LAST FROM c INTO x; FETCH PRIOR FROM c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OPEN NO SCROLL FOR
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c NO SCROLL FOR SELECT id FROM tenk ORDER BY id; FETCH c INTO x; FETCH BACKWARD FROM c INTO x; END $$;
--> ERROR 55000: cursor can only scan forward
-->   HINT: Declare it with SCROLL option to enable backward scan.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: OPEN SCROLL FOR EXECUTE
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c SCROLL FOR EXECUTE 'SELECT id FROM tenk ORDER BY id'; FETCH LAST FROM c INTO x; FETCH RELATIVE -3 FROM c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: MOVE
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c; MOVE c; RAISE NOTICE '%', FOUND; FETCH c INTO x; RAISE NOTICE '%', x; MOVE LAST FROM c; FETCH PRIOR FROM c INTO x; RAISE NOTICE '%', x; MOVE RELATIVE -2 FROM c; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: MOVE FORWARD n, ALL, BACKWARD
DO $$ DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c; MOVE FORWARD 2 FROM c; FETCH c INTO x; RAISE NOTICE '%', x; MOVE BACKWARD 2 FROM c; FETCH c INTO x; RAISE NOTICE '%', x; MOVE FORWARD ALL FROM c; RAISE NOTICE '%', FOUND; MOVE BACKWARD ALL FROM c; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: MOVE past the end
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; MOVE c; RAISE NOTICE '%', FOUND; MOVE NEXT FROM c; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: MOVE and ROW_COUNT
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk; n int; BEGIN OPEN c; MOVE FORWARD 3 FROM c; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; MOVE FORWARD 9 FROM c; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FETCH and ROW_COUNT
DO $$ DECLARE c CURSOR FOR SELECT 1; n int; x int; BEGIN OPEN c; FETCH c INTO x; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; FETCH c INTO x; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 0
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: UPDATE WHERE CURRENT OF
DO $$ DECLARE c CURSOR FOR SELECT * FROM tenk WHERE v > 20 ORDER BY id FOR UPDATE; r tenk; BEGIN OPEN c; LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; UPDATE tenk SET v = r.v + 1 WHERE CURRENT OF c; END LOOP; END $$;
SELECT id, v FROM tenk ORDER BY id;
--> id | v
-->   1 | 10
-->   2 | 20
-->   3 | 31
-->   4 | 41
-->   5 | 51
-- case: DELETE WHERE CURRENT OF
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk; x int; BEGIN OPEN c; LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; IF x % 2 = 0 THEN DELETE FROM tenk WHERE CURRENT OF c; END IF; END LOOP; END $$;
SELECT id FROM tenk ORDER BY id;
--> id
-->   1
-->   3
-->   5
-- case: WHERE CURRENT OF a refcursor
DO $$ DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT * FROM tenk WHERE id = 2 FOR UPDATE; FETCH c INTO r; UPDATE tenk SET k = 'zz' WHERE CURRENT OF c; END $$;
SELECT k FROM tenk WHERE id = 2;
--> k
-->   zz
-- case: WHERE CURRENT OF before a row is fetched
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk FOR UPDATE; BEGIN OPEN c; DELETE FROM tenk WHERE CURRENT OF c; END $$;
--> ERROR 24000: cursor "c" is not positioned on a row
-->   CONTEXT: SQL statement "DELETE FROM tenk WHERE CURRENT OF c"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: WHERE CURRENT OF a join
DO $$ DECLARE c CURSOR FOR SELECT a.id FROM tenk a JOIN tenk b USING (id); x int; BEGIN OPEN c; FETCH c INTO x; DELETE FROM tenk WHERE CURRENT OF c; END $$;
--> ERROR 24000: cursor "c" is not a simply updatable scan of table "tenk"
-->   CONTEXT: SQL statement "DELETE FROM tenk WHERE CURRENT OF c"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: WHERE CURRENT OF a grouped query
DO $$ DECLARE c CURSOR FOR SELECT count(*) FROM tenk; x int; BEGIN OPEN c; FETCH c INTO x; DELETE FROM tenk WHERE CURRENT OF c; END $$;
--> ERROR 24000: cursor "c" is not a simply updatable scan of table "tenk"
-->   CONTEXT: SQL statement "DELETE FROM tenk WHERE CURRENT OF c"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: WHERE CURRENT OF with RETURNING
DO $$ DECLARE c CURSOR FOR SELECT * FROM tenk WHERE id = 4 FOR UPDATE; r tenk; n int; BEGIN OPEN c; FETCH c INTO r; UPDATE tenk SET v = v * 2 WHERE CURRENT OF c RETURNING v INTO n; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 80
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WHERE CURRENT OF inside FOR over a cursor
DO $$ DECLARE c CURSOR FOR SELECT * FROM tenk ORDER BY id FOR UPDATE; BEGIN FOR r IN c LOOP UPDATE tenk SET v = r.id WHERE CURRENT OF c; END LOOP; END $$;
SELECT sum(v) FROM tenk;
--> sum
-->   15
-- case: FOR over a bound cursor
DO $$ DECLARE c CURSOR FOR SELECT id, k FROM tenk ORDER BY id LIMIT 2; BEGIN FOR r IN c LOOP RAISE NOTICE '% %', r.id, r.k; END LOOP; END $$;
--> NOTICE 00000: 1 a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a bound cursor with parameters
DO $$ DECLARE c CURSOR (p int) FOR SELECT id FROM tenk WHERE id > p ORDER BY id; BEGIN FOR r IN c(3) LOOP RAISE NOTICE '%', r.id; END LOOP; FOR r IN c(p := 4) LOOP RAISE NOTICE '%', r.id; END LOOP; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a cursor closes it
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN FOR r IN c LOOP NULL; END LOOP; FETCH c INTO x; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: FOR over an open cursor
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; FOR r IN c LOOP NULL; END LOOP; END $$;
--> ERROR 42P03: cursor "c" already in use
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FOR over cursor
-- case: FOR over an unbound cursor
DO $$ DECLARE c refcursor; BEGIN FOR r IN c LOOP NULL; END LOOP; END $$;
--> ERROR 42601: cursor FOR loop must use a bound cursor variable
-->   POSITION: 43
-- case: FOR over a cursor with EXIT closes it
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk ORDER BY id; BEGIN FOR r IN c LOOP EXIT WHEN r.id = 2; END LOOP; FOR r IN c LOOP RAISE NOTICE '%', r.id; EXIT; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: FOR over a cursor and FOUND
DO $$ DECLARE c CURSOR FOR SELECT 1 WHERE false; BEGIN PERFORM 1; FOR r IN c LOOP NULL; END LOOP; RAISE NOTICE '%', FOUND; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the record of FOR over a cursor after the loop
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN FOR r IN c LOOP NULL; END LOOP; RAISE NOTICE '%', r; END $$;
--> ERROR 42703: column "r" does not exist
-->   QUERY: r
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor sees what was there when it was opened
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; n int := 0; BEGIN OPEN c; INSERT INTO tenk VALUES (6); DELETE FROM tenk WHERE id = 1; LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; n := n + 1; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor reads old values after an update
DO $$ DECLARE c CURSOR FOR SELECT v FROM tenk WHERE id = 1; x int; BEGIN OPEN c; UPDATE tenk SET v = 777 WHERE id = 1; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: several cursors at once
DO $$ DECLARE a CURSOR FOR SELECT id FROM tenk ORDER BY id; b CURSOR FOR SELECT id FROM tenk ORDER BY id DESC; x int; y int; BEGIN OPEN a; OPEN b; FOR i IN 1..2 LOOP FETCH a INTO x; FETCH b INTO y; RAISE NOTICE '% %', x, y; END LOOP; END $$;
--> NOTICE 00000: 1 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor's error shows when it is fetched
DO $$ DECLARE c CURSOR FOR SELECT 1 / (id - 2) FROM tenk ORDER BY id; x int; BEGIN OPEN c; FETCH c INTO x; RAISE NOTICE '%', x; FETCH c INTO x; END $$;
--> NOTICE 00000: -1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: returning a cursor with a given name
CREATE FUNCTION reffunc(refcursor) RETURNS refcursor AS '
BEGIN
    OPEN $1 FOR SELECT k FROM tenk ORDER BY id;
    RETURN $1;
END;
' LANGUAGE plpgsql;
BEGIN;
SELECT reffunc('funccursor');
--> reffunc
-->   funccursor
FETCH 2 IN funccursor;
--> k
-->   a
-->   b
FETCH ALL IN funccursor;
--> k
-->   c
-->   d
-->   e
COMMIT;
-- case: returning a cursor with an automatic name
CREATE FUNCTION reffunc2() RETURNS bool AS '
DECLARE
    ref refcursor;
BEGIN
    OPEN ref FOR SELECT k FROM tenk;
    RETURN ref::text LIKE ''<unnamed portal %>'';
END;
' LANGUAGE plpgsql;
SELECT reffunc2();
--> reffunc2
-->   t
-- case: returning several cursors
CREATE FUNCTION myfunc(refcursor, refcursor) RETURNS SETOF refcursor AS $$
BEGIN
    OPEN $1 FOR SELECT id FROM tenk WHERE id < 3 ORDER BY id;
    RETURN NEXT $1;
    OPEN $2 FOR SELECT k FROM tenk WHERE id > 3 ORDER BY id;
    RETURN NEXT $2;
END;
$$ LANGUAGE plpgsql;
BEGIN;
SELECT * FROM myfunc('a', 'b');
--> myfunc
-->   a
-->   b
FETCH ALL FROM a;
--> id
-->   1
-->   2
FETCH ALL FROM b;
--> k
-->   d
-->   e
COMMIT;
-- case: a returned cursor ends with its transaction
CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR SELECT 1; RETURN c; END $$;
SELECT opened();
--> opened
-->   left
FETCH left;
--> ERROR 42601: syntax error at or near "left"
-->   POSITION: 7
-- case: a returned cursor is closed by SQL
CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'leftover'; BEGIN OPEN c FOR SELECT 1; RETURN c; END $$;
BEGIN;
SELECT opened();
--> opened
-->   leftover
CLOSE leftover;
FETCH leftover;
--> ERROR 34000: cursor "leftover" does not exist
ROLLBACK;
-- case: a cursor of the session fetched inside
BEGIN;
DECLARE session_cursor CURSOR FOR SELECT id FROM tenk ORDER BY id;
DO $$ DECLARE c refcursor := 'session_cursor'; x int; BEGIN FETCH c INTO x; RAISE NOTICE '%', x; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
FETCH session_cursor;
--> id
-->   3
COMMIT;
-- case: a cursor passed between routines
CREATE FUNCTION open_it(c refcursor) RETURNS void LANGUAGE plpgsql AS $$ BEGIN OPEN c FOR SELECT id FROM tenk ORDER BY id; END $$;
CREATE FUNCTION next_of(c refcursor) RETURNS int LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN FETCH c INTO x; RETURN x; END $$;
DO $$ DECLARE c refcursor := 'shared'; BEGIN PERFORM open_it(c); RAISE NOTICE '% %', next_of(c), next_of('shared'); CLOSE c; END $$;
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the name of a bound cursor
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN RAISE NOTICE '%', c; OPEN c; RAISE NOTICE '%', c; END $$;
--> NOTICE 00000: c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: c
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a refcursor is NULL until it is opened
DO $$ DECLARE c refcursor; BEGIN RAISE NOTICE '%', c IS NULL; OPEN c FOR SELECT 1; RAISE NOTICE '%', c IS NULL; CLOSE c; RAISE NOTICE '%', c IS NULL; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a refcursor variable assigned
DO $$ DECLARE a refcursor := 'one'; b refcursor; x int; BEGIN OPEN a FOR SELECT 11; b := a; FETCH b INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor in a subtransaction that fails is gone
DO $$ DECLARE c CURSOR FOR SELECT 1; x int; BEGIN BEGIN OPEN c; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; FETCH c INTO x; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: a cursor opened before a subtransaction that fails
DO $$ DECLARE c CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; BEGIN OPEN c; BEGIN FETCH c INTO x; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END; FETCH c INTO x; RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: invalid_cursor_name and invalid_cursor_state
DO $$ DECLARE c refcursor := 'nope'; BEGIN BEGIN CLOSE c; EXCEPTION WHEN invalid_cursor_name THEN RAISE NOTICE '%', SQLERRM; END; OPEN c FOR SELECT 1; BEGIN OPEN c FOR SELECT 1; EXCEPTION WHEN duplicate_cursor THEN RAISE NOTICE '%', SQLERRM; END; END $$;
--> NOTICE 00000: cursor "nope" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: cursor "nope" already in use
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SCROLL over a query with locking
DO $$ DECLARE c SCROLL CURSOR FOR SELECT * FROM tenk FOR UPDATE; BEGIN OPEN c; END $$;
--> ERROR 0A000: DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported
-->   DETAIL: Scrollable cursors must be READ ONLY.
-->   CONTEXT: SQL statement "SELECT * FROM tenk FOR UPDATE"
-->     PL/pgSQL function inline_code_block line 1 at OPEN
-- case: a cursor over VALUES and over a function
DO $$ DECLARE a CURSOR FOR VALUES (1), (2); b CURSOR (n int) FOR SELECT * FROM generate_series(1, n); s int := 0; BEGIN FOR r IN a LOOP s := s + r.column1; END LOOP; FOR r IN b(3) LOOP s := s + r.generate_series; END LOOP; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor inside a loop, opened each turn
DO $$ DECLARE c CURSOR (p int) FOR SELECT v FROM tenk WHERE id = p; x int; s int := 0; BEGIN FOR i IN 1..3 LOOP OPEN c(i); FETCH c INTO x; s := s + x; CLOSE c; END LOOP; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 60
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the manual's procedure that pages
CREATE FUNCTION page(n int, size int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c SCROLL CURSOR FOR SELECT id FROM tenk ORDER BY id; x int; out text := '';
BEGIN
  OPEN c;
  MOVE ABSOLUTE (n - 1) * size FROM c;
  FOR i IN 1..size LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; out := out || x || ' '; END LOOP;
  CLOSE c;
  RETURN out;
END $$;
SELECT page(1, 2), page(2, 2), page(3, 2), page(4, 2);
--> page | page | page | page
-->   1 2  | 3 4  | 5  |
