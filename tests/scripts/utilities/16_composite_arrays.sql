-- orders as arrays of composites
CREATE TYPE money_amt AS (cur char(3), val numeric(10,2));
CREATE TYPE oline AS (sku text, qty int, unit money_amt, tags text[]);
CREATE TABLE orders (id int PRIMARY KEY, lines oline[] NOT NULL DEFAULT '{}', extra oline, CHECK (cardinality(lines) < 5));
CREATE TABLE line_audit (n serial, order_id int, old_line oline, new_line oline, what text);

CREATE FUNCTION mk_line(sku text, qty int = 1, val numeric DEFAULT NULL, cur char DEFAULT 'EUR', VARIADIC tags text[] DEFAULT NULL) RETURNS oline LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE l oline;
BEGIN
  l.sku := sku; l.qty := qty; l.tags := tags;
  IF val IS NOT NULL THEN l.unit := (cur, val); END IF;
  RETURN l;
END $$;
INSERT INTO orders VALUES (1, ARRAY[mk_line('a', 2, 1.5), mk_line('b', 1, 10, 'USD', 'x', 'y z')], NULL),
  (2, '{"(c,3,\"(EUR,2.005)\",\"{p,\"\"q r\"\"}\")"}', ROW('free', NULL, NULL, '{}')),
  (3, DEFAULT, mk_line('n')),
  (4, ARRAY[NULL, ROW(NULL, NULL, NULL, NULL)::oline], ROW(NULL, NULL, NULL, NULL));
SELECT id, lines, extra, extra IS NULL AS e_null, extra IS NOT NULL AS e_notnull, extra IS DISTINCT FROM NULL AS e_dist FROM orders ORDER BY id;
SELECT id, o, l, l IS NULL AS n, (x.l).sku, (x.l).unit.val, ((x.l).unit).cur FROM orders, unnest(lines) WITH ORDINALITY AS u(sku, qty, unit, tags, o), LATERAL (SELECT ROW(u.sku, u.qty, u.unit, u.tags)::oline AS l) AS x ORDER BY id, o;
SELECT id, u.* FROM orders LEFT JOIN LATERAL unnest(lines) u ON true ORDER BY id, u.sku NULLS LAST;
SELECT id, lines[1].sku, (lines[2]).unit, lines[1].unit.val * lines[1].qty AS tot, lines[1].tags[2] AS tag2, (extra).tags FROM orders ORDER BY id;

CREATE FUNCTION order_total(o orders, OUT eur numeric, OUT n int, OUT skus text[]) LANGUAGE plpgsql AS $$
DECLARE l oline; rates CONSTANT jsonb := '{"EUR": 1, "USD": 0.5}';
BEGIN
  eur := 0; n := 0;
  FOREACH l IN ARRAY o.lines LOOP
    n := n + 1;
    IF l IS NULL THEN skus := skus || NULL::text; CONTINUE; END IF;
    eur := eur + coalesce(l.qty * (l.unit).val * (rates ->> (l.unit).cur::text)::numeric, 0);
    skus := array_append(skus, l.sku);
  END LOOP;
END $$;
SELECT o.id, (order_total(o)).* FROM orders o ORDER BY o.id;
SELECT o.id, t.eur FROM orders o, order_total(o) t WHERE t.n > 0 ORDER BY t.eur DESC, o.id;
SELECT o.id, o.order_total FROM orders o ORDER BY id DESC LIMIT 2;

CREATE FUNCTION audit_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE i int; a oline; b oline;
BEGIN
  FOR i IN 1 .. greatest(cardinality(OLD.lines), cardinality(NEW.lines)) LOOP
    a := OLD.lines[i]; b := NEW.lines[i];
    IF a IS DISTINCT FROM b THEN
      INSERT INTO line_audit (order_id, old_line, new_line, what)
      VALUES (NEW.id, a, b, CASE WHEN i > cardinality(OLD.lines) THEN 'add' WHEN i > cardinality(NEW.lines) THEN 'drop'
        ELSE concat_ws(',', CASE WHEN a.sku IS DISTINCT FROM b.sku THEN 'sku' END, CASE WHEN a.qty IS DISTINCT FROM b.qty THEN 'qty' END, CASE WHEN (a.unit).val IS DISTINCT FROM (b.unit).val THEN 'val' END) END);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER UPDATE OF lines ON orders FOR EACH ROW EXECUTE FUNCTION audit_lines();
UPDATE orders SET lines[1].qty = 20, lines[2].unit.val = 0.01 WHERE id = 1;
UPDATE orders SET lines = lines || mk_line('z', VARIADIC tags => NULL) WHERE id IN (2, 3);
UPDATE orders SET lines = lines || mk_line('z', 1, NULL, 'EUR', VARIADIC NULL) WHERE id IN (2, 3);
UPDATE orders SET lines = lines[2:] WHERE id = 1;
UPDATE orders SET lines[1].unit.cur = 'GBP' WHERE id = 4;
UPDATE orders SET lines = lines || lines || lines || lines || lines WHERE id = 2;
UPDATE orders SET lines[1].unit.val = 1e9 WHERE id = 2;
UPDATE orders SET lines[1].colour = 'red' WHERE id = 2;
SELECT n, order_id, old_line, new_line, what FROM line_audit ORDER BY n;
SELECT id, lines FROM orders ORDER BY id;

-- composite comparison, sorting, sets
SELECT l FROM (SELECT DISTINCT unnest(lines) AS l FROM orders) s ORDER BY l;
SELECT v FROM (VALUES (ROW(1, 'b'::text)), (ROW(1, 'a'::text)), (ROW(0, 'z'::text))) t(v) ORDER BY v DESC;
SELECT array_agg(ROW('EUR', g)::money_amt ORDER BY g DESC) AS arr, ROW('EUR', 2)::money_amt = ANY (array_agg(ROW('EUR', g)::money_amt)) AS found FROM generate_series(1, 3) g;
SELECT (ARRAY[ROW('USD', 5)::money_amt, NULL])[1].val, ROW('a', 1)::money_amt < ROW('a', 1.01)::money_amt AS lt, ROW(NULL, 1)::money_amt = ROW(NULL, 1)::money_amt AS rec_eq, ROW(1, NULL) = ROW(1, NULL) AS row_eq, ROW(1, NULL) IS NOT DISTINCT FROM ROW(1, NULL) AS nd;
SELECT array_position(ARRAY[ROW('EUR', 1), ROW('USD', 2)]::money_amt[], ROW('USD', 2)::money_amt);
SELECT '(EUR,abc)'::money_amt;
SELECT '(EUR)'::money_amt;
SELECT '("a""b",)'::money_amt;
SELECT ROW(1, 2, 3)::money_amt;
SELECT (mk_line('q')).nothing;
-- variables of composite and record type
DO $$
DECLARE
  ls oline[]; l oline; r record; m money_amt := ('CHF', 3); k int;
BEGIN
  SELECT lines INTO ls FROM orders WHERE id = 2;
  ls[1].tags := ls[1].tags || ARRAY['new'];
  ls[4].sku := 'gap';
  ls[4].unit := m;
  ls[4].unit.val := ls[4].unit.val * 2;
  RAISE NOTICE '% | %', array_length(ls, 1), ls;
  FOR r IN SELECT * FROM unnest(ls) WITH ORDINALITY AS t(s, q, u, g, ord) WHERE s IS NOT NULL ORDER BY ord DESC LOOP
    RAISE NOTICE 'rec % sku=% unit=% n=%', r.ord, r.s, r.u, (r.u).val;
  END LOOP;
  l := NULL; RAISE NOTICE 'l=% null=% sku=%', l, l IS NULL, l.sku;
  l.qty := 1; RAISE NOTICE 'l=% null=% notnull=%', l, l IS NULL, l IS NOT NULL;
  SELECT 'only', 2 INTO l; RAISE NOTICE 'partial %', l;
  SELECT * INTO l FROM unnest(ls) WHERE sku = 'none'; RAISE NOTICE 'none % found %', l, FOUND;
  m := ROW(1, 2, 3);
END $$;
SELECT jsonb_pretty(to_jsonb(lines)) FROM orders WHERE id = 3;
SELECT p.* FROM orders o, jsonb_populate_recordset(NULL::oline, to_jsonb(o.lines)) p WHERE o.id = 2 ORDER BY sku;
