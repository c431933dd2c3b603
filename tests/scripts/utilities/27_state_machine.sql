-- order workflow: table-driven state machine, guards and actions by name, history, timeouts
SET timezone = 'UTC';
CREATE DOMAIN state AS text COLLATE "C" CHECK (VALUE ~ '^[a-z_]+$');
CREATE TABLE transition (src state, event text, dst state NOT NULL, guard regprocedure, action text, prio int DEFAULT 0, PRIMARY KEY (src, event, dst));
CREATE TABLE machine (id int PRIMARY KEY, st state NOT NULL DEFAULT 'new', ctx jsonb NOT NULL DEFAULT '{}', version int NOT NULL DEFAULT 0);
CREATE TABLE history (n bigint GENERATED ALWAYS AS IDENTITY, machine_id int REFERENCES machine ON DELETE CASCADE, src text, dst text, event text, note text);
CREATE TABLE outbox (n serial PRIMARY KEY, machine_id int, msg text);
CREATE TABLE event_queue (seq int PRIMARY KEY, machine_id int, event text, payload jsonb, at timestamptz, status text NOT NULL DEFAULT 'pending');

CREATE FUNCTION is_paid(m machine, p jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT (m.ctx ->> 'due')::numeric <= (p ->> 'amount')::numeric $$;
CREATE FUNCTION in_stock(m machine, p jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN jsonb_array_length(m.ctx -> 'items') > 0;
END $$;
INSERT INTO transition VALUES ('new', 'submit', 'pending', 'in_stock(machine,jsonb)', 'UPDATE machine SET ctx = ctx || jsonb_build_object(''due'', 10 * jsonb_array_length(ctx -> ''items'')) WHERE id = $1', DEFAULT),
 ('new', 'submit', 'rejected', NULL, NULL, 9), ('pending', 'pay', 'paid', 'is_paid(machine, jsonb)', 'INSERT INTO outbox (machine_id, msg) SELECT $1, ''receipt '' || ($2 ->> ''amount'')', DEFAULT),
 ('paid', 'ship', 'shipped', NULL, NULL, DEFAULT), ('shipped', 'deliver', 'done', NULL, 'SELECT 1/0', DEFAULT), ('pending', 'cancel', 'cancelled', NULL, NULL, DEFAULT), ('paid', 'cancel', 'refund', NULL, 'INSERT INTO outbox (machine_id, msg) VALUES ($1, ''refund'')', 1), ('refund', 'auto', 'cancelled', NULL, NULL, DEFAULT);
INSERT INTO transition (src, event, dst, prio) VALUES ('done', 'auto', 'archived', NULL);
INSERT INTO transition (src, event, dst) VALUES ('Bad State', 'x', 'y');
INSERT INTO transition (src, event, dst, guard) VALUES ('a', 'x', 'y', 'nothing(machine,jsonb)');

CREATE FUNCTION fire(mid int, ev text, payload jsonb DEFAULT '{}') RETURNS state LANGUAGE plpgsql AS $$
DECLARE m machine; t transition; ok boolean := true; n int;
BEGIN
  SELECT * INTO m FROM machine WHERE id = mid FOR UPDATE;
  IF NOT FOUND THEN RAISE EXCEPTION 'no machine %', mid USING ERRCODE = 'SM404'; END IF;
  FOR t IN SELECT * FROM transition WHERE src = m.st AND event = ev ORDER BY prio NULLS LAST, dst LOOP
    IF t.guard IS NOT NULL THEN
      EXECUTE 'SELECT ' || t.guard::regproc || '($1, $2)' INTO ok USING m, payload;
    ELSE ok := true;
    END IF;
    EXIT WHEN ok;
  END LOOP;
  IF t IS NULL THEN
    RAISE EXCEPTION '% not allowed in %', ev, m.st USING ERRCODE = 'SM409', HINT = coalesce((SELECT string_agg(DISTINCT event, '|' ORDER BY event) FROM transition WHERE src = m.st), 'final state');
  ELSIF ok IS NOT TRUE THEN
    RAISE EXCEPTION 'guard % said %', t.guard, coalesce(ok::text, 'unknown') USING ERRCODE = 'SM412';
  END IF;
  IF t.action IS NOT NULL THEN
    EXECUTE t.action USING mid, payload;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE NOTICE '% -> %: action touched %', t.src, t.dst, n;
  END IF;
  UPDATE machine SET st = t.dst WHERE id = mid RETURNING st INTO m.st;
  RETURN m.st;
END $$;
CREATE FUNCTION on_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE auto boolean;
BEGIN
  IF TG_WHEN = 'BEFORE' THEN
    NEW.version := OLD.version + 1;
    RETURN NEW;
  END IF;
  INSERT INTO history (machine_id, src, dst, event, note) VALUES (NEW.id, OLD.st, NEW.st, TG_OP, format('v%s depth %s', NEW.version, pg_trigger_depth()));
  SELECT EXISTS (SELECT 1 FROM transition WHERE src = NEW.st AND event = 'auto') INTO auto;
  IF auto THEN PERFORM fire(NEW.id, 'auto'); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER t1 BEFORE UPDATE ON machine FOR EACH ROW EXECUTE FUNCTION on_state();
CREATE TRIGGER t2 AFTER UPDATE OF st ON machine FOR EACH ROW WHEN (OLD.st <> NEW.st) EXECUTE FUNCTION on_state();
INSERT INTO machine (id, ctx) VALUES (1, '{"items": ["a", "b"]}'), (2, '{"items": []}'), (3, '{"items": ["z"]}'), (4, DEFAULT);
INSERT INTO machine VALUES (5, 'paid', '{}', 7);
SELECT fire(1, 'submit'), fire(2, 'submit');
SELECT fire(4, 'submit');
SELECT fire(1, 'fly');
SELECT fire(1, 'pay', '{"amount": 19.99}');
SELECT fire(1, 'pay');
SELECT fire(9, 'pay');
SELECT fire(1, 'pay', '{"amount": 20}') AS a, fire(1, 'ship') AS b;
SELECT fire(1, 'deliver');
SELECT fire(5, 'cancel'), (SELECT st FROM machine WHERE id = 5) AS later;

CREATE PROCEDURE drain(batch int DEFAULT 2) LANGUAGE plpgsql AS $$
DECLARE e event_queue; done int := 0; s text;
BEGIN
  <<q>>
  LOOP
    SELECT * INTO e FROM event_queue WHERE status = 'pending' ORDER BY at NULLS LAST, seq LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT q WHEN NOT FOUND;
    BEGIN
      s := 'ok:' || fire(e.machine_id, e.event, e.payload);
    EXCEPTION
      WHEN SQLSTATE 'SM409' OR SQLSTATE 'SM412' THEN s := 'refused:' || SQLERRM;
      WHEN division_by_zero THEN s := 'crashed';
      WHEN OTHERS THEN s := format('error %s', SQLSTATE);
    END;
    UPDATE event_queue SET status = s WHERE seq = e.seq;
    done := done + 1;
    IF done % batch = 0 THEN COMMIT; RAISE NOTICE 'committed %', done; END IF;
  END LOOP q;
  IF done = 0 THEN ROLLBACK; END IF;
END $$;
INSERT INTO event_queue (seq, machine_id, event, payload, at) VALUES (1, 3, 'pay', '{"amount": 10}', '2024-01-01 10:05+00'), (2, 3, 'submit', NULL, '2024-01-01 11:00+02'), (3, 3, 'ship', '{}', NULL), (4, 77, 'pay', '{}', '2024-01-01'), (5, 1, 'deliver', '{}', '2024-01-02'), (6, 3, 'pay', '{"amount": "x"}', '2024-01-01 10:00+00'), (7, 3, 'pay', '{}', '2024-01-01 10:01+00');
CALL drain();
CALL drain(batch => 1);
BEGIN; CALL drain(1); INSERT INTO event_queue VALUES (8, 3, 'cancel'); CALL drain(1); COMMIT;
SELECT seq, status FROM event_queue ORDER BY seq;
SELECT id, st, ctx, version FROM machine ORDER BY id;
SELECT machine_id, src, dst, event, note FROM history ORDER BY machine_id, n;
SELECT machine_id, string_agg(msg, ',' ORDER BY n) FROM outbox GROUP BY 1 ORDER BY 1;
DELETE FROM machine WHERE id = 1 RETURNING st, (SELECT count(*) FROM history WHERE machine_id = 1) AS h;
SELECT count(*) FROM history WHERE machine_id = 1;
UPDATE machine SET st = 'NOT OK' WHERE id = 2;
WITH RECURSIVE bad(st) AS (SELECT 'new'::text UNION SELECT t.dst::text FROM bad b JOIN transition t ON t.src = b.st) SELECT * FROM bad;
WITH RECURSIVE reach(st, p) AS (SELECT 'new'::text COLLATE "C", 'new' COLLATE "C" UNION SELECT t.dst::text, p || '>' || t.dst FROM reach r JOIN transition t ON t.src = r.st) SELECT p FROM reach r WHERE NOT EXISTS (SELECT 1 FROM transition t WHERE t.src = r.st) ORDER BY p;
