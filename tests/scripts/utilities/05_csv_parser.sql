-- CSV import: character-level parser, typed staging and reject table
CREATE TYPE csv_cell AS (r int, c int, val text);
CREATE TYPE csv_state AS ENUM ('start', 'bare', 'quoted', 'quote_in_quoted');

CREATE FUNCTION parse_csv(doc text, delim "char" DEFAULT ',') RETURNS SETOF csv_cell LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  st csv_state := 'start';
  cell csv_cell := (1, 1, NULL);
  buf text := '';
  ch text;
  quoted bool := false;
BEGIN
  FOR i IN 1 .. length(doc) + 1 LOOP
    ch := CASE WHEN i > length(doc) THEN E'\n' ELSE substr(doc, i, 1) END;
    CONTINUE WHEN ch = E'\r';
    IF st = 'quoted' THEN
      IF i > length(doc) THEN
        RAISE EXCEPTION 'unterminated quote in row %, column %', cell.r, cell.c USING ERRCODE = 'data_exception';
      END IF;
      IF ch = '"' THEN st := 'quote_in_quoted'; ELSE buf := buf || ch; END IF;
      CONTINUE;
    END IF;
    IF ch = '"' THEN
      IF st = 'quote_in_quoted' THEN buf := buf || '"'; st := 'quoted';
      ELSIF st = 'start' THEN st := 'quoted'; quoted := true;
      ELSE RAISE EXCEPTION 'stray quote at offset %', i USING ERRCODE = '22000', DETAIL = format('state=%s buf=%L', st, buf);
      END IF;
    ELSIF ch = delim::text OR ch = E'\n' THEN
      IF NOT (ch = E'\n' AND cell.c = 1 AND st = 'start') THEN
        cell.val := CASE WHEN quoted THEN buf ELSE NULLIF(buf, '') END;
        RETURN NEXT cell;
      END IF;
      IF ch = E'\n' THEN cell.r := cell.r + 1; cell.c := 1; ELSE cell.c := cell.c + 1; END IF;
      buf := ''; quoted := false; st := 'start';
    ELSE
      buf := buf || ch;
      st := CASE st WHEN 'start' THEN 'bare'::csv_state ELSE st END;
    END IF;
  END LOOP;
  RETURN;
END $$;

SELECT * FROM parse_csv(E'a,b,c\n1,"x, ""y""",\n\n,"",z\r\n') ORDER BY r, c;
SELECT * FROM parse_csv('k;"multi' || chr(10) || 'line";3', ';') ORDER BY r, c;
SELECT count(*) FROM parse_csv('');
SELECT count(*) FROM parse_csv(NULL);
SELECT * FROM parse_csv('a,"open');
SELECT * FROM parse_csv('a,b"c');

CREATE TABLE product (sku varchar(6) PRIMARY KEY, name text NOT NULL, price numeric(7,2) CHECK (price > 0), since date, flags bool[] );
CREATE TABLE reject (line int, sqlstate text, message text, raw jsonb);

CREATE FUNCTION import_products(doc text, OUT loaded int, OUT updated int, OUT rejected int) LANGUAGE plpgsql AS $$
DECLARE
  header text[];
  rec record;
  obj jsonb;
  p product;
  existed bool;
  v_con text;
BEGIN
  loaded := 0; updated := 0; rejected := 0;
  SELECT array_agg(lower(trim(val)) ORDER BY c) INTO header FROM parse_csv(doc) WHERE r = 1;
  FOR rec IN
    SELECT r, array_agg(val ORDER BY c) AS vals FROM parse_csv(doc) WHERE r > 1 GROUP BY r ORDER BY r
  LOOP
    BEGIN
      IF cardinality(rec.vals) <> cardinality(header) THEN
        RAISE EXCEPTION 'expected % columns, got %', cardinality(header), cardinality(rec.vals);
      END IF;
      SELECT jsonb_object_agg(k, v) INTO obj FROM unnest(header, rec.vals) AS u(k, v);
      p := jsonb_populate_record(NULL::product, obj - 'flags');
      p.flags := string_to_array(obj ->> 'flags', '|')::bool[];
      SELECT true INTO existed FROM product WHERE sku = p.sku;
      INSERT INTO product SELECT p.* ON CONFLICT (sku) DO UPDATE
        SET (name, price) = (excluded.name, coalesce(excluded.price, product.price)), since = least(product.since, excluded.since), flags = product.flags || excluded.flags;
      IF existed THEN updated := updated + 1; ELSE loaded := loaded + 1; END IF;
    EXCEPTION
      WHEN check_violation OR not_null_violation THEN
        GET STACKED DIAGNOSTICS v_con = CONSTRAINT_NAME;
        INSERT INTO reject VALUES (rec.r, SQLSTATE, coalesce(NULLIF(v_con, ''), SQLERRM), obj);
        rejected := rejected + 1;
      WHEN data_exception OR raise_exception THEN
        INSERT INTO reject VALUES (rec.r, SQLSTATE, SQLERRM, to_jsonb(rec.vals));
        rejected := rejected + 1;
    END;
  END LOOP;
END $$;
SELECT * FROM import_products($csv$SKU, Name ,price,since,flags
A1,"Anvil, large",100.005,2020-02-29,t|f
B2,Bolt,0.5,2021-01-01,
B2,"Bolt ""M8""",,2019-12-31,true|no
C3,,1,2020-01-01,
D4,Drill,-4,,
E5,Elastic,abc,,
TOOLONG,Tape,1,,
F6,Fan,123456,,
G7,Gum,1,2021-02-30,
H8,Hat,2
I9,Ink,3,,maybe
J1,Jam,.25,,f$csv$);
SELECT * FROM product ORDER BY sku;
SELECT * FROM reject ORDER BY line;

CREATE FUNCTION to_csv(anyarray, VARIADIC opts text[] DEFAULT '{}') RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(CASE WHEN x IS NULL THEN coalesce(opts[1], '') WHEN x::text ~ '[",\n]' OR x::text = '' THEN '"' || replace(x::text, '"', '""') || '"' ELSE x::text END, coalesce(opts[2], ',') ORDER BY o)
  FROM unnest($1) WITH ORDINALITY u(x, o)
$$;
SELECT to_csv(ARRAY['a', NULL, 'b,c', '', 'q"']) AS t, to_csv(ARRAY[1.50, NULL, 2], '\N', ';') AS n, to_csv('{}'::int[]) AS e, to_csv(ARRAY[true, false], VARIADIC ARRAY['?', '/']) AS b;
SELECT to_csv(array_agg(val ORDER BY c)) = 'x,"y ""z""",' AS round_trip FROM parse_csv('x,"y ""z""",');
