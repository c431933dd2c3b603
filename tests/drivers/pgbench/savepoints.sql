\set aid random(1, 100000)
BEGIN;
SAVEPOINT one;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
ROLLBACK TO SAVEPOINT one;
SAVEPOINT two;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid FOR SHARE;
RELEASE SAVEPOINT two;
COMMIT;
