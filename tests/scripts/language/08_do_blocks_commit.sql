SET timezone = 'UTC';
CREATE TABLE t (a int, b text, UNIQUE (a) DEFERRABLE INITIALLY DEFERRED);
DO $$
BEGIN
  FOR i IN 1..6 LOOP
    INSERT INTO t VALUES (i, 'row ' || i);
    CASE WHEN i % 3 = 0 THEN ROLLBACK; WHEN i % 3 = 2 THEN COMMIT; ELSE NULL; END CASE;
  END LOOP;
END $$;
SELECT * FROM t ORDER BY a;
-- deferred constraint checked by COMMIT inside the block: the error leaves earlier commits in place
DO $$
BEGIN
  INSERT INTO t VALUES (20, 'kept');
  COMMIT;
  INSERT INTO t VALUES (20, 'dup');
  RAISE NOTICE 'dup accepted for now: % rows', (SELECT count(*) FROM t WHERE a = 20);
  COMMIT;
  RAISE NOTICE 'not reached';
END $$;
SELECT * FROM t ORDER BY a;
BEGIN;
DO $$ BEGIN INSERT INTO t VALUES (30, 'x'); COMMIT; END $$;
ROLLBACK;
BEGIN;
SAVEPOINT a;
DO $$ BEGIN INSERT INTO t VALUES (31, 'x'); ROLLBACK; END $$;
ROLLBACK TO a;
DO $$ BEGIN INSERT INTO t VALUES (32, 'in block'); END $$;
COMMIT;
SELECT a FROM t WHERE a >= 30 ORDER BY a;

DO $$ BEGIN SAVEPOINT s1; END $$;
DO $$ BEGIN START TRANSACTION; END $$;
DO $$ BEGIN EXECUTE 'COMMIT'; END $$;
DO $$ BEGIN EXECUTE 'SAVEPOINT x'; END $$;
DO $$ BEGIN ROLLBACK TO SAVEPOINT s1; END $$;
CREATE FUNCTION f_commit() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
SELECT f_commit();
CREATE FUNCTION f_sql_commit() RETURNS void LANGUAGE sql AS $$ COMMIT $$;
CREATE PROCEDURE p_sql(x int) LANGUAGE sql AS $$ INSERT INTO t VALUES (x, 'sql proc'); SELECT 1 $$;
CALL p_sql(40);
CREATE FUNCTION trg_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN NEW; END $$;
CREATE TRIGGER trg_commit BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.a = 99) EXECUTE FUNCTION trg_commit();
INSERT INTO t VALUES (98, 'fine'), (99, 'boom');
CALL p_sql(99);
SELECT a FROM t WHERE a > 35 ORDER BY a;

-- isolation levels set by the block itself
DO $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
  RAISE NOTICE 'now %', current_setting('transaction_isolation');
  ROLLBACK AND CHAIN;
  RAISE NOTICE 'chained %', current_setting('transaction_isolation');
  COMMIT;
  RAISE NOTICE 'default again %', current_setting('transaction_isolation');
  PERFORM 1;
  SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
  SET TRANSACTION READ ONLY;
  INSERT INTO t VALUES (1000, 'read only');
END $$;
DO $$
BEGIN
  PERFORM count(*) FROM t;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
END $$;
SET default_transaction_isolation = 'repeatable read';
DO $$ BEGIN RAISE NOTICE '% / %', current_setting('transaction_isolation'), current_setting('default_transaction_isolation'); END $$;
RESET default_transaction_isolation;

-- set_config local versus session across commits
DO $$
BEGIN
  PERFORM set_config('my.local', 'L', true), set_config('my.sess', 'S', false);
  RAISE NOTICE '% %', current_setting('my.local'), current_setting('my.sess');
  COMMIT;
  RAISE NOTICE '[%] %', current_setting('my.local', true), current_setting('my.sess');
  PERFORM set_config('my.sess', 'S2', false);
  ROLLBACK;
  RAISE NOTICE '%', current_setting('my.sess');
  SET LOCAL my.local = 'again';
END $$;
SELECT current_setting('my.local', true) = '' AS emptied, current_setting('my.sess') AS sess, current_setting('my.never', true) IS NULL AS never;
-- open cursors across COMMIT
DO $$
DECLARE c refcursor; r record;
BEGIN
  OPEN c FOR SELECT a FROM t ORDER BY a;
  FETCH c INTO r; RAISE NOTICE 'first %', r.a;
  COMMIT;
  FETCH c INTO r;
  RAISE NOTICE 'after commit %', r;
END $$;
CREATE TEMP TABLE per_tx (x int) ON COMMIT DELETE ROWS;
DO $$
DECLARE n int;
BEGIN
  CREATE TEMP TABLE dropped (y int) ON COMMIT DROP;
  INSERT INTO per_tx VALUES (1), (2);
  INSERT INTO dropped VALUES (1);
  SELECT count(*) INTO n FROM per_tx; RAISE NOTICE 'before %', n;
  COMMIT;
  SELECT count(*) INTO n FROM per_tx; RAISE NOTICE 'after %', n;
  INSERT INTO per_tx SELECT generate_series(1, 5);
  SELECT count(*) INTO n FROM dropped;
EXCEPTION WHEN undefined_table THEN RAISE NOTICE 'cannot happen here';
END $$;
DO $$
DECLARE n int;
BEGIN
  CREATE TEMP TABLE dropped (y int) ON COMMIT DROP;
  INSERT INTO per_tx VALUES (1), (2);
  COMMIT;
  SELECT count(*) INTO n FROM per_tx; RAISE NOTICE 'after %', n;
  SELECT count(*) INTO n FROM dropped;
END $$;
COMMIT;
ROLLBACK AND CHAIN;
SELECT a, b FROM t ORDER BY a, b;
