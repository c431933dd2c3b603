SET timezone = 'UTC';
CREATE SCHEMA app;
CREATE TABLE app.tenants (id int PRIMARY KEY, code text UNIQUE NOT NULL, parent int REFERENCES app.tenants);
CREATE TABLE app.setting_defs (key text PRIMARY KEY, typ regtype NOT NULL DEFAULT 'text'::regtype, fallback text, secret bool DEFAULT false);
CREATE TABLE app.settings (tenant int REFERENCES app.tenants, key text REFERENCES app.setting_defs, value text, PRIMARY KEY (tenant, key));
INSERT INTO app.tenants VALUES (1, 'root', NULL), (2, 'acme', 1), (3, 'acme-eu', 2);
INSERT INTO app.setting_defs VALUES ('page_size', 'int', '20'), ('rate', 'numeric(5,2)', '1.005'), ('launch', 'date', NULL),
  ('features', 'text[]', '{a}'), ('theme', DEFAULT, 'light'), ('token', 'uuid', NULL, true);
INSERT INTO app.setting_defs VALUES ('token', 'uuid', NULL, true), ('flag', 'bool', 'on', NULL), ('arr', 'int[]', NULL, false),
  ('page_size', 'int', '20', DEFAULT), ('rate', 'numeric', '1.005', DEFAULT), ('theme', DEFAULT, 'light', DEFAULT);
INSERT INTO app.setting_defs(key, typ) VALUES ('oops', 'no_such_type');

CREATE FUNCTION app.tenant() RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE raw text := current_setting('app.tenant', true);
BEGIN
  IF raw IS NULL OR raw = '' THEN
    RAISE EXCEPTION 'no tenant selected' USING ERRCODE = 'insufficient_privilege', HINT = 'call app.enter()';
  END IF;
  RETURN raw::int;
END $$;
CREATE FUNCTION app.enter(p_code text, p_local bool DEFAULT false) RETURNS text LANGUAGE sql AS $$
  SELECT set_config('app.tenant', (SELECT id::text FROM app.tenants WHERE code = p_code), p_local);
$$;
CREATE FUNCTION app.typecheck() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE t regtype; norm text; msg text;
BEGIN
  SELECT typ INTO t FROM app.setting_defs WHERE key = NEW.key;
  BEGIN
    EXECUTE format('SELECT ($1::%s)::text', t) INTO norm USING NEW.value;
    NEW.value := norm;
  EXCEPTION
    WHEN data_exception THEN          -- a whole class
      GET STACKED DIAGNOSTICS msg = MESSAGE_TEXT;
      RAISE EXCEPTION 'setting %: %', NEW.key, msg USING ERRCODE = SQLSTATE;
  END;
  RETURN NEW;
END $$;
CREATE TRIGGER typed BEFORE INSERT OR UPDATE ON app.settings FOR EACH ROW EXECUTE FUNCTION app.typecheck();
CREATE FUNCTION app.get(p_key text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE t int := app.tenant(); v text; d app.setting_defs;
BEGIN
  SELECT * INTO d FROM app.setting_defs s WHERE s.key = p_key;
  IF NOT FOUND THEN RAISE undefined_parameter USING MESSAGE = 'unknown setting ' || quote_nullable(p_key); END IF;
  WHILE t IS NOT NULL LOOP
    SELECT value INTO v FROM app.settings s WHERE s.tenant = t AND s.key = p_key;
    EXIT WHEN FOUND;
    SELECT parent INTO t FROM app.tenants WHERE id = t;
  END LOOP;
  RETURN CASE WHEN d.secret THEN '***' ELSE coalesce(v, d.fallback) END;
END $$;
SELECT app.get('theme');
SELECT app.enter('root');
SELECT app.get('theme'), app.get('page_size'), app.get('token');
SELECT app.get('colour');
SELECT app.get(NULL);
INSERT INTO app.settings VALUES (1, 'flag', 'YES'), (2, 'page_size', ' 050 '), (2, 'arr', '{1, 2,NULL}'), (3, 'rate', '1e3'), (3, 'theme', NULL);
INSERT INTO app.settings VALUES (1, 'page_size', 'many');
INSERT INTO app.settings VALUES (1, 'token', 'xyz');
INSERT INTO app.settings VALUES (1, 'arr', '1,2');
INSERT INTO app.settings VALUES (1, 'ghost', '1');
INSERT INTO app.settings VALUES (1, 'token', 'A0EEBC999C0B4EF8BB6D6BB9BD380A11') RETURNING value;
SELECT t.code, d.key, app.get(d.key) FROM app.tenants t CROSS JOIN LATERAL (SELECT app.enter(t.code)) e(x), app.setting_defs d WHERE e.x IS NOT NULL AND t.id = 3 ORDER BY 2;

-- the setting is transactional, and local to a transaction or function
SELECT app.enter('acme');
BEGIN;
SELECT app.enter('acme-eu', true) AS in_tx, current_setting('app.tenant');
SAVEPOINT a;
SELECT set_config('app.tenant', '1', false);
ROLLBACK TO SAVEPOINT a;
SELECT current_setting('app.tenant') AS after_rollback_to;
COMMIT;
SELECT current_setting('app.tenant') AS after_commit;
BEGIN;
SET app.tenant = 3;
ROLLBACK;
SHOW app.tenant;
CREATE FUNCTION app.as_root(p_key text) RETURNS text LANGUAGE plpgsql SET app.tenant = '1' SET search_path = app AS $$
BEGIN
  PERFORM 1 FROM tenants;
  RETURN tenant() || ':' || coalesce(get(p_key), 'NULL') || ':' || current_setting('search_path');
END $$;
SELECT app.as_root('page_size'), app.get('page_size') AS outer, current_setting('app.tenant');
SELECT app.enter('nobody'), current_setting('app.tenant') = '' AS empty;
SELECT app.tenant();
SELECT current_setting('app.missing');
SELECT current_setting('app.missing', true) IS NULL, set_config('app.new_one', NULL, false), set_config('plainname', 'x', false);
RESET app.tenant;
SET app.tenant TO 'two';
SELECT app.tenant();

-- views that depend on the setting
SET app.tenant = '2';
CREATE TABLE app.notes (id serial, tenant int NOT NULL DEFAULT app.tenant(), body text CHECK (body <> ''), UNIQUE (tenant, body));
CREATE VIEW notes WITH (security_barrier) AS SELECT id, body FROM app.notes WHERE tenant = app.tenant() WITH CHECK OPTION;
INSERT INTO notes(body) VALUES ('one'), ('two') RETURNING id, body;
SET app.tenant = '3';
INSERT INTO notes(body) VALUES ('one') RETURNING *;
INSERT INTO notes(body) VALUES ('one');
INSERT INTO notes(body) VALUES ('');
UPDATE notes SET body = body || '!' RETURNING *;
DELETE FROM notes WHERE id = 1;
SELECT tenant, body FROM app.notes ORDER BY tenant, body;
DISCARD ALL;
SELECT count(*) FROM notes;
