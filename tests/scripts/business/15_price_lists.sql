SET timezone = 'UTC'; SET datestyle = 'ISO, DMY';
CREATE TABLE price_list (
  list text, sku text, valid_from date NOT NULL, valid_to date, price numeric(10,4) NOT NULL, min_qty int NOT NULL DEFAULT 1,
  PRIMARY KEY (list, sku, min_qty, valid_from), CHECK (valid_to IS NULL OR valid_to > valid_from)
);
CREATE TABLE list_parent (child text PRIMARY KEY, parent text, factor numeric NOT NULL DEFAULT 1);
INSERT INTO list_parent VALUES ('vip', 'retail', 0.9), ('gold', 'vip', 0.95), ('loop1', 'loop2', DEFAULT), ('loop2', 'loop1', 2);
INSERT INTO list_parent VALUES ('short', NULL, NULL);

CREATE FUNCTION close_previous() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE nxt date; n int;
BEGIN
  SELECT min(valid_from) INTO nxt FROM price_list
   WHERE (list, sku, min_qty) = (NEW.list, NEW.sku, NEW.min_qty) AND valid_from > NEW.valid_from;
  NEW.valid_to := least(NEW.valid_to, nxt);
  UPDATE price_list SET valid_to = NEW.valid_from
   WHERE (list, sku, min_qty) = (NEW.list, NEW.sku, NEW.min_qty)
     AND valid_from < NEW.valid_from AND coalesce(valid_to, 'infinity') > NEW.valid_from;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n > 1 THEN RAISE EXCEPTION 'overlapping prices for %', NEW.sku; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER close_prev BEFORE INSERT ON price_list FOR EACH ROW EXECUTE FUNCTION close_previous();
INSERT INTO price_list(list, sku, valid_from, price, min_qty) VALUES
  ('retail', 'P1', '01/02/2024', 10, 1), ('retail', 'P1', '15/03/2024', 12.5, 1), ('retail', 'P1', '01/03/2024', 11, 1),
  ('retail', 'P1', '01/02/2024', 8.3333, 10), ('vip', 'P2', '01/01/2024', 3, 1), ('retail', 'P2', '-infinity', 4, 1);
INSERT INTO price_list(list, sku, valid_from, price) VALUES ('retail', 'P1', '31/02/2024', 1);
INSERT INTO price_list(list, sku, valid_from, price) VALUES ('retail', 'P1', '15/03/2024', 1);
SELECT * FROM price_list ORDER BY list, sku, min_qty, valid_from;

CREATE FUNCTION price_of(p_list text, p_sku text, p_on date, p_qty int DEFAULT 1) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
  r numeric; par list_parent;
BEGIN
  SELECT price INTO r FROM price_list
   WHERE list = p_list AND sku = p_sku AND min_qty <= p_qty AND p_on >= valid_from AND (valid_to IS NULL OR p_on < valid_to)
   ORDER BY min_qty DESC, valid_from DESC FETCH FIRST ROW ONLY;
  IF FOUND THEN RETURN r; END IF;
  SELECT * INTO par FROM list_parent WHERE child = p_list;
  IF NOT FOUND THEN RETURN 'NaN'; END IF;
  RETURN round(par.factor * price_of(par.parent, p_sku, p_on, p_qty), 3);
END $$;
SELECT d::date, price_of('retail', 'P1', d::date) AS retail, price_of('gold', 'P1', d::date) AS gold, price_of('gold', 'P1', d::date, 12) AS bulk, price_of('gold', 'P2', d::date) AS p2
  FROM generate_series('2024-01-31'::timestamp, '2024-04-01', '15 days') d ORDER BY d;
SELECT price_of('gold', 'NONE', '2024-01-01'), price_of(NULL, 'P1', '2024-01-01'), price_of('retail', 'P1', NULL);
-- endless recursion is cut by an explicit guard in the next version
CREATE OR REPLACE FUNCTION price_of(p_list text, p_sku text, p_on date, p_qty int, seen text[]) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE par record;
BEGIN
  IF p_list = ANY (seen) THEN
    RAISE EXCEPTION 'price list loop' USING DETAIL = array_to_string(seen || p_list, '->'), ERRCODE = '54001';
  END IF;
  FOR par IN SELECT parent, factor FROM list_parent WHERE child = p_list LOOP
    RETURN par.factor * price_of(par.parent, p_sku, p_on, p_qty, seen || p_list);
  END LOOP;
  RETURN coalesce((SELECT avg(price) FROM price_list WHERE list = p_list AND sku = p_sku), 0);
END $$;
SELECT price_of('loop1', 'P1', '2024-01-01', 1, '{}');
SELECT price_of('gold', 'P1', '2024-01-01', 1, NULL);
CREATE OR REPLACE FUNCTION price_of(p_list text, p_sku text, p_on date, p_qty int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT 1::text';
DROP FUNCTION price_of;
CREATE FUNCTION price_of(p_list text, p_sku text) RETURNS numeric LANGUAGE sql AS $$ SELECT price_of(p_list, p_sku, DATE '2024-03-02') $$;
SELECT price_of('vip', 'P1');
CREATE FUNCTION price_of(p_list text, p_sku text) RETURNS numeric LANGUAGE sql AS $$ SELECT price_of(p_list, p_sku, DATE '2024-03-02', 1) $$;
SELECT price_of('vip', 'P1');

-- changes across the year, gaps and a quarterly weighted average
SELECT sku, valid_from, valid_to, price, price - lag(price) OVER w AS step, lead(valid_from, 1, 'infinity') OVER w AS next_from,
       CASE WHEN isfinite(valid_from) AND isfinite(valid_to) THEN valid_to - valid_from END AS days
  FROM price_list WHERE min_qty = 1 WINDOW w AS (PARTITION BY list, sku ORDER BY valid_from) ORDER BY list, sku, valid_from;
WITH cal AS (SELECT d::date AS d FROM generate_series(timestamp '2024-01-01', '2024-06-30', '1 day') d)
SELECT extract(quarter FROM d) AS q, count(price_of) FILTER (WHERE price_of <> 'NaN') AS priced_days, round(avg(nullif(price_of, 'NaN')), 4) AS avg
  FROM cal, LATERAL (SELECT price_of('retail', 'P1', d, 1)) p GROUP BY 1 ORDER BY 1;
DELETE FROM price_list WHERE valid_from > '2024-02-01' AND sku = 'P1' RETURNING valid_from, valid_to, price;
SHOW datestyle;
SET datestyle = 'German';
SELECT valid_from, valid_to, price FROM price_list ORDER BY price;
SET datestyle = 'SQL, MDY';
SELECT date '02/03/2024', timestamp '12/31/2024 23:59:59.5', timestamptz '2024-01-01 00:00+02', date '13/01/2024';
SET datestyle TO 'Postgres, DMY';
SELECT valid_from::timestamp, valid_to::timestamptz FROM price_list ORDER BY price DESC;
