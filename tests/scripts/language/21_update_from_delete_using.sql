SET timezone = 'UTC';
CREATE TABLE emp (id int PRIMARY KEY, name text, dept int, sal numeric(8,2), boss int REFERENCES emp, hist numeric[] DEFAULT '{}');
CREATE TABLE dept (id int PRIMARY KEY, nm text, pct numeric);
CREATE TABLE rate (dept int, yr int, mult numeric, PRIMARY KEY (dept, yr));
INSERT INTO dept VALUES (1, 'eng', 10), (2, 'ops', NULL), (3, 'hr', 0);
INSERT INTO emp VALUES (1, 'ceo', NULL, 900, NULL), (2, 'ann', 1, 500, 1), (3, 'bob', 1, 400, 2), (4, 'cat', 2, 300, 1), (5, 'dan', 3, 200, 4), (6, 'eve', 9, 100, 5);
INSERT INTO rate VALUES (1, 2023, 1.1), (1, 2024, 1.2), (2, 2023, 1.05), (3, 2024, 2);

WITH q AS (UPDATE emp SET sal = sal * (1 + pct / 100), hist = hist || sal FROM dept WHERE dept.id = emp.dept AND pct > 0 RETURNING emp.id, emp.sal, hist, dept.nm) SELECT * FROM q ORDER BY 1;
WITH q AS (UPDATE emp e SET name = e.name || '<' || b.name FROM emp b LEFT JOIN dept d ON d.id = b.dept WHERE e.boss = b.id AND (d.nm IS NULL OR d.nm <> 'hr') RETURNING e.id, e.name, b.name AS old_boss_name, d.nm) SELECT * FROM q ORDER BY 1;
WITH q AS (UPDATE emp SET (sal, dept, name) = (SELECT coalesce(max(r.mult), 1) * emp.sal, emp.dept, upper(emp.name) FROM rate r WHERE r.dept = emp.dept AND r.yr = 2024) WHERE id > 2 RETURNING id, sal, dept, name) SELECT * FROM q ORDER BY 1;
UPDATE emp SET (sal, name) = (1, 'one'), dept = DEFAULT, hist[2:3] = '{7,8}' WHERE id = 6 RETURNING *;
UPDATE emp SET (sal, name) = (SELECT 1, 2, 3);
UPDATE emp SET (sal, name) = (SELECT sal, name FROM emp);
UPDATE emp SET (sal, name) = ROW(2) WHERE id = 6;
UPDATE emp SET sal = 1, sal = 2;
UPDATE emp SET emp.sal = 1;
UPDATE emp e SET e.sal = 1;
UPDATE emp SET sal = sal + 1 FROM emp WHERE id = 1;
UPDATE emp e SET sal = s.n FROM (SELECT e.id, 1 AS n) s;
WITH q AS (UPDATE emp SET sal = x.s FROM (SELECT dept, avg(sal)::numeric(8,2) s FROM emp GROUP BY dept) x WHERE x.dept IS NOT DISTINCT FROM emp.dept AND emp.dept IS NULL RETURNING id, emp.sal, x.*) SELECT * FROM q ORDER BY 1;
SELECT id, name, dept, sal, hist FROM emp ORDER BY id;

-- CTEs driving updates, RETURNING subqueries and window functions over the result
WITH RECURSIVE sub(id, lvl) AS (SELECT id, 0 FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, lvl + 1 FROM emp e JOIN sub ON e.boss = sub.id),
up AS (UPDATE emp SET sal = sal + lvl * 10, hist = array_prepend(lvl, hist) FROM sub WHERE sub.id = emp.id AND lvl > 0 RETURNING emp.id, emp.boss, lvl, sal, (SELECT count(*) FROM emp z WHERE z.boss = emp.id) AS reports)
SELECT up.*, sum(sal) OVER (PARTITION BY lvl ORDER BY id) AS run, old.sal AS before FROM up JOIN emp old USING (id) ORDER BY id;
WITH RECURSIVE sub(id, lvl) AS (SELECT id, 0 FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, lvl + 1 FROM emp e JOIN sub ON e.boss = sub.id),
up AS (UPDATE emp SET sal = sal + lvl * 10, hist = array_prepend(lvl, hist) FROM sub WHERE sub.id = emp.id AND lvl > 0 RETURNING emp.id, emp.boss, lvl, sal, (SELECT count(*) FROM emp z WHERE z.boss = emp.id) AS reports)
SELECT up.*, sum(up.sal) OVER (PARTITION BY lvl ORDER BY id) AS run, old.sal AS before FROM up JOIN emp old USING (id) ORDER BY id;
WITH RECURSIVE chain AS (SELECT 6 AS id UNION SELECT boss FROM emp JOIN chain USING (id) WHERE boss IS NOT NULL)
UPDATE emp SET dept = 42 WHERE id IN (TABLE chain) AND id <> ALL (ARRAY(SELECT boss FROM emp WHERE boss IS NOT NULL)) RETURNING id, dept;
WITH t(i, j) AS (VALUES (1, 'i'), (2, 'j')), u AS (UPDATE dept SET nm = t.j || nm FROM t WHERE t.i = dept.id RETURNING *)
, d AS (DELETE FROM rate USING u, t WHERE rate.dept = u.id AND t.i = u.id AND rate.yr < 2024 RETURNING rate.*, u.nm, t.*)
SELECT * FROM d ORDER BY 1, 2;
SELECT * FROM rate ORDER BY 1, 2;
DELETE FROM rate r USING dept d JOIN emp e ON e.dept = d.id WHERE r.dept = d.id AND e.sal > ANY (SELECT sal FROM emp WHERE id < 4) RETURNING r.dept, d.nm;
DELETE FROM rate USING rate AS r2 WHERE rate.dept < r2.dept RETURNING rate.dept, r2.dept;
WITH q AS (DELETE FROM emp e WHERE NOT EXISTS (SELECT FROM emp WHERE boss = e.id) RETURNING *, (SELECT nm FROM dept WHERE id = e.dept) AS dn) SELECT * FROM q ORDER BY 1;
DELETE FROM emp WHERE id = 1;
DELETE FROM emp WHERE ctx = 1;
DELETE emp WHERE id = 1;
SELECT count(*), sum(sal) FROM emp;

-- inside plpgsql: multi-target INTO from UPDATE ... FROM, ROW_COUNT, loops over RETURNING, arrays and composites in SET
CREATE TYPE delta AS (id int, by numeric);
CREATE FUNCTION bump(VARIADIC d delta[]) RETURNS TABLE (who int, old_sal numeric, new_sal numeric) LANGUAGE plpgsql AS $$
DECLARE n int; r record;
BEGIN
  FOR r IN
    UPDATE emp AS e SET sal = e.sal + x.by FROM unnest(d) AS x, emp AS o WHERE x.id = e.id AND o.id = e.id RETURNING e.id, o.sal AS os, e.sal AS ns
  LOOP
    who := r.id; old_sal := r.os; new_sal := r.ns;
    RETURN NEXT;
  END LOOP;
  UPDATE emp SET hist = '{}' WHERE id IN (SELECT (u).id FROM unnest(d) u);
  GET DIAGNOSTICS n = ROW_COUNT;
  who := -n; old_sal := NULL; new_sal := (SELECT sum(sal) FROM emp);
  RETURN NEXT;
END $$;
SELECT * FROM bump((1, 5), (2, -100.555), (99, 1)) ORDER BY who;
SELECT * FROM bump(VARIADIC ARRAY[]::delta[]);
SELECT * FROM bump((1, NULL)) ORDER BY who;
DO $$
DECLARE a int; b text; c numeric;
BEGIN
  UPDATE emp SET sal = 1 WHERE id = 2 RETURNING id, name, sal INTO a, b, c;
  RAISE NOTICE '% % % %', a, b, c, FOUND;
  UPDATE emp SET sal = 1 WHERE id = -2 RETURNING id, name INTO a, b;
  RAISE NOTICE '% % % %', a, b, c, FOUND;
  DELETE FROM dept RETURNING id INTO a;
EXCEPTION WHEN too_many_rows THEN RAISE NOTICE '% (dept has %)', SQLERRM, (SELECT count(*) FROM dept);
END $$;
DO $$ DECLARE a int; BEGIN UPDATE dept SET nm = 'x' WHERE false RETURNING id INTO STRICT a; END $$;
UPDATE ONLY dept AS d SET pct = CASE WHEN pct IS NULL THEN -1 ELSE pct END * (SELECT count(*) FROM emp) WHERE (id, nm) IN ((1, 'ieng'), (2, 'jops'), (3, NULL)) RETURNING d;
UPDATE emp SET hist[0] = 1, hist[5] = sal WHERE id = 1 RETURNING hist;
UPDATE emp SET hist[1][1] = 3 WHERE id = 1;
SELECT * FROM emp ORDER BY id;
SELECT * FROM dept ORDER BY id;
