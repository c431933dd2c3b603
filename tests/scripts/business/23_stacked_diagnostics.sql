SET timezone = 'UTC';
CREATE DOMAIN pct AS numeric CONSTRAINT pct_range CHECK (VALUE BETWEEN 0 AND 100);
CREATE TABLE parent (id int CONSTRAINT parent_pk PRIMARY KEY, share pct, tag text NOT NULL UNIQUE);
CREATE TABLE child (id int PRIMARY KEY, pid int CONSTRAINT child_parent_fk REFERENCES parent, q int CONSTRAINT q_even CHECK (q % 2 = 0));
CREATE TABLE errors (n serial, stmt text, state text, msg text, det text, hint text, col text, con text, typ text, tab text, sch text);
INSERT INTO parent VALUES (1, 10, 'one');

CREATE FUNCTION try(stmt text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  e errors; rows bigint;
BEGIN
  EXECUTE stmt;
  GET DIAGNOSTICS rows = ROW_COUNT;
  RAISE DEBUG 'fine';
  RETURN rows > 0;
EXCEPTION
  WHEN query_canceled THEN RAISE;
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS e.state = RETURNED_SQLSTATE, e.msg = MESSAGE_TEXT, e.det = PG_EXCEPTION_DETAIL, e.hint = PG_EXCEPTION_HINT,
      e.col = COLUMN_NAME, e.con = CONSTRAINT_NAME, e.typ = PG_DATATYPE_NAME, e.tab = TABLE_NAME, e.sch = SCHEMA_NAME;
    INSERT INTO errors(stmt, state, msg, det, hint, col, con, typ, tab, sch)
    VALUES (stmt, e.state, e.msg, nullif(e.det, ''), nullif(e.hint, ''), nullif(e.col, ''), nullif(e.con, ''), nullif(e.typ, ''), nullif(e.tab, ''), nullif(e.sch, ''));
    RETURN NULL;
END $$;
SELECT try(s) FROM unnest(ARRAY[
  $q$INSERT INTO parent VALUES (1, 5, 'dup')$q$, $q$INSERT INTO parent VALUES (2, 500, 'big')$q$, $q$INSERT INTO parent(id) VALUES (3)$q$,
  $q$INSERT INTO child VALUES (1, 77, 2)$q$, $q$INSERT INTO child VALUES (1, 1, 3)$q$, $q$INSERT INTO child VALUES (1, 1, 4)$q$,
  $q$DELETE FROM parent$q$, $q$UPDATE parent SET tag = NULL$q$, $q$SELECT 1/0$q$, $q$SELECT 'x'::int$q$, $q$SELEC 1$q$, $q$SELECT * FROM nope$q$,
  $q$SELECT nope FROM parent$q$, $q$SELECT abs('a', 2)$q$, $q$SELECT 2147483647 + 1$q$, $q$SELECT 1e400::float8$q$, $q$SELECT (ARRAY[1,2])[1:2] = 1$q$,
  $q$SELECT '2024-02-30'::date$q$, $q$SELECT '{"a":}'::jsonb$q$, $q$SELECT substring('abc', 1, -1)$q$, $q$SELECT sqrt(-1)$q$, $q$SELECT ln(0::numeric)$q$,
  $q$CREATE TABLE parent (x int)$q$, $q$SELECT (SELECT id FROM parent UNION ALL SELECT 2)$q$, $q$SELECT 1 WHERE false$q$, $q$DROP FUNCTION nofn(int)$q$, NULL,
  $q$SELECT 'a' ~ '('$q$, $q$SELECT chr(0)$q$, $q$ALTER TABLE parent ADD CONSTRAINT x CHECK (id > 5)$q$, $q$SELECT 5::bit(3), B'102'$q$, $q$SELECT decode('zz', 'hex')$q$]) WITH ORDINALITY AS t(s, n) ORDER BY n;
SELECT n, state, msg FROM errors ORDER BY n;
SELECT n, det, hint FROM errors WHERE det IS NOT NULL OR hint IS NOT NULL ORDER BY n;
SELECT n, col, con, typ, tab, sch FROM errors WHERE concat(col, con, typ, tab) <> '' ORDER BY n;
SELECT left(state, 2) AS class, count(*) FROM errors GROUP BY 1 ORDER BY 1;

-- custom conditions raised, caught by class, re-raised with changes
CREATE FUNCTION raise_it(kind int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  CASE kind
    WHEN 1 THEN RAISE EXCEPTION 'plain %% and %', 'arg';
    WHEN 2 THEN RAISE unique_violation;
    WHEN 3 THEN RAISE SQLSTATE 'ZZ001' USING MESSAGE = 'zz', TABLE = 'tt', COLUMN = 'cc', CONSTRAINT = 'kk', DATATYPE = 'dd', SCHEMA = 'ss';
    WHEN 4 THEN RAISE EXCEPTION division_by_zero USING DETAIL = 'none';
    WHEN 5 THEN RAISE EXCEPTION USING ERRCODE = 'raise_exception', MESSAGE = 'five', HINT = NULL;
    WHEN 6 THEN RAISE EXCEPTION 'six' USING MESSAGE = 'dup message';
    WHEN 7 THEN RAISE;
    WHEN 8 THEN RAISE EXCEPTION '% %', 1;
    ELSE RETURN 'none';
  END CASE;
END $$;
CREATE OR REPLACE FUNCTION raise_it(kind int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  CASE kind
    WHEN 1 THEN RAISE EXCEPTION 'plain %% and %', 'arg';
    WHEN 2 THEN RAISE unique_violation;
    WHEN 3 THEN RAISE SQLSTATE 'ZZ001' USING MESSAGE = 'zz', TABLE = 'tt', COLUMN = 'cc', CONSTRAINT = 'kk', DATATYPE = 'dd', SCHEMA = 'ss';
    WHEN 4 THEN RAISE division_by_zero USING DETAIL = 'none';
    WHEN 5 THEN RAISE EXCEPTION USING ERRCODE = 'raise_exception', MESSAGE = 'five', HINT = 'h';
    WHEN 6 THEN RAISE EXCEPTION 'six' USING MESSAGE = 'dup message';
    WHEN 7 THEN RAISE;
    ELSE RETURN 'none';
  END CASE;
END $$;
SELECT raise_it(1);
SELECT raise_it(2);
SELECT raise_it(3);
SELECT raise_it(4);
SELECT raise_it(6);
SELECT raise_it(7);
SELECT raise_it(NULL);
CREATE FUNCTION wrap(kind int, depth int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m text; d text; c text; cc text;
BEGIN
  IF depth > 0 THEN RETURN wrap(kind, depth - 1) || '+' || depth; END IF;
  BEGIN
    RETURN raise_it(kind);
  EXCEPTION
    WHEN SQLSTATE 'ZZ001' OR unique_violation THEN
      GET STACKED DIAGNOSTICS c = CONSTRAINT_NAME, cc = COLUMN_NAME;
      RETURN format('[%s] %s (%s/%s)', SQLSTATE, SQLERRM, c, cc);
    WHEN division_by_zero THEN
      BEGIN
        PERFORM 'inner'::int;
      EXCEPTION WHEN invalid_text_representation THEN
        RAISE NOTICE 'inner: %', SQLERRM;
      END;
      RAISE NOTICE 'outer again: %', SQLERRM;
      RAISE;
    WHEN raise_exception THEN
      GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_CONTEXT;
      RAISE EXCEPTION 'wrapped: %', m USING DETAIL = d, ERRCODE = 'P0W00';
  END;
END $$;
SELECT k, wrap(k, 1) FROM (VALUES (2), (3), (9)) v(k) ORDER BY k;
SELECT wrap(4, 0);
SELECT wrap(1, 2);
DO $$
DECLARE ctx text; n int;
BEGIN
  GET CURRENT DIAGNOSTICS ctx = PG_CONTEXT, n = ROW_COUNT;
  RAISE NOTICE 'ctx "%" n=%', ctx, n;
  GET STACKED DIAGNOSTICS ctx = MESSAGE_TEXT;
END $$;
DO $$ BEGIN RAISE NOTICE 'outside %', SQLERRM; END $$;
DO $$ BEGIN RAISE WARNING 'w' USING ERRCODE = '01004', DETAIL = 'dd', HINT = 'hh'; RAISE LOG 'quiet'; RAISE INFO 'i'; ASSERT 1 = 2; END $$;
SELECT count(*) FROM child;
