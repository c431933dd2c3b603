SET timezone = 'UTC';
CREATE TABLE stock (sku text PRIMARY KEY, qty int NOT NULL CHECK (qty >= 0), cost numeric DEFAULT 1, note text, upd int GENERATED ALWAYS AS (qty * 2) STORED);
CREATE TABLE delivery (line int PRIMARY KEY, sku text, delta int, cost numeric);
INSERT INTO stock(sku, qty, note) VALUES ('a', 5, NULL), ('b', 1, 'keep'), ('c', 0, 'dead'), ('d', 9, NULL);
INSERT INTO delivery VALUES (1, 'a', 3, 2.5), (2, 'b', -1, NULL), (3, 'e', 4, 8), (4, 'f', NULL, NULL), (5, 'd', 0, NULL), (6, NULL, 1, 1);
CREATE TABLE audit (n serial, ev text);
CREATE FUNCTION aud() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO audit(ev) VALUES (concat_ws(' ', TG_WHEN, TG_LEVEL, TG_OP, CASE WHEN TG_LEVEL = 'ROW' THEN CASE WHEN TG_OP = 'DELETE' THEN OLD.sku ELSE NEW.sku || '=' || NEW.qty END END));
  IF TG_LEVEL = 'ROW' AND TG_WHEN = 'BEFORE' AND TG_OP = 'INSERT' AND NEW.sku = 'f' THEN RETURN NULL; END IF;
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER t1 BEFORE INSERT OR UPDATE OR DELETE ON stock FOR EACH ROW EXECUTE FUNCTION aud();
CREATE TRIGGER t2 BEFORE INSERT OR UPDATE OR DELETE ON stock FOR EACH STATEMENT EXECUTE FUNCTION aud();
CREATE TRIGGER t3 AFTER INSERT OR UPDATE OR DELETE ON stock FOR EACH STATEMENT EXECUTE FUNCTION aud();

MERGE INTO stock AS s USING delivery d ON s.sku = d.sku
WHEN MATCHED AND s.qty + d.delta = 0 AND s.note IS NULL THEN DELETE
WHEN MATCHED AND d.delta = 0 THEN DO NOTHING
WHEN MATCHED THEN UPDATE SET qty = s.qty + d.delta, cost = coalesce(d.cost, s.cost), note = concat(s.note, '+', d.line)
WHEN NOT MATCHED AND d.sku IS NULL THEN DO NOTHING
WHEN NOT MATCHED AND d.delta IS NULL THEN INSERT (sku, qty, cost) VALUES (d.sku, 0, DEFAULT)
WHEN NOT MATCHED THEN INSERT (note, sku, qty, cost) VALUES ('new ' || d.line, d.sku, d.delta, d.cost);
SELECT * FROM stock ORDER BY sku;
SELECT ev FROM audit WHERE ev LIKE '%STATEMENT%' ORDER BY n;
SELECT ev FROM audit WHERE ev LIKE '%ROW%' ORDER BY ev;
TRUNCATE audit;

-- cardinality, constraint and clause errors
MERGE INTO stock s USING (VALUES ('a', 1), ('a', 2)) v(k, n) ON s.sku = v.k WHEN MATCHED THEN UPDATE SET qty = v.n;
MERGE INTO stock s USING (VALUES ('z', 1), ('z', 2)) v(k, n) ON s.sku = v.k WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (v.k, v.n);
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN UPDATE SET qty = -1;
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN INSERT VALUES ('x', 1);
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN NOT MATCHED THEN DELETE;
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN NOT MATCHED AND s.qty > 1 THEN INSERT (sku, qty) VALUES (v.k, 1);
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN UPDATE SET qty = 2 RETURNING *;
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE;
MERGE INTO stock s USING (VALUES ('q')) v(k) ON s.sku = v.k WHEN NOT MATCHED THEN INSERT (sku, qty, upd) VALUES (v.k, 1, 5);
MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN UPDATE SET upd = 1;
MERGE INTO stock s USING stock ON true WHEN MATCHED THEN UPDATE SET nocol = 1;
WITH m AS (MERGE INTO stock s USING (VALUES ('a')) v(k) ON s.sku = v.k WHEN MATCHED THEN DELETE) SELECT 1;
SELECT sku, qty FROM stock ORDER BY sku;

-- inside functions: variables, ROW_COUNT, FOUND, EXECUTE with parameters, prepared
CREATE FUNCTION apply(k text, d int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int; was boolean;
BEGIN
  MERGE INTO stock t USING (SELECT k AS sku, d AS delta) s ON t.sku = s.sku
  WHEN MATCHED AND t.qty + s.delta < 0 THEN DELETE
  WHEN MATCHED AND s.delta <> 0 THEN UPDATE SET (qty, note) = ROW (t.qty + s.delta, 'fn')
  WHEN NOT MATCHED AND d > 0 THEN INSERT (sku, qty) VALUES (upper(s.sku), s.delta);
  GET DIAGNOSTICS n = ROW_COUNT;
  was := FOUND;
  EXECUTE format('MERGE INTO %I t USING (VALUES ($1)) s(k) ON t.sku = s.k WHEN MATCHED THEN UPDATE SET note = coalesce(note, %L) || $2', 'stock', 'dyn') USING k, '!';
  RETURN format('%s rows, found %s, note %s', n, was, (SELECT note FROM stock WHERE sku = k));
END $$;
SELECT apply('a'), apply('a', 0), apply('b', -1), apply('g', 0), apply('g', 7), apply('G', NULL);
SELECT * FROM stock ORDER BY sku COLLATE "C";
PREPARE m (text, int) AS MERGE INTO stock t USING (SELECT $1 AS k) s ON t.sku = s.k WHEN MATCHED THEN UPDATE SET qty = $2 WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES ($1, -$2);
EXECUTE m('a', 100);
EXECUTE m('p', -3);
EXECUTE m('p2', 3);
SELECT sku, qty FROM stock WHERE sku IN ('a', 'p', 'p2') ORDER BY 1;

-- sources: CTE, join, subquery with aggregates, self; ON without equality; partitioned and inherited targets
WITH totals AS (SELECT left(sku, 1) AS k, sum(qty) AS t FROM stock GROUP BY 1 HAVING count(*) >= 1)
MERGE INTO delivery d USING (totals JOIN (VALUES (10), (20)) w(x) ON w.x > totals.t) ON d.sku = totals.k AND d.line = w.x
WHEN NOT MATCHED THEN INSERT VALUES (w.x + ascii(totals.k), totals.k, totals.t, w.x)
WHEN MATCHED THEN DELETE;
SELECT * FROM delivery WHERE line > 6 ORDER BY line;
MERGE INTO delivery d USING delivery e ON d.line = e.line + 1 WHEN MATCHED AND d.delta IS DISTINCT FROM e.delta THEN UPDATE SET cost = e.line;
SELECT line, cost FROM delivery WHERE line < 10 ORDER BY line;
CREATE TABLE part (k int, v text) PARTITION BY LIST (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1, 2);
CREATE TABLE part3 PARTITION OF part DEFAULT;
MERGE INTO part p USING generate_series(1, 4) g(n) ON p.k = g.n WHEN NOT MATCHED THEN INSERT VALUES (g.n, 'v' || g.n);
MERGE INTO part p USING generate_series(0, 4, 2) g(n) ON p.k = g.n WHEN MATCHED AND p.k = 2 THEN UPDATE SET k = p.k + 3 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (g.n);
SELECT tableoid::regclass, * FROM part ORDER BY k;
CREATE TABLE par (id int, x text);
CREATE TABLE chi (y int DEFAULT 8) INHERITS (par);
INSERT INTO par VALUES (1, 'p'); INSERT INTO chi VALUES (2, 'c');
MERGE INTO par USING (VALUES (1), (2), (3)) v(i) ON par.id = v.i WHEN MATCHED THEN UPDATE SET x = x || i WHEN NOT MATCHED THEN INSERT VALUES (i);
MERGE INTO ONLY par USING (VALUES (1), (2)) v(i) ON par.id = v.i WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (i, 'only');
SELECT tableoid::regclass, * FROM par ORDER BY id, x;
MERGE INTO stock OVERRIDING SYSTEM VALUE USING part ON true WHEN MATCHED THEN DELETE;
CREATE TABLE ident (id int GENERATED ALWAYS AS IDENTITY, v int);
MERGE INTO ident USING (VALUES (50)) s(x) ON id = x WHEN NOT MATCHED THEN INSERT VALUES (x, x);
MERGE INTO ident USING (VALUES (50)) s(x) ON id = x WHEN NOT MATCHED THEN INSERT OVERRIDING SYSTEM VALUE VALUES (x, x);
MERGE INTO ident USING (VALUES (51)) s(x) ON id = x WHEN NOT MATCHED THEN INSERT OVERRIDING USER VALUE VALUES (x, x);
MERGE INTO ident USING (VALUES (52)) s(x) ON id = x WHEN NOT MATCHED THEN INSERT DEFAULT VALUES;
SELECT * FROM ident ORDER BY id;
