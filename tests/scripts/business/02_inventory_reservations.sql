SET timezone = 'UTC';
CREATE TABLE warehouses (code char(3) PRIMARY KEY, priority smallint NOT NULL UNIQUE);
CREATE TABLE stock (
  wh char(3) REFERENCES warehouses(code),
  sku varchar(20),
  on_hand int NOT NULL DEFAULT 0,
  reserved int NOT NULL DEFAULT 0,
  available int GENERATED ALWAYS AS (on_hand - reserved) STORED,
  PRIMARY KEY (wh, sku),
  CONSTRAINT no_oversell CHECK (reserved BETWEEN 0 AND on_hand)
);
CREATE TABLE movements (
  id bigserial PRIMARY KEY, wh char(3), sku varchar(20), delta int, reason text,
  FOREIGN KEY (wh, sku) REFERENCES stock(wh, sku) ON UPDATE CASCADE ON DELETE SET NULL
);
INSERT INTO warehouses VALUES ('AMS', 2), ('LON', 1), ('NYC', 3);

CREATE OR REPLACE FUNCTION receive(p_wh char, p_sku varchar, p_qty int) RETURNS int LANGUAGE sql AS $$
  WITH up AS (
    INSERT INTO stock AS s (wh, sku, on_hand) VALUES (p_wh, p_sku, p_qty)
    ON CONFLICT (wh, sku) DO UPDATE SET on_hand = s.on_hand + excluded.on_hand
    RETURNING s.on_hand
  )
  SELECT on_hand FROM up;
$$;

CREATE FUNCTION log_movement() RETURNS trigger AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO movements(wh, sku, delta, reason) VALUES (NEW.wh, NEW.sku, NEW.on_hand, TG_ARGV[0] || ':new');
  ELSIF NEW.on_hand <> OLD.on_hand THEN
    INSERT INTO movements(wh, sku, delta, reason) VALUES (NEW.wh, NEW.sku, NEW.on_hand - OLD.on_hand, concat_ws(':', TG_ARGV[0], TG_NARGS, TG_WHEN, TG_LEVEL));
  END IF;
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER stock_log AFTER INSERT OR UPDATE ON stock FOR EACH ROW EXECUTE FUNCTION log_movement('stk', 42);

SELECT receive('LON', 'bolt', 10), receive('AMS', 'bolt', 25), receive('NYC', 'nut', 7);
SELECT receive('LON', 'bolt', 5);
SELECT receive('PAR', 'bolt', 5);

-- allocate across warehouses by priority with a cursor
CREATE FUNCTION reserve(p_sku varchar, p_qty int, OUT taken jsonb, OUT missing int) LANGUAGE plpgsql AS $$
DECLARE
  cur CURSOR (k varchar) FOR
    SELECT s.* FROM stock s JOIN warehouses w ON w.code = s.wh
     WHERE s.sku = k AND s.on_hand > s.reserved ORDER BY w.priority FOR UPDATE OF s;
  r record;
  t int;
BEGIN
  taken := '{}';
  missing := p_qty;
  OPEN cur(k := p_sku);
  LOOP
    FETCH cur INTO r;
    EXIT WHEN NOT FOUND OR missing = 0;
    t := least(r.available, missing);
    UPDATE stock SET reserved = reserved + t WHERE CURRENT OF cur;
    taken := taken || jsonb_build_object(r.wh, t);
    missing := missing - t;
  END LOOP;
  CLOSE cur;
END $$;

SELECT * FROM reserve('bolt', 18);
SELECT * FROM reserve('bolt', 30);
SELECT * FROM reserve('ghost', 1);
SELECT wh, sku, on_hand, reserved, available FROM stock ORDER BY wh, sku;
UPDATE stock SET on_hand = 3 WHERE wh = 'LON';
UPDATE stock SET on_hand = on_hand + 100, reserved = DEFAULT WHERE wh = 'LON';

CREATE PROCEDURE transfer(p_from char, p_to char, p_sku varchar, INOUT p_qty int DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
  v_avail int; v_state text; v_msg text; v_con text; v_tab text;
BEGIN
  SELECT available INTO v_avail FROM stock WHERE wh = p_from AND sku = p_sku;
  IF NOT FOUND THEN
    RAISE NOTICE 'no stock row for %/%', p_from, p_sku;
    p_qty := 0;
    RETURN;
  END IF;
  p_qty := coalesce(p_qty, v_avail);
  BEGIN
    UPDATE stock SET on_hand = on_hand - p_qty WHERE (wh, sku) = (p_from, p_sku);
    PERFORM receive(p_to, p_sku, p_qty);
  EXCEPTION WHEN check_violation OR foreign_key_violation THEN
    GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_msg = MESSAGE_TEXT,
      v_con = CONSTRAINT_NAME, v_tab = TABLE_NAME;
    RAISE WARNING 'transfer refused [%] on %.%: %', v_state, v_tab, v_con, v_msg;
    p_qty := -1;
  END;
END $$;
CALL transfer('LON', 'NYC', 'bolt', 4);
CALL transfer('LON', 'NYC', 'bolt');
CALL transfer('AMS', 'LON', 'bolt', 1000);
CALL transfer('AMS', 'PAR', 'bolt', 1);
CALL transfer('XXX', 'LON', 'bolt', p_qty => 9);
CALL transfer('LON', 'NYC');
SELECT wh, sku, on_hand, reserved, available FROM stock ORDER BY wh, sku;
SELECT id > 0 AS ok, wh, sku, delta, reason FROM movements ORDER BY id;
UPDATE stock SET sku = 'hexbolt' WHERE sku = 'bolt' AND wh = 'NYC';
DELETE FROM stock WHERE sku = 'nut';
SELECT wh, sku, sum(delta) AS net, count(*) FROM movements GROUP BY wh, sku ORDER BY wh NULLS FIRST, sku;
SELECT 'AMS '::char(3) = 'AMS' AS padded, length('AM '::char(3)), octet_length('AM'::char(3)), 'x'::char(3) || '|' AS cat;
