-- polymorphism, VARIADIC, overload resolution
CREATE TYPE pair AS (l int, r int);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE FUNCTION first_of(VARIADIC anyarray) RETURNS anyelement LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE x ALIAS FOR $1; y ALIAS FOR $0;
BEGIN
  FOR i IN 1 .. coalesce(array_length(x, 1), 0) LOOP
    y := x[i];
    IF y IS NOT NULL THEN RETURN y; END IF;
  END LOOP;
  RETURN NULL;
END $$;
SELECT first_of(NULL, 2, 3), first_of(NULL, 'a'::text), first_of(NULL::date), first_of(VARIADIC '{}'::int[]), first_of(NULL::pair, ROW(1, 2)::pair);
SELECT pg_typeof(first_of(1, 2.5));
SELECT first_of(1, 'x'::text);
SELECT first_of(NULL, NULL);
SELECT first_of();
CREATE FUNCTION pick(cond boolean, a anycompatible, b anycompatible, OUT res anycompatible, OUT ty text) LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  res := CASE WHEN cond THEN a ELSE b END;
  ty := pg_typeof(res)::text;
END $$;
SELECT (pick(true, 1, 2.5)).*, (pick(false, 'x', 'y'::varchar)).ty AS vt, (pick(NULL, 1::smallint, 2::bigint)).*, (pick(true, date '2024-01-01', timestamp '2024-01-02 03:00')).res AS ts;
SELECT * FROM pick(true, 1, 'abc'::text);
SELECT * FROM pick(true, ARRAY[1], ARRAY[1.5]);
SELECT * FROM pick(true, 'u1', 'u2');
CREATE FUNCTION acat(anycompatiblearray, VARIADIC anycompatiblearray) RETURNS anycompatiblearray LANGUAGE sql IMMUTABLE AS 'SELECT $1 || $2';
SELECT acat(ARRAY[1], 2, 3.5), pg_typeof(acat(ARRAY[1], 2, 3.5)), acat('{}'::text[], 'a', 'b'), acat(ARRAY[1]::bigint[], VARIADIC ARRAY[2, 3]);
CREATE FUNCTION same(anyelement, anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT $1 IS NOT DISTINCT FROM $2';
CREATE FUNCTION has(anyarray, anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT $2 = ANY ($1)';
CREATE FUNCTION plain(anynonarray) RETURNS text LANGUAGE sql AS 'SELECT $1::text || ''!''';
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION next_enum(e anyenum) RETURNS anyenum LANGUAGE plpgsql STABLE AS $$
DECLARE vals e%TYPE[] ; BEGIN NULL; RETURN e; END $$;
CREATE FUNCTION next_enum(e anyenum) RETURNS anyenum LANGUAGE plpgsql STABLE AS $$
DECLARE a text[] := enum_range(e)::text[]; i int := array_position(enum_range(e)::text[], e::text);
BEGIN
  IF i IS NULL THEN RETURN enum_first(e); END IF;
  RETURN a[i % cardinality(a) + 1];
END $$;
SELECT same(1, 1), same(NULL, 'a'::text), same(ARRAY[1], ARRAY[1]), has(ARRAY['x', 'y'], 'y'), has(ARRAY[1], NULL), plain(5), plain('q'::text);
SELECT same(1, 1.0);
SELECT has(1, 1);
SELECT plain(ARRAY[1]);
SELECT next_enum('ok'::mood), next_enum('happy'::mood), next_enum(NULL::mood), enum_range(NULL::mood), enum_range('ok'::mood, NULL), enum_last('sad'::mood);
SELECT next_enum('ok');
SELECT next_enum(1);
CREATE FUNCTION bad_poly() RETURNS anyelement LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad_poly(int) RETURNS anyarray LANGUAGE sql AS 'SELECT ARRAY[1]';

-- overloads
CREATE FUNCTION kind(int) RETURNS text LANGUAGE sql AS $$SELECT 'int ' || $1$$;
CREATE FUNCTION kind(bigint) RETURNS text LANGUAGE sql AS $$SELECT 'bigint ' || $1$$;
CREATE FUNCTION kind(numeric) RETURNS text LANGUAGE sql AS $$SELECT 'numeric ' || $1$$;
CREATE FUNCTION kind(text) RETURNS text LANGUAGE sql AS $$SELECT 'text ' || $1$$;
CREATE FUNCTION kind(anyelement) RETURNS text LANGUAGE sql AS $$SELECT 'any ' || $1::text$$;
CREATE FUNCTION kind(VARIADIC int[]) RETURNS text LANGUAGE sql AS $$SELECT 'variadic ' || array_to_string($1, '+')$$;
CREATE FUNCTION kind(int, text DEFAULT 'dflt') RETURNS text LANGUAGE sql AS $$SELECT 'pair ' || $1 || $2$$;
SELECT kind(1::smallint);
SELECT kind(5::posint), kind(2::bigint), kind(3.0), kind('lit'), kind('v'::varchar), kind(true), kind(1::float8), kind(ARRAY[1,2]), kind(1, 2, 3), kind(1, 'z'), kind(ROW(1, 2)::pair);
SELECT kind(1);
SELECT kind(NULL), kind(NULL::int, NULL);
SELECT kind(VARIADIC ARRAY[4, 5]), kind(VARIADIC '{}');
DROP FUNCTION kind(int, text);
SELECT kind(1), kind('1'::name), kind(5::posint);
SELECT kind('1'::"char");
DROP FUNCTION kind;
DROP FUNCTION kind(bigint), kind(numeric);
SELECT kind(7::bigint), kind(7.5);
DROP FUNCTION kind(date);
CREATE OR REPLACE FUNCTION kind(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE FUNCTION kind(i int) RETURNS text LANGUAGE sql AS $$SELECT 'named ' || i$$;
CREATE OR REPLACE FUNCTION kind(j int) RETURNS text LANGUAGE sql AS $$SELECT 'renamed ' || j$$;
CREATE FUNCTION amb(a int, b numeric) RETURNS text LANGUAGE sql AS $$SELECT 'int,num'$$;
CREATE FUNCTION amb(a numeric, b int) RETURNS text LANGUAGE sql AS $$SELECT 'num,int'$$;
SELECT amb(1, 1.0), amb(1.0, 1);
SELECT amb(1, 1);
SELECT amb(b => 1.5, a => 1), amb(a => 1, b => 1::numeric);

-- named notation and defaults
CREATE FUNCTION ship(addr text, weight numeric DEFAULT 1.0, express boolean DEFAULT false, INOUT note text DEFAULT concat('n', 1 + 1), OUT cost numeric) LANGUAGE plpgsql AS $$
BEGIN
  cost := round(weight * CASE WHEN express THEN 2.5 ELSE 1.25 END, 2);
  note := format('%s/%s', addr, note);
END $$;
SELECT * FROM ship('A');
SELECT * FROM ship('B', express => true);
SELECT * FROM ship(note => NULL, addr => 'C', weight => 2);
SELECT * FROM ship('D', 3, note := 'old style');
SELECT * FROM ship();
SELECT * FROM ship('E', addr => 'F');
SELECT * FROM ship(addr => 'E', addr => 'F');
SELECT * FROM ship('G', cost => 1);
SELECT * FROM ship('H', NULL, NULL);
CREATE FUNCTION bad_default(a int DEFAULT 1, b int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad_names(a int, a int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION vdef(sep text, VARIADIC parts text[] DEFAULT '{none}') RETURNS text LANGUAGE sql AS 'SELECT array_to_string(parts, sep, ''~'')';
SELECT vdef('-'), vdef('-', 'a', NULL, 'c'), vdef(sep => '+', VARIADIC parts => ARRAY['x', 'y']), vdef('/', VARIADIC NULL);
SELECT vdef(sep => '+', parts => ARRAY['x']);
SELECT proname, pronargs, pronargdefaults, pg_get_function_arguments(oid) AS args, pg_get_function_result(oid) AS res FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname IN ('ship', 'vdef', 'pick', 'acat') ORDER BY proname;
