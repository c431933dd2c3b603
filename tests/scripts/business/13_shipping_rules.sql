SET timezone = 'UTC';
CREATE TYPE parcel AS (kg numeric, dims int[], fragile boolean);
CREATE TYPE quote AS (carrier text, cost numeric, eta int);
CREATE TABLE carriers (code text PRIMARY KEY, label text, pricing_fn regprocedure, zones jsonb);
CREATE TABLE rules (
  id int PRIMARY KEY, carrier text REFERENCES carriers, cond text NOT NULL DEFAULT 'true', expr text NOT NULL, stop boolean DEFAULT false
);
CREATE FUNCTION flat(p parcel) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT 5.00 $$;
CREATE FUNCTION by_weight(p parcel) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT CASE WHEN (p).kg <= 1 THEN 4.5 WHEN p.kg <= 10 THEN 4.5 + ceil(p.kg - 1) * 1.25 END $$;
CREATE FUNCTION volume(p parcel) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v bigint := 1; d int;
BEGIN
  IF p.dims IS NULL OR cardinality(p.dims) <> 3 THEN
    RETURN NULL;
  END IF;
  FOREACH d IN ARRAY p.dims LOOP v := v * d; END LOOP;
  RETURN v;
END $$;
CREATE FUNCTION by_volume(p parcel) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  RETURN greatest(3, round(volume(p) / 5000.0 * 2, 2));
END $$;
INSERT INTO carriers VALUES ('post', 'Post', 'flat(parcel)', '{"EU": 1, "US": 3.5}'),
  ('kg', 'Kilo Express', 'by_weight(parcel)', '{"EU": 1.2}'), ('vol', NULL, 'public.by_volume(parcel)'::regprocedure, 'null');
INSERT INTO carriers VALUES ('bad', 'Bad', 'missing(parcel)', NULL);
INSERT INTO rules VALUES (1, 'post', '$1.kg > 20', 'NULL', true), (2, 'post', '$1.fragile', '$2 + 2.5', false),
  (3, 'kg', '$1.fragile IS NOT TRUE', '$2 * 0.9', false), (4, 'vol', 'volume($1) IS NULL', '9.99', true), (5, 'vol', 'true', '$2 + 1 / ($1.kg - 5)', false);

CREATE FUNCTION quotes(p parcel, zone text DEFAULT 'EU') RETURNS SETOF quote LANGUAGE plpgsql AS $$
DECLARE
  c record; r rules; q quote; hit boolean; n int := 0;
BEGIN
  <<carrier>>
  FOR c IN SELECT code, coalesce(label, initcap(code)) AS nm, (pricing_fn::oid)::regproc::text AS fn, zones FROM carriers ORDER BY code LOOP
    q := NULL;
    q.carrier := c.nm;
    EXECUTE 'SELECT ' || c.fn || '($1)' INTO q.cost USING p;
    FOR r IN EXECUTE 'SELECT * FROM rules WHERE carrier = $1 ORDER BY id' USING c.code LOOP
      EXECUTE format('SELECT %s', r.cond) INTO hit USING p;
      CONTINUE WHEN hit IS NOT TRUE;
      BEGIN
        EXECUTE format('SELECT %s', r.expr) INTO STRICT q.cost USING p, q.cost;
      EXCEPTION WHEN division_by_zero THEN
        RAISE INFO 'rule % skipped for % (%)', r.id, c.code, SQLSTATE;
        CONTINUE carrier;
      END;
      EXIT WHEN r.stop;
    END LOOP;
    CONTINUE WHEN q.cost IS NULL;
    IF jsonb_typeof(c.zones) = 'object' THEN
      CONTINUE carrier WHEN NOT c.zones ? zone;
      q.cost := round(q.cost * (c.zones ->> zone)::numeric, 2);
    END IF;
    q.eta := length(c.nm) % 5;
    n := n + 1;
    RETURN NEXT q;
  END LOOP carrier;
  IF n = 0 THEN
    RETURN QUERY SELECT 'pickup', 0::numeric, NULL::int;
  END IF;
END $$;
SELECT * FROM quotes(ROW(0.5, '{10,20,30}', true));
SELECT * FROM quotes((4, ARRAY[50,50,50], false)::parcel) ORDER BY cost;
SELECT * FROM quotes(ROW(5, NULL, NULL)) ORDER BY carrier DESC;
SELECT * FROM quotes(ROW(5, '{1,1,1}', NULL), 'US');
SELECT * FROM quotes(ROW(25, '{1,1}', false), 'XX');
SELECT * FROM quotes(NULL);
SELECT quotes(ROW(1, '{1,2,3}'));
SELECT * FROM quotes(ROW('heavy', NULL, NULL));
UPDATE rules SET cond = '$1.colour = ''red''' WHERE id = 3;
SELECT * FROM quotes(ROW(1, NULL, false));
UPDATE rules SET cond = 'tru' WHERE id = 3;
SELECT * FROM quotes(ROW(1, NULL, false));
DELETE FROM rules WHERE id = 3;

CREATE TABLE shipments (id int PRIMARY KEY, parcels parcel[] NOT NULL CHECK (cardinality(parcels) > 0));
INSERT INTO shipments VALUES (1, ARRAY[(1, '{10,10,10}', true), (2.5, NULL, NULL)]::parcel[]), (2, '{"(3,\"{1,2,3}\",f)"}');
INSERT INTO shipments VALUES (3, '{}');
INSERT INTO shipments VALUES (4, '{"(1,2)"}');
SELECT s.id, n, p.kg, p.dims, p.fragile, volume(p) FROM shipments s, unnest(s.parcels) WITH ORDINALITY AS p(kg, dims, fragile, n), LATERAL (SELECT ROW(kg, dims, fragile)::parcel) x(p2)
  WHERE volume(x.p2) IS NOT NULL ORDER BY 1, 2;
SELECT s.id, n, kg, dims, fragile, volume(ROW(kg, dims, fragile)) FROM shipments s, unnest(s.parcels) WITH ORDINALITY AS p(kg, dims, fragile, n) ORDER BY 1, 2;
SELECT id, parcels[1].dims[2] AS d2, (parcels[2]).kg, parcels FROM shipments ORDER BY id;
UPDATE shipments SET parcels[1].kg = 7, parcels[3] = ROW(9, '{9}', NULL) WHERE id = 1 RETURNING parcels;
DO $$
DECLARE p parcel; ps parcel[]; total numeric := 0;
BEGIN
  SELECT parcels INTO ps FROM shipments WHERE id = 1;
  FOREACH p IN ARRAY ps LOOP total := total + p.kg; END LOOP;
  ps[2].fragile := true;
  ps := ps || ROW(0, '{}', false)::parcel;
  RAISE NOTICE 'total % kg, second %, last %, n=%', total, ps[2], ps[array_upper(ps, 1)], cardinality(ps);
  FOR p IN SELECT * FROM unnest(ps) u ORDER BY u.kg DESC LOOP RAISE NOTICE 'parcel % null=%', p, p IS NULL; END LOOP;
END $$;
SELECT s.id, q.* FROM shipments s CROSS JOIN LATERAL quotes(s.parcels[1]) q ORDER BY s.id, q.cost, q.carrier;
SELECT code, pricing_fn, pricing_fn::text = 'flat(parcel)' AS is_flat FROM carriers ORDER BY code;
