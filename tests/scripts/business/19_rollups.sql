SET timezone = 'UTC';
CREATE TABLE sales (id int PRIMARY KEY, day date, region text, channel text, rep text, qty int, amount numeric(10,2));
INSERT INTO sales
SELECT n, date '2024-01-01' + (n * 7 % 90), (ARRAY['north', 'south', NULL])[n % 3 + 1], CASE WHEN n % 4 = 0 THEN 'web' WHEN n % 4 < 3 THEN 'shop' ELSE 'tel' END,
       chr(65 + n % 5), n % 6, round((n * 37 % 101) * 1.1, 2)
  FROM generate_series(1, 40) n;
CREATE TABLE rollup (lvl int, region text, channel text, month date, n bigint, qty bigint, amount numeric, avg_amt numeric(10,3));

CREATE FUNCTION rebuild(p_from date DEFAULT '-infinity', p_to date DEFAULT 'infinity') RETURNS int LANGUAGE plpgsql AS $$
DECLARE done int;
BEGIN
  TRUNCATE rollup;
  INSERT INTO rollup
  SELECT GROUPING(region, channel, date_trunc('month', day)), region, channel, date_trunc('month', day), count(*), sum(qty), sum(amount), avg(amount)
    FROM sales WHERE day >= p_from AND day < p_to
   GROUP BY GROUPING SETS ((region, channel), (region, date_trunc('month', day)), (region), ())
  HAVING sum(qty) > 0 OR GROUPING(region) = 1;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END $$;
SELECT rebuild();
SELECT * FROM rollup ORDER BY lvl, region NULLS FIRST, channel, month;
SELECT rebuild('2030-01-01'), rebuild('2024-03-01', '2024-03-15');
SELECT lvl, count(*), sum(n) FROM rollup GROUP BY lvl ORDER BY lvl;

SELECT region, channel, sum(qty), count(DISTINCT rep) AS reps, GROUPING(region)::bit || GROUPING(channel)::bit::text AS g
  FROM sales GROUP BY CUBE (region, channel) ORDER BY GROUPING(region), GROUPING(channel), 1 NULLS LAST, 2;
SELECT coalesce(region, CASE GROUPING(region) WHEN 1 THEN '(all)' ELSE '(none)' END) AS region, extract(month FROM day) AS m, sum(amount) AS amt
  FROM sales GROUP BY ROLLUP (region, extract(month FROM day)) ORDER BY GROUPING(region), sales.region NULLS FIRST, 2 NULLS LAST;
SELECT region, channel, rep, count(*) FROM sales WHERE id <= 12 GROUP BY region, ROLLUP (channel, rep) HAVING count(*) > 1 ORDER BY 1, 2, 3;
SELECT channel, count(*) FROM sales GROUP BY GROUPING SETS ((channel), (channel), ()) ORDER BY 1, 2;
SELECT channel, rep FROM sales GROUP BY channel;
SELECT GROUPING(rep), channel FROM sales GROUP BY channel;

-- dynamic pivot: the column list is computed, the result is stored in a temp table
CREATE FUNCTION pivot(p_rows text, p_cols text, p_measure text, p_agg text DEFAULT 'sum') RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  vals text[]; v text; sel text := ''; n int;
BEGIN
  EXECUTE format('SELECT array_agg(DISTINCT %1$I::text ORDER BY %1$I::text NULLS FIRST) FROM sales', p_cols) INTO vals;
  FOREACH v IN ARRAY vals LOOP
    sel := sel || format(', %s(%I) FILTER (WHERE %I::text IS NOT DISTINCT FROM %L) AS %I', p_agg, p_measure, p_cols, v, p_measure || '_' || coalesce(v, '?'));
  END LOOP;
  DROP TABLE IF EXISTS pivoted;
  EXECUTE format('CREATE TEMP TABLE pivoted AS SELECT %I%s FROM sales GROUP BY 1', p_rows, sel);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
SELECT pivot('channel', 'region', 'amount');
SELECT * FROM pivoted ORDER BY channel;
SELECT pivot('region', 'rep', 'qty', 'max');
SELECT * FROM pivoted ORDER BY region;
SELECT pivot('region', 'rep', 'nope');
SELECT pivot('region', 'rep', 'qty', 'frobnicate');
SELECT pivot('Region"; DROP TABLE sales; --', 'rep', 'qty');
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'pivoted' ORDER BY ordinal_position;

SELECT channel, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS med, percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY amount) AS p10_90,
       mode() WITHIN GROUP (ORDER BY qty) AS mode, round(stddev_pop(amount), 4) AS sd, round(var_samp(qty), 4) AS var
  FROM sales GROUP BY channel ORDER BY channel;
SELECT bool_and(qty < 6), bool_or(qty = 5), every(amount >= 0), bit_or(qty), bit_and(qty), bit_xor(qty), sum(qty) FILTER (WHERE false), max(region), min(NULL::int) FROM sales;
SELECT round(corr(qty, amount)::numeric, 6) AS corr, round(regr_slope(amount, qty)::numeric, 6) AS slope, regr_count(amount, qty), round(covar_pop(qty, amount)::numeric, 6) AS cov FROM sales;
SELECT rank(50) WITHIN GROUP (ORDER BY amount), dense_rank(50) WITHIN GROUP (ORDER BY amount DESC), round(cume_dist(50) WITHIN GROUP (ORDER BY amount)::numeric, 4), percent_rank(1e9) WITHIN GROUP (ORDER BY amount) FROM sales;

CREATE AGGREGATE product_of(numeric) (sfunc = numeric_mul, stype = numeric, initcond = '1');
CREATE FUNCTION keep_top(state numeric[], v numeric, n int) RETURNS numeric[] LANGUAGE sql IMMUTABLE AS
  $$ SELECT ARRAY(SELECT x FROM unnest(state || v) x WHERE x IS NOT NULL ORDER BY x DESC LIMIT n) $$;
CREATE FUNCTION top_final(state numeric[], n int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN array_to_string(state, '>') || ' of ' || coalesce(n::text, '?'); END $$;
CREATE AGGREGATE top_n(numeric, int) (sfunc = keep_top, stype = numeric[], initcond = '{}');
SELECT channel, top_n(amount, 3), top_n(DISTINCT qty, 2) FILTER (WHERE region = 'north') AS q, product_of(nullif(qty, 0)) FILTER (WHERE id < 12) AS prod FROM sales GROUP BY ROLLUP (channel) ORDER BY channel;
SELECT id, top_n(amount, 2) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), top_final(top_n(amount, 2) OVER (PARTITION BY rep), NULL) FROM sales WHERE id < 8 ORDER BY id;
SELECT top_n(amount, NULL), product_of(NULL), top_final('{}', 1) FROM sales WHERE id < 3;
