SET timezone = 'UTC';
CREATE SCHEMA app;
CREATE TABLE app.item (id int PRIMARY KEY, qty int NOT NULL, CONSTRAINT qty_range CHECK (qty BETWEEN 0 AND 9));
CREATE TABLE app.failures (n int GENERATED ALWAYS AS IDENTITY, ctx text);
INSERT INTO app.item VALUES (1, 5), (2, 9);

CREATE FUNCTION app.touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.qty = 7 THEN
    RAISE EXCEPTION 'unlucky % for %', NEW.qty, NEW.id USING ERRCODE = 'UL007';
  END IF;
  NEW.qty := NEW.qty / (CASE WHEN NEW.id = 13 THEN 0 ELSE 1 END);
  RETURN NEW;
END $$;
CREATE TRIGGER item_touch BEFORE INSERT OR UPDATE ON app.item FOR EACH ROW EXECUTE FUNCTION app.touch();

CREATE FUNCTION app.half(n int) RETURNS int LANGUAGE sql AS $$ SELECT 100 / n $$;
CREATE FUNCTION app.set_qty(p_id int, p_qty int, VARIADIC extra int[] DEFAULT '{}') RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v int := coalesce(array_length(extra, 1), 0);
BEGIN
  UPDATE app.item SET qty = p_qty WHERE id = p_id;
  IF NOT FOUND THEN
    INSERT INTO app.item VALUES (p_id, p_qty);
  END IF;
  RETURN v;
END $$;
CREATE FUNCTION app.outermost(p jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ctx text; r record;
BEGIN
  FOR r IN SELECT * FROM jsonb_to_recordset(p) AS x(id int, qty int) LOOP
    PERFORM app.set_qty(r.id, r.qty, 1, 2);
  END LOOP;
  RETURN 'ok';
EXCEPTION WHEN check_violation OR SQLSTATE 'UL007' OR division_by_zero THEN
  GET STACKED DIAGNOSTICS ctx = PG_EXCEPTION_CONTEXT;
  INSERT INTO app.failures(ctx) VALUES (ctx);
  RETURN SQLERRM;
END $$;
SELECT app.outermost('[{"id":1,"qty":3},{"id":2,"qty":7}]');
SELECT app.outermost('[{"id":3,"qty":3},{"id":2,"qty":12}]');
SELECT app.outermost('[{"id":13,"qty":3}]');
SELECT app.outermost('[{"id":4,"qty":4},{"id":1,"qty":0}]');
SELECT app.outermost('[{"id":5}]');
SELECT * FROM app.item ORDER BY id;
SELECT * FROM app.failures ORDER BY n;

-- contexts as psql shows them, one per kind of plpgsql statement
CREATE FUNCTION app.ctx(k text) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
  a int; arr int[] := '{1,2}'; r record; c CURSOR (d int) FOR SELECT 10 / d;
BEGIN
  CASE k
  WHEN 'assign' THEN a := 1 / (a - a + 0 * coalesce(a, 0));  a := 10 / coalesce(a, 0);
  WHEN 'array' THEN arr[1 / 0] := 1;
  WHEN 'if' THEN IF 1 / length('') = 0 THEN NULL; END IF;
  WHEN 'perform' THEN PERFORM 1 / length('');
  WHEN 'select' THEN SELECT 1 / length('') INTO a;
  WHEN 'strict' THEN SELECT id INTO STRICT a FROM app.item WHERE id < 0;
  WHEN 'strict2' THEN SELECT id INTO STRICT a FROM app.item WHERE id > 0;
  WHEN 'return' THEN RETURN QUERY SELECT 1 / (2 - id) FROM app.item ORDER BY id;
  WHEN 'next' THEN RETURN NEXT 1 / length('');
  WHEN 'for' THEN FOR i IN 1 .. 1 / length('') LOOP NULL; END LOOP;
  WHEN 'forq' THEN FOR r IN SELECT 4 / (2 - id) FROM app.item ORDER BY id LOOP RAISE NOTICE '%', r; END LOOP;
  WHEN 'foreach' THEN FOREACH a IN ARRAY NULL::int[] LOOP NULL; END LOOP;
  WHEN 'while' THEN WHILE 1 / length('') > 0 LOOP NULL; END LOOP;
  WHEN 'exit' THEN LOOP EXIT WHEN 1 / length('') = 1; END LOOP;
  WHEN 'exec' THEN EXECUTE 'SELECT 1 / $1' USING length('');
  WHEN 'execnull' THEN EXECUTE NULL::text;
  WHEN 'execsyn' THEN EXECUTE 'SELECT 1 +';
  WHEN 'open' THEN OPEN c(0); FETCH c INTO a;
  WHEN 'raise' THEN RAISE NOTICE 'never %', 1 / length('');
  WHEN 'sqlfn' THEN a := app.half(length(''));
  WHEN 'cast' THEN a := 'twelve';
  WHEN 'case' THEN CASE a WHEN 1 THEN NULL; END CASE;
  WHEN 'call' THEN CALL app.set_qty(1, 1);
  WHEN 'missing' THEN PERFORM app.no_such(a);
  WHEN 'column' THEN INSERT INTO app.item(idd) VALUES (1);
  WHEN 'assert' THEN ASSERT a IS NOT NULL, format('a is %L', a);
  ELSE RETURN;
  END CASE;
  RETURN NEXT -1;
END $$;
SELECT k, app.ctx(k) FROM unnest(array['none', 'zzz']) k ORDER BY 1;
SELECT app.ctx('assign');
SELECT app.ctx('array');
SELECT app.ctx('if');
SELECT app.ctx('perform');
SELECT app.ctx('select');
SELECT app.ctx('strict');
SELECT app.ctx('strict2');
SELECT * FROM app.ctx('return');
SELECT * FROM app.ctx('next');
SELECT app.ctx('for');
SELECT app.ctx('forq');
SELECT app.ctx('foreach');
SELECT app.ctx('while');
SELECT app.ctx('exit');
SELECT app.ctx('exec');
SELECT app.ctx('execnull');
SELECT app.ctx('execsyn');
SELECT app.ctx('open');
SELECT app.ctx('raise');
SELECT app.ctx('sqlfn');
SELECT app.ctx('cast');
SELECT app.ctx('case');
SELECT app.ctx('call');
SELECT app.ctx('missing');
SELECT app.ctx('column');
SELECT app.ctx('assert');

CREATE FUNCTION app.whereami() RETURNS text LANGUAGE plpgsql AS $$
DECLARE s text; n bigint;
BEGIN
  GET CURRENT DIAGNOSTICS s = PG_CONTEXT, n = ROW_COUNT;
  RETURN n || ': ' || s;
END $$;
CREATE FUNCTION app.caller(VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1;
  RETURN app.whereami();
END $$;
SELECT app.caller('a', 'b');
DO $$ BEGIN RAISE NOTICE '%', app.caller(); END $$;
