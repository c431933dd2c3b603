-- SQL functions: inlining, volatility, recursion; LATERAL, DISTINCT ON, set operations, collation
CREATE TABLE emp (id int PRIMARY KEY, name text COLLATE "C" NOT NULL, dept text, boss int REFERENCES emp, pay numeric(8,2), hired date);
INSERT INTO emp VALUES (1, 'Zoe', 'eng', NULL, 900, '2010-01-01'), (2, 'adam', 'eng', 1, 700, '2012-05-05'), (3, 'Bob', 'ops', 1, 700, '2011-07-01'), (4, 'eve', 'ops', 3, NULL, '2015-02-28'), (5, 'Émile', NULL, 3, 450.5, NULL), (6, 'a_b', 'eng', 2, 300, '2020-02-29');
CREATE TABLE call_log (n serial, what text);
CREATE FUNCTION log_it(t text, v anyelement) RETURNS anyelement LANGUAGE plpgsql VOLATILE AS $$ BEGIN INSERT INTO call_log (what) VALUES (t || '=' || coalesce(v::text, 'null')); RETURN v; END $$;
CREATE FUNCTION twice(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $1';
CREATE FUNCTION vol_twice(x numeric) RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT x + x';
CREATE FUNCTION by_dept(d text) RETURNS SETOF emp LANGUAGE sql STABLE AS 'SELECT * FROM emp WHERE dept = d';
CREATE FUNCTION pay_of(e emp) RETURNS numeric LANGUAGE sql STABLE RETURN coalesce(e.pay, 0);
CREATE FUNCTION raise_all(pct numeric) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO call_log (what) VALUES ('raise ' || pct);
  WITH u AS (UPDATE emp SET pay = round(pay * (1 + pct / 100), 2) WHERE pay IS NOT NULL RETURNING 1) SELECT count(*) FROM u;
$$;
CREATE FUNCTION boom_stable() RETURNS int LANGUAGE sql STABLE AS $$ INSERT INTO call_log (what) VALUES ('no') RETURNING n $$;
CREATE FUNCTION boom_plpgsql() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN UPDATE emp SET pay = 0; RETURN 1; END $$;
SELECT twice(log_it('t', 2.5)), vol_twice(log_it('v', 1.5)), twice(NULL);
SELECT what FROM call_log ORDER BY n;
SELECT e.name, e.pay_of, twice(e.pay_of) FROM by_dept('eng') e WHERE pay_of(e) > 100 ORDER BY e.name;
SELECT raise_all(10), raise_all(0);
SELECT sum(pay) AS total, count(*) AS n FROM emp \gset before_
SELECT raise_all(-50.5) = :before_n - 1 AS same_count, sum(pay) < :before_total AS lower FROM emp;
SELECT sum(pay), :'before_total' AS was FROM emp;
SELECT boom_stable();
SELECT boom_plpgsql();
SELECT b.* FROM by_dept(NULL) b;
SELECT (by_dept('ops')).name ORDER BY 1;
SELECT by_dept('ops') ORDER BY 1 DESC LIMIT 1;
CREATE FUNCTION one_row() RETURNS emp LANGUAGE sql AS 'SELECT * FROM emp ORDER BY id DESC';
CREATE FUNCTION no_row() RETURNS emp LANGUAGE sql AS 'SELECT * FROM emp WHERE false';
CREATE FUNCTION nothing() RETURNS void LANGUAGE sql AS 'DELETE FROM call_log WHERE n < 0; SELECT 5';
SELECT (one_row()).id, no_row() IS NULL AS nr, nothing() IS NULL AS nv;
SELECT * FROM no_row();
SELECT nothing();
CREATE FUNCTION bad1() RETURNS int LANGUAGE sql AS 'SELECT ''x''::text';
CREATE FUNCTION bad2() RETURNS int LANGUAGE sql AS 'INSERT INTO call_log (what) VALUES (''q'')';
CREATE FUNCTION bad3() RETURNS TABLE (a int, b text) LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad4(a int) RETURNS int LANGUAGE sql AS 'SELECT nope + a';
CREATE FUNCTION bad5() RETURNS int LANGUAGE sql AS 'SELECT 1; SELEC 2';
CREATE FUNCTION cast_ok() RETURNS bigint LANGUAGE sql AS 'SELECT 7::int';
CREATE FUNCTION names(emp) RETURNS text LANGUAGE sql AS $$ SELECT $1.name || '@' || coalesce(($1).dept, '-') $$;
SELECT cast_ok(), pg_typeof(cast_ok()), string_agg(e.names, ' ' ORDER BY e.id) FROM emp e;
-- recursive SQL function and hierarchical listing
CREATE FUNCTION chain_of(eid int) RETURNS text LANGUAGE sql STABLE AS $$ SELECT CASE WHEN boss IS NULL THEN name ELSE chain_of(boss) || '/' || name END FROM emp WHERE id = eid $$;
SET check_function_bodies = off;
CREATE FUNCTION chain_of(eid int) RETURNS text LANGUAGE sql STABLE AS $$ SELECT CASE WHEN boss IS NULL THEN name ELSE chain_of(boss) || '/' || name END FROM emp WHERE id = eid $$;
CREATE FUNCTION is_even(n int) RETURNS boolean LANGUAGE sql AS 'SELECT CASE WHEN n = 0 THEN true ELSE is_odd(n - 1) END';
CREATE FUNCTION is_odd(n int) RETURNS boolean LANGUAGE sql AS 'SELECT CASE WHEN n = 0 THEN false ELSE is_even(n - 1) END';
RESET check_function_bodies;
SELECT id, chain_of(id) FROM emp ORDER BY chain_of(id) COLLATE "C";
SELECT is_even(10), is_odd(7), is_even(3), chain_of(99);
-- LATERAL, DISTINCT ON, ordinality, VALUES
SELECT d.dept, top.name, top.pay, cnt.* FROM (SELECT DISTINCT dept FROM emp) d LEFT JOIN LATERAL (SELECT name, pay FROM emp e WHERE e.dept IS NOT DISTINCT FROM d.dept ORDER BY pay DESC NULLS LAST LIMIT 1) top ON true
CROSS JOIN LATERAL (SELECT count(*) AS n, count(pay) AS paid FROM emp e WHERE e.dept = d.dept) cnt ORDER BY d.dept NULLS FIRST;
SELECT DISTINCT ON (dept) dept, name, hired FROM emp ORDER BY dept, hired DESC NULLS LAST;
SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY name;
SELECT e.name, s.* FROM emp e, LATERAL (VALUES ('pay', e.pay), ('bonus', e.pay / 10)) s(k, v) WHERE e.id < 3 ORDER BY e.id, k;
SELECT a.*, b FROM generate_series(1, 2) a, LATERAL generate_series(a, 2) b ORDER BY 1, 2;
SELECT * FROM emp e, (SELECT e.id) x;
SELECT * FROM emp e RIGHT JOIN LATERAL (SELECT e.id) x ON true;
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b']), jsonb_array_elements('[10]')) WITH ORDINALITY AS t(g, u, j, o) ORDER BY o;
SELECT unnest(ARRAY[1, 2]), generate_series(5, 7) ORDER BY 2;
-- set operations with precedence and typing
(SELECT 1 AS x UNION ALL SELECT 1 INTERSECT SELECT 1) EXCEPT ALL SELECT 1;
SELECT 1 UNION SELECT 2.0 UNION ALL SELECT NULL ORDER BY 1 NULLS FIRST;
SELECT 'a' UNION SELECT 'b'::varchar EXCEPT SELECT 'c' ORDER BY 1 DESC;
(SELECT name FROM emp ORDER BY name DESC LIMIT 1) UNION ALL (SELECT name FROM emp ORDER BY name LIMIT 1);
TABLE call_log EXCEPT TABLE call_log;
SELECT 1 UNION SELECT 'x';
SELECT 1, 2 UNION SELECT 1;
SELECT id FROM emp UNION SELECT boss FROM emp ORDER BY emp.id;
SELECT NULL UNION SELECT NULL;
SELECT ARRAY[1] UNION SELECT '{1}' ;
SELECT 1 INTERSECT SELECT 1::numeric;
-- collation and text comparison
SELECT name, name < 'a' AS lt_a, upper(name) AS up, name COLLATE "C" > 'Z' AS gtz, length(name) AS l, octet_length(name) AS ol, rank() OVER (ORDER BY lower(name)) AS rk FROM emp ORDER BY name;
SELECT 'a' < 'B' COLLATE "C" c1, 'abc' COLLATE "C" < 'abcd' c2, 'a ' = 'a' c3, 'a '::char(3) = 'a'::char(1) c4, 'a '::char(3)::text || '|' c5, length('ab  '::char(4)) c6, 'ab'::char(4) || 'c' c7, '' < ' ' c8, 'é' > 'z' COLLATE "C" c9, 'A'::"char" < 'a'::"char" c10, 'abcdef'::varchar(3) c11, 'x'::name < 'y' c12;
SELECT 'a' COLLATE "C" < 'b' COLLATE "POSIX";
SELECT 1 COLLATE "C";
SELECT 'a' COLLATE "nope";
SELECT name FROM emp WHERE name COLLATE "POSIX" BETWEEN 'A' AND 'Z' ORDER BY name COLLATE "C" DESC;
SELECT min(name), max(name), max(name COLLATE "C"), array_agg(DISTINCT lower(dept) ORDER BY lower(dept)) FROM emp;
SELECT trim(BOTH 'xy' FROM 'xyhixx'), ltrim('  a'), rtrim('aab', 'b'), btrim('zz'), lpad('abc', 2), rpad('a', 4, 'xy'), repeat('ab', 0), repeat('x', -1) = '', left('abc', -1), right('abc', -2), substr('abcdef', -1, 4), substring('abc', 2), strpos('abc', ''), replace('aaa', 'aa', 'b'), translate('12345', '143', 'ax'), initcap('o''neil mc-DONALD'), reverse('aé'), split_part('a,b', ',', 3), concat_ws(',', 'a', NULL, 'b'), concat_ws(NULL, 'a');
SELECT substring('abc' FROM 1 FOR -1);
SELECT split_part('a', ',', 0);
SELECT repeat(NULL, 3), lpad('x', NULL), string_to_table('a.b..c', '.', 'b') AS s ORDER BY s NULLS FIRST;
SELECT overlay('abcdef' PLACING 'ZZ' FROM 3), overlay('abc' PLACING 'X' FROM 9), overlay('abc' PLACING '' FROM 2 FOR 1);
SELECT 'a' || 1, 1 || 'a', 'x' || NULL, 'v' || ARRAY[1]::text, 'a' || true;
SELECT 1 || 2;
SELECT proname, provolatile, proisstrict, proretset, prosecdef FROM pg_proc WHERE proname IN ('twice', 'by_dept', 'pay_of', 'raise_all') ORDER BY proname;
