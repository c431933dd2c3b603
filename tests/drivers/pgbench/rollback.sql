\set aid random(1, 100000)
BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE;
UPDATE pgbench_accounts SET filler = 'gone' WHERE aid = :aid;
SELECT count(*) FROM pgbench_accounts WHERE aid = :aid AND filler = 'gone';
ROLLBACK;
