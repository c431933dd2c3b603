\set tid random(1, 4)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT sum(tbalance) AS sum FROM pgbench_tellers WHERE tid <= 4 \gset
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :tid;
END;
