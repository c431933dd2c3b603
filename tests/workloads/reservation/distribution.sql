-- Archipel only: a flight's seats live with it, customers by themselves.
SELECT create_distributed_table('customers', 'c_id', colocate_with => 'none');
SELECT create_distributed_table('flights', 'f_id', colocate_with => 'none');
SELECT create_distributed_table('reservations', 'r_flight', colocate_with => 'flights');
