SET timezone = 'UTC';
CREATE TABLE acct (id int PRIMARY KEY, bal int NOT NULL CHECK (bal >= 0));
CREATE TABLE acct_hist (n serial PRIMARY KEY, id int, delta int);
CREATE SEQUENCE tick;
INSERT INTO acct VALUES (1, 100), (2, 50), (3, 0);
CREATE FUNCTION hist() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM nextval('tick');
  INSERT INTO acct_hist(id, delta) VALUES (NEW.id, NEW.bal - OLD.bal);
  RETURN NULL;
END $$;
CREATE TRIGGER hist AFTER UPDATE ON acct FOR EACH ROW EXECUTE FUNCTION hist();

CREATE FUNCTION transfer(src int, dst int, amount int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE moved int := 0; step text := 'start';
BEGIN
  BEGIN
    step := 'credit';
    UPDATE acct SET bal = bal + amount WHERE id = dst;
    GET DIAGNOSTICS moved = ROW_COUNT;
    step := 'debit';
    UPDATE acct SET bal = bal - amount WHERE id = src;
    step := 'done';
  EXCEPTION WHEN check_violation THEN
    -- variables keep their values, table changes do not
    RETURN format('%s->%s: %s failed after moving %s row(s), dst bal now %s', src, dst, step, moved, (SELECT bal FROM acct WHERE id = dst));
  END;
  RETURN step;
END $$;
SELECT transfer(1, 2, 70);
SELECT transfer(1, 3, 70);
SELECT transfer(2, 9, 10), transfer(3, 3, 0);
SELECT * FROM acct ORDER BY id;
SELECT id, delta FROM acct_hist ORDER BY n;
SELECT last_value, is_called FROM tick;

-- batch: failed rows are rolled back alone; earlier iterations stay
CREATE TABLE feed (line int PRIMARY KEY, payload text);
INSERT INTO feed VALUES (1, '4:10'), (2, '5:-1'), (3, 'x:1'), (4, '6'), (5, '1:1'), (6, NULL), (7, '7:99999999999'), (8, '8:8');
CREATE TABLE rejected (line int, why text, state char(5));
DO $$
DECLARE f record; parts text[]; ok int := 0; bad int := 0;
BEGIN
  FOR f IN SELECT * FROM feed ORDER BY line LOOP
    BEGIN
      parts := string_to_array(f.payload, ':');
      INSERT INTO acct VALUES (parts[1]::int, parts[2]::int);
      ok := ok + 1;
      IF f.line = 8 THEN
        CREATE TEMP TABLE eight AS SELECT * FROM acct;
        RAISE EXCEPTION 'rolled back with its temp table' USING ERRCODE = 'EIGHT';
      END IF;
    EXCEPTION
      WHEN unique_violation OR not_null_violation THEN
        bad := bad + 1;
        INSERT INTO rejected VALUES (f.line, 'constraint: ' || SQLERRM, SQLSTATE);
      WHEN OTHERS THEN
        bad := bad + 1;
        INSERT INTO rejected VALUES (f.line, SQLERRM, SQLSTATE);
        BEGIN
          INSERT INTO rejected VALUES (f.line / 0, 'never', '');
        EXCEPTION WHEN division_by_zero THEN
          UPDATE rejected SET why = why || ' [and ' || SQLERRM || ']' WHERE line = f.line;
        END;
    END;
  END LOOP;
  RAISE NOTICE 'ok % bad %', ok, bad;
END $$;
SELECT * FROM rejected ORDER BY line;
SELECT * FROM acct ORDER BY id;
SELECT to_regclass('eight') IS NULL AS temp_gone;

-- an error raised by the loop's own query after some iterations have run
CREATE FUNCTION risky() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; seen int[] := '{}';
BEGIN
  FOR r IN SELECT id, 60 / (6 - id) AS q FROM acct ORDER BY id LOOP
    seen := array_append(seen, r.id);
    UPDATE acct SET bal = bal + 1 WHERE id = r.id;
    RETURN NEXT format('%s:%s', r.id, r.q);
  END LOOP;
  RETURN NEXT 'complete';
EXCEPTION WHEN division_by_zero THEN
  RETURN NEXT 'seen some: ' || (cardinality(seen) >= 0)::text;
  RETURN QUERY SELECT 'bal ' || id || '=' || bal FROM acct ORDER BY id;
END $$;
INSERT INTO acct VALUES (6, 1);
SELECT count(*) > 0 FROM risky() x WHERE x LIKE 'seen%';
SELECT * FROM acct ORDER BY id;

-- handler that fails itself; SET LOCAL inside a rolled back block
CREATE FUNCTION bad_handler() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO acct VALUES (77, 7);
  SET LOCAL application_name = 'inner';
  RAISE EXCEPTION 'first';
EXCEPTION WHEN OTHERS THEN
  RAISE NOTICE 'app name is now %', current_setting('application_name');
  PERFORM 'not a number: '::text || SQLERRM, SQLERRM::int;
END $$;
SET application_name = 'outer';
SELECT bad_handler();
SELECT count(*) FROM acct WHERE id = 77;

-- deferred trigger queue and handler: only the surviving updates fire
BEGIN;
DO $$ BEGIN
  UPDATE acct SET bal = 1000 WHERE id = 1;
  BEGIN UPDATE acct SET bal = 2000 WHERE id = 2; RAISE SQLSTATE 'AAAAA'; EXCEPTION WHEN SQLSTATE 'AAAAA' THEN NULL; END;
END $$;
SELECT id, delta FROM acct_hist WHERE delta > 500 ORDER BY n;
SELECT 1 / 0;
SELECT 'never';
COMMIT;
SELECT id, delta FROM acct_hist WHERE delta > 500 ORDER BY n;
