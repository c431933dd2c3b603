SET timezone = 'UTC';
CREATE TABLE meta (tab text, col text, typ text, nullable boolean DEFAULT true, def text, chk text, pos int);
INSERT INTO meta VALUES ('gadget', 'id', 'int', false, NULL, NULL, 1), ('gadget', 'Label', 'varchar(8)', true, quote_literal('n/a'), NULL, 2), ('gadget', 'price', 'numeric(6,2)', true, '0', 'price >= 0', 3),
 ('widget', 'id', 'bigint', false, NULL, 'id <> 13', 1), ('widget', 'order', 'text[]', true, '''{}''', NULL, 2), ('broken', 'x', 'no_type', true, NULL, NULL, 1);

-- builds tables, history tables, functions and triggers from metadata
CREATE FUNCTION build(t text) RETURNS text LANGUAGE plpgsql AS $fn$
DECLARE cols text;
BEGIN
  SELECT string_agg(format('%I %s%s%s%s', col, typ, CASE WHEN NOT nullable THEN ' NOT NULL' END, ' DEFAULT ' || def, ' CONSTRAINT ' || quote_ident(tab || '_' || col || '_ck') || ' CHECK (' || chk || ')'), ', ' ORDER BY pos)
    INTO cols FROM meta WHERE tab = t;
  IF cols IS NULL THEN RETURN 'no metadata for ' || quote_nullable(t); END IF;
  EXECUTE format('CREATE TABLE %I (%s, PRIMARY KEY (id))', t, cols);
  EXECUTE format('CREATE TABLE %I (LIKE %I, op text, h int GENERATED ALWAYS AS IDENTITY)', t || '_hist', t);
  EXECUTE format($f$
    CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      IF TG_OP = 'DELETE' THEN
        INSERT INTO %2$I SELECT OLD.*, %3$L;
      ELSE
        INSERT INTO %2$I SELECT (NEW).*, lower(TG_OP);
      END IF;
      RETURN NULL;
    END $body$ $f$, 'trg_' || t, t || '_hist', 'gone from ' || t);
  EXECUTE 'CREATE TRIGGER hist AFTER INSERT OR UPDATE OR DELETE ON ' || quote_ident(t) || ' FOR EACH ROW EXECUTE FUNCTION ' || quote_ident('trg_' || t) || '()';
  EXECUTE format('COMMENT ON TABLE %I IS %L', t, 'built from meta: ' || cols);
  RETURN obj_description(t::regclass, 'pg_class');
EXCEPTION WHEN undefined_object THEN
  RETURN format('failed: %s; table exists: %s', SQLERRM, to_regclass(t) IS NOT NULL);
END $fn$;
SELECT build(t) FROM unnest(array['gadget', 'widget', 'broken', 'missing', NULL]) WITH ORDINALITY u(t, o) ORDER BY o;
SELECT build('gadget');
INSERT INTO gadget(id) VALUES (1), (2);
UPDATE gadget SET "Label" = 'lbl', price = price + 1.005 WHERE id = 2;
DELETE FROM gadget WHERE id = 1;
INSERT INTO gadget(id, price) VALUES (3, -1);
INSERT INTO widget VALUES (1, '{a,NULL}'), (2, DEFAULT), (13, NULL);
INSERT INTO widget VALUES (1, '{a,NULL}'), (2, DEFAULT);
UPDATE widget SET "order"[3] = id::text, id = -id RETURNING *;
SELECT * FROM gadget_hist ORDER BY h;
SELECT * FROM widget_hist ORDER BY h;

-- cursors over EXECUTE, with names and scrolling
CREATE FUNCTION pages(t regclass, ord name, size int) RETURNS TABLE (page int, item text) LANGUAGE plpgsql AS $fn$
DECLARE c refcursor; r record; k int := 0;
BEGIN
  OPEN c SCROLL FOR EXECUTE format('SELECT %I AS k, t.* FROM %s t ORDER BY %1$I DESC', ord, t);
  <<page_loop>>
  LOOP
    page := coalesce(page, 0) + 1;
    FOR k IN 1..size LOOP
      FETCH c INTO r;
      EXIT page_loop WHEN NOT FOUND;
      item := r::text;
      RETURN NEXT;
    END LOOP;
    MOVE RELATIVE 0 FROM c;
    CONTINUE page_loop WHEN FOUND AND page < 10;
    EXIT;
  END LOOP page_loop;
  MOVE ABSOLUTE 0 FROM c;
  FETCH c INTO r;
  page := -1; item := 'again ' || (to_jsonb(r) ->> 'k');
  RETURN NEXT;
  CLOSE c;
END $fn$;
SELECT * FROM pages('widget_hist', 'h', 1);
SELECT * FROM pages('gadget_hist', 'h', 3);
SELECT * FROM pages('gadget', 'Label', 2);
SELECT * FROM pages('gadget', 'label', 2);

-- static statements whose tables are created, altered and dropped by the function itself
CREATE FUNCTION self_made(rounds int) RETURNS SETOF text LANGUAGE plpgsql AS $fn$
BEGIN
  FOR i IN 1..rounds LOOP
    CREATE TEMP TABLE scratch (a int, b text DEFAULT 'dflt');
    IF i > 1 THEN EXECUTE format('ALTER TABLE scratch ADD COLUMN c%s int DEFAULT %s', i, i * 100); END IF;
    INSERT INTO scratch(a) SELECT generate_series(1, i);
    UPDATE scratch SET b = b || a WHERE a = i;
    RETURN QUERY SELECT s::text FROM scratch s ORDER BY a;
    DROP TABLE scratch;
  END LOOP;
  IF to_regclass('pg_temp.scratch') IS NULL THEN RETURN NEXT 'clean'; END IF;
  CREATE TEMP TABLE IF NOT EXISTS scratch AS TABLE gadget;
  CREATE TEMP TABLE IF NOT EXISTS scratch AS TABLE widget;
  RETURN QUERY SELECT 'kept ' || count(*) FROM scratch;
END $fn$;
SELECT * FROM self_made(3);
SELECT * FROM self_made(1);
DROP TABLE scratch;
SELECT * FROM self_made(1);

-- schema clean-up with FOR IN EXECUTE over catalogs, RETURN QUERY of what was done
CREATE FUNCTION drop_like(pat text, dry boolean DEFAULT true) RETURNS SETOF text LANGUAGE plpgsql AS $fn$
DECLARE cmd text; kind "char"; nm name;
BEGIN
  FOR nm, kind IN EXECUTE 'SELECT relname, relkind FROM pg_class WHERE relnamespace = $2 AND relkind IN (''r'', ''v'') AND relname ~ $1 ORDER BY relname COLLATE "C" DESC' USING pat, 'public'::regnamespace LOOP
    cmd := format('DROP %s %I.%I CASCADE', CASE kind WHEN 'r' THEN 'TABLE' ELSE 'VIEW' END, 'public', nm);
    IF NOT dry THEN EXECUTE cmd; END IF;
    RETURN NEXT cmd;
  END LOOP;
  IF NOT FOUND THEN RAISE WARNING 'nothing like %', pat; END IF;
END $fn$;
CREATE VIEW gadget_v AS SELECT * FROM gadget;
SELECT drop_like('^gadget');
SELECT drop_like('^gadget_', false);
SELECT drop_like('^gadget_', false);
INSERT INTO gadget(id) VALUES (9);
DROP FUNCTION trg_gadget() CASCADE;
INSERT INTO gadget(id) VALUES (9) RETURNING *;
SELECT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p WHERE pronamespace = 'public'::regnamespace ORDER BY 1;
