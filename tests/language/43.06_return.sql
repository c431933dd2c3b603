-- 43.6.1 to 43.6.4: RETURN, RETURN NEXT, RETURN QUERY, CALL, IF and CASE.
CREATE TABLE flight (id int PRIMARY KEY, origin text, seats int);
INSERT INTO flight VALUES (1, 'AMS', 10), (2, 'BER', 0), (3, 'AMS', 4);
--> changed 3
-- case: RETURN of an expression of another type
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 2.7; END $$;
SELECT f();
--> f
-->   3
-- case: RETURN of a text that converts
CREATE FUNCTION f() RETURNS date LANGUAGE plpgsql AS $$ BEGIN RETURN '2020-02-03'; END $$;
SELECT f() + 1;
--> ?column?
-->   2020-02-04
-- case: RETURN of a text that does not convert
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 'seven'; END $$;
SELECT f();
--> ERROR 22P02: invalid input syntax for type integer: "seven"
-->   CONTEXT: PL/pgSQL function f() while casting return value to function's return type
-- case: control reaches the end
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a > 0 THEN RETURN a; END IF; END $$;
SELECT f(1);
--> f
-->   1
SELECT f(0);
--> ERROR 2F005: control reached end of function without RETURN
-->   CONTEXT: PL/pgSQL function f(integer)
-- case: RETURN without an expression
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 68
-- case: RETURN with an expression in a void function
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42804: RETURN cannot have a parameter in function returning void
-->   POSITION: 70
-- case: RETURN with an expression and OUT parameters
CREATE FUNCTION f(OUT a int) LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42804: RETURN cannot have a parameter in function with OUT parameters
-->   POSITION: 66
-- case: RETURN with an expression in a procedure
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42601: RETURN cannot have a parameter in a procedure
-->   POSITION: 58
-- case: RETURN without an expression in a procedure
CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS $$ BEGIN IF a = 0 THEN RETURN; END IF; RAISE NOTICE 'went on'; END $$;
CALL p(0);
CALL p(1);
--> NOTICE 00000: went on
-->   CONTEXT: PL/pgSQL function p(integer) line 1 at RAISE
-- case: RETURN with an expression in a set-returning function
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42804: RETURN cannot have a parameter in function returning set
-->   HINT: Use RETURN NEXT or RETURN QUERY.
-->   POSITION: 75
-- case: RETURN leaves nested loops and blocks
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..3 LOOP BEGIN FOR j IN 1..3 LOOP IF i * j = 4 THEN RETURN i || 'x' || j; END IF; END LOOP; END; END LOOP; RETURN 'none'; END $$;
SELECT f();
--> f
-->   2x2
-- case: RETURN with OUT parameters set before
CREATE FUNCTION f(a int, OUT b int, OUT c int) LANGUAGE plpgsql AS $$ BEGIN b := a; IF a > 5 THEN RETURN; END IF; c := a * 2; END $$;
SELECT * FROM f(3);
--> b | c
-->   3 | 6
SELECT * FROM f(6);
--> b | c
-->   6 | <null>
-- case: RETURN NULL
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SELECT f() IS NULL AS nothing;
--> nothing
-->   t
-- case: RETURN of a row constructor
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(5, 'CDG', 7); END $$;
SELECT * FROM f();
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type unknown does not match expected type text in column 2.
-->   CONTEXT: PL/pgSQL function f() while casting return value to function's return type
-- case: RETURN of a row constructor with too few columns
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(5, 'CDG'); END $$;
SELECT * FROM f();
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type unknown does not match expected type text in column 2.
-->   CONTEXT: PL/pgSQL function f() while casting return value to function's return type
-- case: RETURN of a row constructor with a wrong type
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(5, 6, 'x'); END $$;
SELECT * FROM f();
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type integer does not match expected type text in column 2.
-->   CONTEXT: PL/pgSQL function f() while casting return value to function's return type
-- case: RETURN of a scalar where a row is due
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
SELECT * FROM f();
--> ERROR 42804: cannot return non-composite value from function returning composite type
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN
-- case: RETURN of a row where a scalar is due
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r flight; BEGIN SELECT * INTO r FROM flight WHERE id = 1; RETURN r; END $$;
SELECT f();
--> ERROR 22P02: invalid input syntax for type integer: "(1,AMS,10)"
-->   CONTEXT: PL/pgSQL function f() while casting return value to function's return type
-- case: RETURN of a record variable of the right shape
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT * INTO r FROM flight WHERE id = 3; RETURN r; END $$;
SELECT * FROM f();
--> id | origin | seats
-->   3 | AMS | 4
-- case: RETURN of a NULL row
CREATE FUNCTION f() RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SELECT * FROM f();
--> id | origin | seats
-->   <null> | <null> | <null>
SELECT f() IS NULL AS nothing;
--> nothing
-->   t
-- case: RETURN of a whole-row subquery
CREATE FUNCTION f(i int) RETURNS flight LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT flight FROM flight WHERE id = i); END $$;
SELECT * FROM f(2);
--> id | origin | seats
-->   2 | BER | 0
SELECT * FROM f(22);
--> id | origin | seats
-->   <null> | <null> | <null>
-- case: RETURN of an array
CREATE FUNCTION f() RETURNS int[] LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY(SELECT id FROM flight ORDER BY id); END $$;
SELECT f(), (f())[2];
--> f | f
-->   {1,2,3} | 2
SELECT unnest(f());
--> unnest
-->   1
-->   2
-->   3
-- case: RETURN of a varchar that is longer than its type
CREATE FUNCTION f() RETURNS varchar(3) LANGUAGE plpgsql AS $$ BEGIN RETURN 'abcdef'; END $$;
SELECT f();
--> f
-->   abcdef
-- case: RETURN with extra tokens
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 2; END $$;
--> ERROR 42601: syntax error at or near "2"
-->   POSITION: 71
SELECT f();
--> ERROR 42883: function f() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: RETURN of a division that fails has its context
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 10 / a;
END $$;
SELECT f(0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function f(integer) line 3 at RETURN
-- case: unreachable statements after RETURN
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; RAISE NOTICE 'never'; END $$;
SELECT f();
--> f
-->   1
-- case: RETURN NEXT of a row variable
CREATE FUNCTION get_all() RETURNS SETOF flight AS
$BODY$
DECLARE
    r flight%rowtype;
BEGIN
    FOR r IN
        SELECT * FROM flight WHERE id > 0 ORDER BY id
    LOOP
        RETURN NEXT r; -- return current row of SELECT
    END LOOP;
    RETURN;
END;
$BODY$
LANGUAGE plpgsql;
SELECT * FROM get_all();
--> id | origin | seats
-->   1 | AMS | 10
-->   2 | BER | 0
-->   3 | AMS | 4
-- case: RETURN NEXT of a scalar
CREATE FUNCTION f(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP RETURN NEXT i * i; END LOOP; END $$;
SELECT * FROM f(3);
--> f
-->   1
-->   4
-->   9
SELECT sum(f) FROM f(4) f;
--> sum
-->   30
SELECT * FROM f(0);
--> f
-- case: RETURN NEXT of a record
CREATE FUNCTION f() RETURNS SETOF record LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN SELECT id, origin FROM flight ORDER BY id LOOP RETURN NEXT r; END LOOP; END $$;
SELECT * FROM f() AS x(a int, b text);
--> a | b
-->   1 | AMS
-->   2 | BER
-->   3 | AMS
SELECT * FROM f() AS x(a int, b int);
--> ERROR 42804: wrong record type supplied in RETURN NEXT
-->   DETAIL: Returned type text does not match expected type integer in column 2.
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN NEXT
-- case: RETURN NEXT without an expression and without OUT
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT; END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 79
-- case: RETURN NEXT with an expression and OUT
CREATE FUNCTION f(OUT a int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 5; END $$;
--> ERROR 42804: RETURN NEXT cannot have a parameter in function with OUT parameters
-->   POSITION: 89
-- case: RETURN NEXT in a function that returns one value
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 5; END $$;
--> ERROR 42804: cannot use RETURN NEXT in a non-SETOF function
-->   POSITION: 62
-- case: RETURN NEXT with OUT parameters
CREATE FUNCTION f(OUT a int, OUT b text) RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN a := 1; RETURN NEXT; b := 'two'; RETURN NEXT; a := NULL; RETURN NEXT; END $$;
SELECT * FROM f();
--> a | b
-->   1 | <null>
-->   1 | two
-->   <null> | two
-- case: RETURN NEXT NULL
CREATE FUNCTION f() RETURNS SETOF flight LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT NULL; RETURN NEXT ROW(1, 'x', 2); END $$;
SELECT * FROM f();
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type unknown does not match expected type text in column 2.
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN NEXT
-- case: RETURN NEXT of a wrong row
CREATE FUNCTION f() RETURNS SETOF flight LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT ROW(1, 2); END $$;
SELECT * FROM f();
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type integer does not match expected type text in column 2.
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN NEXT
-- case: RETURN NEXT converts
CREATE FUNCTION f() RETURNS SETOF numeric(5,1) LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; RETURN NEXT '2.55'; END $$;
SELECT * FROM f();
--> f
-->   1
-->   2.55
-- case: RETURN QUERY several times
CREATE FUNCTION f() RETURNS SETOF flight LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT * FROM flight WHERE id = 1; RETURN QUERY SELECT * FROM flight WHERE seats = 0; END $$;
SELECT * FROM f();
--> id | origin | seats
-->   1 | AMS | 10
-->   2 | BER | 0
-- case: the manual's get_available_flightid
CREATE FUNCTION get_available_flightid(text) RETURNS SETOF integer AS
$BODY$
BEGIN
    RETURN QUERY SELECT id FROM flight WHERE origin = $1 AND seats > 0 ORDER BY id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'No flight at %.', $1;
    END IF;
    RETURN;
 END;
$BODY$
LANGUAGE plpgsql;
SELECT * FROM get_available_flightid('AMS');
--> get_available_flightid
-->   1
-->   3
SELECT * FROM get_available_flightid('BER');
--> ERROR P0001: No flight at BER.
-->   CONTEXT: PL/pgSQL function get_available_flightid(text) line 5 at RAISE
-- case: RETURN QUERY of another structure: types
CREATE FUNCTION f() RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT origin, id FROM flight; END $$;
SELECT * FROM f();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Returned type text does not match expected type integer in column 1.
-->   CONTEXT: SQL statement "SELECT origin, id FROM flight"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY of another structure: number of columns
CREATE FUNCTION f() RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id FROM flight; END $$;
SELECT * FROM f();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Number of returned columns (1) does not match expected column count (2).
-->   CONTEXT: SQL statement "SELECT id FROM flight"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY of bigint where int is due
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT count(*) FROM flight; END $$;
SELECT * FROM f();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Returned type bigint does not match expected type integer in column 1.
-->   CONTEXT: SQL statement "SELECT count(*) FROM flight"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY of varchar where text is due
CREATE FUNCTION f() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 'x'::varchar; END $$;
SELECT * FROM f();
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Returned type character varying does not match expected type text in column 1.
-->   CONTEXT: SQL statement "SELECT 'x'::varchar"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY of VALUES
CREATE FUNCTION f() RETURNS TABLE (n int, w text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY VALUES (1, 'one'), (2, 'two'); END $$;
SELECT * FROM f();
--> n | w
-->   1 | one
-->   2 | two
-- case: RETURN QUERY with WITH
CREATE FUNCTION f(lim int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < lim) SELECT n FROM c; END $$;
SELECT * FROM f(3);
--> f
-->   1
-->   2
-->   3
-- case: RETURN QUERY of UPDATE RETURNING
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY UPDATE flight SET seats = seats + 1 WHERE origin = 'AMS' RETURNING seats; END $$;
SELECT * FROM f() ORDER BY 1;
--> f
-->   5
-->   11
SELECT seats FROM flight ORDER BY id;
--> seats
-->   11
-->   0
-->   5
-- case: RETURN QUERY of INSERT without RETURNING
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY INSERT INTO flight VALUES (9); END $$;
SELECT * FROM f();
--> ERROR 42601: INSERT query does not return tuples
-->   CONTEXT: SQL statement "INSERT INTO flight VALUES (9)"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY in a function without a set
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1; END $$;
--> ERROR 42804: cannot use RETURN QUERY in a non-SETOF function
-->   POSITION: 62
-- case: RETURN QUERY mixed with RETURN NEXT
CREATE FUNCTION f() RETURNS TABLE (a int) LANGUAGE plpgsql AS $$ BEGIN a := 0; RETURN NEXT; RETURN QUERY SELECT id FROM flight ORDER BY id; a := 99; RETURN NEXT; END $$;
SELECT * FROM f();
--> a
-->   0
-->   1
-->   2
-->   3
-->   99
SELECT count(*), max(a) FROM f();
--> count | max
-->   5 | 99
-- case: RETURN QUERY where an OUT name is a column's name
CREATE FUNCTION f() RETURNS TABLE (id int) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id FROM flight; END $$;
SELECT * FROM f();
--> ERROR 42702: column reference "id" is ambiguous
-->   DETAIL: It could refer to either a PL/pgSQL variable or a table column.
-->   QUERY: SELECT id FROM flight
-->   AT: 8
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY EXECUTE of a wrong structure
CREATE FUNCTION f(c text) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'SELECT ' || c || ' FROM flight ORDER BY id'; END $$;
SELECT * FROM f('id');
--> f
-->   1
-->   2
-->   3
SELECT * FROM f('origin');
--> ERROR 42804: structure of query does not match function result type
-->   DETAIL: Returned type text does not match expected type integer in column 1.
-->   CONTEXT: SQL statement "SELECT origin FROM flight ORDER BY id"
-->     PL/pgSQL function f(text) line 1 at RETURN QUERY
-- case: RETURN QUERY EXECUTE of NULL
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE NULL; END $$;
SELECT * FROM f();
--> ERROR 22004: query string argument of EXECUTE is null
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN QUERY
-- case: RETURN QUERY EXECUTE of a command without rows
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'DELETE FROM flight'; END $$;
SELECT * FROM f();
--> ERROR 42601: DELETE query does not return tuples
-->   CONTEXT: SQL statement "DELETE FROM flight"
-->     PL/pgSQL function f() line 1 at RETURN QUERY
-- case: a set-returning function in the select list
CREATE FUNCTION f(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT generate_series(1, n); END $$;
SELECT id, f(id) FROM flight ORDER BY 1, 2;
--> id | f
-->   1 | 1
-->   2 | 1
-->   2 | 2
-->   3 | 1
-->   3 | 2
-->   3 | 3
-- case: two set-returning functions in one select list
CREATE FUNCTION f(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT generate_series(1, n); END $$;
SELECT f(2), f(3);
--> f | f
-->   1 | 1
-->   2 | 2
-->   <null> | 3
-- case: a set-returning function in LATERAL
CREATE FUNCTION f(n int) RETURNS TABLE (k int, sq int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP k := i; sq := i * i; RETURN NEXT; END LOOP; END $$;
SELECT t.id, x.* FROM flight t, LATERAL f(t.id) x ORDER BY 1, 2;
--> id | k | sq
-->   1 | 1 | 1
-->   2 | 1 | 1
-->   2 | 2 | 4
-->   3 | 1 | 1
-->   3 | 2 | 4
-->   3 | 3 | 9
SELECT t.id, x.k FROM flight t LEFT JOIN LATERAL f(t.seats) x ON x.k > 3 ORDER BY 1, 2;
--> id | k
-->   1 | 4
-->   1 | 5
-->   1 | 6
-->   1 | 7
-->   1 | 8
-->   1 | 9
-->   1 | 10
-->   2 | <null>
-->   3 | 4
-- case: WITH ORDINALITY over a function
CREATE FUNCTION f() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 'a'; RETURN NEXT 'b'; END $$;
SELECT * FROM f() WITH ORDINALITY AS t(v, n);
--> v | n
-->   a | 1
-->   b | 2
-- case: a set-returning function where a scalar is due
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; RETURN NEXT 2; END $$;
SELECT 1 WHERE f() = 1;
--> ERROR 0A000: set-returning functions are not allowed in WHERE
-->   POSITION: 16
-- case: a set-returning function's error after some rows
CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN FOR i IN REVERSE 2..0 LOOP RETURN NEXT 10 / i; END LOOP; END $$;
SELECT * FROM f();
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN NEXT
-- case: CALL with an INOUT argument
CREATE PROCEDURE triple(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x * 3; END $$;
DO $$ DECLARE myvar int := 5; BEGIN CALL triple(myvar); RAISE NOTICE 'myvar = %', myvar; END $$;
--> NOTICE 00000: myvar = 15
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
CALL triple(7);
--> x
-->   21
-- case: CALL with an OUT argument
CREATE PROCEDURE get2(OUT a int, OUT b text) LANGUAGE plpgsql AS $$ BEGIN a := 1; b := 'x'; END $$;
DO $$ DECLARE p int; q text; BEGIN CALL get2(p, q); RAISE NOTICE '% %', p, q; END $$;
--> NOTICE 00000: 1 x
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
CALL get2(NULL, NULL);
--> a | b
-->   1 | x
-- case: CALL with an expression for an INOUT argument
CREATE PROCEDURE triple(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x * 3; END $$;
DO $$ BEGIN CALL triple(5 + 1); END $$;
--> ERROR 42601: procedure parameter "x" is an output parameter but corresponding argument is not writable
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
-- case: CALL with named arguments
CREATE PROCEDURE put(a int, b int DEFAULT 10, INOUT c int DEFAULT 0) LANGUAGE plpgsql AS $$ BEGIN c := a * b + c; END $$;
DO $$ DECLARE r int := 1; BEGIN CALL put(c => r, a => 2); RAISE NOTICE '%', r; CALL put(3, c => r); RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: 21
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 51
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
CALL put(4);
--> c
-->   40
-- case: CALL into a record's field and with a domain
CREATE PROCEDURE fill(OUT a int) LANGUAGE plpgsql AS $$ BEGIN a := 8; END $$;
DO $$ DECLARE r flight; BEGIN CALL fill(r.id); RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (8,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CALL converts OUT values
CREATE PROCEDURE fill(OUT a numeric) LANGUAGE plpgsql AS $$ BEGIN a := 8.6; END $$;
DO $$ DECLARE n int; BEGIN CALL fill(n); RAISE NOTICE '%', n; END $$;
--> ERROR 42601: procedure parameter "a" is an output parameter but corresponding argument is not writable
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
-- case: CALL of a function
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CALL f();
--> ERROR 42809: f() is not a procedure
-->   HINT: To call a function, use SELECT.
-->   POSITION: 6
-- case: SELECT of a procedure
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
SELECT p();
--> ERROR 42809: p() is a procedure
-->   HINT: To call a procedure, use CALL.
-->   POSITION: 8
-- case: CALL of a procedure that is not there
DO $$ BEGIN CALL nosuch(1); END $$;
--> ERROR 42883: procedure nosuch(integer) does not exist
-->   HINT: No procedure matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: CALL nosuch(1)
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
-- case: CALL of a procedure with wrong arguments
CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
DO $$ BEGIN CALL p('x', 2); END $$;
--> ERROR 42883: procedure p(unknown, integer) does not exist
-->   HINT: No procedure matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: CALL p('x', 2)
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at CALL
-- case: CALL that raises
CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'bad %', a; END $$;
DO $$
BEGIN
  CALL p(4);
END $$;
--> ERROR P0001: bad 4
-->   CONTEXT: PL/pgSQL function p(integer) line 1 at RAISE
-->     SQL statement "CALL p(4)"
-->     PL/pgSQL function inline_code_block line 3 at CALL
-- case: CALL nested three deep with INOUT
CREATE PROCEDURE a1(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x + 1; END $$;
CREATE PROCEDURE a2(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN CALL a1(x); x := x * 10; END $$;
CREATE PROCEDURE a3(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN CALL a2(x); CALL a1(x); END $$;
CALL a3(1);
--> x
-->   21
-- case: IF THEN
CREATE FUNCTION f(n int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN IF n <> 0 THEN RETURN 'set'; END IF; RETURN 'zero'; END $$;
SELECT f(0), f(1), f(NULL);
--> f | f | f
-->   zero | set | zero
-- case: IF THEN ELSE
CREATE FUNCTION f(s text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN IF s IS NULL OR s = '' THEN RETURN 'empty'; ELSE RETURN 'full'; END IF; END $$;
SELECT f(NULL), f(''), f('x');
--> f | f | f
-->   empty | empty | full
-- case: IF ELSIF ELSE and the spelling ELSEIF
CREATE FUNCTION f(number int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE result text; BEGIN
IF number = 0 THEN
    result := 'zero';
ELSIF number > 0 THEN
    result := 'positive';
ELSEIF number < 0 THEN
    result := 'negative';
ELSE
    result := 'NULL';
END IF;
RETURN result; END $$;
SELECT f(0), f(5), f(-5), f(NULL);
--> f | f | f | f
-->   zero | positive | negative | NULL
-- case: nested IF
CREATE FUNCTION f(a bool, b bool) RETURNS text LANGUAGE plpgsql AS $$ BEGIN IF a THEN IF b THEN RETURN 'both'; ELSE RETURN 'a'; END IF; ELSE IF b THEN RETURN 'b'; END IF; END IF; RETURN 'none'; END $$;
SELECT f(true, true), f(true, false), f(false, true), f(false, false);
--> f | f | f | f
-->   both | a | b | none
-- case: IF with ELSE IF needs two END IFs
CREATE FUNCTION f(a int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN IF a = 1 THEN RETURN 'x'; ELSE IF a = 2 THEN RETURN 'y'; END IF; RETURN 'z'; END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 149
-- case: IF with an empty branch
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a = 1 THEN ELSIF a = 2 THEN ELSE END IF; RETURN a; END $$;
SELECT f(1), f(2), f(3);
--> f | f | f
-->   1 | 2 | 3
-- case: IF whose condition fails
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF a = 1 THEN
    RETURN 1;
  ELSIF 1 / a > 0 THEN
    RETURN 2;
  END IF;
  RETURN 3;
END $$;
SELECT f(1);
--> f
-->   1
SELECT f(0);
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function f(integer) line 3 at IF
-- case: IF without THEN
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF true RETURN 1; END IF; END $$;
--> ERROR 42601: missing "THEN" at end of SQL expression
-->   POSITION: 78
-- case: simple CASE
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE msg text; BEGIN
CASE x
    WHEN 1, 2 THEN
        msg := 'one or two';
    ELSE
        msg := 'other value than one or two';
END CASE;
RETURN msg; END $$;
SELECT f(1), f(2), f(3), f(NULL);
--> f | f | f | f
-->   one or two | one or two | other value than one or two | other value than one or two
-- case: simple CASE without a match
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE x WHEN 1 THEN RETURN 'one'; END CASE; END $$;
SELECT f(1);
--> f
-->   one
SELECT f(2);
--> ERROR 20000: case not found
-->   HINT: CASE statement is missing ELSE part.
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at CASE
-- case: simple CASE over texts and expressions
CREATE FUNCTION f(x text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN CASE lower(x) WHEN 'a' THEN RETURN 1; WHEN 'b' || 'c', 'd' THEN RETURN 2; ELSE RETURN length(x); END CASE; END $$;
SELECT f('A'), f('BC'), f('d'), f('eee');
--> f | f | f | f
-->   1 | 2 | 2 | 3
-- case: simple CASE whose types do not match
CREATE FUNCTION f(x int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN CASE x WHEN 'a'::text THEN RETURN 1; ELSE RETURN 2; END CASE; END $$;
SELECT f(1);
--> ERROR 42883: operator does not exist: integer = text
-->   HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: "__Case__Variable_2__" IN ('a'::text)
-->   AT: 24
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at CASE
-- case: simple CASE evaluates its expression once
CREATE SEQUENCE s;
DO $$ BEGIN CASE nextval('s') WHEN 5 THEN NULL; WHEN 6 THEN NULL; WHEN 1 THEN RAISE NOTICE 'first'; END CASE; RAISE NOTICE '%', currval('s'); END $$;
--> NOTICE 00000: first
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: searched CASE
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE WHEN x BETWEEN 0 AND 10 THEN RETURN 'zero to ten'; WHEN x BETWEEN 11 AND 20 THEN RETURN 'eleven to twenty'; END CASE; RETURN '?'; END $$;
SELECT f(5), f(15);
--> f | f
-->   zero to ten | eleven to twenty
SELECT f(25);
--> ERROR 20000: case not found
-->   HINT: CASE statement is missing ELSE part.
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at CASE
-- case: CASE_NOT_FOUND handled
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE WHEN x = 1 THEN RETURN 'one'; END CASE; EXCEPTION WHEN case_not_found THEN RETURN SQLSTATE || ' ' || SQLERRM; END $$;
SELECT f(1), f(2);
--> f | f
-->   one | 20000 case not found
-- case: CASE with an ELSE of NULL
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE x WHEN 1 THEN RETURN 'one'; ELSE NULL; END CASE; RETURN 'after'; END $$;
SELECT f(1), f(2);
--> f | f
-->   one | after
-- case: CASE within CASE
CREATE FUNCTION f(x int, y int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE x WHEN 1 THEN CASE WHEN y = 1 THEN RETURN '11'; ELSE RETURN '1?'; END CASE; ELSE RETURN '?'; END CASE; END $$;
SELECT f(1, 1), f(1, 2), f(2, 1);
--> f | f | f
-->   11 | 1? | ?
-- case: CASE without WHEN
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE x ELSE RETURN 'a'; END CASE; END $$;
--> ERROR 42601: missing "WHEN" at end of SQL expression
-->   POSITION: 90
-- case: CASE closed by END only
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE x WHEN 1 THEN RETURN 'a'; END; END $$;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 102
-- case: a CASE expression inside a CASE statement
CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CASE CASE WHEN x > 0 THEN 'p' ELSE 'n' END WHEN 'p' THEN RETURN CASE x WHEN 1 THEN 'one' ELSE 'more' END; ELSE RETURN 'neg'; END CASE; END $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 77
SELECT f(1), f(2), f(-1);
--> ERROR 42883: function f(integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
