-- configuration store: deep merge, diff, patch, walk
CREATE TABLE config (scope text PRIMARY KEY, parent text REFERENCES config DEFERRABLE, doc jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(doc) = 'object'));
CREATE TABLE config_change (id bigserial, scope text, path text[], op text, old jsonb, new jsonb);

CREATE FUNCTION deep_merge(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN b IS NULL THEN a
    WHEN jsonb_typeof(a) = 'object' AND jsonb_typeof(b) = 'object' THEN
      (SELECT coalesce(jsonb_object_agg(coalesce(ka, kb), CASE WHEN va IS NULL THEN vb WHEN vb IS NULL THEN va ELSE deep_merge(va, vb) END), '{}')
       FROM jsonb_each(a) x(ka, va) FULL JOIN jsonb_each(b) y(kb, vb) ON ka = kb)
    WHEN jsonb_typeof(a) = 'array' AND jsonb_typeof(b) = 'array' THEN a || b
    ELSE b END
$$;
SELECT deep_merge('{"a": {"x": 1, "y": [1]}, "b": 2}', '{"a": {"x": null, "y": [2], "z": {}}, "c": true}') AS m1, deep_merge('{}', '{}') m2, deep_merge(NULL, '[1]') m3, deep_merge('[1]', '{"k": 1}') m4, deep_merge('"s"', NULL) m5;

CREATE FUNCTION jdiff(a jsonb, b jsonb, at text[] DEFAULT '{}') RETURNS TABLE (path text[], op text, old jsonb, new jsonb) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE k text; n int;
BEGIN
  IF a = b THEN RETURN; END IF;
  IF jsonb_typeof(a) = 'object' AND jsonb_typeof(b) = 'object' THEN
    FOR k IN SELECT jsonb_object_keys(a) UNION SELECT jsonb_object_keys(b) ORDER BY 1 LOOP
      IF NOT b ? k THEN path := at || k; op := 'remove'; old := a -> k; new := NULL; RETURN NEXT;
      ELSIF NOT a ? k THEN RETURN QUERY SELECT at || k, 'add', NULL::jsonb, b -> k;
      ELSE RETURN QUERY SELECT * FROM jdiff(a -> k, b -> k, at || k);
      END IF;
    END LOOP;
  ELSIF jsonb_typeof(a) = 'array' AND jsonb_typeof(b) = 'array' THEN
    n := least(jsonb_array_length(a), jsonb_array_length(b));
    FOR i IN 0 .. n - 1 LOOP RETURN QUERY SELECT d.* FROM jdiff(a -> i, b -> i, at || i::text) d; END LOOP;
    FOR i IN REVERSE jsonb_array_length(a) - 1 .. n LOOP RETURN QUERY VALUES (at || i::text, 'remove', a -> i, NULL::jsonb); END LOOP;
    FOR i IN n .. jsonb_array_length(b) - 1 LOOP RETURN QUERY VALUES (at || i::text, 'add', NULL::jsonb, b -> i); END LOOP;
  ELSE
    RETURN QUERY VALUES (at, 'replace', a, b);
  END IF;
END $$;
SELECT * FROM jdiff('{"a": 1, "l": [1, {"q": 1}, 3], "gone": null}', '{"a": 1.0, "l": [1, {"q": 2}], "s": "new"}') ORDER BY path;
CREATE FUNCTION jpatch(doc jsonb, path text[], op text, val jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  CASE op
    WHEN 'remove' THEN RETURN doc #- path;
    WHEN 'replace' THEN RETURN CASE WHEN path = '{}' THEN val ELSE jsonb_set(doc, path, val, false) END;
    WHEN 'add' THEN
      IF jsonb_typeof(doc #> path[: cardinality(path) - 1]) = 'array' THEN RETURN jsonb_insert(doc, path, val); END IF;
      RETURN jsonb_set(doc, path, val);
  END CASE;
END $$;
CREATE FUNCTION roundtrip(a jsonb, b jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE d record; cur jsonb := a;
BEGIN
  FOR d IN SELECT * FROM jdiff(a, b) LOOP cur := jpatch(cur, d.path, d.op, d.new); END LOOP;
  RETURN cur = b;
END $$;
SELECT roundtrip(x, y) FROM (VALUES (1, '{"a": [1, 2, 3, 4]}'::jsonb, '{"a": [1, 9]}'::jsonb), (2, '{"a": []}', '{"a": [{"b": 1}, 2], "c": {"d": null}}'), (3, '1', '"x"'), (4, '{}', '[]')) v(o, x, y) ORDER BY o;

CREATE FUNCTION log_config() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO config_change (scope, path, op, old, new)
  SELECT NEW.scope, d.* FROM jdiff(CASE TG_OP WHEN 'INSERT' THEN '{}'::jsonb ELSE OLD.doc END, NEW.doc) d ORDER BY d.path;
  RETURN NEW;
END $$;
CREATE TRIGGER log_config BEFORE INSERT OR UPDATE OF doc ON config FOR EACH ROW EXECUTE FUNCTION log_config();
INSERT INTO config VALUES ('base', NULL, '{"db": {"host": "localhost", "port": 5432, "opts": ["a"]}, "debug": false}'), ('prod', 'base', '{"db": {"host": "db1", "opts": ["b"]}}'), ('prod-eu', 'prod', '{"debug": null, "region": "eu"}');
UPDATE config SET doc['db']['port'] = '6000', doc['new']['deep'][2] = '"x"' WHERE scope = 'base';
UPDATE config SET doc = doc - 'debug' #- '{db,opts,0}' WHERE scope IN ('prod', 'base') ;
UPDATE config SET doc = '[]' WHERE scope = 'prod';
UPDATE config SET doc['db']['host']['sub'] = '1' WHERE scope = 'prod';
SELECT id, scope, path, op, old, new FROM config_change ORDER BY id;

CREATE FUNCTION effective(s text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE c config; BEGIN
  SELECT * INTO c FROM config WHERE scope = s;
  RETURN CASE WHEN NOT FOUND THEN NULL WHEN c.parent IS NULL THEN c.doc ELSE deep_merge(effective(c.parent), c.doc) END;
END $$;
SELECT s, effective(s) FROM unnest(ARRAY['base', 'prod', 'prod-eu', 'zip']) s ORDER BY s;
WITH RECURSIVE walk(scope, path, val) AS (
  SELECT scope, ARRAY[]::text[], doc FROM config
  UNION ALL
  SELECT w.scope, w.path || e.k, e.v FROM walk w CROSS JOIN LATERAL (
    SELECT k, v FROM jsonb_each(CASE WHEN jsonb_typeof(w.val) = 'object' THEN w.val ELSE '{}' END) o(k, v)
    UNION ALL
    SELECT (i - 1)::text, v FROM jsonb_array_elements(CASE jsonb_typeof(w.val) WHEN 'array' THEN w.val ELSE '[]' END) WITH ORDINALITY a(v, i)) e)
SELECT scope, array_to_string(path, '/') AS path, val #>> '{}' AS leaf, jsonb_typeof(val) AS ty FROM walk WHERE jsonb_typeof(val) NOT IN ('object', 'array') ORDER BY scope, path;

CREATE FUNCTION jmap(j jsonb, fn text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE res jsonb; k text; v jsonb;
BEGIN
  CASE jsonb_typeof(j)
    WHEN 'object' THEN
      res := '{}';
      FOR k, v IN SELECT * FROM jsonb_each(j) LOOP res := res || jsonb_build_object(k, jmap(v, fn)); END LOOP;
    WHEN 'array' THEN SELECT jsonb_agg(jmap(e, fn) ORDER BY o) INTO res FROM jsonb_array_elements(j) WITH ORDINALITY t(e, o);
    WHEN 'string' THEN EXECUTE format('SELECT to_jsonb(%s(%L::text))', fn, j #>> '{}') INTO res;
    ELSE res := j;
  END CASE;
  RETURN res;
END $$;
SELECT jmap('{"a": "x", "b": ["y", {"c": "z", "n": 1}, null], "e": []}', 'upper'), jmap('"abc"', 'reverse'), jmap(NULL, 'upper');
SELECT jmap('["a"]', 'nofunc');
SELECT jsonb_strip_nulls(effective('prod-eu')), '{"a": {"b": [1, {"c": 2}]}}'::jsonb #> '{a,b,-1,c}', '[1,2,3]'::jsonb - 1, '[1,2,3]'::jsonb - '-1'::int, '{"a":1,"b":2}'::jsonb - '{a,zz}'::text[], '["a","b"]'::jsonb - 'a', '[1]'::jsonb || '{"a": 1}', '{"a":1}'::jsonb || '{"a":null}', '1'::jsonb || '2';
SELECT jsonb_set('{"a": [1, 2]}', '{a,5}', '9'), jsonb_set('{"a": [1, 2]}', '{a,-9}', '0'), jsonb_set('{"a": 1}', '{b,c}', '2'), jsonb_set('{"a": 1}', '{a}', NULL) n, jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'delete_key'), jsonb_insert('[1, 2]', '{0}', '"i"', true);
SELECT jsonb_insert('{"a": 1}', '{a}', '2');
SELECT jsonb_set('[1]', '{x}', '2');
SELECT '"s"'::jsonb - 'a';
