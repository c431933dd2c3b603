-- dynamic programming with tables, arrays, jsonb memo and UNLOGGED caches
CREATE UNLOGGED TABLE memo (fn text, key text, val numeric, hits int NOT NULL DEFAULT 0, PRIMARY KEY (fn, key));
CREATE TABLE item (name text PRIMARY KEY, w int NOT NULL CHECK (w > 0), v int NOT NULL, grp int);
INSERT INTO item VALUES ('map', 9, 150, 1), ('compass', 13, 35, 1), ('water', 153, 200, 2), ('sandwich', 50, 160, 2), ('glucose', 15, 60, 2), ('tin', 68, 45, NULL), ('banana', 27, 60, 3), ('camera', 32, 30, NULL);

CREATE FUNCTION memo_get(INOUT f text, k text, OUT hit boolean, OUT val numeric) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE memo m SET hits = hits + 1 WHERE m.fn = f AND m.key = k RETURNING m.val INTO val;
  hit := FOUND;
END $$;
CREATE FUNCTION fib(n int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE m record; r numeric;
BEGIN
  IF n < 0 THEN RAISE invalid_parameter_value USING MESSAGE = 'negative: ' || n; END IF;
  m := memo_get('fib', n::text);
  IF m.hit THEN RETURN m.val; END IF;
  r := CASE WHEN n < 2 THEN n ELSE fib(n - 1) + fib(n - 2) END;
  INSERT INTO memo (fn, key, val) VALUES ('fib', n, r);
  RETURN r;
END $$;
SELECT fib(90), fib(0);
SELECT fib(-1);
SELECT count(*), sum(hits), max(hits), min(key::int) FILTER (WHERE hits = 0) FROM memo WHERE fn = 'fib';
CREATE FUNCTION ways(total int, coins int[]) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE k text := total || ':' || array_to_string(coins, ','); r numeric; v_hit boolean;
BEGIN
  IF total = 0 THEN RETURN 1; ELSIF total < 0 OR cardinality(coins) = 0 THEN RETURN 0; END IF;
  SELECT hit, val INTO v_hit, r FROM memo_get('ways', k);
  IF NOT v_hit THEN
    r := ways(total - coins[1], coins) + ways(total, coins[2:]);
    INSERT INTO memo VALUES ('ways', k, r, DEFAULT) ON CONFLICT ON CONSTRAINT memo_pkey DO NOTHING;
  END IF;
  RETURN r;
END $$;
SELECT ways(100, '{50,25,10,5,1}'), ways(0, '{}'), ways(7, '{2,4}'), ways(3, '{}');
SELECT fn, count(*) AS entries, sum(hits) AS hits FROM memo GROUP BY fn ORDER BY fn;

-- knapsack with a 2-D array, returning chosen set
CREATE FUNCTION knapsack(cap int, OUT best int, OUT weight int, OUT chosen text[]) LANGUAGE plpgsql AS $$
DECLARE
  items item[]; n int; t int[][]; c int := cap;
BEGIN
  SELECT array_agg(i ORDER BY i.name) INTO items FROM item i;
  n := coalesce(cardinality(items), 0);
  t := array_fill(0, ARRAY[n + 1, cap + 1], ARRAY[0, 0]);
  FOR i IN 1 .. n LOOP
    FOR j IN 0 .. cap LOOP
      t[i][j] := CASE WHEN items[i].w <= j THEN greatest(t[i - 1][j], t[i - 1][j - items[i].w] + items[i].v) ELSE t[i - 1][j] END;
    END LOOP;
  END LOOP;
  best := t[n][cap]; weight := 0;
  FOR i IN REVERSE n .. 1 LOOP
    IF t[i][c] <> t[i - 1][c] THEN
      chosen := items[i].name || chosen; weight := weight + items[i].w; c := c - (items[i]).w;
    END IF;
  END LOOP;
END $$;
SELECT * FROM knapsack(100);
SELECT k.best, chosen FROM generate_series(0, 40, 20) g, knapsack(g) k ORDER BY g;
SELECT * FROM knapsack(-2);
-- longest increasing subsequence, max subarray, matrix chain
CREATE FUNCTION lis(a int[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE best jsonb := '{}'; cand jsonb; top jsonb := '[]';
BEGIN
  FOR i IN 1 .. cardinality(a) LOOP
    cand := jsonb_build_array(a[i]);
    FOR j IN 1 .. i - 1 LOOP
      IF a[j] < a[i] AND jsonb_array_length(best -> j::text) >= jsonb_array_length(cand) THEN cand := (best -> j::text) || to_jsonb(a[i]); END IF;
    END LOOP;
    best := jsonb_set(best, ARRAY[i::text], cand);
    IF jsonb_array_length(cand) > jsonb_array_length(top) THEN top := cand; END IF;
  END LOOP;
  RETURN ARRAY(SELECT e::int FROM jsonb_array_elements_text(top) e);
END $$;
SELECT lis('{10,9,2,5,3,7,101,18}'), lis('{}'), lis(NULL), lis('{3,2,1}'), lis('{1,NULL,2}');
CREATE FUNCTION kadane(a numeric[], OUT total numeric, OUT lo int, OUT hi int) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE cur numeric := 0; s int := 1; x numeric; i int := 0;
BEGIN
  FOREACH x IN ARRAY a LOOP
    i := i + 1;
    IF cur <= 0 THEN cur := x; s := i; ELSE cur := cur + x; END IF;
    IF total IS NULL OR cur > total THEN SELECT cur, s, i INTO total, lo, hi; END IF;
  END LOOP;
END $$;
SELECT v, (kadane(v)).* FROM (VALUES ('{-2,1,-3,4,-1,2,1,-5,4}'::numeric[]), ('{-3,-1.5}'), ('{}'), ('{1,NULL,5}')) t(v) ORDER BY v;
CREATE FUNCTION chain(p int[], i int DEFAULT 1, j int DEFAULT NULL, OUT cost bigint, OUT expr text) LANGUAGE plpgsql AS $$
DECLARE l record; r record; c bigint;
BEGIN
  j := coalesce(j, cardinality(p) - 1);
  IF i = j THEN cost := 0; expr := chr(64 + i); RETURN; END IF;
  FOR k IN i .. j - 1 LOOP
    SELECT * INTO l FROM chain(p, i, k);
    SELECT * INTO r FROM chain(p, k + 1, j);
    c := l.cost + r.cost + p[i] * p[k + 1] * p[j + 1];
    IF c < cost OR cost IS NULL THEN (cost, expr) := (c, '(' || l.expr || r.expr || ')'); END IF;
  END LOOP;
END $$;
CREATE FUNCTION chain(p int[], i int DEFAULT 1, j int DEFAULT NULL, OUT cost bigint, OUT expr text) LANGUAGE plpgsql AS $$
DECLARE l record; r record; c bigint;
BEGIN
  j := coalesce(j, cardinality(p) - 1);
  IF i = j THEN cost := 0; expr := chr(64 + i); RETURN; END IF;
  FOR k IN i .. j - 1 LOOP
    SELECT * INTO l FROM chain(p, i, k);
    SELECT * INTO r FROM chain(p, k + 1, j);
    c := l.cost + r.cost + p[i] * p[k + 1] * p[j + 1];
    IF (c < cost) IS NOT FALSE THEN cost := c; expr := concat('(', l.expr, r.expr, ')'); END IF;
  END LOOP;
END $$;
SELECT * FROM chain('{40,20,30,10,30}');
SELECT * FROM chain('{5,6}') UNION ALL SELECT * FROM chain('{1,2,3}') ORDER BY cost;
-- pascal triangle and catalan numbers by windowed / recursive SQL, partition numbers in temp table
WITH RECURSIVE pas(n, r) AS (SELECT 0, ARRAY[1]::numeric[] UNION ALL SELECT n + 1, (SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY o) FROM unnest(0::numeric || r, r || 0::numeric) WITH ORDINALITY u(a, b, o)) FROM pas WHERE n < 5) SELECT n, r FROM pas ORDER BY n;
DO $$
DECLARE lim CONSTANT int := 12; r record;
BEGIN
  CREATE TEMP TABLE part_num (n int PRIMARY KEY, p bigint);
  INSERT INTO part_num SELECT g, (g = 0)::int FROM generate_series(0, lim) g;
  FOR k IN 1 .. lim LOOP
    FOR r IN SELECT n FROM part_num WHERE n >= k ORDER BY n LOOP
      UPDATE part_num SET p = p + (SELECT q.p FROM part_num q WHERE q.n = r.n - k) WHERE n = r.n;
    END LOOP;
  END LOOP;
END $$;
SELECT string_agg(p::text, ' ' ORDER BY n) AS partitions FROM part_num;
SELECT grp, name, v, sum(v) OVER (PARTITION BY grp ORDER BY v, name) AS run, v = max(v) OVER (PARTITION BY grp) AS top, ntile(2) OVER (ORDER BY w), round(cume_dist() OVER (ORDER BY v)::numeric, 3) AS cd, nth_value(name, 2) OVER (PARTITION BY grp ORDER BY w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM item ORDER BY grp NULLS FIRST, v, name;
