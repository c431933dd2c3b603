\set aid random(1, 90000)
SELECT aid, bid, abalance, filler FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 500 ORDER BY abalance, aid DESC;
