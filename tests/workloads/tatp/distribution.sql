-- Archipel only. The foreign keys alone would co-locate the four tables; this says it.
SELECT create_distributed_table('subscriber', 's_id');
SELECT create_distributed_table('access_info', 's_id', colocate_with => 'subscriber');
SELECT create_distributed_table('special_facility', 's_id', colocate_with => 'subscriber');
SELECT create_distributed_table('call_forwarding', 's_id', colocate_with => 'subscriber');
