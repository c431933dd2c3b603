SET timezone = 'UTC';
CREATE TABLE playlist (id int PRIMARY KEY, head int, name text UNIQUE DEFERRABLE);
CREATE TABLE track (
  id int PRIMARY KEY, list int NOT NULL, pos int NOT NULL, title text,
  CONSTRAINT track_list_fk FOREIGN KEY (list) REFERENCES playlist ON DELETE CASCADE DEFERRABLE INITIALLY IMMEDIATE,
  CONSTRAINT track_pos UNIQUE (list, pos) DEFERRABLE INITIALLY IMMEDIATE
);
ALTER TABLE playlist ADD CONSTRAINT head_fk FOREIGN KEY (head) REFERENCES track DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE gaps (list int, msg text);

CREATE FUNCTION no_gaps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE l int := CASE WHEN TG_OP = 'DELETE' THEN OLD.list ELSE NEW.list END; n int; mx int;
BEGIN
  SELECT count(*), max(pos) INTO n, mx FROM track WHERE list = l;
  IF n <> coalesce(mx, 0) THEN
    RAISE EXCEPTION 'list % has gaps: % tracks, last position %', l, n, mx USING ERRCODE = 'GAP01';
  END IF;
  INSERT INTO gaps SELECT l, format('%s ok with %s', TG_OP, n) WHERE NOT EXISTS (SELECT FROM gaps g WHERE g.list = l AND g.msg LIKE TG_OP || '%');
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER no_gaps AFTER INSERT OR DELETE OR UPDATE OF pos, list ON track DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION no_gaps();

-- circular references in one statement and in one transaction
WITH p AS (INSERT INTO playlist VALUES (1, 10, 'Mix') RETURNING id)
INSERT INTO track SELECT 9 + g, p.id, g, chr(64 + g) FROM p, generate_series(1, 4) g;
INSERT INTO playlist VALUES (2, 20, 'Empty');
BEGIN;
INSERT INTO playlist VALUES (2, 20, 'Jazz');
INSERT INTO track VALUES (20, 2, 1, 'So What');
COMMIT;
INSERT INTO track VALUES (21, 2, 3, 'gap');
INSERT INTO track VALUES (21, 9, 1, 'no list');
-- an immediate deferrable unique is checked at the end of the statement
UPDATE track SET pos = 5 - pos WHERE list = 1;
UPDATE track SET pos = CASE pos WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE pos END WHERE list = 1 RETURNING title, pos;
UPDATE track SET pos = 1 WHERE title = 'A';
SELECT title, pos FROM track WHERE list = 1 ORDER BY pos;
BEGIN;
SET CONSTRAINTS track_pos DEFERRED;
UPDATE track SET pos = 1 WHERE title = 'A';
UPDATE track SET pos = 4 WHERE title = 'C';
SELECT count(*), count(DISTINCT pos) FROM track WHERE list = 1;
SET CONSTRAINTS track_pos IMMEDIATE;
ROLLBACK;
INSERT INTO track VALUES (99, 1, 1, 'Z') ON CONFLICT (list, pos) DO NOTHING;
INSERT INTO track VALUES (10, 1, 1, 'Z') ON CONFLICT (id) DO UPDATE SET title = excluded.title || '!' RETURNING id, title;
INSERT INTO track VALUES (98, 1, 1, 'Y') ON CONFLICT DO NOTHING;

CREATE PROCEDURE move_track(p_id int, p_to int) LANGUAGE plpgsql AS $$
DECLARE t track%ROWTYPE; n int;
BEGIN
  SELECT * INTO STRICT t FROM track WHERE id = p_id;
  SELECT max(pos) INTO n FROM track WHERE list = t.list;
  p_to := greatest(1, least(p_to, n));
  SET CONSTRAINTS track_pos DEFERRED;
  IF p_to > t.pos THEN
    UPDATE track SET pos = pos - 1 WHERE list = t.list AND pos > t.pos AND pos <= p_to;
  ELSIF p_to < t.pos THEN
    UPDATE track SET pos = pos + 1 WHERE list = t.list AND pos < t.pos AND pos >= p_to;
  ELSE
    RAISE NOTICE 'nothing to do for %', t.title;
    RETURN;
  END IF;
  UPDATE track SET pos = p_to WHERE id = p_id;
  SET CONSTRAINTS ALL IMMEDIATE;
END $$;
CALL move_track(10, 1); CALL move_track(11, 100); CALL move_track(13, 0); CALL move_track(13, 1); CALL move_track(1234, 1);
SELECT id, title, pos FROM track WHERE list = 1 ORDER BY pos;

-- savepoints and deferred checks
BEGIN;
DELETE FROM track WHERE id = 10;
SAVEPOINT s;
UPDATE track SET pos = pos - 1 WHERE list = 1 AND pos > 2;
SET CONSTRAINTS no_gaps IMMEDIATE;
ROLLBACK TO s;
SET CONSTRAINTS no_gaps IMMEDIATE;
ROLLBACK;
BEGIN;
SAVEPOINT a;
INSERT INTO track VALUES (50, 2, 7, 'bad');
ROLLBACK TO a;
RELEASE a;
INSERT INTO track VALUES (51, 2, 2, 'good');
COMMIT;
BEGIN;
INSERT INTO track VALUES (52, 2, 7, 'repaired later');
UPDATE track SET pos = 3 WHERE id = 52;
COMMIT;
-- deleting: the head reference is deferred, so order does not matter
DELETE FROM track WHERE id = 20;
BEGIN;
DELETE FROM playlist WHERE id = 2;
SELECT count(*) FROM track WHERE list = 2;
COMMIT;
BEGIN;
UPDATE playlist SET head = 777 WHERE id = 1;
UPDATE playlist SET head = 11 WHERE id = 1;
COMMIT;
BEGIN;
SET CONSTRAINTS nope DEFERRED;
ROLLBACK;
SET CONSTRAINTS track_pkey DEFERRED;
ALTER TABLE track ALTER CONSTRAINT track_list_fk INITIALLY DEFERRED;
INSERT INTO track VALUES (70, 3, 1, 'orphan');
SET CONSTRAINTS ALL DEFERRED;
DO $$
BEGIN
  INSERT INTO track VALUES (70, 3, 1, 'orphan');
  BEGIN
    SET CONSTRAINTS track_list_fk IMMEDIATE;
  EXCEPTION WHEN foreign_key_violation THEN
    RAISE NOTICE 'early: %', SQLERRM;
  END;
  INSERT INTO playlist(id, name) VALUES (3, 'Late');
  SET CONSTRAINTS ALL IMMEDIATE;
  RAISE NOTICE 'all checked';
END $$;
SELECT p.id, p.head, p.name, count(t.id) FROM playlist p LEFT JOIN track t ON t.list = p.id GROUP BY p.id ORDER BY p.id;
SELECT * FROM gaps ORDER BY list, msg;
SELECT conname, contype, condeferrable, condeferred, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('track'::regclass, 'playlist'::regclass) ORDER BY conname;
