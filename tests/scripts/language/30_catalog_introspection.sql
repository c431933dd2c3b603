SET timezone = 'UTC';
CREATE TYPE color AS ENUM ('red', 'green');
ALTER TYPE color ADD VALUE 'amber' BEFORE 'green';
ALTER TYPE color RENAME VALUE 'red' TO 'crimson';
CREATE DOMAIN sku AS varchar(12) DEFAULT 'none' NOT NULL CONSTRAINT sku_fmt CHECK (VALUE ~ '^[a-z]+$');
CREATE TYPE dims AS (w numeric(5,1), h int, tag sku);
CREATE TABLE maker (id int PRIMARY KEY, nm text UNIQUE);
CREATE TABLE product (
  code sku PRIMARY KEY, kind color DEFAULT 'amber', size dims, maker int REFERENCES maker (id) ON DELETE SET NULL DEFERRABLE,
  price numeric(10,2) CHECK (price > 0 AND price < 1000), tags text[] DEFAULT ARRAY['x', 'y''z'], made timestamptz(3) DEFAULT '2024-01-01 00:00:00+00', meta jsonb DEFAULT '{"a": 1}',
  full_name text GENERATED ALWAYS AS (upper(code::text) || coalesce(':' || price::text, '')) STORED, "Odd Col" interval,
  CONSTRAINT price_kind CHECK (CASE kind WHEN 'crimson' THEN price BETWEEN 1 AND 5 WHEN 'green' THEN price IN (1, 2, 3) ELSE NOT price IS NULL OR tags && '{free}' END));
CREATE INDEX product_part ON product USING btree (maker, (price * 2) DESC, code varchar_pattern_ops) INCLUDE (kind) WHERE kind <> 'green' AND price IS NOT NULL;
CREATE INDEX ON product (lower(full_name), date_trunc('day', made AT TIME ZONE 'UTC'));

CREATE FUNCTION calc(INOUT a int, b numeric DEFAULT 1.50, VARIADIC c text[] DEFAULT '{}'::text[], OUT d dims) LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE COST 7 AS $body$
BEGIN
  d := ROW(b, a, 'tag'); -- comment kept
  a := a + cardinality(c);
END
$body$;
CREATE FUNCTION listing(k color, lim int = 5 + 5) RETURNS TABLE (code sku, "Odd" int) LANGUAGE sql ROWS 3 SECURITY DEFINER SET work_mem = '4MB' SET search_path = public, pg_temp AS 'SELECT code, 1 FROM product WHERE kind = $1 LIMIT lim';
CREATE FUNCTION atomic_fn(x int) RETURNS int LANGUAGE sql IMMUTABLE LEAKPROOF RETURN x * 2 + CASE WHEN x IS NULL THEN 0 ELSE 1 END;
CREATE PROCEDURE proc(IN a int, INOUT b text, OUT c int) LANGUAGE sql BEGIN ATOMIC SELECT b || a::text, a; END;
CREATE FUNCTION trig() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE AGGREGATE strcat(text) (SFUNC = textcat, STYPE = text, INITCOND = '');
CREATE TRIGGER "T 1" AFTER UPDATE OF price, kind ON product FOR EACH ROW WHEN (OLD.price <> NEW.price OR NEW.kind = 'green') EXECUTE FUNCTION trig('a', 'b c');
COMMENT ON FUNCTION calc(int, numeric, text[]) IS 'does a calculation';
COMMENT ON COLUMN product."Odd Col" IS 'odd''s';
SELECT pg_get_functiondef('calc'::regproc);
SELECT pg_get_functiondef('listing(color,int)'::regprocedure);
SELECT pg_get_functiondef('atomic_fn'::regproc);
SELECT pg_get_functiondef('proc'::regproc);
SELECT pg_get_functiondef('strcat(text)'::regprocedure);
SELECT p.proname, pg_get_function_arguments(p.oid) AS args, pg_get_function_identity_arguments(p.oid) AS idargs, pg_get_function_result(p.oid) AS res, pg_get_expr(proargdefaults, 0) AS defs, prokind, provolatile, proisstrict, proretset, prosecdef, proparallel, pronargs, pronargdefaults, proargmodes, proargnames, procost, prorows, obj_description(p.oid, 'pg_proc') AS descr
FROM pg_proc p WHERE pronamespace = 'public'::regnamespace ORDER BY proname;
SELECT routine_name, routine_type, data_type, external_language, is_deterministic, security_type FROM information_schema.routines WHERE routine_schema = 'public' ORDER BY 1;
SELECT r.routine_name, p.ordinal_position, p.parameter_mode, p.parameter_name, p.data_type, p.parameter_default FROM information_schema.parameters p JOIN information_schema.routines r USING (specific_schema, specific_name) WHERE specific_schema = 'public' ORDER BY 1, 2;

-- what \d asks for
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS typ, a.attnotnull AS nn, a.attgenerated AS gen, a.attidentity AS ident, pg_get_expr(d.adbin, d.adrelid) AS def, col_description(a.attrelid, a.attnum) AS descr
FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum) WHERE a.attrelid = 'product'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT c2.relname, i.indisprimary, i.indisunique, i.indnatts, i.indnkeyatts, i.indkey::text, i.indoption::text, pg_get_indexdef(i.indexrelid) AS def, pg_get_indexdef(i.indexrelid, 2, true) AS col2, pg_get_expr(i.indpred, i.indrelid) AS pred, pg_get_expr(i.indexprs, i.indrelid, true) AS exprs
FROM pg_index i JOIN pg_class c2 ON c2.oid = i.indexrelid WHERE i.indrelid = 'product'::regclass ORDER BY c2.relname;
SELECT conname, contype, conkey, confkey, confdeltype, condeferrable, pg_get_constraintdef(oid) AS def, pg_get_constraintdef(oid, true) AS pretty FROM pg_constraint WHERE conrelid = 'product'::regclass OR contypid = 'sku'::regtype ORDER BY conname;
SELECT conname, conrelid::regclass, confrelid::regclass FROM pg_constraint WHERE confrelid = 'maker'::regclass;
SELECT pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) = pg_get_triggerdef(oid) AS same, tgtype, tgattr::text FROM pg_trigger WHERE tgrelid = 'product'::regclass AND NOT tgisinternal;

-- views of every shape
CREATE VIEW v1 AS SELECT p.code, p.*, (p.size).w AS width, m.nm FROM product p LEFT JOIN maker m ON m.id = p.maker WHERE p.kind IN ('crimson', 'amber') OR p.tags[1] = 'x';
CREATE VIEW v1 AS SELECT p.code AS c, p.kind::text, (p.size).w AS width, m.nm, p.price::int % 3 AS r FROM product p LEFT JOIN maker m ON m.id = p.maker WHERE p.kind IN ('crimson', 'amber') OR p.tags[1] = 'x' ORDER BY 1 DESC NULLS LAST, m.nm;
CREATE VIEW v2 (k, n, s, latest, f) AS SELECT kind, count(*), sum(DISTINCT price) FILTER (WHERE price > 1), max(made) - interval '1 day', string_agg(code, ', ' ORDER BY code DESC) FROM product GROUP BY kind HAVING count(*) > 0 AND bool_and(price IS NOT NULL);
CREATE VIEW v3 AS WITH RECURSIVE t(n, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT n + 1, path || (n + 1) FROM t WHERE n < 3) SELECT n, path, row_number() OVER w AS rn, lag(n, 1, 0) OVER (PARTITION BY n % 2 ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS (ORDER BY n DESC) LIMIT 2 OFFSET 1;
CREATE VIEW v4 AS SELECT EXISTS (SELECT 1 FROM maker WHERE nm ILIKE 'a%') AS e, ARRAY(SELECT id FROM maker ORDER BY id) AS ids, (1, 'x')::dims IS NULL AS c, CASE 1 WHEN 2 THEN 'a' END AS cs;
CREATE VIEW v4 AS SELECT EXISTS (SELECT 1 FROM maker WHERE nm ILIKE 'a%') AS e, ARRAY(SELECT id FROM maker ORDER BY id) AS ids, coalesce(NULL, 1) AS co, CASE 1 WHEN 2 THEN 'a' END AS cs, '{"a":1}'::jsonb ->> 'a' AS j, extract(year FROM date '2024-05-05') AS y, 2 NOT BETWEEN 1 AND 3 AS nb, 'a' || NULL AS nn, x.*
  FROM (VALUES (1, 'one'), (2, NULL)) x(num, word) CROSS JOIN LATERAL generate_series(1, x.num) WITH ORDINALITY g(v, o) WHERE word NOT LIKE '%z' OR num <> ALL ('{7,8}') UNION ALL SELECT false, '{}', 1, NULL, NULL, 0, NULL, NULL, 3, 'three';
SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY viewname;
SELECT pg_get_viewdef('v1'::regclass, true);
SELECT pg_get_viewdef('v2', 40);
SELECT * FROM v3 ORDER BY n;
SELECT * FROM v4 ORDER BY num, word;
SELECT view_name, table_name FROM information_schema.view_table_usage WHERE view_schema = 'public' ORDER BY 1, 2;

-- types, dependencies, the information schema
SELECT t.typname, t.typtype, t.typcategory, t.typnotnull, t.typdefault, format_type(t.typbasetype, t.typtypmod) AS base, (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid) AS labels FROM pg_type t WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd', 'c') ORDER BY 1;
SELECT column_name, ordinal_position AS n, column_default, is_nullable, data_type, udt_name, domain_name, character_maximum_length AS len, numeric_precision AS p, numeric_scale AS s, datetime_precision AS dp, is_generated, generation_expression FROM information_schema.columns WHERE table_name = 'product' ORDER BY n;
SELECT tc.constraint_name, tc.constraint_type, tc.is_deferrable, kcu.column_name, ccu.table_name AS refs FROM information_schema.table_constraints tc LEFT JOIN information_schema.key_column_usage kcu USING (constraint_name) LEFT JOIN information_schema.constraint_column_usage ccu USING (constraint_name) WHERE tc.table_name = 'product' AND tc.constraint_name !~ 'not_null' AND tc.constraint_type <> 'CHECK' ORDER BY 1;
SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = 'public' AND constraint_name !~ 'not_null' ORDER BY 1;
SELECT attribute_name, data_type, attribute_udt_name FROM information_schema.attributes WHERE udt_name = 'dims' ORDER BY ordinal_position;
SELECT pg_get_functiondef('no_such'::regproc);
SELECT pg_get_viewdef('product'::regclass), pg_get_constraintdef(0), pg_describe_object('pg_class'::regclass, 'v1'::regclass, 2), format_type(NULL, NULL), format_type('dims[]'::regtype, NULL);
DROP TYPE color;
DROP DOMAIN sku CASCADE;
