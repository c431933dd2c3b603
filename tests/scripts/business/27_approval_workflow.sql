SET timezone = 'UTC';
CREATE TYPE wf_state AS ENUM ('new', 'review', 'approved', 'rejected', 'closed');
CREATE TABLE transitions (from_state wf_state, event text, to_state wf_state NOT NULL, guard regproc, action text, PRIMARY KEY (from_state, event));
CREATE TABLE requests (id int PRIMARY KEY, state wf_state NOT NULL DEFAULT 'new', amount numeric, approvals text[] NOT NULL DEFAULT '{}', meta hstore_like[] );
CREATE TABLE requests (id int PRIMARY KEY, state wf_state NOT NULL DEFAULT 'new', amount numeric, approvals text[] NOT NULL DEFAULT '{}', meta jsonb);
CREATE TABLE history (seq int GENERATED ALWAYS AS IDENTITY, req int, event text, from_state wf_state, to_state wf_state, actor name, info jsonb);

CREATE FUNCTION g_small(r requests) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN r.amount > 1000 THEN 'amount too large' END $$;
CREATE FUNCTION g_two(r requests) RETURNS text LANGUAGE plpgsql AS $$
DECLARE missing int := 2 - coalesce(array_length(r.approvals, 1), 0);
BEGIN
  IF missing > 0 THEN
    RETURN format('%s more approval%s needed', missing, CASE missing WHEN 1 THEN '' ELSE 's' END);
  END IF;
  RETURN NULL;
END $$;
INSERT INTO transitions VALUES ('new', 'submit', 'review', NULL, NULL), ('new', 'auto', 'approved', 'g_small', NULL), ('review', 'approve', 'approved', 'g_two', 'notify'),
  ('review', 'reject', 'rejected', NULL, 'notify'), ('rejected', 'reopen', 'new', NULL, 'reset'), ('approved', 'close', 'closed', NULL, 'missing_action');
INSERT INTO requests(id, amount) VALUES (1, 50), (2, 5000), (3, NULL);

CREATE PROCEDURE act_notify(INOUT r requests, info jsonb) LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'request % is now %', r.id, r.state USING DETAIL = coalesce(info::text, 'no info');
END $$;
CREATE PROCEDURE act_reset(INOUT r requests, info jsonb) LANGUAGE plpgsql AS $$
BEGIN
  r.approvals := '{}';
  r.meta := jsonb_set(coalesce(r.meta, '{}'), '{resets}', to_jsonb(coalesce((r.meta ->> 'resets')::int, 0) + 1));
END $$;

CREATE FUNCTION fire(p_id int, p_event text, p_actor name DEFAULT 'sys', p_info jsonb DEFAULT NULL) RETURNS wf_state LANGUAGE plpgsql AS $$
DECLARE
  r requests; t transitions; why text; was wf_state; res record;
BEGIN
  SELECT * INTO r FROM requests WHERE id = p_id FOR UPDATE NOWAIT;
  IF r.id IS NULL THEN RAISE EXCEPTION 'no request %', p_id USING ERRCODE = 'P0002'; END IF;
  was := r.state;
  IF p_event = 'sign' THEN
    IF p_actor = ANY (r.approvals) THEN RAISE EXCEPTION '% already signed', quote_ident(p_actor); END IF;
    UPDATE requests SET approvals = approvals || p_actor::text WHERE id = p_id AND state = 'review';
    IF NOT FOUND THEN RAISE EXCEPTION 'cannot sign in state %', was USING ERRCODE = 'object_not_in_prerequisite_state'; END IF;
    RETURN was;
  END IF;
  SELECT * INTO t FROM transitions WHERE from_state = r.state AND event = p_event;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event "%" not allowed in state "%"', p_event, r.state
      USING HINT = 'allowed: ' || coalesce((SELECT string_agg(event, ', ' ORDER BY event) FROM transitions WHERE from_state = r.state), 'none');
  END IF;
  IF t.guard IS NOT NULL THEN
    EXECUTE 'SELECT ' || t.guard || '($1)' INTO why USING r;
    IF why IS NOT NULL THEN RAISE EXCEPTION 'guard %: %', t.guard, why USING ERRCODE = 'WF001'; END IF;
  END IF;
  r.state := t.to_state;
  IF t.action IS NOT NULL THEN
    EXECUTE format('CALL %I($1, $2)', 'act_' || t.action) INTO res USING r, p_info;
    r := res.r;
  END IF;
  UPDATE requests SET (state, approvals, meta) = (r.state, r.approvals, r.meta) WHERE id = p_id;
  INSERT INTO history(req, event, from_state, to_state, actor, info) VALUES (p_id, p_event, was, r.state, p_actor, p_info);
  RETURN r.state;
END $$;
SELECT fire(1, 'auto'), fire(3, 'auto');
SELECT fire(2, 'auto');
SELECT fire(2, 'sign', 'ann');
SELECT fire(2, 'submit', p_info => '{"by": "mail"}');
SELECT fire(2, 'approve');
SELECT fire(2, 'sign', 'ann');
SELECT fire(2, 'approve');
SELECT fire(2, 'sign', 'ann');
SELECT fire(2, 'sign', 'Bob Smith');
SELECT fire(2, 'sign', 'Bob Smith');
SELECT fire(2, 'approve', 'ceo', '{"ok": true}');
SELECT fire(2, 'close');
SELECT fire(2, 'submit');
SELECT fire(9, 'submit');
INSERT INTO requests(id, amount) VALUES (4, 1) RETURNING fire(1, 'nothing');
INSERT INTO requests(id, amount) VALUES (4, 1);
SELECT e, fire(4, e) FROM unnest(ARRAY['submit', 'reject', 'reopen', 'submit', 'reject', 'reopen', 'auto']) WITH ORDINALITY AS x(e, n) ORDER BY n;
SELECT id, state, amount, approvals, meta FROM requests ORDER BY id;
DO $$
DECLARE r requests;
BEGIN
  SELECT * INTO r FROM requests WHERE id = 4;
  CALL act_reset(r, NULL);
  RAISE NOTICE 'meta %', r.meta;
  EXECUTE 'CALL act_reset($1, $2)' INTO r USING r, '{}'::jsonb;
END $$;
SELECT req, event, from_state, to_state, actor, info FROM history ORDER BY seq;
-- replay: state as computed from the events only; paths through the machine
SELECT h.req, last_value(h.to_state) OVER w AS final, string_agg(h.event, '>') OVER (PARTITION BY h.req ORDER BY h.seq) AS trail
  FROM history h WINDOW w AS (PARTITION BY req ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY h.req, h.seq;
WITH RECURSIVE reach(s, path, loop) AS (
  SELECT 'new'::wf_state, ARRAY['new'::wf_state], false
  UNION ALL
  SELECT t.to_state, path || t.to_state, t.to_state = ANY (path) FROM reach JOIN transitions t ON t.from_state = s WHERE NOT loop
) SELECT s, path, loop FROM reach ORDER BY path;

-- refcursors handed back to the caller
CREATE FUNCTION open_lists(p_state wf_state, c1 refcursor DEFAULT 'reqs', c2 refcursor DEFAULT NULL) RETURNS SETOF refcursor LANGUAGE plpgsql AS $$
BEGIN
  OPEN c1 FOR SELECT id, amount FROM requests WHERE state = p_state ORDER BY id;
  RETURN NEXT c1;
  c2 := 'hist';
  OPEN c2 NO SCROLL FOR EXECUTE 'SELECT req, event FROM history WHERE to_state = $1 ORDER BY seq' USING p_state;
  RETURN NEXT c2;
END $$;
BEGIN;
SELECT * FROM open_lists('approved');
FETCH 2 FROM reqs;
FETCH ALL FROM hist;
SELECT name, is_scrollable FROM pg_cursors ORDER BY name;
FETCH BACKWARD 1 FROM hist;
ROLLBACK;
BEGIN;
SELECT * FROM open_lists('approved', 'a') x, open_lists('new', 'a') y;
ROLLBACK;
FETCH ALL FROM reqs;
BEGIN;
SELECT open_lists('rejected', 'x y');
MOVE 1 IN hist; FETCH FORWARD ALL FROM "x y"; CLOSE "x y"; FETCH NEXT FROM hist; CLOSE ALL; FETCH hist;
COMMIT;
