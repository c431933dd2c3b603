-- working calendar, business-day arithmetic, SLA deadlines
SET timezone = 'UTC'; SET datestyle = 'ISO, DMY';
CREATE TABLE holiday (region text, d date, label text, PRIMARY KEY (region, d));
INSERT INTO holiday SELECT 'FR', d::date, l FROM (VALUES ('2024-01-01', 'An'), ('2024-05-01', 'Travail'), ('2024-05-08', 'Victoire'), ('2024-12-25', 'Noel')) v(d, l);
INSERT INTO holiday VALUES ('US', DATE '2024-07-04', 'Independence'), ('US', make_date(2024, 12, 25), NULL);

CREATE FUNCTION easter(y int) RETURNS date LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  g int := y % 19; c int := y / 100;
  h int := (c - c / 4 - (8 * c + 13) / 25 + 19 * g + 15) % 30;
  i int := h - (h / 28) * (1 - (29 / (h + 1)) * ((21 - g) / 11));
  j int := (y + y / 4 + i + 2 - c + c / 4) % 7;
  l int := i - j;
  m int := 3 + (l + 40) / 44;
BEGIN
  RETURN make_date(y, m, l + 28 - 31 * (m / 4));
END $$;
SELECT y, easter(y), to_char(easter(y), 'FMDay, FMDDth FMMonth') FROM generate_series(2023, 2026) y ORDER BY y;
INSERT INTO holiday SELECT 'FR', easter(2024) + off, n FROM unnest(ARRAY[1, 39, 50], ARRAY['Lundi', 'Ascension', NULL]) AS u(off, n) RETURNING d, label;

CREATE FUNCTION is_workday(d date, reg text DEFAULT 'FR') RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT extract(isodow FROM d) < 6 AND NOT EXISTS (SELECT FROM holiday h WHERE h.region = reg AND h.d = is_workday.d);
END;
CREATE FUNCTION add_workdays(d date, n int, reg text DEFAULT 'FR') RETURNS date LANGUAGE plpgsql STABLE AS $$
DECLARE step int := sign(n);
BEGIN
  IF n = 0 THEN
    WHILE NOT is_workday(d, reg) LOOP d := d + 1; END LOOP;
  END IF;
  WHILE n <> 0 LOOP
    d := d + step;
    CONTINUE WHEN NOT is_workday(d, reg);
    n := n - step;
  END LOOP;
  RETURN d;
END $$;
CREATE FUNCTION workdays_between(a date, b date, VARIADIC regs text[] DEFAULT ARRAY['FR']) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT (CASE WHEN a <= b THEN 1 ELSE -1 END * count(*))::int
  FROM generate_series(least(a, b)::timestamp, greatest(a, b)::timestamp - interval '1 day', '1 day') AS g(ts)
  WHERE extract(dow FROM ts) BETWEEN 1 AND 5 AND NOT EXISTS (SELECT 1 FROM holiday WHERE region = ANY (regs) AND holiday.d = ts::date)
$$;
SELECT add_workdays('2024-04-30', 1), add_workdays('2024-05-10', -3), add_workdays('2024-03-30', 0), add_workdays(reg => 'US', d => '2024-07-03', n => 1), add_workdays(DATE '2024-12-24', 5, NULL) AS noreg;
SELECT workdays_between('2024-05-01', '2024-06-01'), workdays_between('2024-06-01', '2024-05-01'), workdays_between('2024-07-01', '2024-07-08', 'US', 'FR'), workdays_between('2024-05-05', '2024-05-05'), workdays_between('2024-12-23', '2024-12-28', VARIADIC '{}');
SELECT is_workday('2024-02-30');
SELECT is_workday('31/12/2024'), is_workday('infinity');

CREATE TABLE ticket (id int PRIMARY KEY, opened timestamp NOT NULL, sla_hours int CHECK (sla_hours > 0), due timestamp, closed timestamp, breached bool GENERATED ALWAYS AS (closed > due) STORED);
CREATE FUNCTION sla_due(opened timestamp, hours int, OUT due timestamp, OUT days_touched date[]) LANGUAGE plpgsql STABLE AS $$
DECLARE
  left_min int := hours * 60; cur timestamp := opened; day_end timestamp; avail int;
BEGIN
  days_touched := '{}';
  <<days>>
  LOOP
    IF NOT is_workday(cur::date) OR cur::time >= '18:00' THEN
      cur := date_trunc('day', cur) + interval '1 day 9 hours';
      CONTINUE days;
    END IF;
    cur := greatest(cur, date_trunc('day', cur) + time '09:00');
    day_end := cur::date + time '18:00';
    avail := extract(epoch FROM day_end - cur) / 60;
    days_touched := array_append(days_touched, cur::date);
    IF left_min <= avail THEN
      due := cur + make_interval(mins => left_min);
      EXIT days;
    END IF;
    left_min := left_min - avail;
    cur := day_end;
  END LOOP days;
END $$;
CREATE FUNCTION set_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT s.due INTO NEW.due FROM sla_due(NEW.opened, NEW.sla_hours) s;
  RETURN NEW;
END $$;
CREATE TRIGGER due BEFORE INSERT OR UPDATE OF opened, sla_hours ON ticket FOR EACH ROW WHEN (NEW.sla_hours IS NOT NULL) EXECUTE FUNCTION set_due();
INSERT INTO ticket (id, opened, sla_hours, closed) VALUES (1, '2024-04-30 16:30', 4, '2024-05-02 11:30:00.5'), (2, '2024-05-04 03:00', 9, '2024-05-06 18:00'), (3, '2024-05-07 17:59:59', 1, NULL), (4, '2024-05-07 12:00', NULL, '2024-05-07 12:00'), (5, '2024-02-29 08:00', 40, '2024-03-10');
SELECT id, opened, due, age(due, opened), breached, breached IS NOT FALSE AS maybe FROM ticket ORDER BY id;
UPDATE ticket SET sla_hours = 2 WHERE id IN (1, 4) RETURNING id, due, closed - due AS late;
INSERT INTO ticket (id, opened, sla_hours) VALUES (6, '2024-05-01', 0);
SELECT t.id, s.days_touched, cardinality(s.days_touched) FROM ticket t, sla_due(t.opened, t.sla_hours) s WHERE t.sla_hours IS NOT NULL ORDER BY t.id;

-- month grid
CREATE FUNCTION month_grid(y int, m int) RETURNS TABLE (wk int, days text) LANGUAGE plpgsql AS $$
DECLARE first date := make_date(y, m, 1); d date; buf text := '';
BEGIN
  buf := repeat('   ', extract(isodow FROM first)::int - 1);
  FOR d IN SELECT generate_series(first, first + interval '1 month - 1 day', '1 day')::date LOOP
    buf := buf || lpad(extract(day FROM d)::text, 2) || CASE WHEN is_workday(d) THEN ' ' ELSE '*' END;
    IF extract(isodow FROM d) = 7 OR d + 1 = first + interval '1 month' THEN
      wk := extract(week FROM d); days := rtrim(buf); buf := '';
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;
SELECT wk, days FROM month_grid(2024, 5) ORDER BY wk;
SELECT * FROM month_grid(2024, 13);
SELECT to_char(d, 'YYYY-"Q"Q') AS q, count(*) FILTER (WHERE is_workday(d::date)) AS work, count(*) - count(*) FILTER (WHERE is_workday(d::date)) AS off
FROM generate_series('2024-01-01'::date, '2024-12-31', interval '1 day') d GROUP BY ROLLUP (1) ORDER BY 1 NULLS LAST;
SELECT d, lead(d) OVER w - d AS gap, coalesce(label, '(none)') FROM holiday WHERE region = 'FR' WINDOW w AS (PARTITION BY region ORDER BY d) ORDER BY d;
