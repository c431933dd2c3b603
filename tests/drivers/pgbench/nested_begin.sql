BEGIN;
SELECT now(), clock_timestamp() >= now();
BEGIN;
SELECT txid_current_if_assigned() IS NULL, pg_backend_pid() > 0;
COMMIT;
COMMIT;
