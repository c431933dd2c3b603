SET timezone = 'UTC';
CREATE TABLE hits (
  page text NOT NULL, day date NOT NULL, country char(2) DEFAULT '--',
  n bigint NOT NULL DEFAULT 0 CHECK (n >= 0), best int, last_ref text,
  CONSTRAINT hits_pk PRIMARY KEY (page, day)
);
CREATE TABLE hits_total (only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), n bigint NOT NULL);

CREATE FUNCTION bump(p_page text, p_day date, p_by int = 1, p_ref text = NULL) RETURNS TABLE (fresh boolean, n bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE before_ bigint;
BEGIN
  SELECT h.n INTO before_ FROM hits h WHERE (h.page, h.day) = (p_page, p_day);
  INSERT INTO hits AS h (page, day, n, best, last_ref) VALUES (p_page, p_day, p_by, p_by, p_ref)
  ON CONFLICT ON CONSTRAINT hits_pk DO UPDATE
    SET (n, best) = (SELECT h.n + excluded.n, greatest(h.best, excluded.best)),
        last_ref = coalesce(excluded.last_ref, h.last_ref)
    WHERE excluded.n <> 0
  RETURNING h.n INTO n;
  IF NOT FOUND THEN
    n := before_;
  END IF;
  fresh := before_ IS NULL;
  RETURN NEXT;
END $$;
SELECT * FROM bump('/a', '2024-01-01');
SELECT * FROM bump('/a', '2024-01-01', 5, 'google');
SELECT * FROM bump('/a', '2024-01-01', 0, 'ignored');
SELECT * FROM bump('/a', '2024-01-01', -3);
SELECT * FROM bump('/a', '2024-01-01', -30);
SELECT * FROM bump(NULL, '2024-01-01');
SELECT * FROM bump('/a', '2024-13-01');
SELECT b.*, d::date FROM generate_series('2024-01-30'::date, '2024-02-02', '1 day') d, bump('/b', d::date, extract(day FROM d)::int) b ORDER BY d;

CREATE FUNCTION total_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hits_total(n) SELECT coalesce(sum(n), 0) FROM nt
  ON CONFLICT (only_row) DO UPDATE SET n = hits_total.n + excluded.n - (SELECT coalesce(sum(n), 0) FROM ot);
  RETURN NULL;
END $$;
CREATE FUNCTION total_ins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hits_total(n) SELECT coalesce(sum(n), 0) FROM nt
  ON CONFLICT (only_row) DO UPDATE SET n = hits_total.n + excluded.n;
  RAISE NOTICE 'insert trigger saw % rows', (SELECT count(*) FROM nt);
  RETURN NULL;
END $$;
CREATE TRIGGER t_upd AFTER UPDATE ON hits REFERENCING OLD TABLE AS ot NEW TABLE AS nt FOR EACH STATEMENT EXECUTE FUNCTION total_up();
CREATE TRIGGER t_ins AFTER INSERT ON hits REFERENCING NEW TABLE AS nt FOR EACH STATEMENT EXECUTE FUNCTION total_ins();
INSERT INTO hits(page, day, n) VALUES ('/c', '2024-03-01', 10), ('/a', '2024-01-01', 100)
  ON CONFLICT (page, day) DO UPDATE SET n = hits.n + excluded.n, country = 'US' RETURNING page, n, country;
SELECT n FROM hits_total;
UPDATE hits SET n = n + 1;
SELECT n FROM hits_total;
INSERT INTO hits(page, day, n) VALUES ('/z', '2024-03-01', 1), ('/z', '2024-03-01', 2)
  ON CONFLICT (page, day) DO UPDATE SET n = excluded.n;
INSERT INTO hits(page, day, n) VALUES ('/z', '2024-03-01', 1), ('/z', '2024-03-01', 2) ON CONFLICT DO NOTHING;
INSERT INTO hits(page, day) VALUES ('/z', '2024-03-01') ON CONFLICT (page) DO NOTHING;
INSERT INTO hits_total VALUES (false, 1);
INSERT INTO hits SELECT page, day + 365, country, n * 2, best FROM hits WHERE page = '/b' ON CONFLICT DO NOTHING;
SELECT * FROM hits ORDER BY page, day;

-- MERGE does the nightly fold
CREATE TABLE monthly (page text, month date, n bigint, state text DEFAULT 'new', PRIMARY KEY (page, month));
INSERT INTO monthly VALUES ('/a', '2024-01-01', 1, 'old'), ('/gone', '2024-01-01', 0, 'old'), ('/c', '2024-03-01', 500, 'frozen');
MERGE INTO monthly m
USING (SELECT page, date_trunc('month', day)::date AS month, sum(n)::bigint AS n FROM hits GROUP BY 1, 2
       UNION ALL SELECT '/gone', '2024-01-01', NULL) s
ON m.page = s.page AND m.month = s.month
WHEN MATCHED AND s.n IS NULL THEN DELETE
WHEN MATCHED AND m.state = 'frozen' THEN DO NOTHING
WHEN MATCHED THEN UPDATE SET n = s.n, state = 'updated'
WHEN NOT MATCHED AND s.n < 20 THEN DO NOTHING
WHEN NOT MATCHED THEN INSERT (page, month, n) VALUES (s.page, s.month, s.n);
SELECT * FROM monthly ORDER BY page, month;
MERGE INTO monthly m USING (VALUES ('/a'), ('/a')) s(p) ON m.page = s.p WHEN MATCHED THEN UPDATE SET n = m.n + 1;
WITH moved AS (DELETE FROM hits WHERE day < '2024-02-01' RETURNING page, n),
     agg AS (SELECT page, sum(n) AS n FROM moved GROUP BY page)
INSERT INTO monthly (page, month, n, state) SELECT page, '2000-01-01', n, 'archived' FROM agg RETURNING *;
SELECT page, month, n, rank() OVER (ORDER BY n DESC), round(100.0 * n / sum(n) OVER (), 1) AS pct FROM monthly ORDER BY n DESC, page, month;
SELECT (SELECT count(*) FROM hits) AS rows_left, n FROM hits_total;
