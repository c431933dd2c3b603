SET timezone = 'UTC';
CREATE TABLE dept (id int PRIMARY KEY, title text);
CREATE TABLE emp (id int PRIMARY KEY, dept int REFERENCES dept, name text, hired date, boss int REFERENCES emp);
INSERT INTO dept VALUES (1, 'R&D'), (2, 'Sales'), (3, NULL);
INSERT INTO emp VALUES (1, 1, 'Ada', '2020-01-05', NULL), (2, 1, 'Bob', '2020-02-10', 1), (3, 2, 'Cyd', '2021-07-01', 1),
  (4, 2, 'Dee', NULL, 3), (5, NULL, 'Eve', '2022-12-31', 3);

CREATE FUNCTION dept_report(a refcursor, b refcursor, p_dept int) RETURNS SETOF refcursor LANGUAGE plpgsql AS $$
BEGIN
  OPEN a FOR SELECT title FROM dept WHERE id = p_dept;
  RETURN NEXT a;
  OPEN b SCROLL FOR SELECT name, hired FROM emp WHERE dept = p_dept ORDER BY name;
  RETURN NEXT b;
END $$;
BEGIN;
SELECT * FROM dept_report('hdr', 'body', 1);
FETCH ALL FROM hdr;
FETCH 1 FROM body;
FETCH FORWARD 5 FROM body;
FETCH BACKWARD ALL FROM body;
FETCH ABSOLUTE 2 IN body;
FETCH 0 FROM body;
MOVE FIRST FROM body;
FETCH RELATIVE 1 FROM body;
FETCH NEXT FROM body;
FETCH NEXT FROM body;
FETCH PRIOR FROM body;
SELECT name, is_holdable, is_binary, is_scrollable AND name = 'body' AS scroll, statement FROM pg_cursors WHERE name IN ('hdr', 'body') ORDER BY name;
CLOSE hdr;
FETCH hdr;
ROLLBACK;
FETCH body;

-- names chosen by the function, handed on to another function
CREATE FUNCTION open_named(p text DEFAULT 'weekly "x"') RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE c refcursor := p;
BEGIN
  OPEN c FOR EXECUTE format('SELECT id, name FROM %I WHERE boss = $1 OR boss IS NULL ORDER BY id DESC', 'emp') USING 3;
  RETURN c;
END $$;
CREATE FUNCTION drain(c refcursor, lim int = NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; acc text;
BEGIN
  LOOP
    FETCH c INTO r;
    EXIT WHEN NOT FOUND OR lim <= 0;
    acc := concat_ws(' | ', acc, r::text);
    lim := lim - 1;
  END LOOP;
  IF NOT FOUND THEN CLOSE c; END IF;
  RETURN coalesce(acc, '<nothing>');
END $$;
SELECT drain(open_named());
SELECT drain(open_named('k'), 1);
BEGIN;
SELECT open_named();
FETCH 2 FROM "weekly ""x""";
SELECT drain('weekly "x"');
SAVEPOINT s;
SELECT drain('weekly "x"');
ROLLBACK TO s;
SELECT open_named('again') AS nm \gset
FETCH ALL FROM :nm;
COMMIT;

-- SQL level cursors: holdable, scrollable, positioned updates
BEGIN;
DECLARE hc SCROLL CURSOR WITH HOLD FOR SELECT e.name, d.title FROM emp e LEFT JOIN dept d ON d.id = e.dept ORDER BY e.id;
DECLARE nh NO SCROLL CURSOR FOR SELECT * FROM emp ORDER BY id FOR UPDATE;
FETCH 2 FROM nh;
UPDATE emp SET name = name || '*' WHERE CURRENT OF nh RETURNING id, name;
FETCH BACKWARD 1 FROM nh;
COMMIT;
BEGIN;
DECLARE hc SCROLL CURSOR WITH HOLD FOR SELECT e.name, d.title FROM emp e LEFT JOIN dept d ON d.id = e.dept ORDER BY e.id;
DECLARE nh NO SCROLL CURSOR FOR SELECT * FROM emp ORDER BY id FOR UPDATE;
FETCH 2 FROM nh;
UPDATE emp SET name = name || '*' WHERE CURRENT OF nh RETURNING id, name;
MOVE 2 IN nh;
DELETE FROM emp WHERE CURRENT OF nh RETURNING *;
COMMIT;
FETCH LAST FROM hc;
FETCH ABSOLUTE -3 FROM hc;
FETCH FORWARD ALL FROM hc;
FETCH nh;
CLOSE ALL;
FETCH hc;
SELECT * FROM emp ORDER BY id;
DECLARE outside CURSOR FOR SELECT 1;

-- unnamed portals in a loop; refcursor variables compared and assigned
DO $$
DECLARE cs refcursor[] := '{}'; c refcursor; r record; i int;
BEGIN
  FOR i IN 1..3 LOOP
    c := 'port' || i;
    OPEN c FOR SELECT i AS n, d.title FROM dept d WHERE d.id = i;
    cs := cs || c;
    c := NULL;
  END LOOP;
  FOREACH c IN ARRAY cs LOOP
    FETCH c INTO r;
    RAISE NOTICE '% -> % (%)', c, r, r.title IS NULL;
    CLOSE c;
  END LOOP;
  c := NULL;
  FETCH c INTO r;
END $$;
DO $$
DECLARE c refcursor := 'nope'; r record;
BEGIN
  FETCH c INTO r;
EXCEPTION WHEN sqlstate '34000' THEN RAISE NOTICE 'no cursor: %', SQLERRM;
END $$;
