SET timezone = 'UTC';
CREATE TABLE staff (id int PRIMARY KEY, name text, rate numeric(6,2) NOT NULL, weekly_cap interval DEFAULT '38 hours');
CREATE TABLE shifts (
  id int GENERATED ALWAYS AS IDENTITY, staff int NOT NULL REFERENCES staff, starts timestamp NOT NULL, ends timestamp,
  break_min int NOT NULL DEFAULT 0, worked interval GENERATED ALWAYS AS (ends - starts - break_min * interval '1 minute') STORED,
  day_no int GENERATED ALWAYS AS (extract(isodow FROM starts)::int) STORED,
  label text GENERATED ALWAYS AS (CASE WHEN ends IS NULL THEN 'open' WHEN ends::date > starts::date THEN 'night' ELSE 'day' END) STORED,
  CONSTRAINT sane CHECK (ends > starts AND ends - starts < interval '16 hours')
);
CREATE TABLE holidays (d date PRIMARY KEY, factor numeric NOT NULL DEFAULT 2);
INSERT INTO staff VALUES (1, 'Ann', 20), (2, 'Bob', 15.5), (3, 'Cy', 100.01);
UPDATE staff SET weekly_cap = '10:00' WHERE id = 2;
INSERT INTO holidays VALUES ('2024-03-29', DEFAULT), ('2024-04-01', 1.5);
INSERT INTO shifts(staff, starts, ends, break_min) VALUES
  (1, '2024-03-25 09:00', '2024-03-25 17:30', 30), (1, '2024-03-29 22:00', '2024-03-30 06:15', 45), (1, '2024-03-31 10:00', '2024-03-31 12:20', 0),
  (2, '2024-03-26 08:00', '2024-03-26 16:00', 0), (2, '2024-03-27 08:00', '2024-03-27 12:00', 15), (2, '2024-04-01 08:00', NULL, 0), (2, '2024-03-28 23:30', '2024-03-29 00:30', 0);
INSERT INTO shifts(staff, starts, ends) VALUES (1, '2024-03-25 09:00', '2024-03-26 09:00');
INSERT INTO shifts(staff, starts, ends, worked) VALUES (1, '2024-03-25 09:00', '2024-03-25 10:00', '1 hour');
INSERT INTO shifts(staff, starts, ends, worked) VALUES (3, '2024-03-25 09:00', '2024-03-25 10:07', DEFAULT) RETURNING worked, day_no, label;
CREATE TABLE bad_gen (a int, b int GENERATED ALWAYS AS (a + c) STORED, c int GENERATED ALWAYS AS (a) STORED);
CREATE TABLE bad_gen (a timestamptz, b text GENERATED ALWAYS AS (a::text) STORED);
SELECT id, staff, worked, day_no, label FROM shifts ORDER BY id;

-- cut a shift at midnight so that each piece belongs to one day
CREATE FUNCTION pieces(s shifts) RETURNS TABLE (d date, from_t time, to_t time, mins int) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE cur timestamp := s.starts; nxt timestamp;
BEGIN
  IF s.ends IS NULL THEN RETURN; END IF;
  LOOP
    nxt := least(s.ends, date_trunc('day', cur) + '1 day');
    d := cur::date; from_t := cur; to_t := nxt::time;
    mins := extract(epoch FROM nxt - cur) / 60;
    IF cur = s.starts THEN mins := mins - s.break_min; END IF;
    RETURN NEXT;
    EXIT WHEN nxt >= s.ends;
    cur := nxt;
  END LOOP;
END $$;
SELECT s.id, p.* FROM shifts s, LATERAL pieces(s) p ORDER BY s.id, p.d;

CREATE FUNCTION overlap_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE other record;
BEGIN
  SELECT id, starts, ends INTO other FROM shifts x
   WHERE x.staff = NEW.staff AND x.id <> NEW.id AND (x.starts, coalesce(x.ends, 'infinity')) OVERLAPS (NEW.starts, coalesce(NEW.ends, 'infinity')) ORDER BY id LIMIT 1;
  IF other IS NOT NULL THEN
    RAISE EXCEPTION 'shift overlaps %', other;
  ELSIF other.id IS NOT NULL THEN
    RAISE EXCEPTION 'shift overlaps the open shift #%', other.id USING ERRCODE = 'exclusion_violation';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    RAISE NOTICE 'generated value in a BEFORE trigger: % (old %)', NEW.worked, OLD.worked;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER overlap BEFORE INSERT OR UPDATE ON shifts FOR EACH ROW EXECUTE FUNCTION overlap_guard();
INSERT INTO shifts(staff, starts, ends) VALUES (1, '2024-03-25 17:00', '2024-03-25 18:00');
INSERT INTO shifts(staff, starts, ends) VALUES (2, '2024-04-02 07:00', '2024-04-02 08:00');
INSERT INTO shifts(staff, starts, ends) VALUES (1, '2024-03-25 17:30', '2024-03-25 18:00') RETURNING worked;
UPDATE shifts SET ends = '2024-04-01 18:00' WHERE ends IS NULL RETURNING worked, label;
UPDATE shifts SET break_min = break_min + 1 WHERE staff = 3 RETURNING worked;
UPDATE shifts SET starts = '2024-03-26 09:00', ends = NULL WHERE staff = 3 RETURNING worked, label;

CREATE FUNCTION payslip(p_staff int, p_from date, p_to date) RETURNS TABLE (week text, hours numeric, overtime numeric, pay numeric, detail jsonb) LANGUAGE plpgsql STABLE AS $$
DECLARE
  st staff; w record; cap numeric; tot numeric := 0;
BEGIN
  SELECT * INTO st FROM staff WHERE id = p_staff;
  cap := extract(epoch FROM st.weekly_cap) / 3600;
  FOR w IN
    SELECT to_char(p.d, 'IYYY-"W"IW') AS wk, sum(p.mins) / 60.0 AS h, sum(p.mins * coalesce(f.factor, CASE WHEN extract(dow FROM p.d) = 0 THEN 1.25 ELSE 1 END)) / 60 AS paid,
           jsonb_object_agg(to_char(p.d, 'Dy'), p.mins ORDER BY p.d) AS j
      FROM shifts s CROSS JOIN LATERAL pieces(s) p LEFT JOIN holidays f USING (d)
     WHERE s.staff = p_staff AND p.d BETWEEN p_from AND p_to GROUP BY 1 ORDER BY 1
  LOOP
    week := w.wk; hours := round(w.h, 2); detail := w.j;
    overtime := greatest(round(w.h - cap, 2), 0);
    pay := round((w.paid + overtime * 0.5) * st.rate, 2);
    tot := tot + pay;
    RETURN NEXT;
  END LOOP;
  week := 'total'; hours := NULL; overtime := NULL; pay := tot; detail := to_jsonb(st) - 'id';
  RETURN NEXT;
END $$;
SELECT * FROM payslip(1, '2024-03-01', '2024-04-30');
SELECT * FROM payslip(2, '2024-03-29', '2024-04-01');
SELECT * FROM payslip(2, '2024-01-01', 'infinity');
SELECT * FROM payslip(77, '2024-03-01', '2024-04-30');
SELECT name, count(s.id) AS n, sum(worked) AS total, max(worked) AS longest, avg(worked) AS mean, justify_interval(sum(worked) * 10) AS j
  FROM staff LEFT JOIN shifts s ON s.staff = staff.id GROUP BY staff.id ORDER BY name;
SELECT d::date, to_char(d, 'Day|DY|day|ID|IYYY-IW|WW|DDD|Q|J') AS fmt FROM generate_series(timestamp '2024-12-29', '2025-01-02', '2 days') d ORDER BY d;
SELECT time '23:30' + interval '45 min' AS wrap, time '10:00' - time '11:30' AS neg, date '2024-03-31' - date '2024-03-01' AS days, timestamp '2024-03-01' - timestamp '2024-02-28 12:00' AS iv, time '24:00' > time '23:59:59.999' AS gt;
ALTER TABLE shifts ALTER COLUMN label DROP EXPRESSION;
UPDATE shifts SET label = 'manual' WHERE staff = 1 AND day_no = 7 RETURNING label, day_no;
ALTER TABLE shifts DROP COLUMN starts;
SELECT column_name, is_generated, generation_expression FROM information_schema.columns WHERE table_name = 'shifts' ORDER BY ordinal_position;
