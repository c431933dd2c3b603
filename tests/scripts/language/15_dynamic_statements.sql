SET timezone = 'UTC';
CREATE TABLE "Mixed Case" ("Key" int PRIMARY KEY, "select" text, n numeric, flags jsonb);
INSERT INTO "Mixed Case" VALUES (1, 'it''s', 1.10, '{"a": [1, 2]}'), (2, NULL, NULL, NULL), (3, E'back\\slash', -0.0, '{}');

-- an ad hoc query builder
CREATE FUNCTION find(tbl regclass, filters jsonb DEFAULT '{}', ord text[] DEFAULT NULL, lim int DEFAULT NULL) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE q text; k text; v text; conds text[] := '{}'; vals text[]; i int := 0; n bigint;
BEGIN
  FOR k, v IN SELECT * FROM jsonb_each_text(filters) ORDER BY 1 LOOP
    i := i + 1;
    vals[i] := v;
    conds := conds || CASE WHEN v IS NULL THEN format('%I IS NULL', k) ELSE format('%I::text = $1[%s]', k, i) END;
  END LOOP;
  q := format('SELECT to_jsonb(t) FROM %s t%s%s LIMIT $2', tbl, ' WHERE ' || nullif(array_to_string(conds, ' AND '), ''),
    ' ORDER BY ' || (SELECT string_agg(quote_ident(ltrim(o, '-')) || CASE WHEN o LIKE '-%' THEN ' DESC NULLS LAST' ELSE '' END, ', ' ORDER BY x) FROM unnest(ord) WITH ORDINALITY u(o, x)));
  RAISE NOTICE '%', q;
  RETURN QUERY EXECUTE q USING vals, lim;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF NOT FOUND THEN RETURN NEXT to_jsonb(format('nothing (%s)', n)); END IF;
END $$;
SELECT find('"Mixed Case"', ord => '{-Key}');
SELECT find('"Mixed Case"', '{"Key": "1", "select": "it''s"}');
SELECT find('"Mixed Case"', '{"select": null}', '{Key}', 5);
SELECT find('"Mixed Case"', '{"n": 77}', lim => 0);
SELECT find('"Mixed Case"', '{"no such": 1}');
SELECT find('mixed case');

-- EXECUTE ... INTO with and without STRICT
CREATE FUNCTION fetch_one(q text, strict_ boolean, VARIADIC args text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; a text; b int; found_before boolean;
BEGIN
  PERFORM 1 WHERE false;
  found_before := FOUND;
  IF strict_ THEN EXECUTE q INTO STRICT r USING VARIADIC_(args); ELSE EXECUTE q INTO r USING args[1], args[2]; END IF;
  RETURN r;
END $$;
SELECT fetch_one('SELECT 1', true);
CREATE OR REPLACE FUNCTION fetch_one(q text, strict_ boolean, VARIADIC args text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; n int;
BEGIN
  PERFORM 1;
  IF strict_ THEN EXECUTE q INTO STRICT r USING args[1], args[2]; ELSE EXECUTE q INTO r USING args[1], args[2]; END IF;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN format('%s rows=%s found=%s', r, n, FOUND);
EXCEPTION
  WHEN no_data_found THEN RETURN 'none: ' || SQLERRM;
  WHEN too_many_rows THEN RETURN 'many: ' || SQLERRM;
END $$;
SELECT fetch_one('SELECT "Key", "select" FROM "Mixed Case" ORDER BY 1', false);
SELECT fetch_one('SELECT "Key" FROM "Mixed Case" WHERE "Key" = $1::int', true, '2');
SELECT fetch_one('SELECT "Key" FROM "Mixed Case" WHERE "Key" = $1::int', true, VARIADIC '{20}');
SELECT fetch_one('SELECT "Key" FROM "Mixed Case" WHERE "Key" = $1::int', false, '20');
SELECT fetch_one('SELECT "Key" FROM "Mixed Case"', true, VARIADIC '{}');
SELECT fetch_one('UPDATE "Mixed Case" SET n = n + 1 WHERE n IS NOT NULL RETURNING "Key"', true);
SELECT fetch_one('UPDATE "Mixed Case" SET n = n + 1 WHERE "Key" = $2::int RETURNING n, $1', true, 'lbl', '3');
SELECT fetch_one('CREATE TEMP TABLE zz()', false);
SELECT fetch_one('SELECT $3', false);
SELECT "Key", n FROM "Mixed Case" ORDER BY 1;
DO $$
DECLARE a int; b text; arr int[] := '{0,0,0}'; row_ "Mixed Case"; n int := 5;
BEGIN
  EXECUTE 'SELECT 1, ''two'', 3' INTO a, b; RAISE NOTICE '% %', a, b;
  EXECUTE 'SELECT 7' INTO a, b; RAISE NOTICE '% %', a, b;
  EXECUTE 'SELECT * FROM "Mixed Case" WHERE "Key" = $1' INTO row_ USING n - 4; RAISE NOTICE '% / %', row_, row_."select";
  EXECUTE 'INSERT INTO "Mixed Case" VALUES (10), (11)'; RAISE NOTICE 'found stays %', FOUND;
  EXECUTE 'SELECT $1 + $2, pg_typeof($1), pg_typeof($3)' INTO row_."Key", row_."select" USING 1, 2, ARRAY[date '2024-01-01'];
  RAISE NOTICE '%', row_;
  EXECUTE 'SELECT 1; SELECT 2' INTO a; RAISE NOTICE 'multi %', a;
END $$;
DO $$ DECLARE arr int[]; BEGIN EXECUTE 'SELECT 42' INTO arr[2]; END $$;
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT $1' INTO a USING 'abc'; END $$;
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT ''x'' || a' INTO a; END $$;
DO $$ DECLARE a int; BEGIN EXECUTE 'SELECT 1 INTO zzz'; END $$;
DO $$ DECLARE a int; BEGIN EXECUTE ''; EXECUTE '  ;  '; RAISE NOTICE 'empty is fine'; EXECUTE format('%s', NULL); EXECUTE 'x' || NULL; END $$;

-- format and quoting corners
SELECT format('%1$s %1$I %1$L %3$s %2$L', 'a b', NULL, 'Z'), format('%s|%s|%%|%L|%L', NULL, '', '', 'q''\q');
SELECT format('|%10s|%-10s|%5L|%*s|%-*s|%2$*1$s|', 'right', 'left', 'x', 4, 'w', 6, 'v');
SELECT format('|%10s|%-10s|%5L|%*s|%-*s|%6$s|', 'right', 'left', 'x', 4, 'w', 6, 'v');
SELECT format('%*s', -6, 'neg') || '|', format('%1$*2$I|', 'Id', 8), format('%s %s', VARIADIC ARRAY['v1', 'v2']), format('none'), format(NULL, 1) IS NULL;
SELECT format('%s %s', 1);
SELECT format('%z', 1);
SELECT format('%I', NULL);
SELECT format('%3$s', 1);
SELECT format('%0$s', 1);
SELECT format('%');
SELECT quote_ident(i), quote_literal(i), quote_nullable(i) FROM unnest(array['plain', 'Caps', 'two words', 'select', '1st', 'dq"x', '', 'é', '_ok$1', NULL, 'line
break', 'b\s']) WITH ORDINALITY u(i, o) ORDER BY o;
SELECT quote_literal(1.50), quote_nullable(NULL::int), quote_literal(ARRAY['a', NULL]), quote_ident('between') , quote_ident('user'), quote_ident('name'), quote_ident('values');

-- the same text planned against changing tables
CREATE FUNCTION shape_shift() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; i int;
BEGIN
  FOR i IN 1..3 LOOP
    EXECUTE format('CREATE TEMP TABLE shape AS SELECT %s', CASE i WHEN 1 THEN '1 AS a' WHEN 2 THEN '''t''::text AS a, true AS b' ELSE 'NULL::date AS z' END);
    FOR r IN EXECUTE 'SELECT * FROM shape' LOOP RETURN NEXT row_to_json(r)::text; END LOOP;
    DROP TABLE shape;
  END LOOP;
  FOR r IN EXECUTE 'DELETE FROM "Mixed Case" WHERE "Key" >= $1 RETURNING "Key"' USING 10 LOOP RETURN NEXT 'deleted ' || r."Key"; END LOOP;
  RETURN QUERY EXECUTE 'SELECT ' || quote_literal(coalesce(i::text, 'i after loop is null'));
END $$;
SELECT * FROM shape_shift();
