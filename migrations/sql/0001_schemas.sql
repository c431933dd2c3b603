-- The schemas every database has. The system's own hold views that the server computes; they
-- are named here so that their rows are in the system catalog like any other schema's.
CREATE SCHEMA IF NOT EXISTS pg_catalog;
CREATE SCHEMA IF NOT EXISTS information_schema;
CREATE SCHEMA IF NOT EXISTS archipel;
CREATE SCHEMA IF NOT EXISTS public;

COMMENT ON SCHEMA pg_catalog IS 'system catalog schema';
COMMENT ON SCHEMA public IS 'standard public schema';
COMMENT ON SCHEMA archipel IS 'islands, executors, partitions, routing and routines of this server';
