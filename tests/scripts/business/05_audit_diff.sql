SET timezone = 'UTC';
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tbl text NOT NULL, op char(1) NOT NULL, pk jsonb, changes jsonb, actor text
);
CREATE TABLE employees (
  emp_id int PRIMARY KEY, name text, salary numeric(10,2), skills text[], addr jsonb, hired timestamptz, active bool DEFAULT true
);
CREATE TABLE teams (team text, region text, members int[] DEFAULT '{}', PRIMARY KEY (team, region));

CREATE FUNCTION jsonb_diff(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(coalesce(o.key, n.key), jsonb_build_array(o.value, n.value)), '{}'::jsonb)
    FROM jsonb_each(a) o FULL JOIN jsonb_each(b) n USING (key)
   WHERE o.value IS DISTINCT FROM n.value;
$$;
CREATE FUNCTION audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  keys text[] := TG_ARGV[0]::text[];
  hidden text[] := coalesce(TG_ARGV[1], '{}')::text[];
  o jsonb; n jsonb; row_ jsonb; d jsonb; k text; pk jsonb := '{}';
BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN o := to_jsonb(OLD) - hidden; END IF;
  IF TG_OP IN ('UPDATE', 'INSERT') THEN n := to_jsonb(NEW) - hidden; END IF;
  row_ := coalesce(n, o);
  FOREACH k IN ARRAY keys LOOP
    pk := pk || jsonb_build_object(k, row_ -> k);
  END LOOP;
  d := CASE TG_OP WHEN 'UPDATE' THEN jsonb_diff(o, n) WHEN 'INSERT' THEN jsonb_strip_nulls(n) ELSE o END;
  IF TG_OP = 'UPDATE' AND d = '{}' THEN
    RETURN NEW;
  END IF;
  INSERT INTO audit(tbl, op, pk, changes, actor)
  VALUES (format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME), left(TG_OP, 1), pk, d, current_setting('app.actor', true));
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER aud AFTER INSERT OR UPDATE OR DELETE ON employees FOR EACH ROW EXECUTE FUNCTION audit_row('{emp_id}', '{salary}');
CREATE TRIGGER aud AFTER INSERT OR UPDATE OR DELETE ON teams FOR EACH ROW EXECUTE FUNCTION audit_row('{team,region}');

INSERT INTO employees VALUES
  (1, 'Zoë', 1000, '{sql,"c++",NULL}', '{"city": "Oslo", "zip": ["0150"]}', '2020-02-29 12:30:00+02', DEFAULT),
  (2, 'O''Neil', NULL, '{}', NULL, NULL, NULL);
SET app.actor = 'alice';
UPDATE employees SET salary = 2000 WHERE emp_id = 1;
UPDATE employees SET name = reverse(name), addr = jsonb_set(addr, '{zip,1}', '"0151"') WHERE emp_id = 1;
UPDATE employees SET skills = array_append(skills, 'go'), active = NOT active WHERE emp_id = 1;
UPDATE employees SET skills = skills || '{rust,NULL}'::text[] WHERE emp_id = 2;
BEGIN;
SET LOCAL app.actor = 'bob';
INSERT INTO teams VALUES ('core', 'eu', '{1,2}'), ('core', 'us', DEFAULT);
UPDATE teams SET members = members || 3 WHERE region = 'eu';
SAVEPOINT s1;
DELETE FROM teams;
ROLLBACK TO s1;
DELETE FROM teams WHERE members = '{}';
COMMIT;
DELETE FROM employees WHERE emp_id = 2;
RESET app.actor;
SELECT id, tbl, op, pk, changes, actor FROM audit ORDER BY id;

-- rebuild an old version by walking the log backwards
CREATE FUNCTION as_of(p_tbl text, p_pk jsonb, p_id bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE cur jsonb; a record; k text; pair jsonb;
BEGIN
  EXECUTE format('SELECT to_jsonb(t) FROM %s t WHERE to_jsonb(t) @> $1', p_tbl::regclass) INTO cur USING p_pk;
  FOR a IN SELECT * FROM audit WHERE tbl = 'public.' || p_tbl AND pk = p_pk AND id > p_id ORDER BY id DESC LOOP
    IF a.op = 'D' THEN cur := a.changes;
    ELSIF a.op = 'I' THEN RETURN NULL;
    ELSE
      FOR k, pair IN SELECT * FROM jsonb_each(a.changes) LOOP
        cur := jsonb_set(cur, ARRAY[k], pair -> 0);
      END LOOP;
    END IF;
  END LOOP;
  RETURN cur;
END $$;
SELECT n, as_of('employees', '{"emp_id": 1}', n) - 'salary' AS v FROM generate_series(0, 5) n ORDER BY n;
SELECT as_of('employees', '{"emp_id": 2}', 2);
SELECT as_of('nosuch', '{}', 0);
SELECT jsonb_diff('{"a": 1, "b": null, "c": [1,2]}', '{"a": 1.0, "c": [2,1], "d": {"e": null}}');
SELECT jsonb_diff(NULL, '{"a": 1}'), jsonb_diff('{}', '{}');
SELECT op, jsonb_object_agg(k, cnt ORDER BY k) FROM (
  SELECT op, k, count(*) cnt FROM audit CROSS JOIN LATERAL jsonb_object_keys(changes) k GROUP BY op, k) s GROUP BY op ORDER BY op;
SELECT (jsonb_populate_record(NULL::employees, changes)).* FROM audit WHERE op = 'I' AND tbl LIKE '%employees' ORDER BY id;
ALTER TABLE employees DISABLE TRIGGER aud;
UPDATE employees SET name = 'silent';
ALTER TABLE employees ENABLE TRIGGER aud;
UPDATE employees SET hired = hired + interval '1 month';
SELECT op, changes FROM audit ORDER BY id DESC LIMIT 1;
