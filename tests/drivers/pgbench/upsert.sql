\set tid random(1, 20)
INSERT INTO pgbench_tellers AS t (tid, bid, tbalance) VALUES (:tid, 1, 0)
ON CONFLICT (tid) DO UPDATE SET filler = EXCLUDED.filler WHERE t.tbalance >= 0 RETURNING tbalance;
