-- numeric corners: safe arithmetic layer with an error journal
CREATE TABLE journal (id int GENERATED ALWAYS AS IDENTITY, expr text, typ text, result text, state text, msg text);
CREATE FUNCTION try_eval(expr text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v text; ty text;
BEGIN
  EXECUTE format('SELECT (%1$s)::text, pg_typeof(%1$s)::text', expr) INTO v, ty;
  INSERT INTO journal (expr, typ, result) VALUES (expr, ty, v);
  RETURN v;
EXCEPTION
  WHEN numeric_value_out_of_range OR division_by_zero THEN
    INSERT INTO journal (expr, state, msg) VALUES (expr, SQLSTATE, SQLERRM);
    RETURN 'range';
  WHEN OTHERS THEN
    INSERT INTO journal (expr, state, msg) VALUES (expr, SQLSTATE, SQLERRM);
    RETURN 'error';
END $$;
SELECT e, try_eval(e) FROM unnest(ARRAY[
 '2147483647 + 1', '2147483647::bigint + 1', '9223372036854775807 + 1', '9223372036854775808 + 1', '32767::smallint + 1::smallint', '32767::int2 * 2',
 '(-2147483648)::int / -1', '(-2147483648)::int % -1', '-(-32768)::int2', 'abs((-9223372036854775808)::int8)', '1 / 0', '1.0 / 0', '1e0::float8 / 0', 'mod(5, 0)', '5.5 % 0',

 '''NaN''::numeric + 1', '''NaN''::numeric = ''NaN''', '''NaN''::float8 > ''Infinity''', '''Infinity''::numeric - ''Infinity''', '''-Infinity''::numeric * 0', '''inf''::float8 * 0',
 '1 / ''Infinity''::numeric', '''Infinity''::numeric / 0',
 '1e308::float8 * 10', '1e-300::float8 * 1e-300', '''1e400''::float8', 'length((1e400)::text)',
 '10::numeric ^ 131072', '0 ^ 0', '0::numeric ^ -1', '(-8) ^ (1.0/3)', '(-8)::numeric ^ 3', 'sqrt(-1)', 'sqrt(2::numeric)', 'ln(0)', 'ln(-1::numeric)',
 'log(2, 8)', 'log(100)', 'exp(1::numeric)', 'cbrt(27)::numeric(9,5)', '|/ 25', '(||/ 27)::numeric(9,5)', '@ -5.5',
 '7 / 2', '-7 / 2', '-7 % 3',
 '7 % -3', 'div(-7, 2)', 'div(7.5, 2)', 'mod(-7.5, 2)', '1.0 / 3', '10.00 / 3', '1 / 3.0000000000000000000000', '2.50 * 1.10', '100 * 1.0000',
 '1e3', '0.1 + 0.2', '0.1::float8 + 0.2', '0.1::float4 + 0.2::float4', '0.1::float4::float8', '1::float4 / 3', '16777217::float4',
 'round(2.5)', 'round(-2.5)', 'round(2.5::float8)', 'round(3.5::float8)',
 'round(1234.567, -2)', 'round(1234.567, 1)', 'trunc(-1.999, 1)', 'ceil(-0.5)', 'ceil(-0.5::float8)', 'floor(-0.5)', 'sign(-3.2)', 'sign(0::float8)',
 '2.5::int', '3.5::int', '(-2.5)::int', '2.5::float8::int', '3.5::float8::int', '''NaN''::float8::int', '''Infinity''::numeric::int', '1e10::float8::int',
 '123.456::numeric(5,2)', '1234.5::numeric(5,2)',
 '0.00001::numeric(3,5)', '12345::numeric(3,-2)', '''Infinity''::numeric(5,2)', '''NaN''::numeric(5,2)', '''0x1F''::int', ''' 42 ''::int', '''4 2''::int', '''''::int',
 '''1e2''::int', '''1e2''::numeric', '''.5''::numeric', '''5.''::numeric', '''+7''::int', '''1_000''::int',
 'scale(1.500)', 'min_scale(1.500)', 'trim_scale(1.500)', 'numerator', 'width_bucket(5.35, 0.024, 10.06, 5)', 'width_bucket(11, 0, 10, 5)', 'width_bucket(-1, 0, 10, 5)',
 'width_bucket(3, 10, 0, 5)', 'width_bucket(3, 5, 5, 2)', 'width_bucket(1, 0, 10, 0)', 'width_bucket(15, array[10,20,30])', 'width_bucket(30, array[10,20,30])',
 'atan2(1, 0)', 'degrees(pi())::numeric(20,10)', 'sind(30)', 'cosd(60)', 'tand(45)', 'acos(2)', 'asind(0.5)',
 'factorial(5)', '1 << 33', '1::bigint << 33', '-1 >> 1', '~ 5', '5 # 3', '1::int8 = 1.0', '''1''::text || 1.50', '2 ^ 0.5::numeric', '2 ^ 3', 'power(2::numeric, -2)',
 'null + 1', 'greatest(1, 2.5, null)', 'least(null::int)', '(1, 2) = (1, null)']) WITH ORDINALITY AS t(e, o) ORDER BY o;
SELECT state, count(*), min(expr COLLATE "C") AS example FROM journal GROUP BY state ORDER BY state NULLS FIRST;
SELECT id, expr, state, msg FROM journal WHERE state IS NOT NULL ORDER BY id;
SELECT typ, count(*) FROM journal WHERE typ IS NOT NULL GROUP BY typ ORDER BY typ;

-- special values in tables, aggregates and ordering
CREATE TABLE reading (k text PRIMARY KEY, n numeric, f float8, i numeric(6,2));
INSERT INTO reading VALUES ('a', 1.10, 1.1, 1.105), ('b', 'NaN', 'NaN', NULL), ('c', 'Infinity', 'inf', 0), ('d', '-Infinity', '-inf', -0.005), ('e', NULL, NULL, 9999.994), ('f', -0.0, '-0', 1e-9);
SELECT k, n, f, i FROM reading ORDER BY n DESC NULLS LAST, k;
SELECT k, rank() OVER (ORDER BY f) AS rk, n = f AS eq, n IS DISTINCT FROM f::numeric AS dist FROM reading ORDER BY f NULLS FIRST, k;
SELECT sum(n), sum(f), avg(i), max(n), min(f), count(n), sum(i), avg(n) FILTER (WHERE n < 'inf' AND n > '-inf') FROM reading;
SELECT stddev(x), stddev_pop(x), variance(x), var_pop(x), corr(x, x * 2)::numeric(6,3), regr_slope(x, x + 1), regr_count(x, NULL) FROM (VALUES (1.0::float8), (2), (4)) v(x);
SELECT avg(x) AS avg_int, sum(x) AS sum_int, pg_typeof(sum(x)) AS ts, pg_typeof(avg(x)) AS ta, sum(x::smallint) AS s2, pg_typeof(sum(x::bigint)) AS tb FROM generate_series(1, 4) x;
INSERT INTO reading (k, i) VALUES ('z', 9999.995);
DO $$
DECLARE a smallint := 32000; b int; n numeric(4,1);
BEGIN
  n := 99.95;
  RAISE NOTICE 'n=%', n;
  n := 12.25; RAISE NOTICE 'n=% twice=%', n, n * 2;
  b := 2.5; RAISE NOTICE 'b=%', b;
  BEGIN a := a + 1000; EXCEPTION WHEN numeric_value_out_of_range THEN RAISE NOTICE 'caught % leaving a=%', SQLERRM, a; END;
  n := 'NaN'; RAISE NOTICE 'nan=% gt=%', n, n > 1e100;
  n := 999.95;
END $$;
