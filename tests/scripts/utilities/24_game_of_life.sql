-- cellular automata: set-based life, array-based rule 110, langton's ant, flood fill
CREATE TABLE cell (gen int, x int, y int, PRIMARY KEY (gen, x, y));
CREATE TABLE pattern (name text PRIMARY KEY, art text NOT NULL);
INSERT INTO pattern VALUES ('blinker', E'...\n###\n...'), ('glider', E'.#.\n..#\n###'), ('block', E'##\n##'), ('empty', ''), ('row', '#####');
CREATE FUNCTION plant(p text, dx int DEFAULT 0, dy int DEFAULT 0) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  INSERT INTO cell SELECT 0, c.o::int + dx, l.o::int + dy
  FROM pattern, regexp_split_to_table(art, '\n') WITH ORDINALITY AS l(t, o), string_to_table(l.t, NULL) WITH ORDINALITY AS c(ch, o)
  WHERE name = p AND c.ch = '#'
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n = 0 AND NOT EXISTS (SELECT 1 FROM pattern WHERE name = p) THEN
    RAISE EXCEPTION 'unknown pattern: %', p;
  END IF;
  RETURN n;
END $$;
CREATE FUNCTION step(g int) RETURNS int LANGUAGE sql AS $$
  WITH nb AS (
    SELECT c.x + dx AS x, c.y + dy AS y, count(*) FILTER (WHERE (dx, dy) <> (0, 0)) AS n, bool_or((dx, dy) = (0, 0)) AS alive
    FROM cell c CROSS JOIN generate_series(-1, 1) dx CROSS JOIN generate_series(-1, 1) AS dy WHERE gen = g GROUP BY 1, 2),
  ins AS (INSERT INTO cell SELECT g + 1, x, y FROM nb WHERE n = 3 OR (n = 2 AND alive) RETURNING 1)
  SELECT count(*)::int FROM ins
$$;
CREATE FUNCTION show(g int, w int = 6, h int = 6) RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT string_agg(CASE WHEN c.gen IS NULL THEN '.' ELSE '#' END, '' ORDER BY xx)
  FROM generate_series(1, h) yy CROSS JOIN generate_series(1, w) xx LEFT JOIN cell c ON c.gen = g AND (c.x, c.y) = (xx, yy) GROUP BY yy ORDER BY yy
$$;
CREATE FUNCTION life(gens int) RETURNS TABLE (gen int, alive int, shape text) LANGUAGE plpgsql AS $$
DECLARE hist text[] := '{}'; h text;
BEGIN
  FOR i IN 0 .. gens LOOP
    SELECT string_agg(format('%s,%s', c.x, c.y), ';' ORDER BY c.x, c.y), count(*) INTO h, alive FROM cell c WHERE c.gen = i;
    gen := i;
    shape := CASE WHEN h IS NULL THEN 'dead' WHEN h = ANY (hist) THEN 'seen at ' || array_position(hist, h) - 1 ELSE 'new' END;
    RETURN NEXT;
    EXIT WHEN shape <> 'new';
    hist := hist || h;
    PERFORM step(i);
  END LOOP;
END $$;
SELECT plant('glider'), plant('glider') AS again, plant('empty') AS e;
SELECT * FROM life(4);
SELECT o AS y, s FROM show(4) WITH ORDINALITY t(s, o) ORDER BY o;
SELECT min(x), max(x), min(y), max(y) FROM cell WHERE gen = 4;
TRUNCATE cell;
SELECT plant('blinker', 1, 1), plant(dy => 5, p => 'block');
SELECT * FROM life(10);
TRUNCATE cell; SELECT plant('row', 2, 0); SELECT * FROM life(2) ORDER BY gen DESC;
TRUNCATE cell; SELECT * FROM life(3);
INSERT INTO cell VALUES (0, 1, 1), (0, 9, 9); SELECT gen, shape FROM life(5);
SELECT plant('spaceship');
SELECT step(NULL), (SELECT count(*) FROM show(99, 3, 2)) AS rows, (SELECT count(*) FROM show(0, 0)) AS none;

-- 1-D automaton on text with rule bits
CREATE FUNCTION automaton(rule int, init text, n int) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  cur text := init; nxt text; w int := length(init); idx int;
BEGIN
  FOR g IN 0 .. n LOOP
    RETURN NEXT translate(cur, '01', '.#');
    nxt := '';
    FOR i IN 1 .. w LOOP
      idx := (substr(cur, (i + w - 2) % w + 1, 1) || substr(cur, i, 1) || substr(cur, i % w + 1, 1))::bit(3)::int;
      nxt := nxt || ((rule >> idx) & 1);
    END LOOP;
    cur := nxt;
  END LOOP;
END $$;
SELECT * FROM automaton(110, '00000000001', 5);
SELECT max(length(l)), count(DISTINCT l) FROM automaton(90, '0001000', 8) l;
SELECT automaton(30, '', 0) = '' AS empty, count(*) FROM automaton(30, NULL, 1) GROUP BY 1;

-- Langton's ant with CASE state machine and exceptions for leaving the board
CREATE FUNCTION ant(size int, steps int, OUT black int, OUT pos int[], OUT facing char, OUT stopped text) LANGUAGE plpgsql AS $$
DECLARE
  b bool[] := array_fill(false, ARRAY[size, size]);
  x int := (size + 1) / 2; y int := (size + 1) / 2;
BEGIN
  facing := 'N'; stopped := 'steps';
  BEGIN
    FOR s IN 1 .. steps LOOP
      facing := CASE b[y][x] WHEN true THEN translate(facing, 'NESW', 'WNES') ELSE translate(facing, 'NESW', 'ESWN') END;
      b[y][x] := NOT b[y][x];
      CASE facing
        WHEN 'N' THEN y := y - 1;
        WHEN 'S' THEN y := y + 1;
        WHEN 'E', 'W' THEN x := x + CASE facing WHEN 'E' THEN 1 ELSE -1 END;
      END CASE;
      IF b[y][x] IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'AN001', MESSAGE = format('fell off at step %s', s);
      END IF;
    END LOOP;
  EXCEPTION WHEN SQLSTATE 'AN001' THEN
    stopped := SQLERRM;
  END;
  pos := ARRAY[x, y];
  SELECT count(*) FILTER (WHERE v) INTO black FROM unnest(b) v;
END $$;
SELECT s, a.* FROM unnest(ARRAY[0, 1, 4, 11, 50, 500]) s, ant(9, s) a ORDER BY s;
-- flood fill with recursion limited by an explicit stack
CREATE FUNCTION flood(grid text[], sx int, sy int, c char) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE stack int[][] := ARRAY[ARRAY[sx, sy]]; p int[]; old char := substr(grid[sy], sx, 1); n int := 0;
BEGIN
  IF old IS NULL OR old IN ('', c) THEN RETURN grid; END IF;
  WHILE array_length(stack, 1) > 0 LOOP
    p := ARRAY[stack[array_upper(stack, 1)][1], stack[array_upper(stack, 1)][2]];
    stack := stack[: array_upper(stack, 1) - 1];
    CONTINUE WHEN p[1] < 1 OR p[2] < 1 OR substr(grid[p[2]], p[1], 1) IS DISTINCT FROM old;
    grid[p[2]] := overlay(grid[p[2]] PLACING c FROM p[1] FOR 1);
    n := n + 1;
    stack := stack || ARRAY[[p[1] + 1, p[2]], [p[1] - 1, p[2]], [p[1], p[2] + 1], [p[1], p[2] - 1]];
  END LOOP;
  RAISE NOTICE 'filled % cells', n;
  RETURN grid;
END $$;
SELECT o, r FROM unnest(flood('{..#..,.##..,#....,..###}', 5, 1, '~')) WITH ORDINALITY u(r, o) ORDER BY o;
SELECT flood('{ab}', 9, 9, 'x'), flood('{aa}', 1, 1, 'a'), flood('{}', 1, 1, 'z');
SELECT flood('{aa,aa}', 0, 0, 'z');
