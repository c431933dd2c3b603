\set one random(1, 3)
\set other random(1, 3)
BEGIN;
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :one;
UPDATE pgbench_tellers SET tbalance = tbalance - 1 WHERE tid = :other;
END;
