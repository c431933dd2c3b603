\set aid random(1, 100000)
SELECT abalance AS balance, bid AS branch FROM pgbench_accounts WHERE aid = :aid \;
SELECT tid AS teller FROM pgbench_tellers WHERE tid = 1 + :aid % 10 \aset
UPDATE pgbench_tellers SET tbalance = tbalance + 0 * :balance WHERE tid = :teller;
