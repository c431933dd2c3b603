-- 43.11 to 43.13: variable substitution, plan caching, development, porting from Oracle.
CREATE TABLE foo (bar int, id int, note text);
INSERT INTO foo VALUES (1, 10, 'a'), (2, 20, 'b');
--> changed 2
-- case: a name that could be a variable or a column
CREATE FUNCTION f(bar int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT id FROM foo WHERE foo.bar = bar); END $$;
SELECT f(1);
--> ERROR 42702: column reference "bar" is ambiguous
-->   DETAIL: It could refer to either a PL/pgSQL variable or a table column.
-->   QUERY: (SELECT id FROM foo WHERE foo.bar = bar)
-->   AT: 37
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at RETURN
-- case: qualified, there is no doubt
CREATE FUNCTION f(bar int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT id FROM foo WHERE foo.bar = f.bar); END $$;
SELECT f(1), f(2);
--> f | f
-->   10 | 20
-- case: the target column of INSERT is no variable
CREATE FUNCTION f(foo text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE note text := 'n'; BEGIN INSERT INTO foo (note) VALUES (foo); UPDATE foo SET note = f.foo || 'x' WHERE bar IS NULL; END $$;
SELECT f('q');
--> f
-->
SELECT note FROM foo WHERE bar IS NULL;
--> note
-->   qx
-- case: a variable where SQL allows no parameter
CREATE FUNCTION f(n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE made (a int DEFAULT n); END $$;
SELECT f(1);
--> ERROR 0A000: cannot use column reference in DEFAULT expression
-->   QUERY: CREATE TABLE made (a int DEFAULT n)
-->   AT: 34
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at SQL statement
-- case: a variable in LIMIT, OFFSET and FETCH FIRST
CREATE FUNCTION f(l int, o int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT g FROM generate_series(1, 9) g LIMIT l OFFSET o; RETURN QUERY SELECT g FROM generate_series(1, 9) g ORDER BY g FETCH FIRST l ROWS ONLY; END $$;
SELECT * FROM f(2, 3);
--> f
-->   4
-->   5
-->   1
-->   2
SELECT * FROM f(NULL, NULL) LIMIT 1;
--> f
-->   1
-- case: a variable in ORDER BY orders nothing
CREATE FUNCTION f(c text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM (SELECT bar FROM foo ORDER BY c) s); END $$;
SELECT f('bar');
--> f
-->   2
-- case: a variable in GROUP BY
CREATE FUNCTION f(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(s) FROM (SELECT sum(bar) s FROM foo GROUP BY bar % k) q); END $$;
SELECT f(2);
--> f
-->   3
-- case: a variable in BETWEEN, LIKE, IN and a join
CREATE FUNCTION f(a int, p text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM foo x JOIN foo y ON x.bar <= y.bar AND y.bar BETWEEN a AND a + 5 AND x.note LIKE p AND x.bar IN (a, a + 1)); END $$;
SELECT f(1, '%');
--> f
-->   3
-- case: a variable in a window and in FILTER
CREATE FUNCTION f(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(s) FROM (SELECT sum(id) FILTER (WHERE bar >= k) OVER (ORDER BY bar) s FROM foo) q); END $$;
SELECT f(2);
--> f
-->   20
-- case: a variable in VALUES and in a CTE
CREATE FUNCTION f(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (WITH v(a) AS (VALUES (k), (k + 1)) SELECT sum(a) FROM v); END $$;
SELECT f(5);
--> f
-->   11
-- case: a variable in a recursive CTE
CREATE FUNCTION f(k int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n < k) SELECT string_agg(n::text, ',') FROM w); END $$;
SELECT f(4);
--> f
-->   1,2,3,4
-- case: a variable in a lateral subquery
CREATE FUNCTION f(k int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT string_agg(x::text, ',' ORDER BY x) FROM foo, LATERAL (SELECT foo.bar * k) l(x)); END $$;
SELECT f(3);
--> f
-->   3,6
-- case: a record's field where a column could be
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ DECLARE foo record; BEGIN SELECT 5 AS bar INTO foo; RETURN (SELECT foo.bar); END $$;
SELECT f();
--> f
-->   5
-- case: a row variable as a function's argument in SQL
CREATE FUNCTION show(x foo) RETURNS text LANGUAGE sql AS $$ SELECT x.bar || x.note $$;
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r foo; BEGIN SELECT * INTO r FROM foo WHERE bar = 2; RETURN show(r); END $$;
SELECT f();
--> f
-->   2b
-- case: a plan is made anew when the table changes
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT * INTO r FROM foo ORDER BY bar LIMIT 1; RETURN r::text; END $$;
SELECT f();
--> f
-->   (1,10,a)
ALTER TABLE foo ADD COLUMN extra int DEFAULT 5;
SELECT f();
--> f
-->   (1,10,a,5)
ALTER TABLE foo DROP COLUMN id;
SELECT f();
--> f
-->   (1,a,5)
-- case: a plan is made anew when the table is made anew
CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM foo); END $$;
SELECT f();
--> f
-->   2
DROP TABLE foo;
SELECT f();
--> ERROR 42P01: relation "foo" does not exist
-->   QUERY: (SELECT count(*) FROM foo)
-->   AT: 23
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN
CREATE TABLE foo (a text);
SELECT f();
--> f
-->   0
-- case: a column's type changes between calls
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN SELECT pg_typeof(bar) || ' ' || bar INTO x FROM foo WHERE id = 10; RETURN x; END $$;
SELECT f();
--> f
-->   integer 1
ALTER TABLE foo ALTER COLUMN bar TYPE numeric(5,1);
SELECT f();
--> f
-->   numeric 1.0
-- case: a row variable after its table has changed
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r foo%ROWTYPE; BEGIN SELECT * INTO r FROM foo WHERE bar = 1; RETURN r::text; END $$;
SELECT f();
--> f
-->   (1,10,a)
ALTER TABLE foo ADD COLUMN more text DEFAULT 'm';
SELECT f();
--> f
-->   (1,10,a,m)
-- case: the search path at the time of the call
CREATE SCHEMA one;
CREATE SCHEMA two;
CREATE TABLE one.which AS SELECT 'one' AS s;
CREATE TABLE two.which AS SELECT 'two' AS s;
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT s FROM which); END $$;
SET search_path = one, public;
SELECT f();
--> f
-->   one
SET search_path = two, public;
SELECT f();
--> f
-->   two
SET search_path = public;
DROP SCHEMA one CASCADE;
--> NOTICE 00000: drop cascades to table one.which
DROP SCHEMA two CASCADE;
--> NOTICE 00000: drop cascades to table two.which
-- case: replaced while others call it
CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN g() * 10; END $$;
SELECT f();
--> f
-->   10
CREATE OR REPLACE FUNCTION g() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END $$;
SELECT f();
--> f
-->   20
DROP FUNCTION g();
SELECT f();
--> ERROR 42883: function g() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   QUERY: g() * 10
-->   AT: 1
-->   CONTEXT: PL/pgSQL function f() line 1 at RETURN
-- case: errors that show only at run time
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a > 0 THEN RETURN a; END IF; RETURN (SELECT x FROM nowhere); END $$;
SELECT f(1);
--> f
-->   1
SELECT f(0);
--> ERROR 42P01: relation "nowhere" does not exist
-->   QUERY: (SELECT x FROM nowhere)
-->   AT: 16
-->   CONTEXT: PL/pgSQL function f(integer) line 1 at RETURN
-- case: check_function_bodies off lets a wrong body pass
SET check_function_bodies = off;
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETRUN 1; END $$;
SELECT f();
--> ERROR 42601: syntax error at or near "RETRUN"
-->   QUERY: RETRUN 1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function f() line 1 at SQL statement
-- case: check_function_bodies off for SQL
SET check_function_bodies = off;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT x FROM later $$;
CREATE TABLE later (x int);
INSERT INTO later VALUES (7);
--> changed 1
SELECT f();
--> f
-->   7
-- case: now() in a cached plan
CREATE TABLE logtable (q text, t timestamptz);
CREATE FUNCTION logfunc1(logtxt text) RETURNS void AS $$
    BEGIN
        INSERT INTO logtable VALUES (logtxt, 'now');
    END;
$$ LANGUAGE plpgsql;
CREATE FUNCTION logfunc2(logtxt text) RETURNS void AS $$
    DECLARE
        curtime timestamptz;
    BEGIN
        curtime := 'now';
        INSERT INTO logtable VALUES (logtxt, curtime);
    END;
$$ LANGUAGE plpgsql;
SELECT logfunc1('a');
--> logfunc1
-->
SELECT logfunc2('b');
--> logfunc2
-->
SELECT q, t IS NOT NULL FROM logtable ORDER BY q;
--> q | ?column?
-->   a | t
-->   b | t
-- case: porting: cs_fmt_browser_version
CREATE OR REPLACE FUNCTION cs_fmt_browser_version(v_name varchar, v_version varchar)
RETURNS varchar AS $$
BEGIN
    IF v_version IS NULL THEN
        RETURN v_name;
    END IF;
    RETURN v_name || '/' || v_version;
END;
$$ LANGUAGE plpgsql;
SELECT cs_fmt_browser_version('x', NULL), cs_fmt_browser_version('x', '1');
--> cs_fmt_browser_version | cs_fmt_browser_version
-->   x | x/1
-- case: porting: a function that creates another function
CREATE TABLE cs_referrer_keys (try_order int, key_string text, referrer_type text, kind text);
INSERT INTO cs_referrer_keys VALUES (1, '%google%', 'search', 'HOST'), (2, '%mail%', 'mail', 'URL');
--> changed 2
CREATE OR REPLACE FUNCTION cs_update_referrer_type_proc() RETURNS void AS $func$
DECLARE
    referrer_keys CURSOR IS
        SELECT * FROM cs_referrer_keys
        ORDER BY try_order;
    func_body text;
    func_cmd text;
BEGIN
    func_body := 'BEGIN';
    FOR referrer_key IN referrer_keys LOOP
        func_body := func_body ||
          ' IF v_' || referrer_key.kind
          || ' LIKE ' || quote_literal(referrer_key.key_string)
          || ' THEN RETURN ' || quote_literal(referrer_key.referrer_type)
          || '; END IF;' ;
    END LOOP;
    func_body := func_body || ' RETURN NULL; END;';
    func_cmd :=
      'CREATE OR REPLACE FUNCTION cs_find_referrer_type(v_host varchar,
                                                        v_domain varchar,
                                                        v_url varchar)
        RETURNS varchar AS '
      || quote_literal(func_body)
      || ' LANGUAGE plpgsql;' ;
    EXECUTE func_cmd;
END;
$func$ LANGUAGE plpgsql;
SELECT cs_update_referrer_type_proc();
--> cs_update_referrer_type_proc
-->
SELECT cs_find_referrer_type('www.google.com', 'x', 'y'), cs_find_referrer_type('x', 'y', 'webmail');
--> cs_find_referrer_type | cs_find_referrer_type
-->   search | mail
-- case: porting: a procedure with OUT parameters
CREATE OR REPLACE FUNCTION cs_parse_url(
    v_url IN VARCHAR,
    v_host OUT VARCHAR,
    v_path OUT VARCHAR,
    v_query OUT VARCHAR)
AS $$
DECLARE
    a_pos1 INTEGER;
    a_pos2 INTEGER;
BEGIN
    v_host := NULL;
    v_path := NULL;
    v_query := NULL;
    a_pos1 := instr(v_url, '//');
    IF a_pos1 = 0 THEN
        RETURN;
    END IF;
    a_pos2 := instr(v_url, '/', a_pos1 + 2);
    IF a_pos2 = 0 THEN
        v_host := substr(v_url, a_pos1 + 2);
        v_path := '/';
        RETURN;
    END IF;
    v_host := substr(v_url, a_pos1 + 2, a_pos2 - a_pos1 - 2);
    a_pos1 := instr(v_url, '?', a_pos2 + 1);
    IF a_pos1 = 0 THEN
        v_path := substr(v_url, a_pos2);
        RETURN;
    END IF;
    v_path := substr(v_url, a_pos2, a_pos1 - a_pos2);
    v_query := substr(v_url, a_pos1 + 1);
END;
$$ LANGUAGE plpgsql;
CREATE FUNCTION instr(string varchar, string_to_search_for varchar, beg_index integer)
RETURNS integer AS $$
DECLARE
    pos integer NOT NULL DEFAULT 0;
    temp_str varchar;
    beg integer;
    length integer;
    ss_length integer;
BEGIN
    IF beg_index > 0 THEN
        temp_str := substring(string FROM beg_index);
        pos := position(string_to_search_for IN temp_str);
        IF pos = 0 THEN
            RETURN 0;
        ELSE
            RETURN pos + beg_index - 1;
        END IF;
    ELSIF beg_index < 0 THEN
        ss_length := char_length(string_to_search_for);
        length := char_length(string);
        beg := length + 1 + beg_index;
        WHILE beg > 0 LOOP
            temp_str := substring(string FROM beg FOR ss_length);
            IF string_to_search_for = temp_str THEN
                RETURN beg;
            END IF;
            beg := beg - 1;
        END LOOP;
        RETURN 0;
    ELSE
        RETURN 0;
    END IF;
END;
$$ LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION instr(varchar, varchar) RETURNS integer AS $$
BEGIN
    RETURN instr($1, $2, 1);
END;
$$ LANGUAGE plpgsql STRICT IMMUTABLE;
SELECT * FROM cs_parse_url('http://foobar.com/query.cgi?baz');
--> v_host | v_path | v_query
-->   foobar.com | /query.cgi | baz
SELECT * FROM cs_parse_url('http://foobar.com');
--> v_host | v_path | v_query
-->   foobar.com | / | <null>
SELECT * FROM cs_parse_url('nothing');
--> v_host | v_path | v_query
-->   <null> | <null> | <null>
SELECT instr('abcabc', 'b', -1), instr('abcabc', 'b', 3), instr('abc', 'z');
--> instr | instr | instr
-->   5 | 5 | 0
-- case: porting: instr with the occurrence
CREATE FUNCTION instr(string varchar, string_to_search_for varchar, beg_index integer, occur_index integer)
RETURNS integer AS $$
DECLARE
    pos integer NOT NULL DEFAULT 0;
    occur_number integer NOT NULL DEFAULT 0;
    temp_str varchar;
    beg integer;
BEGIN
    IF occur_index <= 0 THEN
        RAISE 'argument ''%'' is out of range', occur_index
          USING ERRCODE = '22003';
    END IF;
    beg := beg_index - 1;
    FOR i IN 1..occur_index LOOP
        temp_str := substring(string FROM beg + 1);
        pos := position(string_to_search_for IN temp_str);
        IF pos = 0 THEN
            RETURN 0;
        END IF;
        beg := beg + pos;
    END LOOP;
    RETURN beg;
END;
$$ LANGUAGE plpgsql STRICT IMMUTABLE;
SELECT instr('abcabcabc', 'b', 1, 3), instr('abcabcabc', 'b', 1, 4);
--> instr | instr
-->   8 | 0
SELECT instr('a', 'b', 1, 0);
--> ERROR 22003: argument '0' is out of range
-->   CONTEXT: PL/pgSQL function instr(character varying,character varying,integer,integer) line 9 at RAISE
-- case: porting: cs_create_job
CREATE TABLE cs_jobs (job_id int PRIMARY KEY, start_stamp timestamptz, end_stamp timestamptz);
CREATE OR REPLACE PROCEDURE cs_create_job(v_job_id integer) AS $$
DECLARE
    a_running_job_count integer;
BEGIN
    LOCK TABLE cs_jobs IN EXCLUSIVE MODE;
    SELECT count(*) INTO a_running_job_count FROM cs_jobs WHERE end_stamp IS NULL;
    IF a_running_job_count > 0 THEN
        COMMIT; -- free lock
        RAISE EXCEPTION 'Unable to create a new job: a job is currently running'; -- (1)
    END IF;
    DELETE FROM cs_jobs WHERE job_id = -1;
    INSERT INTO cs_jobs(job_id) VALUES (-1);
    BEGIN
        INSERT INTO cs_jobs (job_id, start_stamp, end_stamp) VALUES (v_job_id, now(), now());
    EXCEPTION
        WHEN unique_violation THEN -- (2)
            -- don't worry if it already exists
    END;
    UPDATE cs_jobs SET end_stamp = now() WHERE job_id = -1;
    COMMIT;
END;
$$ LANGUAGE plpgsql;
CALL cs_create_job(1);
CALL cs_create_job(1);
SELECT job_id FROM cs_jobs ORDER BY 1;
--> job_id
-->   -1
-->   1
-- case: porting: a loop with a reversed range
DO $$ BEGIN FOR i IN REVERSE 3..1 LOOP RAISE NOTICE '%', i; END LOOP; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: porting: savepoints become blocks
CREATE PROCEDURE careful(n int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO foo VALUES (n); BEGIN INSERT INTO foo VALUES (n / 0); EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'rolled back to the savepoint'; END; END $$;
CALL careful(100);
--> NOTICE 00000: rolled back to the savepoint
-->   CONTEXT: PL/pgSQL function careful(integer) line 1 at RAISE
SELECT bar FROM foo WHERE bar >= 100;
--> bar
-->   100
-- case: porting: IS instead of AS is refused
CREATE FUNCTION f() RETURNS int IS $$ BEGIN RETURN 1; END $$ LANGUAGE plpgsql;
--> ERROR 42601: syntax error at or near "IS"
-->   POSITION: 33
