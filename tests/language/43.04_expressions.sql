-- 43.4 Expressions: what stands where a value stands.
CREATE TABLE t (id int PRIMARY KEY, v int, s text);
INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL);
--> changed 3
-- case: the manual's condition
DO $$ DECLARE x int := 1; y int := 2; BEGIN IF x < y THEN RAISE NOTICE 'less'; END IF; END $$;
--> NOTICE 00000: less
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a scalar subquery
DO $$ DECLARE n int; BEGIN n := (SELECT v FROM t WHERE id = 2) + 1; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 21
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a scalar subquery without a row
DO $$ DECLARE n int; BEGIN n := (SELECT v FROM t WHERE id = 20); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an expression with its own FROM
DO $$ DECLARE n int; BEGIN n := v FROM t WHERE id = 2; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 20
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an expression with FROM and no row
DO $$ DECLARE n int := 1; BEGIN n := v FROM t WHERE id = 20; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an expression with FROM and several rows
DO $$ DECLARE n int; BEGIN n := v FROM t; RAISE NOTICE '%', n; END $$;
--> ERROR 21000: query returned more than one row
-->   CONTEXT: query: n := v FROM t
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: an expression with ORDER BY and LIMIT
DO $$ DECLARE n text; BEGIN n := s FROM t ORDER BY id DESC OFFSET 1 LIMIT 1; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: two
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an aggregate as an expression
DO $$ DECLARE n int; BEGIN n := count(*) FROM t WHERE v IS NOT NULL; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: several columns as an expression
DO $$ DECLARE n int; BEGIN n := 1, 2; END $$;
--> ERROR 42601: assignment source returned 2 columns
-->   CONTEXT: PL/pgSQL assignment "n := 1, 2"
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: an empty expression
DO $$ DECLARE n int; BEGIN n := ; END $$;
--> ERROR 42601: assignment source returned 0 columns
-->   CONTEXT: PL/pgSQL assignment "n :="
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: an empty condition
DO $$ BEGIN IF THEN NULL; END IF; END $$;
--> ERROR 42601: missing expression at or near "THEN"
-->   POSITION: 16
-- case: an expression that is no boolean as a condition
DO $$ BEGIN IF 1 THEN RAISE NOTICE 'one is true'; END IF; END $$;
--> NOTICE 00000: one is true
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a text as a condition
DO $$ BEGIN IF 'yes' THEN RAISE NOTICE 'yes is true'; END IF; END $$;
--> NOTICE 00000: yes is true
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a text that is no boolean as a condition
DO $$ BEGIN IF 'perhaps' THEN NULL; END IF; END $$;
--> ERROR 22P02: invalid input syntax for type boolean: "perhaps"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at IF
-- case: a text variable as a condition
DO $$ DECLARE s text := 'on'; BEGIN IF s THEN RAISE NOTICE 'on'; END IF; END $$;
--> NOTICE 00000: on
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a NULL condition is false
DO $$ BEGIN IF NULL THEN RAISE NOTICE 'a'; ELSE RAISE NOTICE 'b'; END IF; IF NOT (NULL::bool) THEN RAISE NOTICE 'c'; ELSE RAISE NOTICE 'd'; END IF; END $$;
--> NOTICE 00000: b
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: d
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXISTS
DO $$ BEGIN IF EXISTS (SELECT FROM t WHERE v > 15) AND NOT EXISTS (SELECT 1 FROM t WHERE v > 25) THEN RAISE NOTICE 'some'; END IF; END $$;
--> NOTICE 00000: some
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: IN with a list and with a subquery
DO $$ DECLARE n int := 20; BEGIN RAISE NOTICE '% %', n IN (10, 20), n NOT IN (SELECT v FROM t WHERE v IS NOT NULL); END $$;
--> NOTICE 00000: t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: NOT IN with NULL inside
DO $$ DECLARE n int := 5; BEGIN RAISE NOTICE '%', n NOT IN (SELECT v FROM t); END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ANY and ALL over an array variable
DO $$ DECLARE a int[] := '{1,2,3}'; BEGIN RAISE NOTICE '% % %', 2 = ANY (a), 2 < ALL (a), 9 = ANY ('{}'::int[]); END $$;
--> NOTICE 00000: t f f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: BETWEEN, symmetric too
DO $$ DECLARE n int := 3; BEGIN RAISE NOTICE '% % %', n BETWEEN 1 AND 5, n BETWEEN 5 AND 1, n BETWEEN SYMMETRIC 5 AND 1; END $$;
--> NOTICE 00000: t f t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: LIKE, ILIKE, SIMILAR TO and regular expressions
DO $$ DECLARE s text := 'Archipelago'; BEGIN RAISE NOTICE '% % % % %', s LIKE 'Arch%', s ILIKE 'ARCH_PEL%', s SIMILAR TO '(A|B)%', s ~ '^A.*o$', s !~* 'XYZ'; END $$;
--> NOTICE 00000: t t t t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: LIKE with an escape
DO $$ DECLARE s text := '50%'; BEGIN RAISE NOTICE '% %', s LIKE '50!%' ESCAPE '!', s LIKE '5_\%'; END $$;
--> NOTICE 00000: t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CASE searched and simple
DO $$ DECLARE n int := 2; BEGIN RAISE NOTICE '% %', CASE WHEN n > 1 THEN 'many' ELSE 'few' END, CASE n WHEN 1 THEN 'one' END; END $$;
--> NOTICE 00000: many <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CASE does not evaluate what it does not need
DO $$ DECLARE d int := 0; BEGIN RAISE NOTICE '%', CASE WHEN d = 0 THEN 0 ELSE 1 / d END; END $$;
--> NOTICE 00000: 0
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: COALESCE, NULLIF, GREATEST and LEAST
DO $$ DECLARE a int; b int := 4; BEGIN RAISE NOTICE '% % % %', coalesce(a, b, 1 / 0), nullif(b, 4), greatest(a, b, 3), least(NULL, b); END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "coalesce(a, b, 1 / 0)"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: AND and OR with NULL
DO $$ DECLARE n bool; BEGIN RAISE NOTICE '% % % %', n AND false, n OR true, n AND true, NOT n; END $$;
--> NOTICE 00000: f t <NULL> <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: IS DISTINCT FROM
DO $$ DECLARE a int; b int := 1; BEGIN RAISE NOTICE '% % %', a IS DISTINCT FROM b, a IS NOT DISTINCT FROM NULL, a = NULL; END $$;
--> NOTICE 00000: t t <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: IS TRUE, IS UNKNOWN
DO $$ DECLARE a bool; BEGIN RAISE NOTICE '% % %', a IS TRUE, a IS NOT FALSE, a IS UNKNOWN; END $$;
--> NOTICE 00000: f t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: integer division and modulo with signs
DO $$ DECLARE a int := -7; b int := 2; BEGIN RAISE NOTICE '% % % %', a / b, a % b, a / -b, -(a % b); END $$;
--> NOTICE 00000: -3 -1 3 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: powers, roots and factorials
DO $$ DECLARE a int := 2; BEGIN RAISE NOTICE '% % % %', a ^ 10, |/ 16.0, ||/ 27.0, @ -5; END $$;
--> NOTICE 00000: 1024 4 3.0000000000000004 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: bitwise operators
DO $$ DECLARE a int := 12; BEGIN RAISE NOTICE '% % % % % %', a & 10, a | 3, a # 5, ~a, a << 2, a >> 1; END $$;
--> NOTICE 00000: 8 15 9 -13 48 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: numeric division keeps its scale
DO $$ DECLARE a numeric := 10; b numeric := 3; BEGIN RAISE NOTICE '% % %', a / b, round(a / b, 2), trunc(-a / b); END $$;
--> NOTICE 00000: 3.3333333333333333 3.33 -3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: mixed arithmetic finds the wider type
DO $$ DECLARE i int := 7; n numeric := 2; f float8 := 2; BEGIN RAISE NOTICE '% % % %', i / n, i / f, pg_typeof(i * n), pg_typeof(n * f); END $$;
--> NOTICE 00000: 3.5000000000000000 3.5 numeric double precision
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: smallint arithmetic overflows
DO $$ DECLARE a smallint := 32767; BEGIN a := a + 1::smallint; END $$;
--> ERROR 22003: smallint out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: int arithmetic overflows
DO $$ DECLARE a int := 2147483647; b bigint; BEGIN b := a + 1; END $$;
--> ERROR 22003: integer out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: division by zero of each type
DO $$ DECLARE f float8 := 0; BEGIN f := 1 / f; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: numeric division by zero
DO $$ DECLARE f numeric := 0; BEGIN f := 1 / f; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: modulo by zero
DO $$ DECLARE f int := 0; BEGIN f := 1 % f; END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: concatenation with other types
DO $$ DECLARE n int := 3; d date := '2020-01-01'; BEGIN RAISE NOTICE '%', n || ' at ' || d || ' ' || true; END $$;
--> NOTICE 00000: 3 at 2020-01-01 true
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: concatenation with NULL
DO $$ DECLARE n text; BEGIN RAISE NOTICE '% %', 'a' || n, concat('a', n, 'b'); END $$;
--> NOTICE 00000: <NULL> ab
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: casts in both spellings
DO $$ DECLARE s text := '12'; BEGIN RAISE NOTICE '% % %', s::int + 1, CAST(s AS numeric(4,1)), int '5'; END $$;
--> NOTICE 00000: 13 12.0 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cast that fails
DO $$ DECLARE s text := '12a'; BEGIN RAISE NOTICE '%', s::int; END $$;
--> ERROR 22P02: invalid input syntax for type integer: "12a"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: float to int rounds half to even, numeric away from zero
DO $$ DECLARE f float8 := 2.5; n numeric := 2.5; BEGIN RAISE NOTICE '% % %', f::int, n::int, (-n)::int; END $$;
--> NOTICE 00000: 2 3 -3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: text compared with int
DO $$ DECLARE s text := '1'; n int := 1; BEGIN IF s = n THEN NULL; END IF; END $$;
--> ERROR 42883: operator does not exist: text = integer
-->   HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: s = n
-->   AT: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at IF
-- case: an operator that does not exist
DO $$ DECLARE d date := '2020-01-01'; BEGIN RAISE NOTICE '%', d * 2; END $$;
--> ERROR 42883: operator does not exist: date * integer
-->   HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: d * 2
-->   AT: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a function that does not exist
DO $$ BEGIN PERFORM nosuch(1, 'a'); END $$;
--> ERROR 42883: function nosuch(integer, unknown) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: SELECT nosuch(1, 'a')
-->   AT: 8
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at PERFORM
-- case: a column that does not exist
DO $$ DECLARE n int; BEGIN n := nosuch + 1; END $$;
--> ERROR 42703: column "nosuch" does not exist
-->   QUERY: n := nosuch + 1
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: a syntax error inside an expression
DO $$ DECLARE n int; BEGIN n := 1 + * 2; END $$;
--> ERROR 42601: syntax error at or near "*"
-->   POSITION: 37
-- case: unbalanced parentheses
DO $$ DECLARE n int; BEGIN n := (1 + 2; END $$;
--> ERROR 42601: mismatched parentheses at or near ";"
-->   POSITION: 39
-- case: too many closing parentheses
DO $$ DECLARE n int; BEGIN n := 1 + 2); END $$;
--> ERROR 42601: mismatched parentheses at or near ")"
-->   POSITION: 38
-- case: date and interval arithmetic
DO $$ DECLARE d date := '2020-01-31'; BEGIN RAISE NOTICE '% % % %', d + 1, d + interval '1 month', d - date '2020-01-01', extract(dow FROM d); END $$;
--> NOTICE 00000: 2020-02-01 2020-02-29 00:00:00 30 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: row constructors compared
DO $$ DECLARE a int := 1; b int := 2; BEGIN RAISE NOTICE '% % %', (a, b) = (1, 2), (a, b) < (1, 3), (a, NULL) IS NULL; END $$;
--> NOTICE 00000: t t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: row IN a subquery
DO $$ BEGIN RAISE NOTICE '%', (1, 10) IN (SELECT id, v FROM t); END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: array operators and subscripts
DO $$ DECLARE a int[] := '{5,6,7}'; BEGIN RAISE NOTICE '% % % % %', a[2], a[5], a[1:2], a || 8, a @> '{6}'; END $$;
--> NOTICE 00000: 6 <NULL> {5,6} {5,6,7,8} t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an ARRAY subquery
DO $$ DECLARE a int[]; BEGIN a := ARRAY(SELECT v FROM t ORDER BY id); RAISE NOTICE '% %', a, array_length(a, 1); END $$;
--> NOTICE 00000: {10,20,NULL} 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a two-dimensional array
DO $$ DECLARE a int[] := '{{1,2},{3,4}}'; BEGIN RAISE NOTICE '% % % %', a[2][1], a[1], a[1:2][2:2], array_ndims(a); END $$;
--> NOTICE 00000: 3 <NULL> {{2},{4}} 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: string functions on variables
DO $$ DECLARE s text := 'PostgreSQL'; BEGIN RAISE NOTICE '% % % % %', substring(s FROM 1 FOR 4), position('SQL' IN s), overlay(s PLACING 'X' FROM 2 FOR 3), trim(BOTH 'P' FROM s), split_part(s, 'g', 2); END $$;
--> NOTICE 00000: Post 8 PXgreSQL ostgreSQL reSQL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: json operators
DO $$ DECLARE j jsonb := '{"a":{"b":[1,2]},"c":"x"}'; BEGIN RAISE NOTICE '% % % %', j->'a', j#>>'{a,b,1}', j->>'c', j ? 'c'; END $$;
--> NOTICE 00000: {"b": [1, 2]} 2 x t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: window functions in an expression's subquery
DO $$ DECLARE s text; BEGIN s := (SELECT string_agg(r::text, ',' ORDER BY r) FROM (SELECT row_number() OVER (ORDER BY id) r FROM t) q); RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 1,2,3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: WITH in a subquery
DO $$ DECLARE n int; BEGIN n := (WITH w AS (SELECT v FROM t WHERE v > 10) SELECT sum(v) FROM w); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 20
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a correlated subquery over a variable
DO $$ DECLARE k int := 15; n int; BEGIN n := (SELECT count(*) FROM t a WHERE EXISTS (SELECT FROM t b WHERE b.id = a.id AND b.v > k)); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a set-returning function as an expression
DO $$ DECLARE n int; BEGIN n := generate_series(1, 1); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a set-returning function with several rows as an expression
DO $$ DECLARE n int; BEGIN n := generate_series(1, 3); END $$;
--> ERROR 21000: query returned more than one row
-->   CONTEXT: query: n := generate_series(1, 3)
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: a volatile function is evaluated each time
CREATE SEQUENCE s;
DO $$ DECLARE a bigint; BEGIN FOR i IN 1..3 LOOP a := nextval('s'); END LOOP; RAISE NOTICE '% %', a, currval('s'); END $$;
--> NOTICE 00000: 3 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: now() does not move inside a call
DO $$ DECLARE a timestamptz := now(); BEGIN PERFORM pg_sleep(0.001); RAISE NOTICE '% %', a = now(), clock_timestamp() > now(); END $$;
--> NOTICE 00000: t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: current settings and the session's names
DO $$ BEGIN RAISE NOTICE '% % % %', current_schema, current_database(), session_user = current_user, current_setting('search_path'); END $$;
--> NOTICE 00000: public archipel t "$user", public
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a variable in a type's modifier is refused
DO $$ DECLARE n int := 3; BEGIN RAISE NOTICE '%', 'abcdef'::varchar(n); END $$;
--> ERROR 42601: syntax error at or near "n"
-->   POSITION: 69
-- case: hexadecimal and binary strings
DO $$ BEGIN RAISE NOTICE '% % % %', X'1F'::int, B'101'::int, to_hex(255), U&'\0061'; END $$;
--> NOTICE 00000: 31 5 ff a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: exponents and special floats
DO $$ DECLARE f float8 := 'NaN'; g float8 := '-Infinity'; BEGIN RAISE NOTICE '% % % %', f = f, g < 0, 1.5e3, 1e-7::float8; END $$;
--> NOTICE 00000: t t 1500 1e-07
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a comment inside an expression
DO $$ DECLARE n int; BEGIN n := 1 -- one
  + /* and */ 2; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
-- case: a semicolon inside a string in an expression
DO $$ DECLARE s text; BEGIN s := 'a;b' || ';'; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: a;b;
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
