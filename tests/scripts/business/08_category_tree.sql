SET timezone = 'UTC';
CREATE TABLE category (
  id int PRIMARY KEY, parent_id int REFERENCES category ON DELETE CASCADE, name text NOT NULL, sort int,
  CHECK (id <> parent_id)
);
CREATE TABLE product (id serial PRIMARY KEY, cat int REFERENCES category ON DELETE SET NULL, price numeric);
INSERT INTO category VALUES (1, NULL, 'Root', 0), (2, 1, 'Hardware', 2), (3, 1, 'Books', 1), (4, 2, 'Tools', NULL),
  (5, 4, 'Saws', 9), (6, 4, 'Drills', 1), (7, 3, 'Novels', 1), (8, NULL, 'Archive', 5);
INSERT INTO product(cat, price) VALUES (5, 10), (5, 20), (6, 5.5), (7, 3), (3, 1), (NULL, 100), (2, 0);

CREATE FUNCTION tree(root int DEFAULT NULL, max_depth int DEFAULT 10)
RETURNS TABLE (id int, depth int, path text, leaf boolean) LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF max_depth < 0 THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH RECURSIVE t AS (
      SELECT c.id, 0 AS depth, c.name AS path, ARRAY[coalesce(c.sort, 999), c.id] AS ord
        FROM category c WHERE c.parent_id IS NOT DISTINCT FROM NULLIF(root, c.id) AND (root IS NULL OR c.id = root OR c.parent_id = root)
      UNION ALL
      SELECT c.id, t.depth + 1, t.path || ' > ' || c.name, t.ord || coalesce(c.sort, 999) || c.id
        FROM t JOIN category c ON c.parent_id = t.id WHERE t.depth < max_depth
    )
    SELECT t.id, t.depth, t.path, NOT EXISTS (SELECT FROM category k WHERE k.parent_id = t.id) FROM t ORDER BY t.ord;
  IF NOT FOUND THEN
    RAISE NOTICE 'no tree under %', root;
  END IF;
END $$;
SELECT * FROM tree();
SELECT * FROM tree(max_depth => 1);
SELECT * FROM tree(2);
SELECT * FROM tree(55);
SELECT * FROM tree(1, -1);

CREATE FUNCTION no_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE p int := NEW.parent_id; trail int[] := ARRAY[NEW.id];
BEGIN
  WHILE p IS NOT NULL LOOP
    trail := p || trail;
    IF p = NEW.id THEN
      RAISE EXCEPTION 'cycle: %', array_to_string(trail, ' -> ') USING ERRCODE = 'CY001', SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    SELECT parent_id INTO p FROM category WHERE id = p;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER acyclic BEFORE UPDATE OF parent_id ON category FOR EACH ROW EXECUTE FUNCTION no_cycle();
UPDATE category SET parent_id = 5 WHERE id = 2;
UPDATE category SET parent_id = 8 WHERE id = 4;
UPDATE category SET parent_id = id WHERE id = 3;
SELECT path FROM tree(8);

-- totals for every subtree, ancestors by recursive function returning a set
CREATE FUNCTION ancestors(c int) RETURNS SETOF category LANGUAGE plpgsql AS $$
DECLARE r category;
BEGIN
  SELECT * INTO r FROM category WHERE id = c;
  IF r.id IS NOT NULL THEN
    RETURN QUERY SELECT * FROM ancestors(r.parent_id);
    RETURN NEXT r;
  END IF;
  RETURN;
END $$;
SELECT id, name FROM ancestors(5);
SELECT string_agg(name, '/' ) AS p, count(*) FROM ancestors(7);
SELECT a.id, a.name, count(p.id) AS products, coalesce(sum(p.price), 0) AS total, max(p.price) FILTER (WHERE p.cat <> a.id) AS best_below
  FROM category c CROSS JOIN LATERAL ancestors(c.id) a LEFT JOIN product p ON p.cat = c.id
 GROUP BY a.id, a.name ORDER BY a.id;
CREATE FUNCTION to_doc(c int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE kids jsonb; nm text;
BEGIN
  SELECT name INTO nm FROM category WHERE id = c;
  SELECT jsonb_agg(to_doc(k.id) ORDER BY k.sort NULLS LAST, k.name) INTO kids FROM category k WHERE parent_id = c;
  RETURN jsonb_strip_nulls(jsonb_build_object('n', nm, 'kids', kids));
END $$;
SELECT to_doc(id) FROM category WHERE parent_id IS NULL ORDER BY id;
SELECT to_doc(-1);

-- load from nested json, using a work list instead of recursion
CREATE PROCEDURE load_tree(doc jsonb, base int) LANGUAGE plpgsql AS $$
DECLARE todo jsonb := jsonb_build_array(jsonb_build_array(NULL, doc)); head jsonb; n int := base; kid jsonb;
BEGIN
  WHILE jsonb_array_length(todo) > 0 LOOP
    head := todo -> 0;
    todo := todo - 0;
    INSERT INTO category VALUES (n, (head ->> 0)::int, head #>> '{1,n}', (head #> '{1,s}')::int);
    FOR kid IN SELECT * FROM jsonb_array_elements(coalesce(head #> '{1,kids}', '[]')) LOOP
      todo := todo || jsonb_build_array(jsonb_build_array(n, kid));
    END LOOP;
    n := n + 1;
  END LOOP;
END $$;
CALL load_tree('{"n": "Garden", "kids": [{"n": "Seeds", "kids": [{"n": "Herbs"}]}, {"n": "Pots", "s": 0}]}', 100);
CALL load_tree('{"kids": []}', 200);
SELECT * FROM tree(100);
WITH RECURSIVE walk(id, parent_id, name) AS (
  SELECT id, parent_id, name FROM category WHERE id >= 100 AND parent_id IS NULL
  UNION SELECT c.id, c.parent_id, c.name FROM category c JOIN walk w ON c.parent_id = w.id
) SEARCH DEPTH FIRST BY name SET o CYCLE id SET looped USING trail
SELECT id, name, looped, trail FROM walk ORDER BY o;
DELETE FROM category WHERE id IN (100, 8);
SELECT id, cat, price FROM product ORDER BY id;
SELECT id, parent_id, name FROM category ORDER BY id;
