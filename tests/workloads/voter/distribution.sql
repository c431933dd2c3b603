-- Archipel only: a line's votes live with it; who stands for election is known everywhere.
SELECT create_reference_table('contestants');
SELECT create_reference_table('area_codes');
SELECT create_distributed_table('callers', 'phone_number');
SELECT create_distributed_table('votes', 'phone_number', colocate_with => 'callers');
