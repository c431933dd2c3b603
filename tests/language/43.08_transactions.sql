-- 43.8 Transaction management: COMMIT and ROLLBACK in procedures and DO blocks.
CREATE TABLE test1 (a int PRIMARY KEY, b text);
-- case: the manual's transaction_test1
CREATE PROCEDURE transaction_test1()
LANGUAGE plpgsql
AS $$
BEGIN
    FOR i IN 0..9 LOOP
        INSERT INTO test1 (a) VALUES (i);
        IF i % 2 = 0 THEN
            COMMIT;
        ELSE
            ROLLBACK;
        END IF;
    END LOOP;
END;
$$;
CALL transaction_test1();
SELECT a FROM test1 ORDER BY a;
--> a
-->   0
-->   2
-->   4
-->   6
-->   8
-- case: the same in a DO block
DO $$ BEGIN FOR i IN 0..5 LOOP INSERT INTO test1 (a) VALUES (i); IF i % 2 = 1 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END $$;
SELECT a FROM test1 ORDER BY a;
--> a
-->   1
-->   3
-->   5
-- case: what was committed stays when the procedure fails
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (1); COMMIT; INSERT INTO test1 VALUES (2); PERFORM 1 / 0; END $$;
CALL p();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / 0"
-->     PL/pgSQL function p() line 1 at PERFORM
SELECT a FROM test1;
--> a
-->   1
-- case: COMMIT in a function
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
SELECT f();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function f() line 1 at COMMIT
-- case: ROLLBACK in a function
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ROLLBACK; RETURN 1; END $$;
SELECT f();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function f() line 1 at ROLLBACK
-- case: COMMIT in a procedure called inside a transaction block
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (1); COMMIT; END $$;
BEGIN;
CALL p();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p() line 1 at COMMIT
ROLLBACK;
SELECT count(*) FROM test1;
--> count
-->   0
-- case: COMMIT in a procedure called by a procedure
CREATE PROCEDURE inner_p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (2); COMMIT; END $$;
CREATE PROCEDURE outer_p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (1); CALL inner_p(); INSERT INTO test1 VALUES (3); ROLLBACK; END $$;
CALL outer_p();
SELECT a FROM test1 ORDER BY a;
--> a
-->   1
-->   2
-- case: COMMIT in a procedure called by a DO block
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (2); ROLLBACK; END $$;
DO $$ BEGIN INSERT INTO test1 VALUES (1); CALL p(); INSERT INTO test1 VALUES (3); END $$;
SELECT a FROM test1 ORDER BY a;
--> a
-->   3
-- case: COMMIT in a procedure called by a function
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN CALL p(); RETURN 1; END $$;
SELECT f();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p() line 1 at COMMIT
-->     SQL statement "CALL p()"
-->     PL/pgSQL function f() line 1 at CALL
-- case: COMMIT in a block with an exception clause
DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$;
--> ERROR 2D000: cannot commit while a subtransaction is active
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at COMMIT
-- case: COMMIT in a handler
DO $$ BEGIN BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN INSERT INTO test1 VALUES (1); COMMIT; END; END $$;
SELECT a FROM test1;
--> a
-->   1
-- case: ROLLBACK in a block with an exception clause
DO $$ BEGIN INSERT INTO test1 VALUES (1); BEGIN INSERT INTO test1 VALUES (2); ROLLBACK; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $$;
--> NOTICE 00000: 2D000 cannot roll back while a subtransaction is active
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SELECT a FROM test1;
--> a
-->   1
-- case: COMMIT in a procedure called in a block with an exception clause
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
DO $$ BEGIN CALL p(); EXCEPTION WHEN invalid_transaction_termination THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an exception block between commits
DO $$ BEGIN FOR i IN 1..4 LOOP BEGIN INSERT INTO test1 VALUES (i % 3); EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'twice %', i; END; COMMIT; END LOOP; END $$;
--> NOTICE 00000: twice 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SELECT a FROM test1 ORDER BY a;
--> a
-->   0
-->   1
-->   2
-- case: COMMIT AND CHAIN keeps the isolation level
DO $$ BEGIN SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; RAISE NOTICE '%', current_setting('transaction_isolation'); COMMIT AND CHAIN; RAISE NOTICE '%', current_setting('transaction_isolation'); COMMIT; RAISE NOTICE '%', current_setting('transaction_isolation'); END $$;
--> ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
-->   CONTEXT: SQL statement "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: ROLLBACK AND CHAIN
DO $$ BEGIN INSERT INTO test1 VALUES (1); ROLLBACK AND CHAIN; INSERT INTO test1 VALUES (2); COMMIT AND NO CHAIN; END $$;
SELECT a FROM test1;
--> a
-->   2
-- case: COMMIT WORK is not PL/pgSQL
DO $$ BEGIN COMMIT WORK; END $$;
--> ERROR 42601: syntax error at or near "WORK"
-->   POSITION: 20
-- case: variables live on after COMMIT and ROLLBACK
DO $$ DECLARE n int := 1; a int[] := '{1}'; r record; BEGIN r := ROW(1, 'x'); n := 2; ROLLBACK; a := a || n; COMMIT; RAISE NOTICE '% % %', n, a, r; END $$;
--> NOTICE 00000: 2 {1,2} (1,x)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: OUT values after COMMIT
CREATE PROCEDURE p(INOUT n int) LANGUAGE plpgsql AS $$ BEGIN n := n + 1; COMMIT; n := n * 2; END $$;
CALL p(4);
--> n
-->   10
DO $$ DECLARE x int := 1; BEGIN CALL p(x); RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a FOR over a query goes on after COMMIT
INSERT INTO test1 SELECT g, 'x' FROM generate_series(1, 4) g;
--> changed 4
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM test1 ORDER BY a LOOP UPDATE test1 SET b = b || r.a WHERE a = r.a; COMMIT; END LOOP; END $$;
SELECT * FROM test1 ORDER BY a;
--> a | b
-->   1 | x1
-->   2 | x2
-->   3 | x3
-->   4 | x4
-- case: a FOR over a query with ROLLBACK
INSERT INTO test1 SELECT g, 'x' FROM generate_series(1, 3) g;
--> changed 3
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT * FROM test1 ORDER BY a LOOP n := n + 1; UPDATE test1 SET b = 'y'; ROLLBACK; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SELECT DISTINCT b FROM test1;
--> b
-->   x
-- case: a FOR over a query that changes, with COMMIT
INSERT INTO test1 SELECT g FROM generate_series(1, 3) g;
--> changed 3
DO $$ DECLARE r record; BEGIN FOR r IN UPDATE test1 SET b = 'u' RETURNING * LOOP COMMIT; END LOOP; END $$;
--> ERROR 55000: cannot perform transaction commands inside a cursor loop that is not read-only
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at COMMIT
-- case: a FOR over EXECUTE with COMMIT
INSERT INTO test1 SELECT g FROM generate_series(1, 3) g;
--> changed 3
DO $$ DECLARE r record; s int := 0; BEGIN FOR r IN EXECUTE 'SELECT a FROM test1' LOOP s := s + r.a; COMMIT; END LOOP; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a cursor across COMMIT
INSERT INTO test1 SELECT g FROM generate_series(1, 3) g;
--> changed 3
DO $$ DECLARE c CURSOR FOR SELECT a FROM test1 ORDER BY a; x int; BEGIN OPEN c; FETCH c INTO x; COMMIT; FETCH c INTO x; END $$;
--> ERROR 34000: cursor "c" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at FETCH
-- case: a cursor loop with COMMIT
INSERT INTO test1 SELECT g FROM generate_series(1, 3) g;
--> changed 3
DO $$ DECLARE c CURSOR FOR SELECT a FROM test1 ORDER BY a; s int := 0; BEGIN FOR r IN c LOOP s := s + r.a; COMMIT; END LOOP; RAISE NOTICE '%', s; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: two nested query loops with COMMIT
INSERT INTO test1 SELECT g FROM generate_series(1, 2) g;
--> changed 2
DO $$ DECLARE r record; s record; n int := 0; BEGIN FOR r IN SELECT a FROM test1 LOOP FOR s IN SELECT a FROM test1 LOOP n := n + r.a * s.a; COMMIT; END LOOP; END LOOP; RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SET TRANSACTION after COMMIT
DO $$ BEGIN COMMIT; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; RAISE NOTICE '%', current_setting('transaction_isolation'); ROLLBACK; END $$;
--> NOTICE 00000: serializable
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SET TRANSACTION too late
DO $$ BEGIN PERFORM 1; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; END $$;
--> ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
-->   CONTEXT: SQL statement "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: SET LOCAL ends with COMMIT
DO $$ BEGIN SET LOCAL application_name = 'once'; RAISE NOTICE '%', current_setting('application_name'); COMMIT; RAISE NOTICE '%', current_setting('application_name') = 'once'; END $$;
--> NOTICE 00000: once
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: COMMIT with a deferred constraint that fails
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE chi (id int REFERENCES par DEFERRABLE INITIALLY DEFERRED);
DO $$ BEGIN INSERT INTO chi VALUES (1); COMMIT; RAISE NOTICE 'never'; END $$;
--> ERROR 23503: insert or update on table "chi" violates foreign key constraint "chi_id_fkey"
-->   DETAIL: Key (id)=(1) is not present in table "par".
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at COMMIT
-->   SCHEMA: public
-->   TABLE: chi
-->   CONSTRAINT: chi_id_fkey
SELECT count(*) FROM chi;
--> count
-->   0
-- case: COMMIT with a deferred constraint satisfied in time
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE chi (id int REFERENCES par DEFERRABLE INITIALLY DEFERRED);
DO $$ BEGIN INSERT INTO chi VALUES (1); INSERT INTO par VALUES (1); COMMIT; RAISE NOTICE 'fine'; END $$;
--> NOTICE 00000: fine
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a procedure with SET refuses COMMIT
CREATE PROCEDURE p() LANGUAGE plpgsql SET application_name = 'x' AS $$ BEGIN COMMIT; END $$;
CALL p();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p() line 1 at COMMIT
-- case: a SECURITY DEFINER procedure refuses COMMIT
CREATE PROCEDURE p() LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN COMMIT; END $$;
CALL p();
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function p() line 1 at COMMIT
-- case: a temporary table ON COMMIT DROP and COMMIT
DO $$ BEGIN CREATE TEMP TABLE passing (a int) ON COMMIT DROP; INSERT INTO passing VALUES (1); COMMIT; RAISE NOTICE '%', to_regclass('passing') IS NULL; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: now() moves on with COMMIT
DO $$ DECLARE t timestamptz := now(); BEGIN PERFORM pg_sleep(0.002); RAISE NOTICE '%', t = now(); COMMIT; RAISE NOTICE '%', t < now(); END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a batch delete that commits each turn
INSERT INTO test1 SELECT g FROM generate_series(1, 10) g;
--> changed 10
CREATE PROCEDURE purge(size int, INOUT turns int DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  LOOP
    DELETE FROM test1 WHERE a IN (SELECT a FROM test1 ORDER BY a LIMIT size);
    GET DIAGNOSTICS n = ROW_COUNT;
    EXIT WHEN n = 0;
    turns := turns + 1;
    COMMIT;
  END LOOP;
END $$;
CALL purge(4);
--> turns
-->   3
SELECT count(*) FROM test1;
--> count
-->   0
-- case: notices before and after COMMIT, and an error
DO $$ BEGIN RAISE NOTICE 'before'; INSERT INTO test1 VALUES (1); COMMIT; RAISE NOTICE 'after'; INSERT INTO test1 VALUES (1); END $$;
--> NOTICE 00000: before
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: after
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 23505: duplicate key value violates unique constraint "test1_pkey"
-->   DETAIL: Key (a)=(1) already exists.
-->   CONTEXT: SQL statement "INSERT INTO test1 VALUES (1)"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-->   SCHEMA: public
-->   TABLE: test1
-->   CONSTRAINT: test1_pkey
SELECT a FROM test1;
--> a
-->   1
-- case: COMMIT inside nested loops and blocks
DO $$ BEGIN <<o>> FOR i IN 1..3 LOOP BEGIN WHILE true LOOP INSERT INTO test1 VALUES (i); COMMIT; CONTINUE o; END LOOP; END; END LOOP; END $$;
SELECT count(*) FROM test1;
--> count
-->   3
-- case: COMMIT in both branches of CASE
CREATE PROCEDURE settle(ok bool) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (1) ON CONFLICT DO NOTHING; CASE WHEN ok THEN COMMIT; ELSE ROLLBACK; END CASE; END $$;
CALL settle(false);
SELECT count(*) FROM test1;
--> count
-->   0
CALL settle(true);
SELECT count(*) FROM test1;
--> count
-->   1
-- case: DDL and COMMIT
DO $$ BEGIN CREATE TABLE made (a int); COMMIT; INSERT INTO made VALUES (1); ROLLBACK; END $$;
SELECT count(*) FROM made;
--> count
-->   0
-- case: dynamic SQL around COMMIT
DO $$ BEGIN FOR i IN 1..2 LOOP EXECUTE format('INSERT INTO test1 VALUES (%s)', i); COMMIT; END LOOP; EXECUTE 'DELETE FROM test1'; ROLLBACK; END $$;
SELECT count(*) FROM test1;
--> count
-->   2
-- case: RETURN after COMMIT
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO test1 VALUES (5); COMMIT; RETURN; INSERT INTO test1 VALUES (6); END $$;
CALL p();
SELECT a FROM test1;
--> a
-->   5
-- case: a trigger's procedure refuses COMMIT
CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON test1 FOR EACH ROW EXECUTE FUNCTION trg();
INSERT INTO test1 VALUES (1);
--> ERROR 2D000: invalid transaction termination
-->   CONTEXT: PL/pgSQL function trg() line 1 at COMMIT
-- case: SQL procedures have no COMMIT
CREATE PROCEDURE p() LANGUAGE sql AS $$ INSERT INTO test1 VALUES (1); COMMIT $$;
CALL p();
--> ERROR 0A000: COMMIT is not allowed in an SQL function
-->   CONTEXT: SQL function "p" during startup
-- case: what was said before a COMMIT that fails
CREATE TABLE parents (id int PRIMARY KEY);
CREATE TABLE children (id int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'before'; CREATE TABLE made (a int); INSERT INTO children VALUES (9); RAISE NOTICE 'still'; COMMIT; RAISE NOTICE 'never'; END $$;
CALL p();
--> NOTICE 00000: before
-->   CONTEXT: PL/pgSQL function p() line 1 at RAISE
--> NOTICE 00000: still
-->   CONTEXT: PL/pgSQL function p() line 1 at RAISE
--> ERROR 23503: insert or update on table "children" violates foreign key constraint "children_id_fkey"
-->   DETAIL: Key (id)=(9) is not present in table "parents".
-->   CONTEXT: PL/pgSQL function p() line 1 at COMMIT
-->   SCHEMA: public
-->   TABLE: children
-->   CONSTRAINT: children_id_fkey
SELECT count(*) FROM children;
--> count
-->   0
