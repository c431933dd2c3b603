SET timezone = 'UTC';
CREATE TYPE range_i AS (lo int, hi int);
CREATE FUNCTION valid_range(r range_i) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF r.lo > r.hi THEN
    RAISE NOTICE 'inverted %', r;
    RETURN false;
  END IF;
  RETURN r IS NULL OR r.lo IS NOT NULL;
END $$;
CREATE FUNCTION luhn(s text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE t int := 0; d int; n int := length(s);
BEGIN
  FOR i IN REVERSE n..1 LOOP
    d := substr(s, i, 1)::int;
    IF (n - i) % 2 = 1 THEN
      d := d * 2;
      IF d > 9 THEN d := d - 9; END IF;
    END IF;
    t := t + d;
  END LOOP;
  RETURN t % 10 = 0;
END $$;
CREATE DOMAIN rng AS range_i CHECK (valid_range(VALUE));
CREATE DOMAIN card AS text CHECK (luhn(VALUE));
CREATE DOMAIN posint AS int DEFAULT 1 CHECK (VALUE > 0);
CREATE DOMAIN small_pos AS posint CHECK (VALUE < 100) NOT NULL;
CREATE DOMAIN grid AS int[] CHECK (array_ndims(VALUE) = 2 AND array_length(VALUE, 1) = array_length(VALUE, 2));
CREATE DOMAIN email AS varchar(30) COLLATE "C" CHECK (VALUE LIKE '%_@_%' AND position(' ' IN VALUE) = 0);
SELECT '4539578763621486'::card, '123'::card;
SELECT (1, 5)::range_i::rng, ROW(NULL, NULL)::rng, NULL::rng;
SELECT ROW(9, 1)::rng;
SELECT 5::posint + 0.5 AS n, pg_typeof(5::posint), pg_typeof(5::posint + 1), (-1)::posint;
SELECT NULL::posint, NULL::small_pos;
SELECT 150::small_pos;
SELECT '{{1,2},{3,4}}'::grid, ('{{1,2},{3,4}}'::grid)[2][1], '{}'::grid;
SELECT '{{1,2}}'::grid;
CREATE TABLE t (id small_pos PRIMARY KEY, r rng, c card, g grid, e email, rs rng[], w posint);
INSERT INTO t(id) VALUES (1);
INSERT INTO t VALUES (2, '(3,4)', '79927398713', '{{5}}', 'a@b', ARRAY[(1, 2), (3, 3)]::rng[], DEFAULT) RETURNING *;
INSERT INTO t(id, r) VALUES (3, ROW(4, 3));
INSERT INTO t(id, rs) VALUES (3, ARRAY[ROW(4, 3)::range_i]::rng[]);
INSERT INTO t(id, e) VALUES (3, 'no spaces@x');
INSERT INTO t(id, e) VALUES (3, 'this.is.a.very.long.address@example.org');
INSERT INTO t(id, c) VALUES (3, '12x');
INSERT INTO t(r) VALUES ('(1,1)');
INSERT INTO t(id) VALUES (0);
UPDATE t SET r.hi = 0 WHERE id = 2;
UPDATE t SET r.hi = 40, g[1][1] = 6, rs[2] = '(7,8)' WHERE id = 2 RETURNING r, g, rs;
UPDATE t SET g[2] = 1 WHERE id = 2;
SELECT id, w, (r).lo, (rs[1]).hi FROM t ORDER BY id;

-- domains as variables, parameters, results
CREATE FUNCTION use_domains(p posint, OUT q small_pos, OUT r rng) LANGUAGE plpgsql AS $$
DECLARE
  a posint;           -- takes the default of the domain
  b CONSTANT small_pos := 7;
BEGIN
  RAISE NOTICE 'a=% b=%', a, b;
  q := p;
  r := ROW(p - 10, q);
  a := a - p;
END $$;
CREATE OR REPLACE FUNCTION use_domains(p posint, OUT q int, OUT r rng) LANGUAGE plpgsql AS $$
DECLARE
  a posint;
  b CONSTANT small_pos := 7;
BEGIN
  RAISE NOTICE 'a=% b=%', a, b;
  q := p;
  BEGIN
    r := ROW(p, 10);
  EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'r stays %: %', r, SQLERRM;
  END;
  a := 3 - p;
  b := 8;
END $$;
CREATE FUNCTION use_domains2(p posint, OUT q int, OUT r rng) LANGUAGE plpgsql AS $$
DECLARE
  a posint;
BEGIN
  RAISE NOTICE 'a=%', a;
  q := p;
  BEGIN
    r := ROW(p, 10);
  EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'r stays %: %', r, SQLERRM;
  END;
  a := 30 - p;
END $$;
SELECT * FROM use_domains(5);
SELECT * FROM use_domains2(4);
SELECT * FROM use_domains2(14);
SELECT * FROM use_domains2(44);
SELECT * FROM use_domains2(-4);
DO $$ DECLARE x small_pos; BEGIN x := 5; END $$;
DO $$ DECLARE x small_pos := 5; BEGIN x := NULL; END $$;
DO $$ DECLARE x int NOT NULL := 5; BEGIN x := x + NULL; END $$;
DO $$ DECLARE x int NOT NULL; BEGIN NULL; END $$;
CREATE FUNCTION ret_domain(x int) RETURNS posint LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
CREATE FUNCTION ret_domain_sql(x int) RETURNS posint LANGUAGE sql AS $$ SELECT x $$;
SELECT ret_domain(3), ret_domain(NULL);
SELECT ret_domain(-3);
SELECT ret_domain_sql(3);

-- altering
ALTER DOMAIN posint ADD CONSTRAINT odd CHECK (VALUE % 2 = 1);
ALTER DOMAIN posint ADD CONSTRAINT odd CHECK (VALUE % 2 = 1) NOT VALID;
SELECT 4::posint;
UPDATE t SET w = w WHERE id = 2;
ALTER DOMAIN posint VALIDATE CONSTRAINT odd;
ALTER DOMAIN posint DROP CONSTRAINT odd;
ALTER DOMAIN posint SET NOT NULL;
ALTER DOMAIN posint DROP DEFAULT;
ALTER DOMAIN email RENAME TO mail;
INSERT INTO t(id, w) VALUES (50, NULL);
SELECT conname, contypid::regtype, pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid <> 0 AND connamespace = 'public'::regnamespace ORDER BY contypid::regtype::text, conname;
CREATE OR REPLACE FUNCTION luhn(s text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
UPDATE t SET c = c WHERE c IS NOT NULL;
DROP DOMAIN card;
DROP FUNCTION luhn(text);
ALTER TABLE t ADD CHECK (id < (SELECT 5));
ALTER TABLE t ADD CONSTRAINT sane CHECK (valid_range(r) AND w IS DISTINCT FROM 13), ADD CONSTRAINT low CHECK (id < 2);
SELECT id, r, c, g, e, rs, w FROM t ORDER BY id;
