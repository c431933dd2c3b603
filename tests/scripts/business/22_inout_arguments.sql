SET timezone = 'UTC';
CREATE TYPE point3 AS (x int, y int, z numeric(6,2));
CREATE TYPE line_t AS (a point3, b point3);
CREATE TABLE acc (id text PRIMARY KEY, bal numeric NOT NULL, p point3);
INSERT INTO acc VALUES ('a', 100, NULL), ('b', 0, (1, 2, 3.456));

CREATE FUNCTION swap(INOUT a anyelement, INOUT b anyelement) LANGUAGE plpgsql AS $$
DECLARE t a%TYPE := a;
BEGIN
  a := b; b := t;
END $$;
SELECT * FROM swap(1, 2);
SELECT swap('x'::text, NULL), (swap(ARRAY[1], ARRAY[]::int[])).b;
SELECT swap(1, 'two'::text);
SELECT swap(1, 2.5);
CREATE FUNCTION divmod(n int, d int, OUT q int, OUT r int) LANGUAGE plpgsql AS $$
BEGIN
  q := n / d; r := n - q * d;
  IF r < 0 THEN RETURN; END IF;
  r := r + 0;
END $$;
SELECT divmod(17, 5), d.* FROM divmod(-17, 5) d;
SELECT q FROM divmod(r => 1, n => 2, d => 3);
SELECT (divmod(9, 0)).*;
SELECT x, d.q, d.r FROM unnest('{1,NULL,12}'::int[]) x, LATERAL divmod(x, 7) d ORDER BY x;
CREATE PROCEDURE move(p_from text, p_to text, INOUT amt numeric, OUT left_from numeric, OUT left_to numeric, INOUT log text[] DEFAULT '{}') LANGUAGE plpgsql AS $$
BEGIN
  UPDATE acc SET bal = bal - amt WHERE id = p_from RETURNING bal INTO left_from;
  IF left_from IS NULL THEN
    amt := 0; log := log || format('no account %L', p_from);
    RETURN;
  END IF;
  UPDATE acc SET bal = bal + amt WHERE id = p_to RETURNING bal INTO left_to;
  log := array_append(log, concat(p_from, '->', p_to, ':', amt));
END $$;
CALL move('a', 'b', 30, NULL, NULL);
CALL move('a', 'nobody', 5.5, NULL, NULL, ARRAY['old']);
CALL move('zz', 'b', 1, NULL, 99);
CALL move('a', 'b', 1);
CALL move(p_to => 'a', p_from => 'b', amt => 2, left_from => NULL, left_to => NULL, log => '{x,y}');
DO $$
DECLARE a numeric := 10; f numeric; t numeric; l text[];
BEGIN
  l := ARRAY['start'];
  FOR i IN 1..2 LOOP
    CALL move('a', 'b', a, f, t, l);
    a := a * 2;
  END LOOP;
  RAISE NOTICE 'a=% f=% t=% log=%', a, f, t, l;
  CALL move('a', 'b', 1, f, t, l);
END $$;
DO $$
DECLARE f numeric; t numeric;
BEGIN
  CALL move('a', 'b', 3::numeric, f, t);
END $$;
DO $$
DECLARE r record; i int := 7; j bigint := 8;
BEGIN
  SELECT * INTO r FROM swap(i, 9);
  RAISE NOTICE '% %', r, r.a + r.b;
  i := (swap(i, 5)).a;
  SELECT b, a INTO i, j FROM swap(100, 200);
  RAISE NOTICE 'i=% j=%', i, j;
  SELECT q INTO STRICT r FROM divmod(22, 7);
  RAISE NOTICE 'r.q=% r=%', r.q, r;
  RAISE NOTICE '%', r.r;
END $$;

-- composite in and out
CREATE FUNCTION shift(INOUT p point3, d int DEFAULT 1) LANGUAGE plpgsql AS $$
BEGIN
  p.x := p.x + d;
  p.z := coalesce(p.z, 0) + 0.005;
  IF d < 0 THEN p := NULL; END IF;
END $$;
SELECT shift(ROW(1, 2, 3)), shift(NULL), shift((1, NULL, NULL)::point3, -1), (shift(p)).x FROM acc ORDER BY id;
CREATE FUNCTION segment(INOUT a point3, INOUT b point3, OUT l line_t, OUT len double precision) LANGUAGE plpgsql AS $$
BEGIN
  a := shift(a, 10);
  l := ROW(a, b);
  l.b.y := 0;
  len := sqrt(((l).a.x - (l).b.x) ^ 2 + (l.a.y - l.b.y) ^ 2);
END $$;
CREATE OR REPLACE FUNCTION segment(INOUT a point3, INOUT b point3, OUT l line_t, OUT len double precision) LANGUAGE plpgsql AS $$
DECLARE tmp point3 := b;
BEGIN
  a := shift(a, 10);
  tmp.y := 0;
  l := ROW(a, tmp);
  len := sqrt((a.x - tmp.x) ^ 2 + (a.y - tmp.y) ^ 2);
END $$;
SELECT s.a, (s.b).x, (s.l).b, ((s.l).a).z, s.len FROM segment((1, 3, 0), (8, 9, 1.5)) s;
SELECT segment(NULL, NULL);
CREATE PROCEDURE fill(INOUT p point3, INOUT arr point3[] = NULL) LANGUAGE plpgsql AS $$
BEGIN
  p.y := coalesce(p.y, -1);
  arr[3] := p;
  arr[2] := ROW(0, 0, 0);
  FOR i IN array_lower(arr, 1) .. array_upper(arr, 1) LOOP
    arr[i].x := coalesce(arr[i].x, 0) + i;
  END LOOP;
END $$;
CALL fill(ROW(5, NULL, 1.239));
CALL fill(NULL, ARRAY[ROW(9, 9, 9)::point3]);
DO $$
DECLARE q point3; qs point3[] := '{}';
BEGIN
  CALL fill(q, qs);
  RAISE NOTICE 'q=% qs=% third.y=%', q, qs, qs[3].y;
  q := (4, 5, 6); q := ROW(7, q.x, q.y + q.z);
  RAISE NOTICE '% eq % distinct %', q, q = (7, 4, 11)::point3, q IS DISTINCT FROM NULL;
END $$;
CREATE FUNCTION no_result(a int) LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION bad_ret(INOUT a int, OUT b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION one_out(OUT a int) LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
CREATE FUNCTION one_out(OUT a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN a := 5; RETURN; END $$;
SELECT one_out(), * FROM one_out();
CREATE FUNCTION many(n int, OUT k int, OUT sq int, INOUT tag text DEFAULT 't') RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1..n LOOP sq := k * k; tag := tag || k; RETURN NEXT; END LOOP;
  k := NULL; RETURN NEXT;
END $$;
SELECT * FROM many(2); SELECT * FROM many(1, 'z') AS t(a, b); SELECT many(0);
SELECT * FROM many(2, NULL) AS t(a, b, c, d);
SELECT id, bal FROM acc ORDER BY id;
SELECT proname, pronargs, proargmodes, proargnames, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname IN ('move', 'divmod', 'many') ORDER BY proname;
