-- custom aggregates, operators, casts
CREATE TYPE frac AS (n bigint, d bigint);
CREATE FUNCTION frac_norm(n bigint, d bigint) RETURNS frac LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE g bigint;
BEGIN
  IF d = 0 THEN RAISE EXCEPTION 'zero denominator' USING ERRCODE = 'division_by_zero'; END IF;
  g := gcd(n, d) * sign(d)::int;
  RETURN (n / g, d / g);
END $$;
CREATE FUNCTION frac_add(a frac, b frac) RETURNS frac LANGUAGE sql IMMUTABLE STRICT AS 'SELECT frac_norm(a.n * b.d + b.n * a.d, a.d * b.d)';
CREATE FUNCTION frac_mul(a frac, b frac) RETURNS frac LANGUAGE sql IMMUTABLE STRICT AS 'SELECT frac_norm(a.n * b.n, a.d * b.d)';
CREATE FUNCTION frac_neg(a frac) RETURNS frac LANGUAGE sql IMMUTABLE STRICT AS 'SELECT (-a.n, a.d)::frac';
CREATE FUNCTION frac_lt(a frac, b frac) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT a.n * b.d < b.n * a.d';
CREATE FUNCTION frac_parse(t text) RETURNS frac LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT frac_norm(split_part(t, '/', 1)::bigint, coalesce(nullif(split_part(t, '/', 2), ''), '1')::bigint) $$;
CREATE FUNCTION frac_num(f frac) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT f.n::numeric / f.d';
CREATE OPERATOR + (LEFTARG = frac, RIGHTARG = frac, PROCEDURE = frac_add, COMMUTATOR = +);
CREATE OPERATOR * (LEFTARG = frac, RIGHTARG = frac, FUNCTION = frac_mul);
CREATE OPERATOR - (RIGHTARG = frac, FUNCTION = frac_neg);
CREATE OPERATOR <<< (LEFTARG = frac, RIGHTARG = frac, FUNCTION = frac_lt);
CREATE OPERATOR // (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = frac_norm);
CREATE CAST (frac AS numeric) WITH FUNCTION frac_num(frac);
CREATE CAST (text AS frac) WITH FUNCTION frac_parse(text) AS ASSIGNMENT;
CREATE OPERATOR !! (LEFTARG = frac, FUNCTION = frac_neg);
CREATE OPERATOR => (LEFTARG = frac, RIGHTARG = frac, FUNCTION = frac_add);
CREATE OPERATOR +- (LEFTARG = frac, RIGHTARG = frac, FUNCTION = nope);
CREATE OPERATOR <+> (LEFTARG = frac, RIGHTARG = frac, FUNCTION = nope);
SELECT (1 // 2) + (1 // 3) AS s, (2::bigint // 4) * (-3::bigint // 9) AS m, - (1 // 2) AS neg, (1 // 3) <<< (1 // 2) AS lt, (1 // 3)::numeric AS num, '6/8'::text::frac AS p, frac '(5,6)' AS lit;
SELECT (1 // 3)::numeric(4,2) + 1, 1 // 2 = 2 // 4 AS eq, (1 // 2) > (1 // 3) AS rec_gt;
SELECT 1 // 0;
SELECT 1 // 2 + 1;
SELECT (1 // 2) - (1 // 3);
SELECT 'x/2'::text::frac;
SELECT 1 OPERATOR(pg_catalog.+) 2 * 3 AS op1, OPERATOR(public.-) (3 // 1) AS op2, (1//2) OPERATOR(public.+) (1//2) AS op3;

CREATE AGGREGATE fsum(frac) (SFUNC = frac_add, STYPE = frac, INITCOND = '(0,1)');
CREATE AGGREGATE fprod(frac) (SFUNC = frac_mul, STYPE = frac);
CREATE FUNCTION fmin_step(frac, frac) RETURNS frac LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 IS NULL OR $2 <<< $1 THEN $2 ELSE $1 END';
CREATE AGGREGATE fmin(frac) (SFUNC = fmin_step, STYPE = frac);
CREATE TABLE recipe (dish text, part text, amount frac, PRIMARY KEY (dish, part));
INSERT INTO recipe VALUES ('cake', 'egg', 3 // 1), ('cake', 'milk', 1 // 3), ('cake', 'oil', NULL), ('tea', 'milk', '2/16'::text), ('tea', 'leaf', (1, 2)), ('air', 'none', NULL);
SELECT dish, fsum(amount), fprod(amount), fmin(amount), count(amount), fsum(amount) FILTER (WHERE part = 'milk') AS milk FROM recipe GROUP BY dish ORDER BY dish;
SELECT dish, part, fsum(amount) OVER (PARTITION BY dish ORDER BY part) AS running, fsum(DISTINCT amount) OVER () FROM recipe ORDER BY dish, part;
SELECT dish, part, fsum(amount) OVER w AS running, fmin(amount) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS lo FROM recipe WINDOW w AS (PARTITION BY dish ORDER BY part) ORDER BY dish, part;
SELECT part, fsum(amount) FROM recipe GROUP BY GROUPING SETS ((part), ()) HAVING fsum(amount) IS NOT NULL ORDER BY part NULLS LAST;
SELECT fsum(amount) FROM recipe WHERE false;

-- median, mode with internal array state, multi-argument and polymorphic aggregates
CREATE FUNCTION median_final(vals anyarray) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE s numeric[]; n int;
BEGIN
  s := ARRAY(SELECT x::text::numeric FROM unnest(vals) x WHERE x IS NOT NULL ORDER BY x);
  n := cardinality(s);
  IF n = 0 THEN RETURN NULL; END IF;
  RETURN (s[(n + 1) / 2] + s[n / 2 + 1]) / 2;
END $$;
CREATE AGGREGATE median(anyelement) (SFUNC = array_append, STYPE = anyarray, FINALFUNC = median_final, INITCOND = '{}');
CREATE FUNCTION push_any(anyarray, anyelement) RETURNS anyarray LANGUAGE sql IMMUTABLE AS 'SELECT $1 || $2';
CREATE AGGREGATE median(anyelement) (SFUNC = push_any, STYPE = anyarray, FINALFUNC = median_final, INITCOND = '{}');
CREATE FUNCTION wavg_step(st numeric[], v numeric, w numeric) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF v IS NULL OR w IS NULL THEN RETURN st; END IF;
  st[1] := st[1] + v * w; st[2] := st[2] + w;
  RETURN st;
END $$;
CREATE FUNCTION wavg_final(st numeric[], places int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT round(st[1] / nullif(st[2], 0), 4)';
CREATE AGGREGATE wavg(v numeric, w numeric) (SFUNC = wavg_step, STYPE = numeric[], INITCOND = '{0,0}', FINALFUNC = wavg_final);
CREATE FUNCTION wavg_final(st numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT round(st[1] / nullif(st[2], 0), 4)';
CREATE AGGREGATE wavg(v numeric, w numeric) (SFUNC = wavg_step, STYPE = numeric[], INITCOND = '{0,0}', FINALFUNC = wavg_final);
CREATE FUNCTION concat_step(st text, item text, sep text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN st IS NULL THEN item ELSE st || coalesce(sep, '') || coalesce(item, '?') END $$;
CREATE AGGREGATE joinq(text, text) (SFUNC = concat_step, STYPE = text);
CREATE AGGREGATE last_of(anyelement) (SFUNC = last_step, STYPE = anyelement);
CREATE FUNCTION last_step(anyelement, anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $2';
CREATE AGGREGATE last_of(anyelement) (SFUNC = last_step, STYPE = anyelement);
CREATE TABLE m (g text, v int, w numeric, s text);
INSERT INTO m VALUES ('a', 1, 1, 'x'), ('a', 5, 2, 'y'), ('a', 9, NULL, NULL), ('b', 4, 0, 'z'), ('b', NULL, 3, 'q'), ('c', NULL, NULL, NULL);
SELECT g, median(v), wavg(v, w), joinq(s, '+' ORDER BY v DESC NULLS LAST), last_of(v ORDER BY v), last_of(s ORDER BY s DESC) FROM m GROUP BY g ORDER BY g;
SELECT median(DISTINCT x), median(x), pg_typeof(median(x)) FROM unnest(ARRAY[1.5, 1.5, 4, 9]) x;
SELECT g, v, last_of(v) OVER (PARTITION BY g ORDER BY v NULLS FIRST ROWS UNBOUNDED PRECEDING) AS filled, median(v) OVER (PARTITION BY g) FROM m ORDER BY g, v NULLS FIRST;
SELECT wavg(v) FROM m;
SELECT median(*) FROM m;
SELECT fsum(amount) + 1 FROM recipe;
SELECT sum(median(v)) FROM m;
CREATE FUNCTION boom(s int, v int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF v = 5 THEN RAISE EXCEPTION 'state % value %', s, v; END IF; RETURN s + v; END $$;
CREATE AGGREGATE boomsum(int) (SFUNC = boom, STYPE = int, INITCOND = 0);
SELECT boomsum(v ORDER BY v DESC) FROM m WHERE v <> 9;
SELECT boomsum(v) FROM m WHERE g = 'b' AND v IS NOT NULL;
DROP FUNCTION frac_add(frac, frac);
DROP AGGREGATE fprod(frac), fsum(frac);
DROP OPERATOR * (frac, frac);
SELECT (1 // 2) * (1 // 2);
SELECT mode() WITHIN GROUP (ORDER BY v), percentile_cont(0.5) WITHIN GROUP (ORDER BY v), percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY v DESC), rank(4) WITHIN GROUP (ORDER BY v), bit_or(v), bool_and(v > 0), every(w IS NULL), string_agg(DISTINCT s, ',' ORDER BY s DESC) FROM m;
