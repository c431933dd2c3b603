SET timezone = 'UTC';
CREATE TABLE sale (id int PRIMARY KEY, shop text, amount numeric, day date);
CREATE TABLE shop_total (shop text PRIMARY KEY, n bigint NOT NULL, amount numeric NOT NULL);
CREATE TABLE note (id serial, msg text);

CREATE FUNCTION apply_delta() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE d record; touched int := 0; cnt int;
BEGIN
  IF TG_OP = 'INSERT' THEN
    FOR d IN SELECT shop, count(*) n, coalesce(sum(amount), 0) a FROM added GROUP BY shop ORDER BY shop LOOP
      INSERT INTO shop_total VALUES (coalesce(d.shop, '-'), d.n, d.a)
      ON CONFLICT (shop) DO UPDATE SET n = shop_total.n + excluded.n, amount = shop_total.amount + excluded.amount;
      touched := touched + 1;
    END LOOP;
  ELSIF TG_OP = 'DELETE' THEN
    UPDATE shop_total s SET n = s.n - g.n, amount = s.amount - g.a
    FROM (SELECT coalesce(shop, '-') shop, count(*) n, coalesce(sum(amount), 0) a FROM removed GROUP BY 1) g WHERE g.shop = s.shop;
    GET DIAGNOSTICS touched = ROW_COUNT;
  ELSE
    WITH diff AS (
      SELECT shop, sum(sgn) n, sum(sgn * coalesce(amount, 0)) a
      FROM (SELECT shop, amount, 1 sgn FROM added UNION ALL SELECT shop, amount, -1 FROM removed) u GROUP BY shop
      HAVING sum(sgn) <> 0 OR sum(sgn * coalesce(amount, 0)) <> 0)
    INSERT INTO shop_total SELECT coalesce(shop, '-'), n, a FROM diff
    ON CONFLICT (shop) DO UPDATE SET n = shop_total.n + excluded.n, amount = shop_total.amount + excluded.amount;
    GET DIAGNOSTICS touched = ROW_COUNT;
  END IF;
  INSERT INTO note(msg) VALUES (format('%s touched %s shops', TG_OP, touched));
  RETURN NULL;
END $$;
CREATE TRIGGER sale_i AFTER INSERT ON sale REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER sale_u AFTER UPDATE ON sale REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER sale_d AFTER DELETE ON sale REFERENCING OLD TABLE removed FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();

INSERT INTO sale VALUES (1, 'n', 10, '2024-01-01'), (2, 'n', 5.5, '2024-01-02'), (3, 's', NULL, NULL), (4, NULL, 1, '2024-01-02');
SELECT * FROM shop_total ORDER BY shop;
UPDATE sale SET shop = 's' WHERE id = 2;
UPDATE sale SET amount = amount WHERE id < 3;
UPDATE sale SET amount = 7 WHERE id IS NULL;
DELETE FROM sale WHERE shop IS NULL;
SELECT * FROM shop_total ORDER BY shop;
WITH gone AS (DELETE FROM sale WHERE id = 1 RETURNING *)
INSERT INTO sale SELECT id + 10, 'moved', amount, day FROM gone RETURNING *;
INSERT INTO sale AS x VALUES (2, 'upserted', 1, NULL), (30, 'fresh', 2, NULL)
ON CONFLICT (id) DO UPDATE SET shop = excluded.shop, amount = x.amount + excluded.amount;
MERGE INTO sale t USING (VALUES (30, 100), (31, 200), (3, 0)) v(id, amt) ON t.id = v.id
WHEN MATCHED AND v.amt = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET amount = v.amt
WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'merged', v.amt, NULL);
SELECT * FROM shop_total ORDER BY shop;
SELECT msg FROM note ORDER BY id;
SELECT * FROM sale ORDER BY id;

-- row-level trigger with transition tables: every row sees the whole set
CREATE FUNCTION rank_in_stmt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO note(msg) SELECT format('%s is %s of %s, old %s', NEW.id, (SELECT count(*) FROM nt WHERE nt.id <= NEW.id), count(*),
    (SELECT string_agg(concat(ot.id, ':', ot.amount), ' ' ORDER BY ot.id) FROM ot)) FROM nt;
  RETURN NEW;
END $$;
TRUNCATE note RESTART IDENTITY;
CREATE TRIGGER zz AFTER UPDATE ON sale REFERENCING NEW TABLE AS nt OLD TABLE AS ot FOR EACH ROW WHEN (NEW.amount > 1) EXECUTE FUNCTION rank_in_stmt();
UPDATE sale SET amount = amount + 1;
SELECT msg FROM note ORDER BY msg;

-- a cursor and dynamic SQL over a transition table, and an error from one
CREATE TABLE lim (shop text, max_rows int);
INSERT INTO lim VALUES ('n', 2);
CREATE FUNCTION check_limit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT DISTINCT shop FROM incoming ORDER BY shop; k int;
BEGIN
  FOR r IN c LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE shop = $1', TG_TABLE_NAME) INTO k USING r.shop;
    IF k > (SELECT max_rows FROM lim l WHERE l.shop = r.shop) THEN
      RAISE EXCEPTION 'shop % has % rows', r.shop, k
        USING DETAIL = (SELECT 'incoming: ' || json_agg(i ORDER BY i.id)::text FROM incoming i WHERE i.shop = r.shop), ERRCODE = 'cardinality_violation';
    END IF;
  END LOOP;
  EXECUTE 'SELECT max(id) FROM incoming' INTO k;
  RAISE NOTICE 'max incoming %', k;
  RETURN NULL;
END $$;
CREATE TRIGGER lim AFTER INSERT ON sale REFERENCING NEW TABLE AS incoming EXECUTE FUNCTION check_limit();
INSERT INTO sale VALUES (50, 'n', 1, NULL), (51, 'q', 1, NULL);
INSERT INTO sale VALUES (52, 'n', 1, NULL), (53, 'n', 1.50, '2024-02-29');
SELECT shop, n FROM shop_total ORDER BY shop;

-- definition errors
CREATE TRIGGER e1 BEFORE INSERT ON sale REFERENCING NEW TABLE AS x FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER e2 AFTER INSERT OR DELETE ON sale REFERENCING NEW TABLE AS x FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER e3 AFTER INSERT ON sale REFERENCING OLD TABLE AS x FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER e4 AFTER UPDATE ON sale REFERENCING OLD TABLE AS x NEW TABLE AS x FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER e5 AFTER UPDATE OF amount ON sale REFERENCING NEW TABLE AS x FOR EACH STATEMENT EXECUTE FUNCTION apply_delta();
CREATE TRIGGER e6 AFTER UPDATE ON sale REFERENCING NEW ROW AS x FOR EACH ROW EXECUTE FUNCTION apply_delta();
CREATE FUNCTION writes_nt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM nt; RETURN NULL; END $$;
CREATE TRIGGER w AFTER DELETE ON sale REFERENCING OLD TABLE AS nt EXECUTE FUNCTION writes_nt();
DELETE FROM sale WHERE id = 51;
