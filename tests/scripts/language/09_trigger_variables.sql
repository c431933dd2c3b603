SET timezone = 'UTC';
CREATE SCHEMA shop;
CREATE TABLE shop.product (id int PRIMARY KEY, sku text, price numeric(8,2), stock int DEFAULT 0, touched int DEFAULT 0);
CREATE TABLE trace (n int GENERATED ALWAYS AS IDENTITY, line text);

CREATE FUNCTION trace() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE o text; nw text; i int; args text := '';
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    o := CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END;
    nw := CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END;
  END IF;
  FOR i IN 0 .. TG_NARGS - 1 LOOP args := args || '<' || TG_ARGV[i] || '>'; END LOOP;
  INSERT INTO trace(line) VALUES (format('%s %s %s %s on %s.%s [%s] old=%s new=%s args=%s outside=%s', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP,
    TG_TABLE_SCHEMA, TG_RELNAME, TG_TABLE_NAME = TG_RELNAME, o, nw, args, TG_ARGV[TG_NARGS]));
  IF TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW.touched := NEW.touched + 1; END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER b_row BEFORE INSERT OR UPDATE OR DELETE ON shop.product FOR EACH ROW EXECUTE FUNCTION trace('b');
CREATE TRIGGER a_row BEFORE INSERT OR UPDATE ON shop.product FOR EACH ROW EXECUTE PROCEDURE trace('it''s', 2, 3.50, ident, '');
CREATE TRIGGER "Z quoted" BEFORE UPDATE OF price, sku ON shop.product FOR EACH ROW EXECUTE FUNCTION trace();
CREATE TRIGGER stmt_b BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON shop.product EXECUTE FUNCTION trace();
CREATE TRIGGER stmt_a AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON shop.product FOR EACH STATEMENT EXECUTE FUNCTION trace('done');
CREATE TRIGGER when_price AFTER UPDATE ON shop.product FOR EACH ROW
  WHEN (OLD.price IS DISTINCT FROM NEW.price AND NEW.stock > 0) EXECUTE FUNCTION trace('price changed');
CREATE TRIGGER when_del AFTER DELETE ON shop.product FOR EACH ROW WHEN (OLD.stock <> 0) EXECUTE FUNCTION trace('stock lost');

INSERT INTO shop.product(id, sku, price, stock) VALUES (1, 'a', 1, 5), (2, NULL, 2.5, 0);
SELECT line FROM trace ORDER BY n; TRUNCATE trace;
UPDATE shop.product SET price = price * 2;
SELECT line FROM trace ORDER BY n; TRUNCATE trace;
UPDATE shop.product SET stock = stock WHERE id = 2;
UPDATE shop.product SET sku = 'nobody' WHERE id = 3;
SELECT line FROM trace ORDER BY n; TRUNCATE trace;
DELETE FROM shop.product WHERE id IN (1, 2);
TRUNCATE shop.product;
SELECT line FROM trace ORDER BY n; TRUNCATE trace;
INSERT INTO shop.product(id) SELECT 1 WHERE false;
INSERT INTO shop.product(id, stock) VALUES (7, 1), (8, 1) ON CONFLICT (id) DO NOTHING;
INSERT INTO shop.product AS p (id, stock) VALUES (7, 10) ON CONFLICT (id) DO UPDATE SET stock = p.stock + excluded.stock, touched = excluded.touched RETURNING *;
INSERT INTO shop.product(id) VALUES (8) ON CONFLICT DO NOTHING;
SELECT line FROM trace ORDER BY n; TRUNCATE trace;

-- disabling, enabling, renaming, dropping
ALTER TABLE shop.product DISABLE TRIGGER b_row;
ALTER TABLE shop.product DISABLE TRIGGER stmt_b, DISABLE TRIGGER stmt_a;
ALTER TRIGGER a_row ON shop.product RENAME TO renamed;
UPDATE shop.product SET sku = 'r' WHERE id = 8;
SELECT line FROM trace ORDER BY n; TRUNCATE trace;
ALTER TABLE shop.product DISABLE TRIGGER USER;
UPDATE shop.product SET price = 9 RETURNING id, touched;
SELECT count(*) FROM trace;
ALTER TABLE shop.product ENABLE TRIGGER ALL;
DROP TRIGGER "Z quoted" ON shop.product;
DROP TRIGGER IF EXISTS "Z quoted" ON shop.product;
DROP TRIGGER "Z quoted" ON shop.product;
SELECT tgname, tgenabled, tgnargs, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'shop.product'::regclass AND NOT tgisinternal ORDER BY tgname;
SELECT trigger_name, event_manipulation, action_timing, action_orientation, action_condition, action_statement
FROM information_schema.triggers WHERE event_object_table = 'product' ORDER BY trigger_name, event_manipulation;
SET session_replication_role = replica;
UPDATE shop.product SET stock = -1 WHERE id = 7;
RESET session_replication_role;
SELECT count(*) FROM trace;

-- errors in definitions and uses
CREATE TRIGGER b_row BEFORE INSERT ON shop.product FOR EACH ROW EXECUTE FUNCTION trace();
CREATE OR REPLACE TRIGGER b_row BEFORE INSERT ON shop.product FOR EACH ROW EXECUTE FUNCTION trace('replaced');
CREATE TRIGGER e1 BEFORE INSERT ON shop.product FOR EACH ROW WHEN (OLD.id > 1) EXECUTE FUNCTION trace();
CREATE TRIGGER e2 BEFORE DELETE ON shop.product FOR EACH STATEMENT WHEN (OLD.id > 1) EXECUTE FUNCTION trace();
CREATE TRIGGER e3 BEFORE UPDATE OF nocol ON shop.product FOR EACH ROW EXECUTE FUNCTION trace();
CREATE TRIGGER e4 INSTEAD OF INSERT ON shop.product FOR EACH ROW EXECUTE FUNCTION trace();
CREATE TRIGGER e5 BEFORE TRUNCATE ON shop.product FOR EACH ROW EXECUTE FUNCTION trace();
CREATE TRIGGER e6 BEFORE INSERT ON shop.product FOR EACH ROW EXECUTE FUNCTION lower('x');
CREATE FUNCTION not_trig(a int) RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SELECT trace();
CREATE FUNCTION bad_ret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id > 100 THEN RETURN NULL; END IF; NEW.nofield := 1; END $$;
CREATE TRIGGER bad_ret BEFORE INSERT ON shop.product FOR EACH ROW EXECUTE FUNCTION bad_ret();
INSERT INTO shop.product(id) VALUES (101) RETURNING id;
INSERT INTO shop.product(id) VALUES (100);
CREATE OR REPLACE FUNCTION bad_ret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
INSERT INTO shop.product(id) VALUES (100);
CREATE OR REPLACE FUNCTION bad_ret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
INSERT INTO shop.product(id) VALUES (100);
CREATE OR REPLACE FUNCTION bad_ret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 2); END $$;
INSERT INTO shop.product(id) VALUES (100);
CREATE OR REPLACE FUNCTION bad_ret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN (55, 'made', 1.239, NULL, 0)::shop.product; END $$;
INSERT INTO shop.product(id) VALUES (100);
SELECT * FROM shop.product ORDER BY id;
DROP FUNCTION trace();
