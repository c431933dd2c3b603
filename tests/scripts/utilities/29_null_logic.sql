-- three-valued logic in every control structure, row comparisons
CREATE TABLE tv (a boolean, n int);
INSERT INTO tv VALUES (true, 1), (false, 0), (NULL, NULL);
SELECT x.a, y.a AS b, x.a AND y.a AS "and", x.a OR y.a AS "or", NOT x.a AS "not", x.a = y.a AS eq, x.a IS NOT DISTINCT FROM y.a AS same, x.a <> y.a AS ne, x.a IS UNKNOWN AS unk, (x.a OR y.a) IS NOT TRUE AS nt FROM tv x, tv y ORDER BY x.n NULLS LAST, y.n NULLS LAST;
CREATE FUNCTION probe(b boolean, i int, t text) RETURNS TABLE (what text, took text) LANGUAGE plpgsql AS $$
<<fn>>
DECLARE n int := 0; arr int[]; r record; rec2 tv; what CONSTANT text NOT NULL := 'shadow';
BEGIN
  fn.what := 'x';
END $$;
CREATE FUNCTION probe(b boolean, i int, t text) RETURNS TABLE (what text, took text) LANGUAGE plpgsql AS $$
<<fn>>
DECLARE n int := 0; arr int[]; r record; rec2 tv;
BEGIN
  what := 'if'; IF b THEN took := 'then'; ELSE took := 'else'; END IF; RETURN NEXT;
  what := 'if not'; IF NOT b THEN took := 'then'; ELSE took := 'else'; END IF; RETURN NEXT;
  what := 'elsif'; took := NULL; IF i > 5 THEN took := 'gt'; ELSIF i <= 5 THEN took := 'le'; END IF; RETURN NEXT;
  what := 'case simple'; CASE i WHEN 1 THEN took := 'one'; WHEN NULL THEN took := 'null'; ELSE took := 'else'; END CASE; RETURN NEXT;
  what := 'case searched'; CASE WHEN i = 1 THEN took := 'one'; WHEN i IS NULL THEN took := 'null'; ELSE took := 'else'; END CASE; RETURN NEXT;
  what := 'while'; n := 0; WHILE n < i LOOP n := n + 1; EXIT WHEN n > 2; END LOOP; took := n; RETURN NEXT;
  what := 'exit when'; n := 0; LOOP n := n + 1; EXIT WHEN b; EXIT WHEN n = 3; END LOOP; took := n; RETURN NEXT;
  what := 'continue when'; n := 0; FOR k IN 1..3 LOOP CONTINUE WHEN NOT b; n := n + 1; END LOOP; took := n; RETURN NEXT;
  what := 'for query'; n := 0; FOR r IN SELECT * FROM tv WHERE a = b LOOP n := n + 1; END LOOP; took := format('%s found=%s', n, FOUND); RETURN NEXT;
  what := 'select into'; SELECT * INTO rec2 FROM tv WHERE tv.n = i; took := concat(rec2, FOUND, rec2 IS NULL); RETURN NEXT;
  what := 'concat'; took := t || i; RETURN NEXT;
  what := 'concat fn'; took := concat(t, i, b); RETURN NEXT;
  what := 'array'; arr := array_append(NULL, i); took := arr::text || cardinality(arr); RETURN NEXT;
  what := 'in'; took := i IN (1, NULL); RETURN NEXT;
  what := 'not in'; took := i NOT IN (SELECT tv.n FROM tv); RETURN NEXT;
  what := 'between'; took := i BETWEEN 0 AND NULL; RETURN NEXT;
  what := 'coalesce'; took := coalesce(t, i::text, 'dflt'); RETURN NEXT;
  what := 'nullif'; took := nullif(t, ''); RETURN NEXT;
  what := 'greatest'; took := greatest(i, 3, NULL) || '/' || least(i, NULL, 9); RETURN NEXT;
  BEGIN
    what := 'assert'; took := 'passed'; ASSERT b, 'asserted'; RETURN NEXT;
  EXCEPTION WHEN assert_failure THEN took := SQLERRM; RETURN NEXT;
  END;
  BEGIN
    what := 'for bound'; took := ''; FOR k IN 1 .. i LOOP took := took || k; EXIT WHEN k = 2; END LOOP; RETURN NEXT;
  EXCEPTION WHEN null_value_not_allowed THEN took := SQLERRM; RETURN NEXT;
  END;
  BEGIN
    what := 'execute null'; EXECUTE t; took := 'ran'; RETURN NEXT;
  EXCEPTION WHEN OTHERS THEN took := SQLSTATE; RETURN NEXT;
  END;
  BEGIN
    what := 'raise'; RAISE EXCEPTION '% % %', b, i, t;
  EXCEPTION WHEN raise_exception THEN took := SQLERRM; RETURN NEXT;
  END;
  RETURN QUERY SELECT 'query ' || q.o, CASE WHEN q.c THEN 'yes' WHEN NOT q.c THEN 'no' ELSE 'unknown' END FROM (VALUES (1, b AND i > 0), (2, b OR i > 0)) q(o, c);
END fn $$;
SELECT p1.what, p1.took AS "t,1,''", p2.took AS "f,9,'x'", p3.took AS nulls FROM ROWS FROM (probe(true, 1, '')) WITH ORDINALITY p1(what, took, o)
FULL JOIN ROWS FROM (probe(false, 9, 'x')) WITH ORDINALITY p2(what, took, o) USING (o) FULL JOIN probe(NULL, NULL, NULL) WITH ORDINALITY p3(what, took, o) USING (o) ORDER BY o;

-- not null variables, constants, domains
DO $$ DECLARE x int NOT NULL := NULL; BEGIN NULL; END $$;
DO $$ DECLARE x int NOT NULL; BEGIN NULL; END $$;
DO $$ DECLARE x int NOT NULL := 1; BEGIN x := 2; SELECT n INTO x FROM tv WHERE a IS NULL; END $$;
DO $$ DECLARE x CONSTANT int := 1; BEGIN x := 2; END $$;
CREATE DOMAIN nn AS text NOT NULL CHECK (VALUE <> '');
DO $$ DECLARE v nn; BEGIN NULL; END $$;
DO $$ DECLARE v nn := 'a'; BEGIN RAISE NOTICE 'v=%', v; v := ''; END $$;
DO $$ DECLARE a int; b boolean; c text := 'x'; r tv; BEGIN
  a := NULL + 1; b := a = a; c := c || a;
  RAISE NOTICE 'a=% b=% c=% r=% ra=%', a, b, c, r, r.a;
  IF r IS NULL THEN RAISE NOTICE 'row null'; END IF;
  r.n := 1; IF NOT (r IS NULL) AND NOT (r IS NOT NULL) THEN RAISE NOTICE 'row half null %', r; END IF;
  RAISE NOTICE '%', a || 'x' IS NULL;
END $$;
DO $$ DECLARE a int; BEGIN a := 3; RAISE NOTICE 'a=%', a, a; END $$;
DO $$ BEGIN RAISE NOTICE 'two % %', 1; END $$;

-- row comparisons
SELECT o, l, r, l = r AS eq, l < r AS lt, l IS DISTINCT FROM r AS dist FROM (VALUES (1, ROW(1, 2), ROW(1, 3)), (2, ROW(1, NULL::int), ROW(1, NULL::int)), (3, ROW(NULL::int, 1), ROW(1, 1)), (4, ROW(2, NULL::int), ROW(1, 5))) v(o, l, r) ORDER BY o;
SELECT (1, 2) < (1, 3) a, (1, NULL) = (1, 2) b, (1, NULL) = (2, 2) c, (1, NULL) < (2, 1) d, (NULL, 1) < (2, 1) e, (1, 2) IN ((1, 2), (3, NULL)) f, (3, 1) IN ((1, 2), (3, NULL)) g, (1, 2) = ANY (SELECT 1, n FROM tv) h, (1, 1) <> ALL (SELECT 1, n FROM tv) i, ROW() IS NULL j, ROW(NULL) IS NULL k, ROW(1, NULL) IS NOT NULL l, (1, 2) BETWEEN (1, 0) AND (1, 9) m, (1, 2, 3) >= (1, 2, NULL) n;
SELECT (1, 2) = (1, 2, 3);
SELECT (1, 'a') < (1, 2);
SELECT ROW(1, 'a') = ROW('1', 'a'::text), ROW(1.0, 2) = ROW(1, 2.00), (SELECT ROW(n, a) FROM tv WHERE n = 1) = ROW(1, true) AS sub;
SELECT (SELECT n FROM tv); 
SELECT (SELECT n, a FROM tv WHERE n = 1);
SELECT 1 = (SELECT n FROM tv WHERE n = 42) AS sub, EXISTS (SELECT NULL FROM tv WHERE false) AS ex, NOT EXISTS (SELECT NULL) AS nex, ARRAY(SELECT n FROM tv ORDER BY n NULLS FIRST) AS arr, ARRAY(SELECT n FROM tv WHERE n > 5) AS emp, 1 > ALL (SELECT n FROM tv WHERE n < 0) AS vac;
-- aggregates, grouping, unique and check constraints with nulls
SELECT count(*) c, count(n) cn, count(DISTINCT a) cd, sum(n) s, avg(n) av, max(a::int) mx, bool_and(a) ba, bool_or(a) bo, array_agg(n ORDER BY n) aa, string_agg(n::text, ',' ORDER BY n) sa, sum(n) FILTER (WHERE n > 99) sf, coalesce(sum(n) FILTER (WHERE a IS NULL), -1) sn FROM tv;
SELECT a, count(*) FROM (SELECT a FROM tv UNION ALL SELECT NULL) s GROUP BY a ORDER BY a DESC;
CREATE TABLE un (k int, u int UNIQUE, w int, v int CHECK (v > 0), UNIQUE NULLS NOT DISTINCT (w));
INSERT INTO un (k, u, w, v) VALUES (1, NULL, NULL, NULL), (2, NULL, 5, 1);
INSERT INTO un VALUES (3, NULL, NULL, 1);
INSERT INTO un VALUES (4, 1, 6, -1);
INSERT INTO un VALUES (5, NULL, NULL, 7) ON CONFLICT (w) DO UPDATE SET k = excluded.k, v = least(un.v, excluded.v) RETURNING *;
SELECT x.k, y.k FROM un x LEFT JOIN un y ON x.u = y.u AND x.k <> y.k ORDER BY 1;
SELECT x.k, y.k FROM un x JOIN un y ON x.u IS NOT DISTINCT FROM y.u ORDER BY 1, 2;
SELECT n FROM tv UNION SELECT NULL ORDER BY n NULLS FIRST; SELECT n FROM tv EXCEPT SELECT NULL ORDER BY 1; SELECT n FROM tv INTERSECT ALL (VALUES (NULL), (NULL), (1)) ORDER BY 1;
SELECT DISTINCT ON (a IS NULL) a, n FROM tv ORDER BY a IS NULL, n DESC NULLS LAST;
CREATE FUNCTION st(int, int DEFAULT 5) RETURNS text LANGUAGE plpgsql STRICT AS $$ BEGIN RAISE NOTICE 'called'; RETURN 'r' || $1 + $2; END $$;
SELECT st(1), st(NULL), st(1, NULL), st(NULL::int) IS NULL;
SELECT s FROM st(NULL) s; SELECT count(*) FROM tv, LATERAL st(tv.n) s WHERE s IS NOT NULL;
CREATE FUNCTION sts(int) RETURNS SETOF int LANGUAGE sql STRICT AS 'SELECT generate_series(1, $1)';
SELECT n, sts(n) FROM tv ORDER BY 1, 2; SELECT count(*) FROM sts(NULL);
