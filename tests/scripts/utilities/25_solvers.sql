-- backtracking solvers
CREATE TABLE puzzle (id int PRIMARY KEY, grid text NOT NULL, CONSTRAINT shape CHECK (length(grid) = 16 AND grid ~ '^[1-4.]+$'));
CREATE TABLE solution (puzzle_id int REFERENCES puzzle, n int, grid text, tries int, PRIMARY KEY (puzzle_id, n));
CREATE TABLE progress (id int GENERATED ALWAYS AS IDENTITY, note text);
INSERT INTO puzzle VALUES (1, '1...' || '..3.' || '.1..' || '...2'), (2, '11..............'), (3, '................'), (4, '1234341221434321');
INSERT INTO puzzle VALUES (5, 'abc');

CREATE FUNCTION candidates(g text, pos int) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(array_agg(d::text ORDER BY d), '{}') FROM generate_series(1, 4) d
  WHERE NOT EXISTS (SELECT 1 FROM generate_series(1, 16) q WHERE substr(g, q, 1) = d::text AND q <> pos
    AND ((q - 1) / 4 = (pos - 1) / 4 OR (q - 1) % 4 = (pos - 1) % 4 OR ((q - 1) / 8, ((q - 1) % 4) / 2) = ((pos - 1) / 8, ((pos - 1) % 4) / 2)))
$$;
CREATE FUNCTION solve(pid int, g text, lim int, INOUT tries int DEFAULT 0, INOUT hits int DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE pos int := 0; best int; cand text[]; c text; bc text[];
BEGIN
  FOR i IN 1 .. 16 LOOP
    IF substr(g, i, 1) = '.' THEN
      cand := candidates(g, i);
      IF best IS NULL OR cardinality(cand) < cardinality(bc) THEN best := i; bc := cand; END IF;
      EXIT WHEN cardinality(cand) = 0;
    ELSIF substr(g, i, 1) <> ALL (candidates(g, i)) THEN
      RAISE EXCEPTION 'clash at %', i USING ERRCODE = 'SU001', DETAIL = g;
    END IF;
  END LOOP;
  IF best IS NULL THEN
    hits := hits + 1;
    INSERT INTO solution VALUES (pid, hits, g, tries);
    RETURN;
  END IF;
  FOREACH c IN ARRAY bc LOOP
    tries := tries + 1;
    SELECT s.tries, s.hits INTO tries, hits FROM solve(pid, overlay(g PLACING c FROM best), lim, tries, hits) s;
    IF hits >= lim THEN RETURN; END IF;
  END LOOP;
END $$;
DO $$
DECLARE p puzzle; r record; d text; ctx text;
BEGIN
  FOR p IN SELECT * FROM puzzle ORDER BY id LOOP
    BEGIN
      SELECT * INTO r FROM solve(p.id, p.grid, 3);
      INSERT INTO progress (note) VALUES (format('%s: %s solutions, %s tries', p.id, r.hits, r.tries));
    EXCEPTION WHEN SQLSTATE 'SU001' THEN
      GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, ctx = PG_EXCEPTION_CONTEXT;
      INSERT INTO progress (note) VALUES (concat(p.id, ': ', SQLERRM, ' in ', d, ' / ', split_part(ctx, E'\n', 1)));
    END;
  END LOOP;
END $$;
SELECT * FROM progress ORDER BY id;
SELECT puzzle_id, n, grid FROM solution ORDER BY 1, 2;
SELECT regexp_replace(grid, '(.{4})', '\1/', 'g') FROM solution WHERE puzzle_id = 1;

-- N queens: recursive CTE, bit masks, and a loop version
WITH RECURSIVE q(n, cols) AS (SELECT 0, '{}'::int[] UNION ALL
  SELECT n + 1, cols || c FROM q, generate_series(1, 6) c WHERE n < 6 AND c <> ALL (cols) AND NOT EXISTS (SELECT FROM unnest(cols) WITH ORDINALITY u(v, o) WHERE abs(v - c) = n + 1 - o))
SELECT cols, array_to_string(cols, '') FROM q WHERE n = 6 ORDER BY cols;
CREATE FUNCTION queens(n int, c int DEFAULT 0, ld int DEFAULT 0, rd int DEFAULT 0) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE full_mask CONSTANT int := (1 << n) - 1; poss int; b int; total int := 0;
BEGIN
  IF c = full_mask THEN RETURN 1; END IF;
  poss := full_mask & ~(c | ld | rd);
  WHILE poss <> 0 LOOP
    b := poss & -poss;
    poss := poss - b;
    total := total + queens(n, c | b, (ld | b) << 1, (rd | b) >> 1);
  END LOOP;
  RETURN total;
END $$;
SELECT n, queens(n) FROM generate_series(0, 6) n ORDER BY n;
CREATE FUNCTION first_queens(n int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE q int[] := ARRAY[0]; k int := 1; ok bool; iters int := 0;
BEGIN
  <<outer>>
  WHILE k > 0 LOOP
    <<advance>>
    LOOP
      q[k] := q[k] + 1; iters := iters + 1;
      EXIT advance WHEN q[k] > n;
      ok := true;
      FOR i IN 1 .. k - 1 LOOP
        IF q[i] = q[k] OR abs(q[i] - q[k]) = k - i THEN ok := false; EXIT; END IF;
      END LOOP;
      CONTINUE advance WHEN NOT ok;
      EXIT outer WHEN k = n;
      k := k + 1; q[k] := 0;
      CONTINUE outer;
    END LOOP advance;
    q := trim_array(q, 1);
    k := k - 1;
  END LOOP outer;
  RAISE NOTICE 'n=% after % probes', n, iters;
  RETURN q;
END $$;
SELECT first_queens(4), first_queens(3), first_queens(6);
SELECT lpad('', v - 1, '.') || 'Q' || rpad('', 4 - v, '.') AS board FROM unnest(first_queens(4)) WITH ORDINALITY u(v, o) ORDER BY o;

-- subset sum, towers of Hanoi, water jugs
CREATE FUNCTION subset_sum(nums int[], target int, chosen int[] DEFAULT '{}') RETURNS SETOF int[] LANGUAGE plpgsql AS $$
BEGIN
  IF target = 0 THEN RETURN NEXT chosen; RETURN; END IF;
  IF nums = '{}' OR target < 0 THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM subset_sum(nums[2:], target - nums[1], chosen || nums[1]);
  RETURN QUERY SELECT * FROM subset_sum(nums[2:], target, chosen);
END $$;
SELECT s FROM subset_sum('{3,34,4,12,5,2}', 9) s ORDER BY s;
SELECT count(*) FROM subset_sum('{1,1,1}', 2);
CREATE TABLE peg (p char PRIMARY KEY, disks int[] NOT NULL);
CREATE FUNCTION peg_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM unnest(NEW.disks) WITH ORDINALITY a(v, o) JOIN unnest(NEW.disks) WITH ORDINALITY b(v, o) ON b.o = a.o + 1 AND b.v > a.v) THEN
    RAISE check_violation USING MESSAGE = 'larger disk on smaller: ' || NEW.disks::text;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON peg FOR EACH ROW EXECUTE FUNCTION peg_guard();
INSERT INTO peg VALUES ('A', '{4,3,2,1}'), ('B', '{}'), ('C', '{}');
CREATE PROCEDURE hanoi(n int, f char, t char, v char, INOUT moves int) LANGUAGE plpgsql AS $$
DECLARE d int;
BEGIN
  IF n = 0 THEN RETURN; END IF;
  CALL hanoi(n - 1, f, v, t, moves);
  UPDATE peg SET disks = trim_array(disks, 1) WHERE p = f RETURNING cardinality(disks) INTO d;
  UPDATE peg SET disks = disks || n WHERE p = t;
  moves := moves + 1;
  IF moves IN (1, 8, 15) THEN RAISE NOTICE 'move %: disk % % -> % (% left) %', moves, n, f, t, d, (SELECT string_agg(p || disks::text, ' ' ORDER BY p) FROM peg); END IF;
  CALL hanoi(n - 1, v, t, f, moves);
END $$;
CALL hanoi(4, 'A', 'C', 'B', 0);
UPDATE peg SET disks = disks || 9 WHERE p = 'C';
SELECT * FROM peg ORDER BY p;
WITH RECURSIVE jug(a, b, path) AS (SELECT 0, 0, ARRAY['0,0'] UNION ALL
  SELECT s.a, s.b, path || format('%s,%s', s.a, s.b) FROM jug j, LATERAL (VALUES (5, j.b), (j.a, 3), (0, j.b), (j.a, 0), (j.a - least(j.a, 3 - j.b), j.b + least(j.a, 3 - j.b)), (j.a + least(j.b, 5 - j.a), j.b - least(j.b, 5 - j.a))) AS s(a, b)
  WHERE format('%s,%s', s.a, s.b) <> ALL (path) AND j.a <> 4)
SELECT cardinality(path) - 1 AS steps, array_to_string(path, ' ') AS route FROM jug WHERE a = 4 ORDER BY 1, 2 LIMIT 1;
