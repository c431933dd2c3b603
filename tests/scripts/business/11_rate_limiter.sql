SET timezone = 'UTC';
SET intervalstyle = 'postgres';
CREATE TYPE bucket AS (tokens double precision, stamp timestamptz);
CREATE TYPE verdict AS (allowed boolean, remaining int, retry_after interval);
CREATE TABLE plans (name text PRIMARY KEY, capacity real NOT NULL, refill_every interval NOT NULL CHECK (refill_every > interval '0'));
CREATE TABLE clients (
  key uuid PRIMARY KEY, plan text NOT NULL REFERENCES plans ON UPDATE CASCADE,
  b bucket, blocked_until timestamptz DEFAULT '-infinity'
);
CREATE UNLOGGED TABLE window_log (key uuid, at timestamptz, cost int DEFAULT 1);
INSERT INTO plans VALUES ('free', 3, '10 s'), ('pro', 10, 'PT0.5S'), ('slow', 1, '1 day 2:00');
INSERT INTO clients(key, plan) VALUES ('00000000-0000-0000-0000-000000000001', 'free'),
  ('{00000000-0000-0000-0000-0000000000A2}', 'pro'), ('000000000000000000000000000000c3', 'slow');

CREATE FUNCTION refill(INOUT b bucket, cap real, every interval, at timestamptz) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE gone double precision;
BEGIN
  IF b IS NULL THEN
    b := ROW(cap, at);
    RETURN;
  END IF;
  gone := extract(epoch FROM at - b.stamp) / extract(epoch FROM every);
  b.tokens := least(cap, b.tokens + gone);
  b.stamp := greatest(b.stamp, at);
END $$;
CREATE FUNCTION take(p_key uuid, p_at timestamptz, p_cost int DEFAULT 1) RETURNS verdict LANGUAGE plpgsql AS $$
DECLARE
  c clients%ROWTYPE; p plans%ROWTYPE; v verdict; t bucket;
BEGIN
  SELECT cl.* INTO c FROM clients cl WHERE cl.key = p_key FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'unknown client %', p_key USING ERRCODE = 'no_data_found';
  END IF;
  SELECT * INTO STRICT p FROM plans WHERE name = c.plan;
  IF c.blocked_until > p_at THEN
    RETURN (false, 0, c.blocked_until - p_at);
  END IF;
  t := refill(c.b, p.capacity, p.refill_every, p_at);
  IF t.tokens >= p_cost THEN
    t.tokens := t.tokens - p_cost;
    c.b := t;
    v := (true, floor((c.b).tokens), NULL);
    INSERT INTO window_log VALUES (p_key, p_at, p_cost);
  ELSE
    v.allowed := false;
    v.remaining := trunc(t.tokens);
    v.retry_after := (p_cost - t.tokens) * p.refill_every;
  END IF;
  UPDATE clients SET b = t WHERE key = p_key;
  RETURN v;
END $$;
CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c clients; p plans;
BEGIN
  SELECT c1, p1 INTO c, p FROM clients c1, plans p1;
  RETURN 1;
END $$;
DO $$
DECLARE c clients;
BEGIN
  c.b := ROW(1, NULL);
  RAISE NOTICE '% %', c, c.b;
  c.b.tokens := 2;
END $$;
SELECT s, (v).* FROM (SELECT s, take('00000000-0000-0000-0000-000000000001', '2024-01-01 00:00:00Z'::timestamptz + s * interval '2.5 s') v
  FROM generate_series(0, 7) s OFFSET 0) x ORDER BY s;
SELECT take('00000000-0000-0000-0000-0000000000a2', '2024-01-01 12:00', 4), take('00000000-0000-0000-0000-0000000000a2', '2024-01-01 12:00:01', 9);
SELECT take('00000000-0000-0000-0000-0000000000c3', '2024-01-01');
SELECT take('00000000-0000-0000-0000-0000000000c3', '2024-01-01 13:00');
SELECT take('00000000-0000-0000-0000-0000000000ff', '2024-01-01');
SELECT take('not-a-uuid', '2024-01-01');
SELECT key, plan, b, (b).stamp, blocked_until FROM clients ORDER BY key;
UPDATE clients SET b.tokens = 99, b.stamp = 'infinity' WHERE plan = 'slow' RETURNING b;
UPDATE clients SET blocked_until = '2024-06-01 01:30' WHERE plan = 'slow';
SELECT take(key, '2024-05-30'), take(key, '2024-06-01 01:29:59.75') FROM clients WHERE plan = 'slow';

-- sliding window
CREATE FUNCTION sliding(p_key uuid, p_at timestamptz, p_span interval, p_max int, OUT used int, OUT ok bool, OUT oldest timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(cost), 0)::int, coalesce(sum(cost), 0) < p_max, min(at)
    FROM window_log WHERE key = p_key AND at > p_at - p_span AND at <= p_at;
$$;
SELECT t, s.* FROM generate_series('2024-01-01 00:00'::timestamptz, '2024-01-01 00:00:30', '10 s') t
  CROSS JOIN LATERAL sliding('00000000-0000-0000-0000-000000000001', t, '12 s', 3) s ORDER BY t;
SELECT * FROM sliding(NULL, 'now', '1 s', 1);

-- gaps: bursts separated by more than 3 seconds
SELECT key, burst, count(*), min(at)::time AS from_, max(at) - min(at) AS lasted, sum(cost) FROM (
  SELECT *, count(*) FILTER (WHERE gap IS NULL OR gap > '3 s') OVER (PARTITION BY key ORDER BY at) AS burst FROM (
    SELECT *, at - lag(at) OVER (PARTITION BY key ORDER BY at) AS gap FROM window_log) g) h
 GROUP BY key, burst ORDER BY key, burst;
SELECT key, date_bin('5 seconds', at, '2024-01-01 00:00:01Z') AS bin, count(*) FROM window_log GROUP BY 1, 2 ORDER BY 1, 2;
UPDATE plans SET name = 'basic' WHERE name = 'free';
SELECT plan, count(*) FROM clients GROUP BY plan ORDER BY plan;
INSERT INTO plans VALUES ('never', 1, '0'), ('neg', 1, '-1 s');
SELECT refill(NULL, 5, '1 s', '2024-01-01'), refill(ROW(1, '2024-01-01'), 5, '1 min', '2024-01-01 00:01:30'), refill(ROW(NULL, NULL)::bucket, 2, '1 s', '2024-01-01');
SELECT justify_interval('1 mon -1 hour'), justify_hours('50:10'), interval '1-2' + '3 04:05:06' AS sum, interval '1 day' * 1.5 AS half, -interval '1 mon 2 days' / 4 AS q;
SET intervalstyle = 'iso_8601';
SELECT name, refill_every, refill_every * 7 FROM plans ORDER BY refill_every;
SET intervalstyle = 'sql_standard';
SELECT name, refill_every, -refill_every FROM plans ORDER BY refill_every DESC;
