SET timezone = 'UTC';
CREATE TYPE geo AS (lat numeric, lon numeric);
CREATE TYPE place AS (name text, at geo, tags text[]);
CREATE TABLE visit (id int PRIMARY KEY, p place, hist geo[], meta jsonb, dropped int, qty int DEFAULT 1);
ALTER TABLE visit DROP COLUMN dropped;
INSERT INTO visit VALUES (1, ROW('home', ROW(1.5, 2.5), '{a,b}'), ARRAY[ROW(0, 0), ROW(1, NULL)]::geo[], '{}', 3),
  (2, ROW('x', NULL, NULL), '{}', NULL, NULL), (3, NULL, NULL, NULL, DEFAULT), (4, ROW(NULL, NULL, NULL), NULL, NULL, 0);

SELECT id, p IS NULL AS isnull, p IS NOT NULL AS isnotnull, (p).name, (p).at.lat, ((p).at).lon, (p).tags[2], hist[2], hist[2].lat IS NULL FROM visit ORDER BY id;
SELECT id, p = ROW('home', ROW(1.5, 2.50), '{a,b}')::place AS eq, p < ROW('y', NULL, NULL)::place AS lt, p IS DISTINCT FROM NULL AS d, p::text, to_json(p) FROM visit ORDER BY id;
UPDATE visit SET p.name = 'moved', p.at.lat = 9, hist[3] = (7, 8), p.tags[4] = 'd' WHERE id = 1 RETURNING p, hist;
UPDATE visit SET p.at = ROW(3, 4) WHERE p IS NULL RETURNING id, p, p IS NULL;
INSERT INTO visit(id, p.name, p.at.lon) VALUES (5, 'partial', 5) RETURNING *;
SELECT (v).* FROM (SELECT v FROM visit v WHERE id = 5) s;
SELECT (p).nofield FROM visit;
SELECT p.name FROM visit;
SELECT ('(a,"(1,2)",{})'::place).at.lat, '("a ""q"" b","(1,)","{""x,y""}")'::place, '(,,)'::place IS NULL;
SELECT '(a,b)'::place;
SELECT '(1)'::geo;
SELECT ROW(1, 2, 3)::geo;
SELECT ROW(1, 2) = (ROW(1.0, 2)::geo);
SELECT ROW('1', '2')::geo, ROW(1.00, 2.0) = (ROW(1.0, 2)::geo), ARRAY[ROW(1, 2)::geo] @> ARRAY[ROW(1, 2.0)::geo];

CREATE FUNCTION juggle() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  v visit%ROWTYPE; v2 visit; r record; n visit.qty%TYPE := '7'; g geo; pl visit.p%TYPE; arr geo[] := '{}'; places place[];
BEGIN
  RETURN NEXT format('fresh: %s|%s|%s|%s', v IS NULL, v, v.p, (v.p).at);
  v.id := 10; v.p.name := 'n'; v.p.at.lat := 1; v.hist[2] := ROW(2, 2); v.p.tags[3] := 't3';
  RETURN NEXT format('set: %s', v);
  v2 := v; v2.id := n; v2.p.at := NULL;
  RETURN NEXT format('copy: %s / %s', v2, (v.p).at.lat);
  g := (v.p).at; g.lon := g.lat * 2; v.p.at := g; pl := v.p; pl.at.lat := -1;
  RETURN NEXT format('%s %s %s', g, v.p, pl);
  places := array_append(places, pl); places[2] := ('second', g, NULL); places[1].name := 'renamed'; places[2].at.lon := 0;
  RETURN NEXT places::text;
  arr[0] := g; arr := arr || ROW(5, 5)::geo || arr;
  RETURN NEXT format('%s dims %s', arr, array_dims(arr));
  SELECT * INTO v FROM visit WHERE id = 1; SELECT v.*, 'extra' AS x INTO r;
  RETURN NEXT format('%s / %s / %s', r.x, r.p, (r.hist)[1]);
  SELECT p INTO pl FROM visit WHERE id = 2; RETURN NEXT coalesce(pl::text, 'null pl');
  SELECT (p).* INTO pl FROM visit WHERE id = 2; RETURN NEXT coalesce(pl::text, 'null pl');
  SELECT 1, 2 INTO g; RETURN NEXT g::text;
  SELECT 1 INTO g; RETURN NEXT g::text;
  r := ROW(1, 'a', NULL); RETURN NEXT format('%s %s', r, r.f2);
  r := g; r.lat := 100; RETURN NEXT format('%s', r.lat + 1);
  v := NULL; RETURN NEXT format('%s %s', v IS NULL, v.id);
  SELECT * INTO v FROM visit WHERE false; RETURN NEXT format('%s %s', v, FOUND);
  v := ROW(6, NULL, NULL, '[]', 6); INSERT INTO visit VALUES (v.*); INSERT INTO visit SELECT (v).id + 1, (v).p, (v).hist, (v).meta, (v).qty;
  UPDATE visit SET (p, qty) = (pl, v.qty * 2) WHERE id = v.id + 1 RETURNING * INTO v2; RETURN NEXT v2::text;
  IF v2 > v AND ROW(v2.*) <> ROW(v.*) AND v2 IS DISTINCT FROM v THEN RETURN NEXT 'bigger'; END IF;
  FOR r IN SELECT x.*, y.lat AS "Y" FROM visit x, LATERAL unnest(x.hist) AS y WHERE x.id = 1 ORDER BY y.lat LOOP RETURN NEXT format('%s:%s', r.id, r."Y"); END LOOP;
END $$;
SELECT * FROM juggle();
SELECT * FROM visit WHERE id > 5 ORDER BY id;

-- errors with records
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r; RAISE NOTICE '%', r.a; END $$;
DO $$ DECLARE r record; BEGIN r := ROW(1); r.f2 := 1; END $$;
DO $$ DECLARE r record; BEGIN r := 5; END $$;
DO $$ DECLARE g geo; BEGIN g := ROW(1, 'x'); END $$;
DO $$ DECLARE g geo; BEGIN g.alt := 1; END $$;
DO $$ DECLARE g geo; BEGIN SELECT 'x', 1 INTO g; END $$;
DO $$ DECLARE v visit%ROWTYPE; BEGIN v := (SELECT ROW(1, 2)); END $$;
DO $$ DECLARE v novisit%ROWTYPE; BEGIN END $$;
DO $$ DECLARE v visit.nocol%TYPE; BEGIN END $$;
DO $$ DECLARE g geo := ROW(1, 2); c CONSTANT geo := g; BEGIN c.lat := 5; END $$;
DO $$ DECLARE g geo NOT NULL := NULL; BEGIN END $$;
DO $$ DECLARE n int NOT NULL := 1; BEGIN n := NULL; END $$;
-- functions over rows
CREATE FUNCTION norm(geo) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT abs($1.lat) + abs(($1).lon) $$;
CREATE FUNCTION label(v visit) RETURNS text LANGUAGE plpgsql AS $$ BEGIN v.qty := coalesce(v.qty, 0) + 1; RETURN v.id || '#' || v.qty; END $$;
CREATE FUNCTION mk(n int, OUT g geo, OUT s text) LANGUAGE plpgsql AS $$ BEGIN g := ROW(n, n); g.lon := n + 1; s := g::text; END $$;
CREATE FUNCTION all_geo() RETURNS SETOF geo LANGUAGE plpgsql AS $$
DECLARE g geo; BEGIN FOREACH g IN ARRAY ARRAY[(1, 2), (3, NULL)]::geo[] LOOP RETURN NEXT g; RETURN NEXT ROW(g.lon, g.lat)::geo; END LOOP; RETURN NEXT NULL; RETURN QUERY SELECT lat, lat FROM unnest((SELECT hist FROM visit WHERE id = 1)); END $$;
SELECT id, v.label, label(v), ((v.p).at).norm FROM visit v ORDER BY id;
SELECT mk(3), (mk(4)).s, (mk(5)).g.lat, m.* FROM mk(6) m;
SELECT a, a.lat, norm(a) FROM all_geo() a;
SELECT * FROM all_geo() WITH ORDINALITY WHERE lat IS NULL;
ALTER TYPE geo ADD ATTRIBUTE alt numeric;
ALTER TYPE place ADD ATTRIBUTE z int CASCADE;
CREATE TYPE other AS (a geo);
SELECT ROW(1, 2, 3)::other;
