SET timezone = 'UTC';
CREATE TABLE feed (line_no int PRIMARY KEY, raw text);
CREATE TABLE product (sku text PRIMARY KEY, title text NOT NULL, price numeric(8,2) CHECK (price > 0), stock int, attrs jsonb, updated int DEFAULT 0);
CREATE TABLE import_run (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total int, ok int, failed int, summary jsonb);
CREATE TABLE import_error (run int REFERENCES import_run, line_no int, sqlstate char(5), message text, raw text, PRIMARY KEY (run, line_no));
INSERT INTO feed VALUES (1, 'sku;title;price;stock;attrs'), (2, 'A1;Lamp;12,50;4;"{""w"": 40}"'), (3, 'A2;"Chair; wood";99.999;;'), (4, ''), (5, 'A3;;10;1;'),
  (6, 'A1;Lamp v2;13.00;x;'), (7, 'A4;Desk;-5;1;'), (8, 'A5;Sofa;1e3;2;{bad}'), (9, '# comment'), (10, 'A1;Lamp v3;1.4e1;7;"{""w"": 60, ""h"": null}"'), (11, 'A6;Rug'), (12, 'A7;"He said ""hi""";1;1;[1,2]'), (13, 'A8;T;99999999;0;'), (14, NULL);

-- a small csv splitter that knows quotes
CREATE FUNCTION split_line(s text, sep "char" DEFAULT ';') RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  res text[] := ARRAY[]::text[]; cur text := ''; quoted bool := false; ch text; i int := 1;
BEGIN
  WHILE i <= length(s) LOOP
    ch := substring(s FROM i FOR 1);
    IF ch = '"' THEN
      IF quoted AND substring(s FROM i + 1 FOR 1) = '"' THEN
        cur := cur || '"'; i := i + 1;
      ELSE
        quoted := NOT quoted;
      END IF;
    ELSIF ch = sep::text AND NOT quoted THEN
      res := array_append(res, nullif(cur, '')); cur := '';
    ELSE
      cur := cur || ch;
    END IF;
    i := i + 1;
  END LOOP;
  RETURN res || nullif(cur, '');
END $$;
SELECT split_line('a;"b;c";;d'), split_line(''), split_line(NULL), split_line('x,"y,""z"",', ','), cardinality(split_line(';;'));

CREATE FUNCTION import(p_from int DEFAULT 2, p_strict bool DEFAULT false) RETURNS import_run LANGUAGE plpgsql AS $$
DECLARE
  f feed; parts text[]; head text[]; run import_run; e_state text; e_msg text; e_con text; n int;
  stats jsonb := '{}';
BEGIN
  SELECT split_line(raw) INTO head FROM feed WHERE line_no = 1;
  INSERT INTO import_run(total, ok, failed) VALUES (0, 0, 0) RETURNING * INTO run;
  CREATE TEMP TABLE IF NOT EXISTS staged (line_no int, sku text, doc jsonb) ON COMMIT DELETE ROWS;
  TRUNCATE staged;
  <<lines>>
  FOR f IN SELECT * FROM feed WHERE line_no >= p_from ORDER BY line_no LOOP
    CONTINUE lines WHEN coalesce(f.raw, '') IN ('') OR f.raw LIKE '#%';
    run.total := run.total + 1;
    parts := split_line(f.raw);
    BEGIN
      IF cardinality(parts) <> cardinality(head) THEN
        RAISE EXCEPTION 'expected % columns, got %', cardinality(head), cardinality(parts) USING ERRCODE = 'IM001';
      END IF;
      INSERT INTO staged VALUES (f.line_no, parts[1], jsonb_object(head, parts));
      INSERT INTO product AS p (sku, title, price, stock, attrs)
      VALUES (parts[array_position(head, 'sku')], parts[2], replace(parts[3], ',', '.')::numeric, parts[4]::int, parts[5]::jsonb)
      ON CONFLICT (sku) DO UPDATE SET title = excluded.title, price = excluded.price, stock = coalesce(excluded.stock, p.stock),
        attrs = coalesce(p.attrs, '{}') || coalesce(excluded.attrs, '{}'), updated = p.updated + 1;
      run.ok := run.ok + 1;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS e_state = RETURNED_SQLSTATE, e_msg = MESSAGE_TEXT, e_con = CONSTRAINT_NAME;
      INSERT INTO import_error VALUES (run.id, f.line_no, e_state, e_msg || coalesce(' (' || nullif(e_con, '') || ')', ''), f.raw);
      stats := jsonb_set(stats, ARRAY[e_state], to_jsonb(coalesce((stats ->> e_state)::int, 0) + 1), true);
      run.failed := run.failed + 1;
      EXIT lines WHEN p_strict AND e_state !~ '^22';
    END;
  END LOOP lines;
  SELECT count(*), jsonb_build_object('staged', count(*), 'skus', count(DISTINCT sku), 'first', min(doc ->> 'title'), 'errors', stats) INTO n, run.summary FROM staged;
  UPDATE import_run SET total = run.total, ok = run.ok, failed = run.failed, summary = run.summary WHERE id = run.id;
  IF n = 0 AND p_from > 1 THEN RAISE WARNING 'nothing staged'; END IF;
  RETURN run;
END $$;
SELECT * FROM import();
SELECT count(*) FROM staged;
SELECT * FROM product ORDER BY sku;
SELECT line_no, sqlstate, message FROM import_error ORDER BY run, line_no;
SELECT id, total, failed FROM import(6, true);
BEGIN;
SELECT (import(p_from => 10)).ok;
SELECT line_no, sku, doc FROM staged ORDER BY line_no;
ROLLBACK;
SELECT ok, summary FROM import(100);
UPDATE feed SET raw = 'A2;Chair;5;3;"{""legs"": 4, ""w"": [true]}"' WHERE line_no = 3;
UPDATE feed SET raw = regexp_replace(raw, ';(-?)(\d+);', ';\2;') WHERE line_no = 7 RETURNING raw;
SELECT * FROM import(3);
SELECT sku, title, price, stock, attrs, updated FROM product ORDER BY sku;
SELECT run, count(*), array_agg(line_no ORDER BY line_no) AS lines, string_agg(DISTINCT sqlstate, ',') AS states FROM import_error GROUP BY run ORDER BY run;

-- compare the newest run with the one before, key by key
WITH s AS (SELECT id, key, value::int AS v FROM import_run, LATERAL jsonb_each(summary -> 'errors'))
SELECT coalesce(a.key, b.key) AS state, a.v AS before, b.v AS after, coalesce(b.v, 0) - coalesce(a.v, 0) AS delta
  FROM (SELECT * FROM s WHERE id = (SELECT min(id) FROM import_run)) a FULL JOIN (SELECT * FROM s WHERE id = (SELECT max(id) FROM import_run)) b ON a.key = b.key ORDER BY 1;
SELECT r.*, x.* FROM jsonb_to_recordset('[{"a": 1, "b": {"c": [1, null]}}, {"a": "2", "d": true}, {}]') AS r(a int, b jsonb, d bool), jsonb_to_record('{"Q": "2024-01-01", "z": [1,2]}') AS x("Q" date, z int[]) ORDER BY a;
SELECT * FROM json_populate_recordset(ROW('dflt', 't', 1.5, 3, NULL, 9)::product, '[{"sku": "n1", "price": null}, {"stock": 4, "attrs": {"b":1, "a":[]}}]') ORDER BY sku;
SELECT jsonb_populate_record(NULL::product, '{"sku": "x", "stock": "many"}');
SELECT jsonb_object('{a,1,b,NULL}'), jsonb_object('{{k,v},{x,y}}'), jsonb_object('{a,b,c}');
SELECT row_to_json(p, true) FROM product p WHERE sku = 'A1';
SELECT json_agg(p ORDER BY sku DESC) FROM (SELECT sku, price AS "unit price", attrs FROM product WHERE price < 20) p;
SELECT array_to_json('{{1,2},{3,NULL}}'::int[]), to_json(timestamp '2024-01-01 10:00'), to_jsonb(1.50), json_build_array(1, 'x', NULL, '{}'::jsonb, ROW(1, 'a')), to_json('infinity'::date);
