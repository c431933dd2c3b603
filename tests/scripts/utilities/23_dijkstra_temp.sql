-- shortest paths with temp tables, cursors and dynamic table names
CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL, closed boolean NOT NULL DEFAULT false);
CREATE TABLE road (a int REFERENCES city, b int REFERENCES city, km numeric(6,1) NOT NULL CHECK (km > 0), kind text DEFAULT 'road', UNIQUE (a, b, kind));
INSERT INTO city (id, name) SELECT o, n FROM unnest('{Aix,Bern,Cork,Delft,Essen,Faro,Graz}'::text[]) WITH ORDINALITY u(n, o);
INSERT INTO road (a, b, km, kind) VALUES (1, 2, 7, 'road'), (1, 3, 9, 'road'), (1, 6, 14, 'rail'), (2, 3, 10, 'road'), (2, 4, 15, 'road'), (3, 4, 11, 'road'), (3, 6, 2, 'road'), (4, 5, 6, 'rail'), (5, 6, 9, 'road'), (1, 3, 1.5, 'rail');
CREATE VIEW link AS SELECT a AS f, b AS t, km, kind FROM road UNION ALL SELECT b, a, km, kind FROM road;

CREATE FUNCTION dijkstra(src int, allowed text[] DEFAULT NULL, penalty regproc DEFAULT NULL) RETURNS TABLE (city text, total numeric, via text[], steps int) LANGUAGE plpgsql AS $fn$
DECLARE
  cur record; upd int; rounds int := 0; p text := CASE WHEN penalty IS NULL THEN 'l.km' ELSE format('%s(l.km, l.kind)', penalty) END;
BEGIN
  DROP TABLE IF EXISTS pg_temp.dj;
  CREATE TEMP TABLE dj (id int PRIMARY KEY, dist numeric, prev int, done boolean DEFAULT false);
  INSERT INTO dj SELECT c.id, CASE WHEN c.id = src THEN 0 END FROM city c WHERE NOT c.closed;
  LOOP
    SELECT d.id, d.dist INTO cur FROM dj d WHERE NOT done AND d.dist IS NOT NULL ORDER BY d.dist, d.id LIMIT 1;
    EXIT WHEN NOT FOUND;
    rounds := rounds + 1;
    UPDATE dj SET done = true WHERE dj.id = cur.id;
    EXECUTE format($q$
      UPDATE dj SET dist = n.nd, prev = $1
      FROM (SELECT l.t, min($2 + %s) AS nd FROM link l WHERE l.f = $1 AND ($3 IS NULL OR l.kind = ANY ($3)) GROUP BY l.t) n
      WHERE dj.id = n.t AND NOT dj.done AND (dj.dist IS NULL OR n.nd < dj.dist)$q$, p) USING cur.id, cur.dist, allowed;
    GET DIAGNOSTICS upd = ROW_COUNT;
    IF upd > 2 THEN RAISE NOTICE 'settled % at %, relaxed %', cur.id, cur.dist, upd; END IF;
  END LOOP;
  FOR city, total, steps IN SELECT c.name, d.dist, d.id FROM city c LEFT JOIN dj d USING (id) ORDER BY d.dist NULLS LAST, c.name LOOP
    via := NULL;
    IF total IS NOT NULL THEN
      WITH RECURSIVE back(id, prev, n) AS (SELECT d.id, d.prev, 0 FROM dj d WHERE d.id = steps UNION ALL SELECT d.id, d.prev, n + 1 FROM back JOIN dj d ON d.id = back.prev)
      SELECT array_agg(c.name ORDER BY n DESC), max(n) INTO via, steps FROM back JOIN city c USING (id);
    ELSE steps := -1;
    END IF;
    RETURN NEXT;
  END LOOP;
END $fn$;
SELECT * FROM dijkstra(1);
SELECT city, total, via FROM dijkstra(1, '{road}') WHERE total IS NOT NULL ORDER BY total DESC;
CREATE FUNCTION toll(km numeric, kind text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT km + CASE kind WHEN 'rail' THEN 20 ELSE 0 END $$;
SELECT city, total, steps FROM dijkstra(1, penalty => 'toll');
SELECT count(*) FILTER (WHERE total IS NULL) FROM dijkstra(7);
UPDATE city SET closed = true WHERE name IN ('Cork', 'Graz');
SELECT * FROM dijkstra(5, '{rail,road}');
SELECT city, steps FROM dijkstra(3) ORDER BY 1;
SELECT * FROM dj ORDER BY id;
CREATE FUNCTION bad_toll(km numeric, kind text) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN km / (CASE kind WHEN 'rail' THEN 0 ELSE 1 END); END $$;
SELECT * FROM dijkstra(1, penalty => 'bad_toll');
SELECT * FROM dijkstra(1, penalty => 'no_toll');
SELECT * FROM dijkstra(1, penalty => 'sqrt');
UPDATE city SET closed = false;

-- reachable sets level by level into numbered temp tables
CREATE PROCEDURE levels(start_name text, max_level int, OUT sizes int[]) LANGUAGE plpgsql AS $$
DECLARE lvl int := 0; n bigint; tbl name; prev name;
BEGIN
  SELECT array_agg(0) INTO sizes FROM generate_series(1, 0);
  EXECUTE format('CREATE TEMP TABLE %I ON COMMIT DROP AS SELECT id FROM city WHERE name = $1', 'Level 0') USING start_name;
  CREATE TEMP TABLE seen_all (id int PRIMARY KEY, lvl int) ON COMMIT DROP;
  <<grow>>
  WHILE true LOOP
    tbl := 'Level ' || lvl;
    EXECUTE format('INSERT INTO seen_all SELECT id, %s FROM %I ON CONFLICT DO NOTHING', lvl, tbl);
    GET DIAGNOSTICS n := ROW_COUNT;
    sizes := sizes || n::int;
    EXIT grow WHEN n = 0 OR lvl = max_level;
    prev := tbl; lvl := lvl + 1;
    EXECUTE format('CREATE TEMP TABLE %I ON COMMIT DROP AS SELECT DISTINCT l.t AS id FROM link l JOIN %I p ON p.id = l.f', 'Level ' || lvl, prev);
  END LOOP grow;
  FOR prev IN SELECT relname FROM pg_class WHERE relname ~ '^Level \d$' AND relpersistence = 't' ORDER BY relname COLLATE "C" LOOP
    EXECUTE 'SELECT count(*) FROM ' || quote_ident(prev) INTO n;
    RAISE NOTICE '% has % rows', prev, n;
  END LOOP;
END $$;
CALL levels('Aix', 9, NULL);
CALL levels('Graz', 3, NULL);
BEGIN;
CALL levels('Bern', 1, NULL);
SELECT id, lvl FROM seen_all ORDER BY id;
CALL levels('Bern', 1, NULL);
ROLLBACK;
SELECT to_regclass('seen_all') IS NULL AS gone;

-- nearest neighbour tour with a scrollable cursor
CREATE FUNCTION tour(start int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  c SCROLL CURSOR (f int, skip int[]) FOR SELECT l.t, l.km FROM link l WHERE l.f = c.f AND l.t <> ALL (skip) ORDER BY l.km, l.t;
  here int := start; r record; seen int[] := ARRAY[start]; k int; far record;
BEGIN
  LOOP
    OPEN c(here, seen);
    FETCH c INTO r;
    IF NOT FOUND THEN CLOSE c; EXIT; END IF;
    MOVE LAST FROM c;
    FETCH RELATIVE 0 FROM c INTO far;
    MOVE BACKWARD ALL FROM c;
    GET DIAGNOSTICS k = ROW_COUNT;
    CLOSE c;
    RETURN NEXT format('%s -> %s (%s km, farthest %s, %s before last)', here, r.t, r.km, far.t, k);
    seen := array_append(seen, r.t); here := r.t;
  END LOOP;
  RETURN QUERY SELECT 'unvisited ' || name FROM city WHERE id <> ALL (seen) ORDER BY name;
  RETURN NEXT 'visited ' || cardinality(seen);
END $$;
SELECT * FROM tour(1);
SELECT * FROM tour(7);
CREATE FUNCTION tour2() RETURNS void LANGUAGE plpgsql AS $$
DECLARE c CURSOR (x int) FOR SELECT name FROM city WHERE id > x ORDER BY id; s text; n int := 0;
BEGIN
  OPEN c(x := 5);
  LOOP FETCH c INTO s; EXIT WHEN NOT FOUND; n := n + 1; UPDATE city SET name = upper(s) WHERE CURRENT OF c; END LOOP;
  RAISE NOTICE 'open cursor % rows %', c IS NOT NULL, n;
  OPEN c(1);
END $$;
SELECT tour2();
SELECT name FROM city ORDER BY id DESC LIMIT 3;
