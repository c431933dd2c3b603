SET timezone = 'UTC';
CREATE TABLE room (id int PRIMARY KEY, cap int NOT NULL);
CREATE TABLE seat (room int NOT NULL, n int NOT NULL, who text, CONSTRAINT seat_key UNIQUE (room, n) DEFERRABLE INITIALLY IMMEDIATE,
  CONSTRAINT seat_room FOREIGN KEY (room) REFERENCES room DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE fired (k int GENERATED ALWAYS AS IDENTITY, msg text);

CREATE FUNCTION enough() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE have int; cap int;
BEGIN
  SELECT r.cap INTO cap FROM room r WHERE r.id = NEW.room;
  SELECT count(*) INTO STRICT have FROM seat WHERE room = NEW.room;
  INSERT INTO fired(msg) VALUES (format('%s %s: %s of %s', TG_NAME, NEW.room, have, coalesce(cap::text, 'unknown')));
  IF have > cap THEN
    RAISE check_violation USING MESSAGE = format('room %s overbooked: %s > %s', NEW.room, have, cap), CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER seat_cap AFTER INSERT OR UPDATE OF room ON seat DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.room > 0) EXECUTE FUNCTION enough();
INSERT INTO room VALUES (1, 2), (2, 1);

BEGIN;
INSERT INTO seat VALUES (1, 1, 'a'), (1, 2, 'b'), (1, 3, 'c');
SELECT count(*) AS none_yet FROM fired;
DELETE FROM seat WHERE n = 3;
COMMIT;
SELECT msg FROM fired ORDER BY k;
INSERT INTO seat VALUES (2, 1, 'x'), (2, 2, 'y');
BEGIN;
INSERT INTO seat VALUES (3, 1, 'room comes later');
INSERT INTO room VALUES (3, 5);
SAVEPOINT sp;
INSERT INTO seat VALUES (4, 1, 'never');
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK TO sp;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO seat VALUES (4, 1, 'at once');
COMMIT;
SELECT * FROM seat ORDER BY room, n;

-- switching keys around
UPDATE seat SET n = 3 - n WHERE room = 1;
BEGIN;
UPDATE seat SET n = 2 WHERE room = 1 AND n = 1;
ROLLBACK;
BEGIN;
SET CONSTRAINTS seat_key DEFERRED;
UPDATE seat SET n = 2 WHERE room = 1 AND who = 'b';
UPDATE seat SET n = 1 WHERE room = 1 AND who = 'a';
SET CONSTRAINTS seat_key IMMEDIATE;
COMMIT;
BEGIN;
SET CONSTRAINTS seat_key, seat_room DEFERRED;
UPDATE seat SET n = 1;
SELECT room, n, who FROM seat ORDER BY room, who;
SET CONSTRAINTS seat_key IMMEDIATE;
ROLLBACK;
SELECT room, n, who FROM seat ORDER BY room, n;
SET CONSTRAINTS nonexistent DEFERRED;
SET CONSTRAINTS seat_cap IMMEDIATE;
BEGIN; SET CONSTRAINTS public.seat_cap IMMEDIATE;
INSERT INTO seat VALUES (1, 9, 'too many');
COMMIT;
INSERT INTO seat VALUES (1, 1, 'dup') ON CONFLICT ON CONSTRAINT seat_key DO NOTHING;
INSERT INTO seat VALUES (1, 1, 'dup') ON CONFLICT DO NOTHING;

-- errors at commit caught by nobody: a function's handler is gone by then
CREATE FUNCTION try_insert(r int, i int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO seat VALUES (r, i, 'f');
  RETURN 'looks fine';
EXCEPTION WHEN check_violation OR foreign_key_violation THEN RETURN 'caught ' || SQLERRM;
END $$;
SELECT try_insert(2, 7);
SELECT try_insert(42, 1);
CREATE FUNCTION try_forced(r int, i int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE cn text;
BEGIN
  INSERT INTO seat VALUES (r, i, 'f');
  SET CONSTRAINTS seat_cap, seat_room IMMEDIATE;
  RETURN 'fine';
EXCEPTION WHEN integrity_constraint_violation THEN
  GET STACKED DIAGNOSTICS cn = CONSTRAINT_NAME;
  RETURN 'caught ' || SQLERRM || ' / ' || cn;
END $$;
SELECT try_forced(1, 7);
SELECT try_forced(43, 1);
SELECT try_forced(3, 8);

-- deferred triggers fire with the rows of their time, later changes included in queries
WITH r AS (INSERT INTO room VALUES (3, 5) RETURNING id) INSERT INTO seat SELECT id, 1, 'c0' FROM r;
SELECT try_forced(3, 8);
TRUNCATE fired RESTART IDENTITY;
CREATE FUNCTION show_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO fired(msg) VALUES (format('%s %s->%s, table says %s', TG_OP, OLD.who, NEW.who, (SELECT who FROM seat WHERE room = NEW.room AND n = NEW.n)));
  IF NEW.who = 'c2' THEN UPDATE seat SET who = 'c3' WHERE who = 'c2' OR who = 'final'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER show_row AFTER UPDATE ON seat DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (OLD.who IS DISTINCT FROM NEW.who) EXECUTE FUNCTION show_row();
BEGIN;
UPDATE seat SET who = 'c1' WHERE room = 3 AND n = 1;
UPDATE seat SET who = 'c2' WHERE who = 'c1';
UPDATE seat SET who = 'final' WHERE who = 'c2';
COMMIT;
SELECT msg FROM fired ORDER BY k;
SELECT conname, condeferrable, condeferred, contype FROM pg_constraint WHERE conrelid = 'seat'::regclass ORDER BY conname;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'seat'::regclass AND NOT tgisinternal ORDER BY tgname;
ALTER TABLE seat ALTER CONSTRAINT seat_room NOT DEFERRABLE;
BEGIN;
INSERT INTO seat VALUES (77, 1, 'now immediate');
ROLLBACK;
CREATE CONSTRAINT TRIGGER bad BEFORE INSERT ON seat FOR EACH ROW EXECUTE FUNCTION show_row();
CREATE CONSTRAINT TRIGGER bad AFTER INSERT ON seat FOR EACH STATEMENT EXECUTE FUNCTION show_row();
DROP TABLE room;
