-- date parsing/formatting: a multi-format importer
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
SET intervalstyle = 'postgres';
CREATE TABLE format_rule (prio int PRIMARY KEY, re text NOT NULL, fmt text NOT NULL);
INSERT INTO format_rule VALUES (10, '^\d{4}-\d\d-\d\d$', 'YYYY-MM-DD'), (20, '^\d\d/\d\d/\d{4}$', 'DD/MM/YYYY'), (30, '^\d{1,2} [A-Za-z]{3} \d\d$', 'FMDD Mon YY'),
  (40, '^[A-Z][a-z]+ \d{1,2}, \d{4}$', 'FMMonth DD, YYYY'), (50, '^\d{4}-W\d\d-\d$', 'IYYY-"W"IW-ID'), (60, '^\d{7}$', 'YYYYDDD'), (70, '^J\d+$', '"J"J');
CREATE FUNCTION parse_date(s text, OUT d date, OUT used text, OUT err text) LANGUAGE plpgsql STABLE AS $$
DECLARE r format_rule%ROWTYPE;
BEGIN
  FOR r IN TABLE format_rule ORDER BY prio LOOP
    CONTINUE WHEN s !~ r.re;
    BEGIN
      d := to_date(s, r.fmt); used := r.fmt;
      RETURN;
    EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
      err := concat_ws('; ', err, SQLSTATE || ' ' || SQLERRM);
    END;
  END LOOP;
  IF s IS NOT NULL THEN err := coalesce(err, 'no rule'); END IF;
END $$;
SELECT v.s, p.* FROM (VALUES (1, '2024-02-29'), (2, '31/12/1999'), (3, '5 Mar 07'), (4, 'September 3, 2021'), (5, '2020-W53-7'), (6, '2024060'), (7, 'J2451545'), (8, '2023-02-29'), (9, '41/01/2020'), (10, 'soon'), (11, NULL), (12, '5 Xyz 07')) v(o, s)
CROSS JOIN LATERAL parse_date(v.s) p ORDER BY v.o;

-- to_char catalogue
CREATE TABLE moment (id int PRIMARY KEY, ts timestamp(3));
INSERT INTO moment VALUES (1, '2024-01-01 00:00:00'), (2, '1999-12-31 23:59:59.9994'), (3, '0044-03-15 12:00:00 BC'), (4, '2021-01-03 13:05:07.045'), (5, NULL), (6, 'infinity');
SELECT id, to_char(ts, 'YYYY-MM-DD"T"HH24:MI:SS.MS') iso, to_char(ts, 'IYYY-IW-ID') isow, to_char(ts, 'Dy DDth Mon YY, HH12:MI AM') us, to_char(ts, 'FMDay|Day|DAY|day') AS days FROM moment ORDER BY id;
SELECT id, to_char(ts, 'DDD WW W Q CC J') n, to_char(ts, 'RM rm FMRM') rm, to_char(ts, 'SSSS US FF3 FF1') frac, to_char(ts, 'Y,YYY BC a.d.') y, to_char(ts, '"lit" \"YY\" HH:MI:SS p.m.') lit FROM moment ORDER BY id;
SELECT to_char(interval '1 year 14 months 3 days 26:05:06.7', 'YY MM DD HH24:MI:SS.US') i1, to_char(interval '-1 day -2 hours', 'DD HH24:MI') i2, to_char(time '15:04', 'HH12:MI pm') t, to_char(interval '100 hours', 'HH24 HH12') i3;
SELECT to_timestamp('05 Dec 2000 14:30', 'DD Mon YYYY HH24:MI') a, to_timestamp('2020', 'YYYY') b, to_timestamp(' 2000  JUN', 'YYYY MON') c, to_timestamp('20240102030405123', 'YYYYMMDDHH24MISSMS') d, to_timestamp(1700000000.25) e;
SELECT to_timestamp('12:30 PM', 'HH12:MI AM')::time t, to_date('97', 'YY') y97, to_date('20', 'YY') y20, to_date('1-44', 'DD-YY') x, to_date('2000-12-31', 'YYYY_MM_DD') sep, to_timestamp('2011-07-04 10:00 +02', 'YYYY-MM-DD HH24:MI TZH') tz;
SELECT to_timestamp('13:00 PM', 'HH12:MI AM');
SELECT to_timestamp('2000JUN', 'FXYYYY MON');
SELECT to_date('2024-13-01', 'YYYY-MM-DD');
SELECT to_date('x', 'YYYY');
SELECT to_date('2024 300 12', 'YYYY DDD IW');

-- extract / date_part / trunc / bin
SELECT f, extract(year FROM t) y, date_part('quarter', t) q, extract(isoyear FROM t) iy, extract(week FROM t) w, extract(doy FROM t) doy, extract(dow FROM t) dow, extract(century FROM t) c, extract(millennium FROM t) ml, extract(decade FROM t) dec, extract(microseconds FROM t) us
FROM (VALUES ('a', timestamp '2000-12-31 23:59:59.123456'), ('b', '2001-01-01'), ('c', '0001-01-01 BC')) v(f, t) ORDER BY f;
SELECT u, date_trunc(u, timestamp '2023-08-17 13:47:29.123456') AS tr FROM unnest('{microseconds,milliseconds,second,minute,hour,day,week,month,quarter,year,decade,century,millennium}'::text[]) WITH ORDINALITY x(u, o) ORDER BY o;
SELECT date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01 00:02:30') b1, date_bin('1 day', timestamp '1999-06-01 05:00', '2000-01-01 12:00') b2, date_trunc('month', interval '1 year 2 months 20 days') ti, date_trunc('day', timestamptz '2024-03-31 23:30+00', 'Europe/Paris') tz;
SELECT extract(epoch FROM interval '1 month 1 day 01:00'), extract(epoch FROM timestamp '1970-01-02'), extract(day FROM interval '40 days 25:00'), extract(hour FROM interval '40 days 25:00'), extract(julian FROM date '2000-01-01'), extract(year FROM date 'infinity'), extract(month FROM date '-infinity');
SELECT extract(fortnight FROM date '2000-01-01');
SELECT extract(hour FROM date '2000-01-01');
SELECT date_bin('1 month', timestamp '2020-01-01', '2000-01-01');

-- age and differences
SELECT age(timestamp '2024-03-31', '2024-02-29') a1, age(timestamp '2024-02-29', '2023-03-31 12:00') a2, age(date '2000-01-01', date '2001-02-03') a3, date '2024-03-01' - date '2024-02-01' d, timestamp '2024-03-01' - timestamp '2023-03-01 06:00' i, time '10:00' - time '12:30' t;
SELECT date '2024-01-31' + interval '1 month' m1, date '2024-03-31' - interval '1 month' m2, timestamp '2024-02-29' + interval '1 year' y, date '2024-01-31' + 30 AS plain, date '2024-01-01' + time '04:05' dt, time '23:00' + interval '3 hours' wrap, interval '1 day' * 1.5 AS half, interval '1 month' / 4 AS quarter;
SELECT (date '2024-01-01', interval '10 days') OVERLAPS (date '2024-01-10', date '2024-01-20') o1, (date '2024-01-01', date '2024-01-10') OVERLAPS (date '2024-01-10', date '2024-01-12') o2, isfinite(date 'infinity') f, justify_days('75 days') jd, justify_hours('50:00') jh, justify_interval('1 mon -1 hour') ji;
DO $$
DECLARE f text; r text;
BEGIN
  FOREACH f IN ARRAY ARRAY['2024-06-15', 'June 15, 2024', '15-Jun-2024', '20240615', '06/15/2024', '15/06/2024', '2024.167', 'epoch', '2024-06-15 24:00:00', '2024-06-15 25:00', '1 day ago', '06-15-24 BC'] LOOP
    BEGIN
      r := f::timestamp::text;
    EXCEPTION WHEN OTHERS THEN
      r := SQLSTATE || ': ' || SQLERRM;
    END;
    RAISE NOTICE '% => %', rpad(f, 20), r;
  END LOOP;
END $$;
SET datestyle = 'German'; SELECT date '2024-06-15', timestamp '2024-06-15 01:02:03.5';
SET datestyle = 'SQL, DMY'; SELECT date '2024-06-15', '03/04/2024'::date AS april, timestamptz '2024-06-15 01:02:03';
SET datestyle = 'Postgres, MDY'; SELECT date '2024-06-15', '03/04/2024'::date AS march, timestamp '2024-06-15 01:02:03';
