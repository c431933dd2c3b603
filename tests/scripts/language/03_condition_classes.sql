SET timezone = 'UTC';
CREATE TYPE mood AS ENUM ('ok', 'meh');
CREATE DOMAIN pct AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN must AS text NOT NULL;
CREATE TABLE parent (id int PRIMARY KEY, code varchar(4) UNIQUE);
CREATE TABLE child (id int, pid int CONSTRAINT child_parent REFERENCES parent, q int CONSTRAINT q_pos CHECK (q > 0), m mood, note text NOT NULL);
INSERT INTO parent VALUES (1, 'one'), (2, 'two');
INSERT INTO child VALUES (1, 1, 1, 'ok', 'x');
CREATE TABLE attempt (n int PRIMARY KEY, stmt text);
INSERT INTO attempt VALUES
 (1, 'SELECT 1/0'), (2, 'SELECT 1.5 % 0'), (3, 'SELECT 32767::int2 + 1::int2'), (4, 'SELECT ''abc''::int'), (5, 'SELECT ''2020-13-01''::date'),
 (6, 'SELECT ''2020-02-30''::date'), (7, 'INSERT INTO parent VALUES (1, ''x'')'), (8, 'INSERT INTO parent VALUES (3, ''toolong'')'),
 (9, 'INSERT INTO child VALUES (1, 99, 1, NULL, '''')'), (10, 'INSERT INTO child VALUES (1, 1, -1, NULL, '''')'),
 (11, 'INSERT INTO child(id) VALUES (3)'), (12, 'DELETE FROM parent WHERE id = 1'), (13, 'SELECT ''sad''::mood'), (14, 'SELECT 101::pct'),
 (15, 'SELECT NULL::must'), (16, 'SELEC 1'), (17, 'SELECT nocol FROM parent'), (18, 'SELECT * FROM notable'), (19, 'SELECT nofunc(1)'),
 (20, 'SELECT id FROM parent, child'), (21, 'SELECT (SELECT id FROM parent)'), (22, 'CREATE TABLE parent()'), (23, 'SELECT substring(''abc'' FROM 2 FOR -1)'),
 (24, 'SELECT sqrt(-1)'), (25, 'SELECT ln(0::numeric)'), (26, 'SELECT 0 ^ (-1)::float8'), (27, 'SELECT ''{1,2''::int[]'), (28, 'SELECT ''{bad''::json'),
 (29, 'SELECT ''a'' LIKE ''a\'' ESCAPE ''xx'''), (30, 'SELECT ''a'' ~ ''(''' ), (31, 'SELECT id, count(*) FROM child'), (32, 'SELECT sum(sum(id)) FROM child'),
 (33, 'SELECT 1 UNION SELECT ''a''::text'), (34, 'SELECT 1 WHERE 1'), (35, 'DROP TYPE mood'), (36, 'CREATE FUNCTION f() RETURNS int LANGUAGE klingon AS ''1'''),
 (37, 'SELECT * FROM parent LIMIT -1'), (38, 'SELECT ''x''::nosuchtype'), (39, 'SELECT array[1,2]::int[] || array[[1],[2]] || array[[[1]]]'),
 (40, 'SELECT nextval(''noseq'')'), (41, 'SELECT chr(0)'), (42, 'SELECT 1e40::float4'), (43, 'SELECT 12345.6::numeric(4,1)'), (44, 'SELECT null FROM parent ORDER BY 2'),
 (45, 'SELECT $1'), (46, 'SELECT interval ''1 fortnite'''), (47, 'SELECT date ''2020-01-01'' AT TIME ZONE ''Mars/Base'''), (48, 'SELECT jsonb_set(''1'', ''{a}'', ''2'')'),
 (49, 'SELECT ''[1,2]''::jsonb - ''a'' -> 0 - 1'), (50, 'SELECT width_bucket(1.0, 2.0, 2.0, 3)'), (51, 'SELECT generate_series(1, 3, 0)'), (52, 'SELECT to_date(''x'', ''YYYY'')'),
 (53, 'SELECT ''\xZZ''::bytea'), (54, 'SET work_mem = ''lots'''), (55, 'SET no_such_setting = 1'), (56, 'SELECT ROW(1,2) = ROW(1,2,3)'), (57, 'COMMIT'),
 (58, 'INSERT INTO parent VALUES (1,2,3)'), (59, 'SELECT DISTINCT id FROM parent ORDER BY code'), (60, 'SELECT upper(1)');

CREATE FUNCTION try_all() RETURNS TABLE (n int, state text, msg text) LANGUAGE plpgsql AS $$
DECLARE a attempt;
BEGIN
  FOR a IN SELECT * FROM attempt t ORDER BY t.n LOOP
    n := a.n; state := NULL; msg := NULL;
    BEGIN
      EXECUTE a.stmt;
      state := 'fine';
    EXCEPTION
      WHEN division_by_zero OR numeric_value_out_of_range THEN state := 'arith:' || SQLSTATE; msg := SQLERRM;
      WHEN integrity_constraint_violation THEN state := 'class23:' || SQLSTATE; msg := SQLERRM;
      WHEN unique_violation THEN state := 'never reached';
      WHEN data_exception THEN state := 'class22:' || SQLSTATE; msg := SQLERRM;
      WHEN syntax_error THEN state := 'syntax only'; msg := SQLERRM;
      WHEN syntax_error_or_access_rule_violation THEN state := 'class42:' || SQLSTATE; msg := SQLERRM;
      WHEN SQLSTATE '2BP01' THEN state := 'dependents'; msg := SQLERRM;
      WHEN OTHERS THEN state := 'other:' || SQLSTATE; msg := SQLERRM;
    END;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT * FROM try_all() ORDER BY n;

-- which handler matches: the first that fits, never the nested one's own handlers
CREATE FUNCTION pick(p text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RAISE EXCEPTION USING ERRCODE = p, MESSAGE = 'm/' || p;
  EXCEPTION
    WHEN no_data_found OR too_many_rows THEN RETURN 'P0002/P0003';
    WHEN raise_exception THEN RETURN 'P0001';
    WHEN plpgsql_error THEN RETURN 'P0 class ' || SQLSTATE;
    WHEN foreign_key_violation THEN RAISE division_by_zero;
    WHEN division_by_zero THEN RETURN 'not here';
    WHEN SQLSTATE 'XY000' THEN RETURN 'XY class?';
  END;
EXCEPTION
  WHEN division_by_zero THEN RETURN 'outer: ' || SQLERRM;
  WHEN query_canceled OR assert_failure THEN RETURN 'explicitly asked for ' || SQLSTATE;
  WHEN OTHERS THEN RETURN 'outer others ' || SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT c, pick(c) FROM unnest(array['no_data_found','P0003','P0001','P0000','assert_failure','23503','XY123','XY000','57014','lock_not_available','P0099','22000','deadlock_detected']) WITH ORDINALITY u(c, o) ORDER BY o;
DO $$ BEGIN ASSERT 1 = 2, 'one is ' || 1; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'not for asserts'; END $$;
DO $$ BEGIN ASSERT NULL; END $$;
DO $$ BEGIN ASSERT true, 1/0; RAISE NOTICE 'message is lazy'; END $$;
SELECT pick('not_a_condition');
SELECT * FROM parent ORDER BY id;
