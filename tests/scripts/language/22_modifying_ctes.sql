SET timezone = 'UTC';
CREATE TABLE cart (id int PRIMARY KEY, owner text, closed boolean DEFAULT false);
CREATE TABLE line (cart int REFERENCES cart, n int, sku text, qty int, PRIMARY KEY (cart, n));
CREATE TABLE ord (id int GENERATED ALWAYS AS IDENTITY (START 500), cart int UNIQUE, total int, made timestamptz DEFAULT '2024-03-03 03:03:03Z');
CREATE TABLE ord_line (ord int, n int, sku text, qty int);
CREATE TABLE archive (src text, body jsonb);
INSERT INTO cart VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd');
INSERT INTO line VALUES (1, 1, 'a', 2), (1, 2, 'b', 1), (2, 1, 'a', 0), (3, 1, 'z', 7);

-- check out: close the cart, make the order, move the lines, archive them
WITH closing AS (
  UPDATE cart SET closed = true WHERE NOT closed AND id IN (SELECT cart FROM line GROUP BY cart HAVING sum(qty) > 0) RETURNING id, owner
), moved AS (
  DELETE FROM line l USING closing c WHERE c.id = l.cart RETURNING l.*
), made AS (
  INSERT INTO ord(cart, total) SELECT cart, sum(qty) FROM moved GROUP BY cart ORDER BY cart RETURNING id, cart, total
), lines AS (
  INSERT INTO ord_line SELECT made.id, m.n, m.sku, m.qty FROM made JOIN moved m USING (cart) RETURNING *
), arch AS (
  INSERT INTO archive SELECT 'line', to_jsonb(m) FROM moved m
)
SELECT made.*, closing.owner, (SELECT count(*) FROM lines WHERE lines.ord = made.id) AS lines, (SELECT count(*) FROM line) AS line_still_seen, (SELECT bool_or(closed) FROM cart) AS old_snapshot
FROM made JOIN closing ON closing.id = made.cart ORDER BY made.id;
SELECT * FROM cart ORDER BY id;
SELECT * FROM line ORDER BY cart, n;
SELECT ord, n, sku, qty FROM ord_line ORDER BY ord, n;
SELECT src, body FROM archive ORDER BY body->>'cart', body->>'n';

-- unreferenced CTEs run, plain SELECT CTEs do not; order of firing
CREATE SEQUENCE s;
WITH unused AS (INSERT INTO archive VALUES ('unused', '1')), lazy AS (SELECT nextval('s')), used AS MATERIALIZED (SELECT nextval('s') AS v) SELECT v FROM used WHERE v > 0;
SELECT last_value, is_called FROM s;
SELECT count(*) FROM archive WHERE src = 'unused';
-- the same row in two sub-statements; conflicting keys; errors undo all
WITH a AS (UPDATE cart SET owner = owner || '1' WHERE id = 1 RETURNING owner), b AS (DELETE FROM line WHERE cart = 2 RETURNING n) SELECT (SELECT owner FROM a) AS a, (SELECT count(*) FROM b) AS b;
WITH ins AS (INSERT INTO cart VALUES (10, 'new') RETURNING *) UPDATE cart SET owner = 'changed' WHERE id = (SELECT id FROM ins) RETURNING *;
WITH ins AS (INSERT INTO cart VALUES (11, 'late') RETURNING id) INSERT INTO line SELECT id, g, chr(96 + g), NULL FROM ins, generate_series(1, 3) g RETURNING *;
WITH x AS (INSERT INTO cart VALUES (12, 'x') RETURNING id) INSERT INTO cart SELECT id, 'again' FROM x;
WITH x AS (INSERT INTO archive VALUES ('undone', '0')) SELECT 1 / (SELECT count(*) FROM cart WHERE id = -1);
SELECT count(*) FROM archive WHERE src = 'undone';
WITH del AS (DELETE FROM line WHERE cart = 11 RETURNING qty, sku) INSERT INTO archive SELECT 'agg', jsonb_build_object('n', count(*), 'sum', sum(qty), 'skus', jsonb_agg(sku ORDER BY sku DESC)) FROM del RETURNING body;
SELECT id, owner FROM cart ORDER BY id;

-- not allowed
SELECT * FROM (INSERT INTO cart VALUES (99) RETURNING id) q;
SELECT (WITH d AS (DELETE FROM line RETURNING 1) SELECT count(*) FROM d);
WITH RECURSIVE r AS (DELETE FROM line WHERE n IN (SELECT n FROM r) RETURNING n) SELECT * FROM r;
WITH d AS (DELETE FROM line) SELECT * FROM d;
WITH d(a, b, c) AS (DELETE FROM line RETURNING cart, n) SELECT * FROM d;
CREATE VIEW bad AS WITH d AS (DELETE FROM line RETURNING *) SELECT * FROM d;
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1;
INSERT INTO line WITH q AS (SELECT 3 AS c, 9 AS n) SELECT c, n, 'with inside' FROM q RETURNING *, (SELECT owner FROM cart WHERE id = line.cart), line.n * 2 AS dbl;

-- chains through functions, triggers and writes feeding a loop
CREATE FUNCTION on_arch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.src ~ '^depth' AND length(NEW.src) < 9 THEN
    WITH again AS (INSERT INTO archive VALUES (NEW.src || 'x', jsonb_build_object('from', NEW.body)) RETURNING src)
    SELECT jsonb_set(NEW.body, '{child}', to_jsonb(src)) INTO NEW.body FROM again;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER on_arch BEFORE INSERT ON archive FOR EACH ROW EXECUTE FUNCTION on_arch();
WITH d AS (INSERT INTO archive VALUES ('depth', '{}'), ('flat', '{"k": [1, {"z": null}]}') RETURNING *) SELECT src, body FROM d ORDER BY src;
SELECT src, body FROM archive WHERE src LIKE 'depth%' ORDER BY length(src);
CREATE FUNCTION rotate(INOUT k int, OUT trail text[]) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN WITH gone AS (DELETE FROM ord_line WHERE ord = k RETURNING *), back AS (INSERT INTO ord_line SELECT ord, 100 - n, upper(sku), -qty FROM gone RETURNING *)
           SELECT g.sku || '->' || b.sku AS t, b.n FROM gone g JOIN back b ON b.n = 100 - g.n ORDER BY b.n LOOP
    trail := trail || format('%s@%s', r.t, r.n);
    k := k + 1;
  END LOOP;
END $$;
SELECT * FROM rotate((SELECT min(id) FROM ord)) AS t(total, steps);
SELECT * FROM rotate(0);
SELECT n, sku, qty FROM ord_line ORDER BY n, sku;
WITH t AS (TABLE cart), u AS (UPDATE t SET owner = 1) SELECT 1;
WITH cart AS (SELECT 1 AS id) DELETE FROM cart WHERE id = 1;
WITH cart AS (SELECT 3 AS id) UPDATE public.cart p SET owner = 'shadow' FROM cart WHERE cart.id = p.id RETURNING p.*, cart.*;
CREATE FUNCTION multi() RETURNS SETOF cart LANGUAGE sql AS $$
  INSERT INTO archive VALUES ('sql fn', 'null');
  WITH u AS (UPDATE cart SET closed = NOT closed WHERE id < 3 RETURNING *) SELECT * FROM u ORDER BY id DESC;
$$;
SELECT multi();
SELECT (m).owner, closed FROM multi() m ORDER BY 1 LIMIT 1;
CREATE FUNCTION last_returning(int) RETURNS cart LANGUAGE sql AS $$ DELETE FROM line WHERE cart = $1; DELETE FROM cart WHERE id = $1 OR id = $1 + 1 RETURNING * $$;
SELECT * FROM last_returning(10);
SELECT last_returning(10) IS NULL, last_returning(777);
SELECT * FROM cart ORDER BY id;
