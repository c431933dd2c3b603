-- Definitions in routines that queries call: once, for each row, below EXECUTE and loops, in
-- routines with settings or rights of their own.
CREATE TABLE kinds (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO kinds VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE FUNCTION make(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (a int)', 'made_' || name);
  EXECUTE format('INSERT INTO %I VALUES (%s)', 'made_' || name, length(name));
  RETURN upper(name);
END $$;
CREATE FUNCTION made() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'made%'
$$;
-- case: for each row of a table
SELECT id, make(name) FROM kinds ORDER BY id;
--> id | make
-->   1 | ONE
-->   2 | TWO
-->   3 | THREE
SELECT made();
--> made
-->   made_one made_three made_two
SELECT a FROM made_three;
--> a
-->   5
-- case: for each row, among other expressions
SELECT id * 10 AS ten, make(name) || '!' AS loud, length(make('x' || name)) FROM kinds WHERE id > 1 ORDER BY id DESC;
--> ten | loud | length
-->   30 | THREE! | 6
-->   20 | TWO! | 4
SELECT made();
--> made
-->   made_three made_two made_xthree made_xtwo
-- case: only for the rows that are answered
SELECT make(name) FROM kinds ORDER BY id DESC LIMIT 1;
--> make
-->   THREE
SELECT make(name) FROM kinds ORDER BY id LIMIT 1;
--> make
-->   ONE
SELECT made();
--> made
-->   made_one made_three
-- case: for rows of a join and of a function
SELECT make(k.name || g) FROM kinds k JOIN generate_series(1, 2) g ON g = k.id ORDER BY k.id;
--> make
-->   ONE1
-->   TWO2
SELECT make('g' || g) FROM generate_series(1, 3) g;
--> make
-->   G1
-->   G2
-->   G3
SELECT made();
--> made
-->   made_g1 made_g2 made_g3 made_one1 made_two2
-- case: for no row
SELECT make(name) FROM kinds WHERE id > 9;
--> make
SELECT made();
--> made
-->   <null>
-- case: a call in the argument of another
SELECT make(lower(make(name)) || '2') FROM kinds WHERE id < 3 ORDER BY id;
--> make
-->   ONE2
-->   TWO2
SELECT made();
--> made
-->   made_one made_one2 made_two made_two2
-- case: NULL to a strict function
CREATE FUNCTION make_strict(name text) RETURNS text STRICT LANGUAGE plpgsql AS $$ BEGIN RETURN make(name); END $$;
SELECT id, make_strict(nullif(name, 'two')) FROM kinds ORDER BY id;
--> id | make_strict
-->   1 | ONE
-->   2 | <null>
-->   3 | THREE
SELECT made();
--> made
-->   made_one made_three
-- case: rows of a set for each row
CREATE FUNCTION make_all(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN NEXT make(name);
  RETURN NEXT make(name || '_b');
END $$;
SELECT make_all(name) FROM kinds WHERE id < 3 ORDER BY id;
--> make_all
-->   ONE
-->   ONE_B
-->   TWO
-->   TWO_B
SELECT made();
--> made
-->   made_one made_one_b made_two made_two_b
-- case: PERFORM over rows
DO $$ BEGIN PERFORM make(name) FROM kinds WHERE id <> 2; RAISE NOTICE '% %', FOUND, made(); END $$;
--> NOTICE 00000: t made_one made_three
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a loop over calls for rows
DO $$ DECLARE r record; BEGIN FOR r IN SELECT id, make(name) AS m FROM kinds ORDER BY id LOOP RAISE NOTICE '% %', r.id, r.m; END LOOP; END $$;
--> NOTICE 00000: 1 ONE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2 TWO
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3 THREE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
SELECT made();
--> made
-->   made_one made_three made_two
-- case: INTO and RETURN QUERY over rows
CREATE FUNCTION all_made() RETURNS TABLE (i int, m text) LANGUAGE plpgsql AS $$
BEGIN
  SELECT make(name) INTO m FROM kinds WHERE id = 1;
  i := 0;
  RETURN NEXT;
  RETURN QUERY SELECT id, make(name) FROM kinds WHERE id > 1 ORDER BY id;
END $$;
SELECT * FROM all_made();
--> i | m
-->   0 | ONE
-->   2 | TWO
-->   3 | THREE
SELECT made();
--> made
-->   made_one made_three made_two
-- case: INSERT of calls for rows
CREATE TABLE log (m text);
DO $$ BEGIN INSERT INTO log SELECT make(name) FROM kinds ORDER BY id; INSERT INTO log VALUES (make('single')); END $$;
SELECT * FROM log;
--> m
-->   ONE
-->   TWO
-->   THREE
-->   SINGLE
SELECT made();
--> made
-->   made_one made_single made_three made_two
-- case: a SQL function over rows
CREATE FUNCTION sql_made() RETURNS SETOF text LANGUAGE sql AS $$ SELECT make(name) FROM kinds ORDER BY id $$;
SELECT * FROM sql_made();
--> sql_made
-->   ONE
-->   TWO
-->   THREE
SELECT made();
--> made
-->   made_one made_three made_two
-- case: one fails among the rows
CREATE TABLE made_two (b int);
SELECT make(name) FROM kinds ORDER BY id;
--> ERROR 42P07: relation "made_two" already exists
-->   CONTEXT: SQL statement "CREATE TABLE made_two (a int)"
-->     PL/pgSQL function make(text) line 3 at EXECUTE
SELECT made();
--> made
-->   made_two
-- case: one fails and is caught
CREATE TABLE made_two (b int);
CREATE FUNCTION try(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN make(name);
EXCEPTION WHEN duplicate_table THEN
  RETURN SQLERRM;
END $$;
SELECT try(name) FROM kinds ORDER BY id;
--> try
-->   ONE
-->   relation "made_two" already exists
-->   THREE
SELECT made();
--> made
-->   made_one made_three made_two
-- case: in EXECUTE
DO $$ BEGIN EXECUTE 'SELECT make(name) FROM kinds WHERE id = 1'; EXECUTE 'SELECT make($1)' USING 'given'; RAISE NOTICE '%', made(); END $$;
--> NOTICE 00000: made_given made_one
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: in EXECUTE INTO
DO $$ DECLARE a text; b text; BEGIN
  EXECUTE 'SELECT make($1), make($1 || 2)' INTO a, b USING 'into';
  RAISE NOTICE '% % %', a, b, made();
  EXECUTE 'SELECT make(name) FROM kinds WHERE id = $1' INTO STRICT a USING 3;
  RAISE NOTICE '% %', a, made();
END $$;
--> NOTICE 00000: INTO INTO2 made_into made_into2
-->   CONTEXT: PL/pgSQL function inline_code_block line 3 at RAISE
--> NOTICE 00000: THREE made_into made_into2 made_three
-->   CONTEXT: PL/pgSQL function inline_code_block line 5 at RAISE
-- case: in EXECUTE INTO a record
DO $$ DECLARE r record; BEGIN EXECUTE 'SELECT 1 AS n, make($1) AS m' INTO r USING 'rec'; RAISE NOTICE '% % %', r.n, r.m, made(); END $$;
--> NOTICE 00000: 1 REC made_rec
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: in RETURN QUERY EXECUTE
CREATE FUNCTION dynamic() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'SELECT make(name) FROM kinds WHERE id < $1 ORDER BY id' USING 3;
  RETURN NEXT made();
END $$;
SELECT * FROM dynamic();
--> dynamic
-->   ONE
-->   TWO
-->   made_one made_two
-- case: in FOR over EXECUTE
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT make(name) AS m FROM kinds ORDER BY id' LOOP RAISE NOTICE '%', r.m; END LOOP; RAISE NOTICE '%', made(); END $$;
--> NOTICE 00000: ONE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: TWO
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: THREE
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: made_one made_three made_two
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXECUTE inside EXECUTE
CREATE FUNCTION run(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE $1; END $$;
SELECT run('SELECT run(''SELECT make(name) FROM kinds WHERE id = 2'')');
--> run
-->
SELECT made();
--> made
-->   made_two
-- case: an error in EXECUTE says where
CREATE TABLE made_one (b int);
DO $$ BEGIN EXECUTE 'SELECT make(name) FROM kinds ORDER BY id'; END $$;
--> ERROR 42P07: relation "made_one" already exists
-->   CONTEXT: SQL statement "CREATE TABLE made_one (a int)"
-->     PL/pgSQL function make(text) line 3 at EXECUTE
-->     SQL statement "SELECT make(name) FROM kinds ORDER BY id"
-->     PL/pgSQL function inline_code_block line 1 at EXECUTE
SELECT made();
--> made
-->   made_one
-- case: temporary tables for each row
CREATE FUNCTION counted(name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  DROP TABLE IF EXISTS letters;
  CREATE TEMP TABLE letters AS SELECT substr(name, g, 1) AS l FROM generate_series(1, length(name)) g;
  SELECT count(DISTINCT l) INTO n FROM letters;
  RETURN n;
END $$;
SET client_min_messages = warning;
SELECT name, counted(name) FROM kinds ORDER BY id;
--> name | counted
-->   one | 3
-->   two | 3
-->   three | 4
-- case: in a routine with a search path of its own
CREATE SCHEMA apart;
CREATE FUNCTION make_apart() RETURNS text LANGUAGE plpgsql SET search_path = apart, public AS $$
BEGIN
  CREATE TABLE made_here (a int);
  INSERT INTO made_here VALUES (1);
  RETURN current_schema();
END $$;
SELECT make_apart();
--> make_apart
-->   apart
SELECT current_schema(), schemaname FROM pg_tables WHERE tablename = 'made_here';
--> current_schema | schemaname
-->   public | apart
DROP TABLE apart.made_here;
DROP FUNCTION make_apart;
DROP SCHEMA apart;
-- case: in a routine with rights of its own
CREATE ROLE faults_owner;
CREATE ROLE faults_caller;
GRANT CREATE, USAGE ON SCHEMA public TO faults_owner;
GRANT USAGE ON SCHEMA public TO faults_caller;
SET ROLE faults_owner;
CREATE FUNCTION make_owned() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  CREATE TABLE made_owned (a int);
  RETURN current_user;
END $$;
SET ROLE faults_caller;
SELECT make_owned();
--> make_owned
-->   faults_owner
CREATE TABLE not_allowed (a int);
--> ERROR 42501: permission denied for schema public
-->   POSITION: 14
SELECT current_user, tableowner FROM pg_tables WHERE tablename = 'made_owned';
--> current_user | tableowner
-->   faults_caller | faults_owner
RESET ROLE;
DROP OWNED BY faults_owner, faults_caller;
DROP ROLE faults_owner, faults_caller;
-- case: nested in a routine with settings
CREATE FUNCTION around() RETURNS text LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
  RAISE NOTICE 'not heard';
  PERFORM make(name) FROM kinds WHERE id = 1;
  RETURN current_setting('client_min_messages');
END $$;
SELECT around(), current_setting('client_min_messages');
--> around | current_setting
-->   warning | notice
SELECT made();
--> made
-->   made_one
-- case: volatile columns are computed for the rows in their order
CREATE SEQUENCE s;
SELECT name, nextval('s') FROM kinds ORDER BY name;
--> name | nextval
-->   one | 1
-->   three | 2
-->   two | 3
SELECT id, nextval('s') FROM kinds ORDER BY id DESC LIMIT 1;
--> id | nextval
-->   3 | 4
SELECT currval('s');
--> currval
-->   4
SELECT nextval('s') AS n, name FROM kinds ORDER BY n DESC, name;
--> n | name
-->   7 | three
-->   6 | two
-->   5 | one
-- case: effects only for the rows that are answered
CREATE TABLE seen (id int);
CREATE FUNCTION see(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (i); RETURN i; END $$;
SELECT see(id) FROM kinds ORDER BY name LIMIT 2;
--> see
-->   1
-->   3
SELECT see(id) + 100, id FROM kinds ORDER BY id DESC OFFSET 2;
--> ?column? | id
-->   101 | 1
SELECT * FROM seen;
--> id
-->   1
-->   3
-->   3
-->   2
-->   1
