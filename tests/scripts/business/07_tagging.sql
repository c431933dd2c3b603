SET timezone = 'UTC';
CREATE DOMAIN tag_name AS text
  CONSTRAINT tag_lower CHECK (VALUE = lower(VALUE))
  CONSTRAINT tag_chars CHECK (VALUE ~ '^[a-z][a-z0-9-]*$')
  NOT NULL;
CREATE TABLE items (id int PRIMARY KEY, title text, tags text[] NOT NULL DEFAULT ARRAY[]::text[]);
CREATE TABLE tags (id serial PRIMARY KEY, name tag_name UNIQUE, uses int NOT NULL DEFAULT 0);
CREATE TABLE item_tags (item_id int REFERENCES items ON DELETE CASCADE, tag_id int REFERENCES tags, PRIMARY KEY (item_id, tag_id));
CREATE TABLE tag_alias (alias text PRIMARY KEY, target tag_name);
INSERT INTO tag_alias VALUES ('pg', 'postgresql'), ('postgres', 'postgresql'), ('js', 'javascript');

CREATE FUNCTION normalise(raw text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  out_ text[] := '{}'; x text;
BEGIN
  IF raw IS NULL OR array_ndims(raw) > 1 THEN
    RAISE EXCEPTION 'bad tag list %', raw USING ERRCODE = 'array_subscript_error';
  END IF;
  FOREACH x IN ARRAY raw LOOP
    x := regexp_replace(trim(both ' #' from lower(x)), '\s+', '-', 'g');
    CONTINUE WHEN x IS NULL OR x = '' OR x = ANY (out_);
    out_ := out_ || x;
  END LOOP;
  RETURN out_;
END $$;
SELECT normalise('{"  Big Data ",#SQL,sql,NULL,"",Go}'), normalise('{}');
SELECT normalise('{{a,b},{c,d}}');
SELECT normalise(NULL);

CREATE FUNCTION sync_tags() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  t text; tid int; old_tags text[] := '{}';
BEGIN
  IF TG_OP <> 'INSERT' THEN old_tags := OLD.tags; END IF;
  IF TG_OP <> 'DELETE' THEN
    FOR t IN SELECT unnest(NEW.tags) EXCEPT SELECT unnest(old_tags) ORDER BY 1 LOOP
      INSERT INTO tags(name) VALUES (t) ON CONFLICT (name) DO NOTHING RETURNING id INTO tid;
      IF NOT FOUND THEN SELECT id INTO STRICT tid FROM tags WHERE name = t; END IF;
      INSERT INTO item_tags VALUES (NEW.id, tid);
    END LOOP;
  END IF;
  DELETE FROM item_tags it USING tags g
   WHERE it.tag_id = g.id AND it.item_id = OLD.id AND g.name <> ALL (CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE NEW.tags END);
  RETURN NULL;
END $$;
CREATE FUNCTION canon() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT coalesce(array_agg(DISTINCT coalesce(a.target, n)), '{}') INTO NEW.tags
    FROM unnest(normalise(NEW.tags)) n LEFT JOIN tag_alias a ON a.alias = n;
  RETURN NEW;
END $$;
CREATE FUNCTION count_uses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    UPDATE tags SET uses = uses + d.n FROM (SELECT tag_id, count(*) n FROM changed GROUP BY tag_id) d WHERE tags.id = d.tag_id;
  ELSE
    UPDATE tags SET uses = uses - 1 WHERE id IN (SELECT tag_id FROM changed);
    DELETE FROM tags WHERE uses <= 0 AND id IN (SELECT tag_id FROM changed);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER a_canon BEFORE INSERT OR UPDATE OF tags ON items FOR EACH ROW EXECUTE FUNCTION canon();
CREATE TRIGGER b_sync AFTER INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION sync_tags();
CREATE TRIGGER uses_ins AFTER INSERT ON item_tags REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_uses();
CREATE TRIGGER uses_del AFTER DELETE ON item_tags REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_uses();

INSERT INTO items VALUES (1, 'one', '{pg, Postgres, SQL}'), (2, 'two', '{JS, sql}'), (3, 'three', DEFAULT);
INSERT INTO items VALUES (4, 'four', '{"9lives"}');
INSERT INTO items VALUES (4, 'four', NULL);
SELECT id, title, tags, cardinality(tags) FROM items ORDER BY id;
SELECT name, uses FROM tags ORDER BY uses DESC, name;
UPDATE items SET tags = tags || '{web,  "Web "}' WHERE id = 2;
UPDATE items SET tags = array_remove(tags, 'sql') WHERE id IN (1, 2);
SELECT name, uses FROM tags ORDER BY name;
DELETE FROM items WHERE id = 1;
SELECT name, uses FROM tags ORDER BY name;
INSERT INTO tags(name) VALUES (NULL);
INSERT INTO tags(name) VALUES ('UPPER');
SELECT NULL::tag_name;
SELECT 'a b'::tag_name;

INSERT INTO items SELECT 10 + g, 'gen' || g, ARRAY(SELECT 't' || d FROM generate_series(2, g) d WHERE g % d = 0) FROM generate_series(1, 12) g;
SELECT a.name AS a, b.name AS b, count(*) AS together
  FROM item_tags x JOIN item_tags y USING (item_id) JOIN tags a ON a.id = x.tag_id JOIN tags b ON b.id = y.tag_id
 WHERE a.name < b.name GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 3 DESC, 1, 2;
SELECT id, tags FROM items WHERE tags @> '{t2,t3}' OR tags && ARRAY['t11', 'web'] ORDER BY id;
SELECT id, array_position(tags, 't4') AS pos, tags[2:3] AS mid, array_length(tags, 1) AS len, array_upper(tags, 1) AS up
  FROM items WHERE id > 15 ORDER BY id;
SELECT id, array_to_string(tags, ',', '*'), string_to_array('x,,y', ',', '') || tags[:1] FROM items WHERE id IN (3, 18) ORDER BY id;
SELECT ARRAY[1,2] <@ ARRAY[2,1,3] AS c, ARRAY[[1,2],[3,4]] || ARRAY[5,6] AS m, array_fill(7, ARRAY[2,2], ARRAY[0,5]) AS f;
SELECT width_bucket(uses, ARRAY[1, 3, 5]) AS b, string_agg(name, '/' ORDER BY length(name), name) FROM tags GROUP BY 1 ORDER BY 1;
