SET timezone = 'UTC';
CREATE TABLE plans (code text PRIMARY KEY, period interval NOT NULL, price numeric(8,2) NOT NULL, trial interval NOT NULL DEFAULT '0');
CREATE TABLE subs (
  id int PRIMARY KEY, plan text NOT NULL REFERENCES plans, started timestamptz NOT NULL, tz text NOT NULL DEFAULT 'UTC',
  cancelled timestamptz, paused_from date, paused_to date,
  CHECK ((paused_from IS NULL) = (paused_to IS NULL)), CHECK (paused_to > paused_from)
);
CREATE TABLE charges (sub int REFERENCES subs, n int, period_start timestamptz, period_end timestamptz, amount numeric(8,2), kind text DEFAULT 'cycle',
  PRIMARY KEY (sub, n));
INSERT INTO plans VALUES ('m', '1 month', 10, '14 days'), ('y', '1 year', 100, DEFAULT), ('w', '1 week', 3, '1 day 12 hours'), ('q', '3 mons', 27.5, DEFAULT);
INSERT INTO subs(id, plan, started, tz) VALUES (1, 'm', '2024-01-17 10:00Z', 'UTC'), (2, 'm', '2023-12-17 23:30-05', 'America/New_York'),
  (3, 'y', '2020-02-29', 'Europe/Amsterdam'), (4, 'w', '2024-03-20 08:00+01', 'Europe/Amsterdam'), (5, 'q', '2023-11-30', 'Asia/Tokyo');
UPDATE subs SET cancelled = '2024-04-02' WHERE id = 4;
UPDATE subs SET paused_from = '2024-02-10', paused_to = '2024-02-20' WHERE id = 1;
UPDATE subs SET paused_from = '2024-02-10' WHERE id = 2;

-- the n-th boundary is always computed from the anchor, in the local time of the subscriber
CREATE FUNCTION boundary(s subs, n int) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
  local_anchor timestamp; p plans;
BEGIN
  SELECT * INTO p FROM plans WHERE code = s.plan;
  local_anchor := (s.started + p.trial) AT TIME ZONE s.tz;
  RETURN (local_anchor + n * p.period) AT TIME ZONE s.tz;
END $$;
SELECT s.id, n, boundary(s, n), (boundary(s, n) AT TIME ZONE s.tz)::timestamp AS local
  FROM subs s, generate_series(0, 3) n WHERE s.id <> 3 ORDER BY 1, 2;
SELECT n, s.s, pg_typeof(s) FROM subs JOIN generate_series(0, 5) n ON subs.id = 3, LATERAL boundary(subs, n) s ORDER BY n;

CREATE FUNCTION bill(p_until timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  s subs; p plans; i int; a timestamptz; b timestamptz; amt numeric; made int := 0; share numeric;
BEGIN
  FOR s IN SELECT * FROM subs ORDER BY id LOOP
    SELECT * INTO p FROM plans WHERE code = s.plan;
    SELECT coalesce(max(n) + 1, 0) INTO i FROM charges WHERE sub = s.id;
    LOOP
      a := boundary(s, i); b := boundary(s, i + 1);
      EXIT WHEN a > least(p_until, coalesce(s.cancelled, 'infinity'));
      amt := p.price;
      IF s.cancelled < b THEN
        amt := round(p.price * (extract(epoch FROM s.cancelled - a) / extract(epoch FROM b - a))::numeric, 2);
      END IF;
      IF s.paused_from IS NOT NULL AND (s.paused_from, s.paused_to) OVERLAPS (a::date, b::date) THEN
        share := (least(s.paused_to, b::date) - greatest(s.paused_from, a::date))::numeric / (b::date - a::date);
        amt := round(amt * (1 - share), 2);
      END IF;
      INSERT INTO charges(sub, n, period_start, period_end, amount) VALUES (s.id, i, a, b, amt);
      made := made + 1; i := i + 1;
      IF made > 60 THEN RAISE EXCEPTION 'runaway billing at sub %', s.id; END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
SELECT bill('2024-05-01'), bill('2024-05-01');
SELECT bill('2024-06-30');
SELECT sub, n, period_start, period_end, amount FROM charges ORDER BY sub, n;
SELECT bill('infinity');

CREATE PROCEDURE change_plan(p_sub int, p_plan text, p_at timestamptz, INOUT credit numeric, INOUT info text DEFAULT 'none') LANGUAGE plpgsql AS $$
DECLARE c charges; unused interval;
BEGIN
  SELECT * INTO c FROM charges WHERE sub = p_sub AND p_at >= period_start AND p_at < period_end;
  IF c IS NULL THEN
    info := 'nothing running';
    RETURN;
  END IF;
  unused := c.period_end - p_at;
  credit := credit + round(c.amount * (extract(epoch FROM unused) / extract(epoch FROM age(c.period_end, c.period_start)))::numeric, 2);
  info := format('%s of %s left', unused, age(c.period_end, c.period_start));
  UPDATE subs SET plan = p_plan, started = p_at - (SELECT trial FROM plans WHERE code = p_plan) WHERE id = p_sub;
  DELETE FROM charges WHERE sub = p_sub AND period_start >= p_at;
  INSERT INTO charges(sub, n, period_start, period_end, amount, kind)
    SELECT p_sub, -1 - count(*) FILTER (WHERE n < 0), p_at, p_at, -credit, 'credit' FROM charges WHERE sub = p_sub;
END $$;
CALL change_plan(1, 'y', '2024-03-10 12:00Z', 0);
CALL change_plan(2, 'q', '2030-01-01', 1.5, 'x');
CALL change_plan(3, 'nope', '2024-03-10', 0);
CALL change_plan(5, 'w', '2024-05-31', NULL);
SELECT sub, n, kind, amount FROM charges WHERE sub IN (1, 5) ORDER BY sub, n;
SELECT sub, count(*), sum(amount), age(max(period_end), min(period_start)) AS span, min(period_end - period_start) AS shortest FROM charges GROUP BY sub ORDER BY sub;
SELECT date '2024-01-31' + interval '1 mon' AS feb, date '2024-01-31' + interval '1 mon' + interval '1 mon' AS mar1, date '2024-01-31' + 2 * interval '1 mon' AS mar2,
  timestamp '2024-03-31' - interval '1 mon' AS back, age('2024-03-31', '2024-02-29') AS age, timestamptz '2024-03-31 00:30+01' + interval '1 day' AS d;
SELECT (timestamp '2024-03-31 02:30') AT TIME ZONE 'Europe/Amsterdam' AS gap, (timestamp '2024-10-27 02:30') AT TIME ZONE 'Europe/Amsterdam' AS fold;
SELECT make_interval(months => 14, days => -3, secs => 1.5), make_timestamptz(2024, 2, 30, 0, 0, 0, 'UTC');
SELECT extract(day FROM interval '40 days 25 hours'), date_part('month', interval '14 months'), extract(isoyear FROM date '2024-12-30'), extract(doy FROM date '2024-12-31');
