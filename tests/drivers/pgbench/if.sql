\set chance random(1, 4)
\if :chance = 1
SELECT count(*) FROM pgbench_tellers;
\elif :chance = 2
SELECT max(tid) FROM pgbench_tellers;
\else
SELECT bbalance FROM pgbench_branches WHERE bid = 1;
\endif
