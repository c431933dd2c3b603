-- What there is of pgcrypto 1.3.
CREATE FUNCTION @schema@.digest(text, text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_digest(pg_catalog.convert_to($1, 'UTF8'), $2) $$;
CREATE FUNCTION @schema@.digest(bytea, text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_digest($1, $2) $$;
CREATE FUNCTION @schema@.hmac(text, text, text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_hmac(pg_catalog.convert_to($1, 'UTF8'), pg_catalog.convert_to($2, 'UTF8'), $3) $$;
CREATE FUNCTION @schema@.hmac(bytea, bytea, text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_hmac($1, $2, $3) $$;
CREATE FUNCTION @schema@.gen_random_bytes(integer) RETURNS bytea LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.archipel_random_bytes($1) $$;
CREATE FUNCTION @schema@.gen_random_uuid() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT pg_catalog.gen_random_uuid() $$;
