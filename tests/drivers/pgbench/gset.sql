\set aid random(1, 100000)
BEGIN;
SELECT abalance, bid, null::text AS nothing FROM pgbench_accounts WHERE aid = :aid FOR UPDATE \gset it_
UPDATE pgbench_accounts SET abalance = :it_abalance WHERE aid = :aid AND bid = :it_bid;
END;
