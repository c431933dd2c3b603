SET timezone = 'UTC';
CREATE TABLE customer (id int PRIMARY KEY, email text, name text, phone text, merged_into int REFERENCES customer, prefs jsonb DEFAULT '{}', score real);
CREATE TABLE address (id serial PRIMARY KEY, cust int NOT NULL REFERENCES customer(id), street text, UNIQUE (cust, street));
CREATE TABLE "Order" ("Id" int PRIMARY KEY, "Cust Id" int REFERENCES customer, total numeric);
CREATE TABLE referral (a int REFERENCES customer ON UPDATE CASCADE, b int REFERENCES customer, CHECK (a <> b));
CREATE TABLE merge_log (n serial PRIMARY KEY, loser int, winner int, tbl regclass, col name, moved int, dropped int);
INSERT INTO customer(id, email, name, phone, prefs, score) VALUES (1, 'Ann@X.org', 'Ann', NULL, '{"lang": "nl", "news": true}', 1.5), (2, 'ann@x.org ', 'Ann B.', '+31 6-123', '{"lang": "en", "tz": {"a": 1}}', 0.1),
  (3, 'bob@y.net', 'Bob', '06123', DEFAULT, 'NaN'), (4, ' ANN@x.ORG', NULL, '(06) 123', NULL, '-Infinity'), (5, NULL, 'Nobody', NULL, '{}', NULL), (6, NULL, 'Nobody', NULL, '{}', 3e-10);
INSERT INTO address(cust, street) VALUES (1, 'High St'), (2, 'High St'), (2, 'Low St'), (4, 'Low St'), (3, 'Mid St');
INSERT INTO "Order" VALUES (100, 1, 10), (101, 2, 20), (102, 4, 30), (103, 3, 40);
INSERT INTO referral VALUES (1, 3), (2, 4), (3, 4);

CREATE FUNCTION norm_email(e text) RETURNS text LANGUAGE sql IMMUTABLE RETURN lower(btrim(e));
CREATE FUNCTION norm_phone(p text, OUT digits text, OUT intl boolean) LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  digits := regexp_replace(translate(p, '()-. ', ''), '^\+31', '0');
  intl := starts_with(ltrim(p), '+');
END $$;
SELECT id, norm_email(email), norm_phone(phone), (norm_phone(phone)).digits IS NULL AS nul FROM customer ORDER BY id;

-- candidate pairs, then groups by transitive closure
CREATE FUNCTION dup_groups() RETURNS TABLE (winner int, losers int[]) LANGUAGE plpgsql AS $$
DECLARE changed int := 1; rounds int := 0;
BEGIN
  CREATE TEMP TABLE grp ON COMMIT DROP AS SELECT id, id AS g FROM customer WHERE merged_into IS NULL;
  CREATE TEMP TABLE pair ON COMMIT DROP AS
    SELECT a.id AS x, b.id AS y FROM customer a JOIN customer b ON a.id < b.id AND (norm_email(a.email) = norm_email(b.email) OR (norm_phone(a.phone)).digits = (norm_phone(b.phone)).digits);
  WHILE changed > 0 LOOP
    rounds := rounds + 1;
    UPDATE grp SET g = m.g FROM (SELECT p.y AS id, min(g2.g) AS g FROM (SELECT x, y FROM pair UNION SELECT y, x FROM pair) p JOIN grp g2 ON g2.id = p.x GROUP BY p.y) m WHERE m.id = grp.id AND m.g < grp.g;
    GET DIAGNOSTICS changed = ROW_COUNT;
  END LOOP;
  RAISE NOTICE 'closed in % rounds', rounds;
  RETURN QUERY SELECT grp.g, array_agg(grp.id ORDER BY grp.id) FILTER (WHERE grp.id <> grp.g) FROM grp GROUP BY grp.g HAVING count(*) > 1 ORDER BY 1;
END $$;
SELECT * FROM dup_groups();
BEGIN;
SELECT winner FROM dup_groups();
SELECT winner FROM dup_groups();
ROLLBACK;

CREATE PROCEDURE merge_customer(p_loser int, p_winner int, p_dry bool DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
  fk record; k record; m int; d int; l customer; w customer;
BEGIN
  ASSERT p_loser <> p_winner, 'cannot merge into itself';
  SELECT * INTO STRICT l FROM customer WHERE id = p_loser;
  SELECT * INTO STRICT w FROM customer WHERE id = p_winner;
  FOR fk IN
    SELECT c.conrelid::regclass AS tbl, a.attname AS col, c.conname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
     WHERE c.contype = 'f' AND c.confrelid = 'customer'::regclass AND c.conrelid <> c.confrelid ORDER BY c.conrelid::regclass::text, a.attname
  LOOP
    m := 0; d := 0;
    CASE fk.tbl::text
      WHEN 'address' THEN
        FOR k IN SELECT id FROM address WHERE cust = p_loser ORDER BY id LOOP
          BEGIN
            UPDATE address SET cust = p_winner WHERE id = k.id;
            m := m + 1;
          EXCEPTION WHEN unique_violation THEN
            DELETE FROM address WHERE id = k.id;
            d := d + 1;
          END;
        END LOOP;
      WHEN 'referral' THEN
        EXECUTE format('DELETE FROM referral WHERE (a, b) IN (($1, $2), ($2, $1))') USING p_loser, p_winner;
        GET DIAGNOSTICS d = ROW_COUNT;
        EXECUTE format('UPDATE %s SET %I = $2 WHERE %2$I = $1', fk.tbl, fk.col) USING p_loser, p_winner;
        GET DIAGNOSTICS m = ROW_COUNT;
      ELSE
        EXECUTE format('WITH u AS (UPDATE %s SET %I = %L WHERE %2$I = %4$s RETURNING 1) SELECT count(*) FROM u', fk.tbl, fk.col, p_winner, p_loser) INTO m;
    END CASE;
    INSERT INTO merge_log(loser, winner, tbl, col, moved, dropped) VALUES (p_loser, p_winner, fk.tbl, fk.col, m, d);
  END LOOP;
  UPDATE customer SET merged_into = p_winner, email = NULL WHERE id = p_loser;
  UPDATE customer c SET name = coalesce(c.name, l.name), phone = coalesce(c.phone, l.phone), prefs = coalesce(l.prefs, '{}') || coalesce(c.prefs, '{}'), score = greatest(c.score, l.score) WHERE c.id = p_winner;
  IF p_dry THEN RAISE EXCEPTION 'dry run: % rows would be logged', (SELECT count(*) FROM merge_log) USING ERRCODE = 'DRY00'; END IF;
END $$;
CALL merge_customer(2, 1, true);
CALL merge_customer(2, 1);
CALL merge_customer(4, 1);
CALL merge_customer(3, 3);
CALL merge_customer(3, 33);
SELECT id, email, name, phone, merged_into, prefs, score FROM customer ORDER BY id;
SELECT cust, street FROM address ORDER BY cust, street;
SELECT "Cust Id", sum(total), array_agg("Id" ORDER BY "Id" DESC) FROM "Order" GROUP BY 1 ORDER BY 1;
SELECT * FROM referral ORDER BY a, b;
SELECT loser, winner, tbl, col, moved, dropped FROM merge_log ORDER BY n;
SELECT pg_typeof(tbl), pg_typeof(col), tbl::oid = to_regclass(tbl::text)::oid AS same FROM merge_log ORDER BY n LIMIT 1;
UPDATE customer SET id = 30 WHERE id = 3;
CREATE OR REPLACE FUNCTION find_customer(p customer) RETURNS SETOF customer LANGUAGE plpgsql AS $$
DECLARE q text := 'SELECT * FROM customer WHERE true'; k text; v text;
BEGIN
  FOR k, v IN SELECT key, value FROM jsonb_each_text(jsonb_strip_nulls(to_jsonb(p))) ORDER BY key LOOP
    q := q || format(' AND %I %s %L', k, CASE WHEN v LIKE '%\%%' THEN 'ILIKE' ELSE '=' END, replace(v, '\', ''));
  END LOOP;
  RAISE NOTICE '%', q;
  RETURN QUERY EXECUTE q || ' ORDER BY id';
END $$;
SELECT id, name FROM find_customer(ROW(NULL, NULL, 'a\%', NULL, NULL, NULL, NULL));
SELECT id FROM find_customer(jsonb_populate_record(NULL::customer, '{"merged_into": 1, "zzz": 2}'));
SELECT id, score FROM find_customer(NULL) ORDER BY score DESC NULLS LAST, id;
SELECT id FROM find_customer(jsonb_populate_record(NULL::customer, '{"name": "O''Neil \\ \"x\""}'));
