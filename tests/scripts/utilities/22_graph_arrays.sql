-- graph algorithms held entirely in arrays and jsonb
CREATE TABLE edge (src text NOT NULL, dst text NOT NULL, w int DEFAULT 1, PRIMARY KEY (src, dst));
INSERT INTO edge (src, dst, w) VALUES ('a', 'b', 4), ('a', 'c', 2), ('b', 'd', 5), ('c', 'b', 1), ('c', 'd', 8), ('d', 'e', 3), ('f', 'g', 1), ('e', 'c', 9);
CREATE TABLE task (name text PRIMARY KEY, deps text[] NOT NULL DEFAULT '{}');
INSERT INTO task VALUES ('shirt', '{}'), ('tie', '{shirt}'), ('jacket', '{tie,belt}'), ('belt', '{pants}'), ('pants', '{under}'), ('shoes', '{socks,pants}'), ('socks', DEFAULT), ('under', '{}');

CREATE FUNCTION bfs(start text, goal text DEFAULT NULL) RETURNS TABLE (node text, depth int, path text[]) LANGUAGE plpgsql STABLE AS $$
DECLARE
  queue jsonb := jsonb_build_array(jsonb_build_object('n', start, 'd', 0, 'p', jsonb_build_array(start)));
  seen text[] := ARRAY[start];
  cur jsonb; nxt text;
BEGIN
  WHILE jsonb_array_length(queue) > 0 LOOP
    cur := queue -> 0; queue := queue - 0;
    node := cur ->> 'n'; depth := cur -> 'd'; path := ARRAY(SELECT jsonb_array_elements_text(cur -> 'p'));
    IF goal IS NULL OR node = goal THEN RETURN NEXT; END IF;
    EXIT WHEN node = goal;
    FOR nxt IN SELECT e.dst FROM edge e WHERE e.src = cur ->> 'n' AND e.dst <> ALL (seen) ORDER BY e.dst LOOP
      seen := seen || nxt;
      queue := queue || jsonb_build_object('n', nxt, 'd', depth + 1, 'p', (cur -> 'p') || to_jsonb(nxt));
    END LOOP;
  END LOOP;
END $$;
SELECT * FROM bfs('a') ORDER BY depth, node;
SELECT path, array_length(path, 1) FROM bfs('a', 'e');
SELECT count(*) FROM bfs('a', 'g');
SELECT * FROM bfs('lonely');
SELECT node IS NULL AS n, depth FROM bfs(NULL);

CREATE FUNCTION topo() RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE done text[] := '{}'; batch text[]; round int := 0;
BEGIN
  LOOP
    SELECT array_agg(name ORDER BY name) INTO batch FROM task WHERE name <> ALL (done) AND deps <@ done;
    EXIT WHEN batch IS NULL;
    round := round + 1;
    RAISE DEBUG 'hidden';
    RAISE NOTICE 'round %: %', round, array_to_string(batch, ', ');
    done := done || batch;
  END LOOP;
  IF (SELECT count(*) FROM task) > cardinality(done) THEN
    RAISE EXCEPTION 'cycle or missing dependency' USING DETAIL = (SELECT string_agg(name || ' needs ' || ARRAY(SELECT unnest(deps) EXCEPT SELECT unnest(done) ORDER BY 1)::text, '; ' ORDER BY name) FROM task WHERE name <> ALL (done)), ERRCODE = '22023';
  END IF;
  RETURN done;
END $$;
SELECT topo();
BEGIN;
UPDATE task SET deps = deps || '{jacket}' WHERE name = 'under';
SELECT topo();
ROLLBACK;
SAVEPOINT nope;
BEGIN;
INSERT INTO task VALUES ('hat', '{ghost}');
SAVEPOINT s1;
SELECT topo();
ROLLBACK TO s1;
DELETE FROM task WHERE name = 'hat' RETURNING *;
COMMIT;

CREATE FUNCTION dfs(n text, INOUT visited text[], INOUT finish text[], INOUT has_cycle boolean, stack text[] DEFAULT '{}') LANGUAGE plpgsql AS $$
DECLARE d text;
BEGIN
  IF n = ANY (stack) THEN has_cycle := true; RETURN; END IF;
  IF n = ANY (visited) THEN RETURN; END IF;
  visited := visited || n;
  FOR d IN SELECT dst FROM edge WHERE src = n ORDER BY w, dst LOOP
    SELECT f.visited, f.finish, f.has_cycle INTO visited, finish, has_cycle FROM dfs(d, visited, finish, has_cycle, stack || n) f;
  END LOOP;
  finish := n || finish;
END $$;
SELECT * FROM dfs('a', '{}', '{}', false);
SELECT (dfs('f', '{}', '{}', false)).finish, (dfs('f', ARRAY['f'], NULL, NULL)).*;

-- union-find with an array, Kruskal
CREATE FUNCTION find_root(parent int[], x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN WHILE parent[x] <> x LOOP x := parent[x]; END LOOP; RETURN x; END $$;
CREATE FUNCTION kruskal(OUT src text, OUT dst text, OUT w int) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE names text[]; parent int[]; e edge; a int; b int;
BEGIN
  SELECT array_agg(n ORDER BY n) INTO names FROM (SELECT edge.src FROM edge UNION SELECT edge.dst FROM edge) s(n);
  parent := ARRAY(SELECT generate_subscripts(names, 1));
  FOR e IN SELECT * FROM edge ORDER BY edge.w, edge.src, edge.dst LOOP
    a := find_root(parent, array_position(names, e.src));
    b := find_root(parent, array_position(names, e.dst));
    IF a <> b THEN
      parent[a] := b;
      src := e.src; dst := e.dst; w := e.w;
      RETURN NEXT;
    END IF;
  END LOOP;
  src := '(total)'; dst := NULL; w := NULL;
  RETURN NEXT;
END $$;
SELECT * FROM kruskal();
SELECT sum(w), count(*) FROM kruskal() k WHERE dst IS NOT NULL;

-- Floyd-Warshall with a matrix
CREATE FUNCTION floyd() RETURNS TABLE (f text, t text, dist int) LANGUAGE plpgsql AS $$
DECLARE
  nm text[] := ARRAY(SELECT x FROM (SELECT src AS x FROM edge UNION SELECT dst FROM edge) s ORDER BY x);
  n CONSTANT int := cardinality(nm);
  d int[][] := array_fill(NULL::int, ARRAY[n, n]);
  r record;
BEGIN
  FOR r IN SELECT array_position(nm, src) i, array_position(nm, dst) j, w FROM edge LOOP d[r.i][r.j] := r.w; END LOOP;
  FOR k IN 1..n LOOP FOR i IN 1..n LOOP
    CONTINUE WHEN d[i][k] IS NULL;
    FOR j IN 1..n LOOP
      d[i][j] := least(d[i][j], d[i][k] + d[k][j]);
    END LOOP;
  END LOOP; END LOOP;
  RETURN QUERY SELECT nm[i], nm[j], d[i][j] FROM generate_subscripts(d, 1) i, generate_subscripts(d, 2) j WHERE d[i][j] IS NOT NULL AND i <> j;
END $$;
SELECT f, string_agg(t || '=' || dist, ' ' ORDER BY t) FROM floyd() GROUP BY f ORDER BY f;
-- recursive CTE: cycles, search order, transitive closure
WITH RECURSIVE r(n, p, cost) AS (SELECT 'a', ARRAY['a'], 0 UNION ALL SELECT dst, p || dst, cost + w FROM r JOIN edge ON src = n) CYCLE n SET looped USING track SELECT n, p, cost, looped FROM r ORDER BY p;
WITH RECURSIVE r(n, lvl) AS (SELECT 'jacket', 0 UNION ALL SELECT d, lvl + 1 FROM r, task, unnest(deps) d WHERE task.name = r.n) SEARCH DEPTH FIRST BY n SET ord SELECT repeat('  ', lvl) || n AS tree, ord FROM r ORDER BY ord;
WITH RECURSIVE r(n, lvl) AS (VALUES ('shoes', 0) UNION SELECT d, lvl + 1 FROM r JOIN task ON name = n CROSS JOIN unnest(deps) d) SEARCH BREADTH FIRST BY n SET ord SELECT n, lvl FROM r ORDER BY ord;
WITH RECURSIVE tc(x, y) AS (SELECT src, dst FROM edge UNION SELECT tc.x, e.dst FROM tc JOIN edge e ON e.src = tc.y) SELECT x, count(*), bool_or(x = y) AS self FROM tc GROUP BY x ORDER BY x;
WITH RECURSIVE bad(n) AS (SELECT 1 UNION ALL SELECT count(*)::int FROM bad) SELECT * FROM bad;
WITH RECURSIVE bad(n) AS (SELECT 1 UNION ALL SELECT n + 1.5 FROM bad WHERE n < 3) SELECT * FROM bad;
SELECT e1.src, e2.dst FROM edge e1 JOIN edge e2 ON e1.dst = e2.src EXCEPT SELECT src, dst FROM edge ORDER BY 1, 2;
