SET timezone = 'UTC';
CREATE TABLE runs (id int PRIMARY KEY, athlete text, season int, seconds numeric(6,2), dnf boolean NOT NULL DEFAULT false);
INSERT INTO runs VALUES (1, 'ann', 2022, 61.2), (2, 'bob', 2022, 59.9), (3, 'cyd', 2022, 59.9), (4, 'ann', 2023, 58), (5, 'bob', 2023, 60.01),
  (6, 'dee', 2023, NULL, true), (7, 'ann', 2023, 57.5);
INSERT INTO runs(id, athlete, season, seconds, dnf) VALUES (1, 'ann', 2022, 61.2, DEFAULT), (2, 'bob', 2022, 59.9, false), (3, 'cyd', 2022, 59.9, false),
  (4, 'ann', 2023, 58, false), (5, 'bob', 2023, 60.01, false), (6, 'dee', 2023, NULL, true), (7, 'ann', 2023, 57.5, false), (8, 'eve', 2024, 70, false), (9, 'cyd', 2024, 57.5, false);
CREATE TYPE standing AS (place bigint, athlete text, best numeric, gap numeric);

CREATE FUNCTION standings(p_season int, p_mode text DEFAULT 'rank') RETURNS SETOF standing LANGUAGE plpgsql STABLE AS $$
DECLARE
  base CONSTANT text := 'SELECT %s() OVER (ORDER BY min(seconds) NULLS LAST), athlete, min(seconds), min(seconds) - min(min(seconds)) OVER () FROM runs WHERE season = $1 OR $1 IS NULL GROUP BY athlete';
  s standing;
BEGIN
  IF p_mode = 'fun' THEN
    RETURN NEXT (0, 'nobody', NULL, NULL)::standing;
    s.athlete := 'half'; s.gap := -1;
    RETURN NEXT s;
    RETURN QUERY VALUES (99::bigint, 'last', 1.0, 2.0), (100, NULL, NULL, NULL);
  ELSIF p_mode IN ('rank', 'dense_rank', 'row_number') THEN
    RETURN QUERY EXECUTE format(base, p_mode) || CASE p_mode WHEN 'row_number' THEN ' ORDER BY athlete DESC' ELSE ' ORDER BY 1, 2' END USING p_season;
    IF NOT FOUND THEN RAISE NOTICE 'season % is empty', p_season; END IF;
  ELSIF p_mode = 'bad' THEN
    RETURN QUERY SELECT 1, 'int instead of bigint'::text, 0.0, 0.0;
  ELSE
    RETURN QUERY EXECUTE 'SELECT 1';
  END IF;
END $$;
SELECT * FROM standings(2022);
SELECT * FROM standings(2023, 'dense_rank');
SELECT * FROM standings(NULL) ORDER BY place, athlete;
SELECT * FROM standings(1999);
SELECT * FROM standings(2022, 'fun');
SELECT * FROM standings(2022, 'bad');
SELECT * FROM standings(2022, 'other');
SELECT standings(2024), (standings(2024)).athlete;
SELECT (s).athlete, s IS NULL AS nul, s FROM (SELECT standings(0, 'fun') AS s) x;

CREATE FUNCTION progress(who text = NULL) RETURNS TABLE (id int, athlete text, seconds numeric, d numeric, best_so_far numeric, pb boolean, avg3 numeric, nth numeric) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
  SELECT r.id, r.athlete, r.seconds, r.seconds - lag(r.seconds) OVER w,
         min(r.seconds) OVER w, coalesce(r.seconds < min(r.seconds) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), r.seconds IS NOT NULL),
         round(avg(r.seconds) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), 3), nth_value(r.seconds, 2) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    FROM runs r WHERE r.athlete = who OR who IS NULL WINDOW w AS (PARTITION BY r.athlete ORDER BY r.season, r.id) ORDER BY r.athlete, r.id;
  RETURN QUERY SELECT NULL::int, 'TOTAL ' || count(*), sum(x.seconds), NULL::numeric, min(x.seconds), bool_or(x.dnf), NULL::numeric, NULL::numeric FROM runs x WHERE who IS NULL OR x.athlete = who;
END $$;
SELECT * FROM progress();
SELECT * FROM progress('ann');
SELECT athlete, pb FROM progress('zoe');

SELECT id, season, sum(seconds) OVER (ORDER BY season) AS range_, sum(seconds) OVER (ORDER BY season ROWS UNBOUNDED PRECEDING) IS NOT NULL AS rows_,
       sum(seconds) OVER (ORDER BY season GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS groups_,
       sum(seconds) OVER (ORDER BY season RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS later,
       count(*) OVER (ORDER BY season RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) AS others,
       count(seconds) OVER (ORDER BY season RANGE UNBOUNDED PRECEDING EXCLUDE TIES) AS no_ties, sum(seconds) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS prev2
  FROM runs ORDER BY id;
SELECT id, ntile(4) OVER o, cume_dist() OVER o, percent_rank() OVER o::numeric FROM runs WINDOW o AS (ORDER BY seconds DESC NULLS FIRST, id) ORDER BY id LIMIT 3;
SELECT id, ntile(4) OVER o AS quart, round((cume_dist() OVER o)::numeric, 3) AS cd, round((percent_rank() OVER o)::numeric, 3) AS pr,
       lead(athlete, 2, '-') OVER o AS l2, lag(id, 0) OVER o AS same, lag(id, -1) OVER o AS neg, last_value(athlete) OVER (o ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS lv
  FROM runs WINDOW o AS (ORDER BY seconds DESC NULLS FIRST, id) ORDER BY id;
SELECT ntile(0) OVER (ORDER BY id) FROM runs;
SELECT nth_value(id, 0) OVER (ORDER BY id) FROM runs;
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM runs;
SELECT id FROM runs WHERE row_number() OVER () = 1;
SELECT sum(sum(id) OVER ()) FROM runs;
SELECT id, lag(id) IGNORE NULLS OVER (ORDER BY id) FROM runs;
SELECT sum(id) OVER (w PARTITION BY season) FROM runs WINDOW w AS (ORDER BY id);
SELECT DISTINCT ON (athlete) athlete, season, seconds FROM runs ORDER BY athlete, seconds NULLS LAST, season;
SELECT athlete, array_agg(seconds ORDER BY season, id) AS all_, array_agg(DISTINCT season) AS seasons, row_number() OVER (ORDER BY count(*) DESC, athlete) FROM runs GROUP BY athlete ORDER BY 4;
-- islands of consecutive ids, median by hand, and a paging function
SELECT min(id) AS from_, max(id) AS to_, count(*), string_agg(athlete, '' ORDER BY id) FROM (SELECT id, athlete, id - row_number() OVER (ORDER BY id) AS grp FROM runs WHERE id NOT IN (3, 6)) i GROUP BY grp ORDER BY 1;
SELECT season, avg(seconds) AS median FROM (SELECT season, seconds, row_number() OVER (PARTITION BY season ORDER BY seconds) AS r, count(*) OVER (PARTITION BY season) AS c FROM runs WHERE NOT dnf) z
 WHERE r IN ((c + 1) / 2, (c + 2) / 2) GROUP BY season ORDER BY season;
CREATE FUNCTION page(n int, size int = 4, OUT row_no bigint, OUT id int, OUT pages numeric) RETURNS SETOF record LANGUAGE sql AS
 'SELECT row_number() OVER (ORDER BY id DESC) AS rn, id, ceil(count(*) OVER () / size::numeric) FROM runs ORDER BY id DESC OFFSET (n - 1) * size LIMIT size';
SELECT * FROM page(1); SELECT * FROM page(3); SELECT * FROM page(9, 100);
SELECT * FROM page(0);
SELECT * FROM page(1, NULL) ORDER BY id LIMIT 2;
SELECT * FROM (SELECT athlete, seconds FROM runs ORDER BY seconds FETCH FIRST 1 ROW WITH TIES) t ORDER BY athlete;
