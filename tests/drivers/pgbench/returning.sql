\set aid random(1, 100000)
\set delta random(-5000, 5000)
WITH moved AS (
    UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid RETURNING aid, bid, abalance
)
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
SELECT 1, bid, aid, :delta, CURRENT_TIMESTAMP FROM moved RETURNING tid, mtime;
