SET timezone = 'UTC';
CREATE TABLE incident (n serial, depth int, state text, msg text, det text, hnt text, col text, con text, dt text, tbl text, sch text);

CREATE FUNCTION boom(kind int) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE nul text;
BEGIN
  CASE kind
    WHEN 1 THEN RAISE 'plain % and 100%%', 'text';
    WHEN 2 THEN RAISE EXCEPTION 'with options %', 2 USING DETAIL = 'd ' || kind, HINT = 'try ' || kind + 1, ERRCODE = '22012';
    WHEN 3 THEN RAISE unique_violation;
    WHEN 4 THEN RAISE SQLSTATE 'ZX123';
    WHEN 5 THEN RAISE unique_violation USING MESSAGE = 'Duplicate user ID: ' || kind;
    WHEN 6 THEN RAISE EXCEPTION USING MESSAGE = 'full house', DETAIL = 'D', HINT = 'H', ERRCODE = 'check_violation',
                COLUMN = 'c1', CONSTRAINT = 'k1', DATATYPE = 'dt1', TABLE = 't1', SCHEMA = 's1';
    WHEN 7 THEN RAISE EXCEPTION 'null arg: %, %', nul, NULL::int;
    WHEN 8 THEN RAISE EXCEPTION USING MESSAGE = nul;
    WHEN 9 THEN RAISE SQLSTATE '22012' USING DETAIL = 'only detail';
    WHEN 10 THEN RAISE EXCEPTION 'multi
line %', E'x\ty';
    WHEN 11 THEN RAISE EXCEPTION USING ERRCODE = 'P0002';
    WHEN 12 THEN RAISE EXCEPTION '%', (SELECT array_agg(g) FROM generate_series(1, kind / 4) g);
  END CASE;
END $f$;
SELECT boom(1);
SELECT boom(2);
SELECT boom(3);
SELECT boom(4);
SELECT boom(6);
SELECT boom(8);
SELECT boom(10);
SELECT boom(13);

CREATE FUNCTION record_incident(kind int, reraise boolean DEFAULT false) RETURNS incident LANGUAGE plpgsql AS $f$
DECLARE i incident;
BEGIN
  PERFORM boom(kind);
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS i.state = RETURNED_SQLSTATE, i.msg = MESSAGE_TEXT, i.det = PG_EXCEPTION_DETAIL, i.hnt = PG_EXCEPTION_HINT,
    i.col = COLUMN_NAME, i.con := CONSTRAINT_NAME, i.dt = PG_DATATYPE_NAME, i.tbl = TABLE_NAME, i.sch = SCHEMA_NAME;
  i.depth := kind;
  INSERT INTO incident(depth, state, msg, det, hnt, col, con, dt, tbl, sch)
  VALUES (i.depth, i.state, i.msg, i.det, i.hnt, i.col, i.con, i.dt, i.tbl, i.sch) RETURNING * INTO i;
  IF reraise THEN RAISE; END IF;
  RETURN i;
END $f$;
SELECT (record_incident(g)).msg FROM generate_series(1, 5) g;
SELECT r.* FROM generate_series(6, 13) g, record_incident(g) r ORDER BY g;
SELECT record_incident(6, true);
SELECT count(*), min(n), max(depth) FROM incident;

-- re-raise through three levels, changed on the way
CREATE FUNCTION lvl(n int) RETURNS int LANGUAGE plpgsql AS $f$
BEGIN
  IF n = 0 THEN RAISE EXCEPTION 'bottom' USING ERRCODE = 'LV000', HINT = 'dig'; END IF;
  RETURN lvl(n - 1) + 1;
EXCEPTION
  WHEN SQLSTATE 'LV000' THEN
    RAISE NOTICE 'level % sees %', n, SQLERRM;
    IF n = 2 THEN RAISE EXCEPTION '% (seen at %)', SQLERRM, n USING ERRCODE = 'LV002'; ELSE RAISE; END IF;
  WHEN SQLSTATE 'LV002' THEN
    RAISE NOTICE 'level % sees changed %', n, SQLERRM;
    BEGIN
      RAISE EXCEPTION 'a nested one';
    EXCEPTION WHEN raise_exception THEN
      RAISE NOTICE 'inner %, state %', SQLERRM, SQLSTATE;
    END;
    RAISE NOTICE 'after inner: %, state %', SQLERRM, SQLSTATE;
    RAISE;
END $f$;
SELECT lvl(3);
SELECT lvl(1);

DO $$ BEGIN RAISE; END $$;
DO $$ BEGIN RAISE NOTICE 'x' USING ERRCODE = 'nonsense'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'a' USING MESSAGE = 'b'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'two % %', 1; END $$;
DO $$ BEGIN RAISE EXCEPTION 'none', 1; END $$;
DO $$ BEGIN RAISE foo_condition; END $$;
DO $$ BEGIN RAISE EXCEPTION 'x' USING DETAIL = 'a', DETAIL = 'b'; END $$;
DO $$ BEGIN RAISE DEBUG 'silent'; RAISE LOG 'silent too'; RAISE INFO 'info % ', 1; RAISE WARNING 'warn' USING HINT = 'careful', DETAIL = 'very', ERRCODE = '01004'; END $$;
SET client_min_messages = warning;
DO $$ BEGIN RAISE NOTICE 'hidden'; RAISE INFO 'always'; RAISE WARNING 'shown'; END $$;
RESET client_min_messages;
DO $$ BEGIN PERFORM SQLERRM; END $$;
DO $$ DECLARE s text; BEGIN GET STACKED DIAGNOSTICS s = MESSAGE_TEXT; END $$;
