-- What there is of uuid-ossp 1.1.
CREATE FUNCTION @schema@.uuid_nil() RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid $$;
CREATE FUNCTION @schema@.uuid_ns_dns() RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::pg_catalog.uuid $$;
CREATE FUNCTION @schema@.uuid_ns_url() RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '6ba7b811-9dad-11d1-80b4-00c04fd430c8'::pg_catalog.uuid $$;
CREATE FUNCTION @schema@.uuid_ns_oid() RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '6ba7b812-9dad-11d1-80b4-00c04fd430c8'::pg_catalog.uuid $$;
CREATE FUNCTION @schema@.uuid_ns_x500() RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '6ba7b814-9dad-11d1-80b4-00c04fd430c8'::pg_catalog.uuid $$;
CREATE FUNCTION @schema@.uuid_generate_v1() RETURNS uuid LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_uuid_of_time() $$;
CREATE FUNCTION @schema@.uuid_generate_v1mc() RETURNS uuid LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_uuid_of_time() $$;
CREATE FUNCTION @schema@.uuid_generate_v3(namespace uuid, name text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_uuid_of_name(3, $1, $2) $$;
CREATE FUNCTION @schema@.uuid_generate_v4() RETURNS uuid LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.gen_random_uuid() $$;
CREATE FUNCTION @schema@.uuid_generate_v5(namespace uuid, name text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_uuid_of_name(5, $1, $2) $$;
