-- Archipel only: by key, as the primary key alone would have it.
SELECT create_distributed_table('usertable', 'ycsb_key');
