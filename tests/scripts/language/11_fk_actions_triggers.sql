SET timezone = 'UTC';
CREATE TABLE org (id int PRIMARY KEY, code text NOT NULL UNIQUE);
CREATE TABLE team (id int PRIMARY KEY, org_code text DEFAULT 'none' REFERENCES org(code) ON UPDATE CASCADE ON DELETE CASCADE, lead int);
CREATE TABLE member (id int PRIMARY KEY, team int REFERENCES team ON DELETE CASCADE ON UPDATE CASCADE, mentor int CONSTRAINT mentor_fk REFERENCES member ON DELETE SET NULL);
CREATE TABLE badge (member int DEFAULT 0 REFERENCES member ON DELETE SET DEFAULT, kind text, PRIMARY KEY (member, kind));
CREATE TABLE locker (id int PRIMARY KEY, member int REFERENCES member ON DELETE RESTRICT);
ALTER TABLE team ADD CONSTRAINT lead_fk FOREIGN KEY (lead) REFERENCES member ON DELETE SET NULL;
CREATE TABLE ev (n int GENERATED ALWAYS AS IDENTITY, what text, d int);

CREATE FUNCTION ev() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ev(what, d) VALUES (concat_ws(' ', TG_WHEN, TG_OP, TG_TABLE_NAME, TG_LEVEL,
    CASE WHEN TG_LEVEL = 'ROW' THEN CASE TG_OP WHEN 'DELETE' THEN to_jsonb(OLD)::text WHEN 'UPDATE' THEN to_jsonb(OLD)::text || '->' || to_jsonb(NEW)::text END END), pg_trigger_depth());
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY '{org,team,member,badge}'::text[] LOOP
    EXECUTE format('CREATE TRIGGER r_%s AFTER UPDATE OR DELETE ON %1$I FOR EACH ROW EXECUTE FUNCTION ev()', t);
    EXECUTE format('CREATE TRIGGER %2$I BEFORE DELETE ON %1$I FOR EACH STATEMENT EXECUTE FUNCTION ev()', t, 's_' || t);
  END LOOP;
END $$;
INSERT INTO org VALUES (1, 'acme'), (2, 'beta'), (3, 'none');
INSERT INTO team VALUES (10, 'acme'), (20, 'beta'), (30, NULL);
INSERT INTO member VALUES (0, NULL, NULL), (1, 10, NULL), (2, 10, 1), (3, 20, 2), (4, 30, 1);
UPDATE team SET lead = CASE id WHEN 10 THEN 3 WHEN 20 THEN 3 ELSE 4 END;
INSERT INTO badge VALUES (1, 'gold'), (2, 'gold'), (3, 'iron');
INSERT INTO locker VALUES (100, 4);
TRUNCATE ev RESTART IDENTITY;

UPDATE org SET code = upper(code) WHERE id < 3;
SELECT what, d FROM ev ORDER BY n; TRUNCATE ev RESTART IDENTITY;
UPDATE team SET id = 11 WHERE id = 10;
SELECT what, d FROM ev ORDER BY n; TRUNCATE ev RESTART IDENTITY;
DELETE FROM org WHERE id = 2;
SELECT what, d FROM ev ORDER BY n; TRUNCATE ev RESTART IDENTITY;
SELECT * FROM team ORDER BY id;
SELECT * FROM member ORDER BY id;
SELECT * FROM badge ORDER BY member, kind;

-- SET DEFAULT colliding with a key; RESTRICT; everything rolls back
DELETE FROM org WHERE id = 1;
SELECT count(*) FROM member;
DELETE FROM badge WHERE kind = 'gold' AND member = 2;
DELETE FROM member WHERE id = 4;
DELETE FROM team WHERE id = 30;
UPDATE locker SET member = NULL;
DELETE FROM member WHERE id IN (1, 4) RETURNING *;
SELECT * FROM badge ORDER BY member, kind;
SELECT * FROM team ORDER BY id;
TRUNCATE org;
TRUNCATE member, badge, locker, team;
TRUNCATE org CASCADE;
SELECT (SELECT count(*) FROM org) o, (SELECT count(*) FROM ev WHERE what LIKE '%TRUNCATE%') t;

-- a BEFORE trigger that cancels the cascaded action
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE c (id int PRIMARY KEY, pid int REFERENCES p ON DELETE CASCADE ON UPDATE SET NULL);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.id = 2 THEN RETURN NULL; END IF;
  IF TG_OP = 'UPDATE' THEN RETURN NEW; END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER keep BEFORE DELETE OR UPDATE ON c FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO p VALUES (1), (2), (3);
INSERT INTO c VALUES (1, 1), (2, 1), (3, 2);
UPDATE p SET id = 20 WHERE id = 2;
SELECT * FROM c ORDER BY id;
UPDATE c SET pid = NULL WHERE id = 3;
DELETE FROM p WHERE id = 20;
DELETE FROM p WHERE id = 3 RETURNING id;
DELETE FROM c WHERE id = 2 RETURNING *;
SELECT * FROM c ORDER BY id;

-- multi column keys: MATCH FULL, MATCH SIMPLE, column lists in SET NULL
CREATE TABLE ref (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE mf (id int, a int, b int, FOREIGN KEY (a, b) REFERENCES ref MATCH FULL ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE ms (id int, a int NOT NULL, b int DEFAULT 9, CONSTRAINT ms_fk FOREIGN KEY (a, b) REFERENCES ref(a, b) ON DELETE SET NULL (b) ON UPDATE NO ACTION);
INSERT INTO ref VALUES (1, 1), (1, 2), (2, 1);
INSERT INTO mf VALUES (1, 1, 1), (2, NULL, NULL);
INSERT INTO mf VALUES (3, 1, NULL);
INSERT INTO ms VALUES (1, 1, 2), (2, 5, NULL), (3, 2, 1);
INSERT INTO ms(id, a) VALUES (4, 1);
UPDATE ref SET b = b + 10 WHERE a = 1 AND b = 1;
UPDATE ref SET b = b + 10 WHERE a = 2;
DELETE FROM ref WHERE a = 1;
SELECT * FROM mf ORDER BY id;
SELECT * FROM ms ORDER BY id;
ALTER TABLE ms ADD FOREIGN KEY (a) REFERENCES ref (a);
ALTER TABLE ms ADD FOREIGN KEY (a, id) REFERENCES ref (a, b) ON DELETE SET NULL (zz);
ALTER TABLE ms ADD FOREIGN KEY (a, id) REFERENCES ref (a, b) NOT VALID;
ALTER TABLE ms VALIDATE CONSTRAINT ms_a_id_fkey;
SELECT conname, contype, convalidated, confupdtype, confdeltype, confmatchtype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('mf'::regclass, 'ms'::regclass, 'member'::regclass) ORDER BY conname;
