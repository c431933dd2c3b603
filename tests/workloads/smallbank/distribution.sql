-- Archipel only: a customer's rows live together.
SELECT create_distributed_table('accounts', 'custid');
SELECT create_distributed_table('savings', 'custid', colocate_with => 'accounts');
SELECT create_distributed_table('checking', 'custid', colocate_with => 'accounts');
