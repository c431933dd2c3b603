SET timezone = 'UTC';
CREATE TABLE entity (id serial PRIMARY KEY, kind text NOT NULL, created date DEFAULT '2024-01-01');
CREATE TABLE attr (kind text, name text, pos int, typ text CHECK (typ IN ('int', 'text', 'bool', 'date')), required bool DEFAULT false, PRIMARY KEY (kind, name));
CREATE TABLE val (entity int REFERENCES entity ON DELETE CASCADE, kind text, name text, v text, PRIMARY KEY (entity, name),
  FOREIGN KEY (kind, name) REFERENCES attr MATCH FULL ON UPDATE CASCADE);
INSERT INTO attr(kind, name, pos, typ, required) VALUES ('car', 'wheels', 1, 'int', true), ('car', 'colour', 2, 'text', false), ('car', 'sold on', 3, 'date', NULL),
  ('pet', 'name', 1, 'text', true), ('pet', 'good', 2, 'bool', false);

CREATE FUNCTION eav_io() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  k text := TG_ARGV[0]; a attr; j jsonb; o jsonb; eid int;
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM entity WHERE id = OLD.id;
    RETURN OLD;
  END IF;
  j := to_jsonb(NEW);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO entity(kind) VALUES (k) RETURNING id INTO eid;
    NEW.id := eid;
    o := '{}';
  ELSE
    o := to_jsonb(OLD);
    eid := OLD.id;
  END IF;
  FOR a IN SELECT * FROM attr WHERE kind = k ORDER BY pos LOOP
    IF a.required AND j ->> a.name IS NULL THEN
      RAISE not_null_violation USING MESSAGE = format('%s.%s is required', TG_TABLE_NAME, a.name), COLUMN = a.name;
    ELSIF j -> a.name IS NOT DISTINCT FROM o -> a.name THEN
      CONTINUE;
    ELSIF j ->> a.name IS NULL THEN
      DELETE FROM val WHERE entity = eid AND name = a.name;
    ELSE
      INSERT INTO val VALUES (eid, k, a.name, j ->> a.name) ON CONFLICT (entity, name) DO UPDATE SET v = excluded.v;
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE PROCEDURE make_view(k text) LANGUAGE plpgsql AS $$
DECLARE cols text; ddl text;
BEGIN
  SELECT string_agg(format(E',\n  max(v) FILTER (WHERE name = %L)::%s AS %I', name, typ, name), '' ORDER BY pos) INTO cols FROM attr WHERE kind = k;
  IF cols IS NULL THEN RAISE EXCEPTION 'kind "%" has no attributes', k; END IF;
  ddl := format('CREATE OR REPLACE VIEW %I AS SELECT e.id%s FROM entity e LEFT JOIN val ON entity = e.id WHERE e.kind = %L GROUP BY e.id', k || 's', cols, k);
  RAISE NOTICE '%', ddl;
  EXECUTE ddl;
  EXECUTE format('CREATE OR REPLACE TRIGGER io INSTEAD OF INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION eav_io(%L)', k || 's', k);
END $$;
CALL make_view('car'); CALL make_view('pet'); CALL make_view('fish');
INSERT INTO cars(wheels, colour, "sold on") VALUES (4, 'red', '2024-05-06'), (3, NULL, NULL) RETURNING *;
INSERT INTO pets(name, good) SELECT n, n <> 'Rex' FROM unnest('{Rex,Tom}'::text[]) n RETURNING id, name, good;
INSERT INTO pets(good) VALUES (true);
INSERT INTO cars(wheels) VALUES ('four');
INSERT INTO cars(id, wheels) VALUES (999, 18) RETURNING id < 999 AS renumbered, wheels;
WITH u AS (UPDATE cars SET wheels = wheels + 1, colour = coalesce(colour, 'blue') WHERE wheels < 10 RETURNING *) SELECT * FROM u ORDER BY id;
UPDATE cars SET colour = NULL, "sold on" = '2024-02-29'::date + wheels WHERE wheels = 5 RETURNING id, colour, "sold on";
UPDATE pets SET name = NULL;
WITH u AS (UPDATE pets p SET good = NOT p.good, name = upper(p.name) FROM cars c WHERE c.wheels = 5 RETURNING p.*, c.wheels) TABLE u ORDER BY name;
DELETE FROM cars USING pets WHERE cars.wheels = 4 RETURNING cars.*;
SELECT entity, kind, name, v FROM val ORDER BY entity, name;
UPDATE attr SET name = 'nick' WHERE kind = 'pet' AND name = 'name';
SELECT * FROM pets ORDER BY id;
CALL make_view('pet');
DROP VIEW pets;
CALL make_view('pet');
SELECT * FROM pets ORDER BY id;
INSERT INTO val VALUES (1, 'car', NULL, 'x');
INSERT INTO val VALUES (1, NULL, 'wheels', 'x');
UPDATE val SET v = 'abc' WHERE name = 'wheels' AND entity = 1;
SELECT * FROM cars ORDER BY id;
UPDATE cars SET colour = 'x' WHERE id = 1;
DELETE FROM attr WHERE name = 'nick';
SELECT pg_get_viewdef('cars'::regclass, true);
SELECT tgname, tgtype, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid::regclass::text;
-- rows can be copied through the view with a cursor over it
DO $$
DECLARE c refcursor := 'cur'; r record; n int := 0;
BEGIN
  UPDATE val SET v = '6' WHERE name = 'wheels' AND entity = 1;
  OPEN c SCROLL FOR SELECT * FROM cars ORDER BY id DESC;
  MOVE FORWARD 1 FROM c;
  FETCH PRIOR FROM c INTO r;
  RAISE NOTICE 'prior %', r;
  FETCH ABSOLUTE 1 FROM c INTO r;
  RAISE NOTICE 'first %', r;
  FETCH LAST FROM c INTO r;
  RAISE NOTICE 'last % %', r, r."sold on";
  FETCH RELATIVE 5 FROM c INTO r;
  RAISE NOTICE 'beyond % found=%', r, FOUND;
  MOVE BACKWARD ALL IN c;
  LOOP FETCH NEXT FROM c INTO r; EXIT WHEN NOT FOUND; n := n + 1; END LOOP;
  CLOSE c;
  RAISE NOTICE 'n=% c is null: %', n, c IS NULL;
  FETCH c INTO r;
END $$;
SELECT count(*) FROM val WHERE entity = 1;
