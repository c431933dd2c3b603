-- 38.3 to 38.7 and the commands' pages: CREATE, ALTER and DROP of functions and procedures, overloading, attributes, CALL, DO.
CREATE TABLE t (id int PRIMARY KEY, v int);
INSERT INTO t VALUES (1, 10), (2, 20);
--> changed 2
-- case: overloading by type
CREATE FUNCTION test(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'int'; END $$;
CREATE FUNCTION test(numeric) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'numeric'; END $$;
CREATE FUNCTION test(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'text'; END $$;
SELECT test(1), test(1.5), test('x'), test(1::bigint), test(1::smallint), test('x'::varchar);
--> ERROR 42725: function test(smallint) is not unique
-->   HINT: Could not choose a best candidate function. You might need to add explicit type casts.
-->   POSITION: 56
-- case: overloading by number
CREATE FUNCTION test(a int) RETURNS text LANGUAGE sql AS $$ SELECT 'one' $$;
CREATE FUNCTION test(a int, b int) RETURNS text LANGUAGE sql AS $$ SELECT 'two' $$;
SELECT test(1), test(1, 2), test(b => 1, a => 2);
--> test | test | test
-->   one | two | two
-- case: overloading made ambiguous by defaults
CREATE FUNCTION test(a int) RETURNS text LANGUAGE sql AS $$ SELECT 'one' $$;
CREATE FUNCTION test(a int, b int DEFAULT 2) RETURNS text LANGUAGE sql AS $$ SELECT 'two' $$;
SELECT test(1);
--> ERROR 42725: function test(integer) is not unique
-->   HINT: Could not choose a best candidate function. You might need to add explicit type casts.
-->   POSITION: 8
CREATE FUNCTION amb(a int, b int DEFAULT 1) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
CREATE FUNCTION amb(a int, c text DEFAULT 'q') RETURNS text LANGUAGE sql AS $$ SELECT 'y' $$;
SELECT amb(1);
--> ERROR 42725: function amb(integer) is not unique
-->   HINT: Could not choose a best candidate function. You might need to add explicit type casts.
-->   POSITION: 8
SELECT amb(1, c => 'z');
--> amb
-->   y
-- case: overloading ambiguous for unknown literals
CREATE FUNCTION test(date) RETURNS text LANGUAGE sql AS $$ SELECT 'date' $$;
CREATE FUNCTION test(interval) RETURNS text LANGUAGE sql AS $$ SELECT 'interval' $$;
SELECT test('1 day');
--> ERROR 42725: function test(unknown) is not unique
-->   HINT: Could not choose a best candidate function. You might need to add explicit type casts.
-->   POSITION: 8
-- case: VARIADIC beside a fixed number
CREATE FUNCTION test(a int, b int) RETURNS text LANGUAGE sql AS $$ SELECT 'fixed' $$;
CREATE FUNCTION test(VARIADIC a int[]) RETURNS text LANGUAGE sql AS $$ SELECT 'variadic' $$;
SELECT test(1), test(1, 2), test(1, 2, 3);
--> test | test | test
-->   variadic | fixed | variadic
-- case: OUT parameters do not make another function
CREATE FUNCTION test(a int, OUT b int) LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION test(a int, OUT c text) LANGUAGE sql AS $$ SELECT 'x'::text $$;
--> ERROR 42723: function "test" already exists with same argument types
-- case: a function that is there already
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION test(b int) RETURNS int LANGUAGE sql AS $$ SELECT 2 $$;
--> ERROR 42723: function "test" already exists with same argument types
-- case: a function and a procedure of one name
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE PROCEDURE test(a int) LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42723: function "test" already exists with same argument types
CREATE OR REPLACE PROCEDURE test(a int) LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42809: cannot change routine kind
-->   DETAIL: "test" is a function.
-- case: OR REPLACE
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
SELECT test(0);
--> test
-->   1
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END $$;
SELECT test(0);
--> test
-->   2
-- case: OR REPLACE with another result type
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE OR REPLACE FUNCTION test(a int) RETURNS text LANGUAGE sql AS $$ SELECT 'x'::text $$;
--> ERROR 42P13: cannot change return type of existing function
-->   HINT: Use DROP FUNCTION test(integer) first.
-- case: OR REPLACE with another parameter name
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE OR REPLACE FUNCTION test(b int) RETURNS int LANGUAGE sql AS $$ SELECT 2 $$;
--> ERROR 42P13: cannot change name of input parameter "a"
-->   HINT: Use DROP FUNCTION test(integer) first.
-- case: OR REPLACE with other OUT parameters
CREATE FUNCTION test(a int, OUT x int, OUT y int) LANGUAGE sql AS $$ SELECT 1, 2 $$;
CREATE OR REPLACE FUNCTION test(a int, OUT x int, OUT z int) LANGUAGE sql AS $$ SELECT 1, 2 $$;
--> ERROR 42P13: cannot change return type of existing function
-->   DETAIL: Row type defined by OUT parameters is different.
-->   HINT: Use DROP FUNCTION test(integer) first.
-- case: OR REPLACE that takes a default away
CREATE FUNCTION test(a int DEFAULT 1) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
--> ERROR 42P13: cannot remove parameter defaults from existing function
-->   HINT: Use DROP FUNCTION test(integer) first.
-- case: OR REPLACE that adds a default
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
CREATE OR REPLACE FUNCTION test(a int DEFAULT 7) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
SELECT test();
--> test
-->   7
-- case: OR REPLACE into another language
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a * 2; END $$;
SELECT test(4);
--> test
-->   8
-- case: OR REPLACE from a value to a set
CREATE FUNCTION test() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE OR REPLACE FUNCTION test() RETURNS SETOF int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: cannot change return type of existing function
-->   HINT: Use DROP FUNCTION test() first.
-- case: a language that does not exist
CREATE FUNCTION test() RETURNS int LANGUAGE plnothing AS $$ x $$;
--> ERROR 42704: language "plnothing" does not exist
-- case: no language
CREATE FUNCTION test() RETURNS int AS $$ SELECT 1 $$;
--> ERROR 42P13: no language specified
-- case: no body
CREATE FUNCTION test() RETURNS int LANGUAGE sql;
--> ERROR 42P13: no function body specified
-- case: no result type
CREATE FUNCTION test() LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: function result type must be specified
-- case: a procedure with RETURNS
CREATE PROCEDURE test() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42601: syntax error at or near "int"
-->   POSITION: 33
-- case: a result type that does not exist
CREATE FUNCTION test() RETURNS nosuch LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42704: type "nosuch" does not exist
-- case: an argument type that does not exist
CREATE FUNCTION test(a nosuch) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42704: type nosuch does not exist
-- case: two parameters of one name
CREATE FUNCTION test(a int, a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: parameter name "a" used more than once
-- case: an IN and an OUT parameter of one name
CREATE FUNCTION test(a int, OUT a int) LANGUAGE sql AS $$ SELECT 1 $$;
-- case: a TABLE column with a parameter's name
CREATE FUNCTION test(a int) RETURNS TABLE (a int) LANGUAGE sql AS $$ SELECT 1 $$;
-- case: VARIADIC that is not last
CREATE FUNCTION test(VARIADIC a int[], b int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: VARIADIC parameter must be the last input parameter
-- case: VARIADIC that is no array
CREATE FUNCTION test(VARIADIC a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: VARIADIC parameter must be an array
-- case: a default of a wrong type
CREATE FUNCTION test(a int DEFAULT 'x') RETURNS int LANGUAGE sql AS $$ SELECT a $$;
--> ERROR 22P02: invalid input syntax for type integer: "x"
-->   POSITION: 36
-- case: a default that uses another parameter
CREATE FUNCTION test(a int, b int DEFAULT a) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
--> ERROR 42703: column "a" does not exist
-->   POSITION: 43
-- case: a default of an OUT parameter
CREATE FUNCTION test(OUT a int DEFAULT 1) LANGUAGE sql AS $$ SELECT 1 $$;
--> ERROR 42P13: only input parameters can have default values
-- case: a default that is a subquery
CREATE FUNCTION test(a int DEFAULT (SELECT 1)) RETURNS int LANGUAGE sql AS $$ SELECT a $$;
--> ERROR 0A000: cannot use subquery in DEFAULT expression
-->   POSITION: 36
-- case: an attribute twice
CREATE FUNCTION test() RETURNS int LANGUAGE sql IMMUTABLE STABLE AS $$ SELECT 1 $$;
--> ERROR 42601: conflicting or redundant options
-->   POSITION: 59
-- case: COST and ROWS
CREATE FUNCTION test() RETURNS SETOF int LANGUAGE sql COST 5 ROWS 10 AS $$ SELECT 1 $$;
SELECT procost, prorows FROM pg_proc WHERE proname = 'test';
--> procost | prorows
-->   5 | 10
-- case: ROWS of a function without a set
CREATE FUNCTION test() RETURNS int LANGUAGE sql ROWS 10 AS $$ SELECT 1 $$;
--> ERROR 22023: ROWS is not applicable when function does not return a set
-- case: COST that is not positive
CREATE FUNCTION test() RETURNS int LANGUAGE sql COST 0 AS $$ SELECT 1 $$;
--> ERROR 22023: COST must be positive
-- case: all the attributes in pg_proc
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE SECURITY DEFINER AS $$ SELECT 1 $$;
SELECT provolatile, proisstrict, proleakproof, proparallel, prosecdef, prokind, proretset, pronargs FROM pg_proc WHERE proname = 'test';
--> provolatile | proisstrict | proleakproof | proparallel | prosecdef | prokind | proretset | pronargs
-->   i | t | t | s | t | f | f | 1
-- case: the spellings of STRICT
CREATE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql RETURNS NULL ON NULL INPUT AS $$ BEGIN RAISE NOTICE 'called'; RETURN 1; END $$;
SELECT test(NULL);
--> test
-->   <null>
SELECT test(1);
--> NOTICE 00000: called
-->   CONTEXT: PL/pgSQL function test(integer) line 1 at RAISE
--> test
-->   1
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql CALLED ON NULL INPUT AS $$ BEGIN RAISE NOTICE 'called'; RETURN 1; END $$;
SELECT test(NULL);
--> NOTICE 00000: called
-->   CONTEXT: PL/pgSQL function test(integer) line 1 at RAISE
--> test
-->   1
-- case: attributes after the body
CREATE FUNCTION test(a int) RETURNS int AS $$ BEGIN RETURN a; END $$ LANGUAGE plpgsql STABLE STRICT;
SELECT test(3);
--> test
-->   3
-- case: the language's name in quotes and capitals
CREATE FUNCTION test(a int) RETURNS int AS $$ BEGIN RETURN a; END $$ LANGUAGE 'plpgsql';
CREATE FUNCTION test2(a int) RETURNS int AS $$ BEGIN RETURN a; END $$ LANGUAGE PLpgSQL;
SELECT test(3) + test2(4);
--> ?column?
-->   7
-- case: a change in a STABLE function
CREATE FUNCTION test() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN UPDATE t SET v = 0; RETURN 1; END $$;
SELECT test();
--> ERROR 0A000: UPDATE is not allowed in a non-volatile function
-->   CONTEXT: SQL statement "UPDATE t SET v = 0"
-->     PL/pgSQL function test() line 1 at SQL statement
-- case: a change in an IMMUTABLE SQL function
CREATE FUNCTION test() RETURNS int LANGUAGE sql IMMUTABLE AS $$ DELETE FROM t RETURNING 1 $$;
SELECT test();
--> ERROR 0A000: DELETE is not allowed in a non-volatile function
-->   CONTEXT: SQL function "test" during startup
-- case: a STABLE function does not see what its statement changes
CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT sum(v) FROM t); END $$;
UPDATE t SET v = seen() WHERE id IN (1, 2);
--> changed 2
SELECT v FROM t ORDER BY id;
--> v
-->   30
-->   30
-- case: a VOLATILE function sees what its routine changed before
CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT sum(v) FROM t); END $$;
DO $$ BEGIN UPDATE t SET v = v + 1; RAISE NOTICE '%', seen(); INSERT INTO t VALUES (3, 100); RAISE NOTICE '%', seen(); END $$;
--> NOTICE 00000: 32
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 132
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: SET in a function
CREATE FUNCTION test() RETURNS text LANGUAGE plpgsql SET application_name = 'inside' AS $$ BEGIN RETURN current_setting('application_name'); END $$;
SET application_name = 'outside';
SELECT test();
--> test
-->   inside
SHOW application_name;
--> application_name
-->   outside
-- case: SET in a function that changes it itself
CREATE FUNCTION test() RETURNS text LANGUAGE plpgsql SET application_name = 'a' AS $$ BEGIN SET application_name = 'b'; RETURN current_setting('application_name'); END $$;
SET application_name = 'outside';
SELECT test();
--> test
-->   b
SHOW application_name;
--> application_name
-->   b
-- case: SET search_path in a function
CREATE SCHEMA hidden;
CREATE TABLE hidden.h (a int);
INSERT INTO hidden.h VALUES (5);
--> changed 1
CREATE FUNCTION test() RETURNS int LANGUAGE plpgsql SET search_path = hidden AS $$ BEGIN RETURN (SELECT a FROM h); END $$;
SELECT test();
--> test
-->   5
DROP SCHEMA hidden CASCADE;
--> NOTICE 00000: drop cascades to table hidden.h
-- case: SET FROM CURRENT
SET application_name = 'then';
CREATE FUNCTION test() RETURNS text LANGUAGE plpgsql SET application_name FROM CURRENT AS $$ BEGIN RETURN current_setting('application_name'); END $$;
SET application_name = 'now';
SELECT test();
--> test
-->   then
-- case: SET of what does not exist
CREATE FUNCTION test() RETURNS int LANGUAGE sql SET nosuch_setting = 1 AS $$ SELECT 1 $$;
--> ERROR 42704: unrecognized configuration parameter "nosuch_setting"
-- case: an error restores the settings
CREATE FUNCTION test() RETURNS int LANGUAGE plpgsql SET application_name = 'inside' AS $$ BEGIN RETURN 1 / 0; END $$;
SET application_name = 'outside';
SELECT test();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function test() line 1 at RETURN
SHOW application_name;
--> application_name
-->   outside
-- case: SECURITY DEFINER and current_user
CREATE ROLE helper_role;
CREATE FUNCTION whoami() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN current_user; END $$;
CREATE FUNCTION whoami2() RETURNS text LANGUAGE plpgsql SECURITY INVOKER AS $$ BEGIN RETURN current_user || '/' || session_user; END $$;
GRANT USAGE ON SCHEMA public TO helper_role;
SET ROLE helper_role;
SELECT whoami(), whoami2();
--> whoami | whoami2
-->   archipel | helper_role/archipel
RESET ROLE;
DROP OWNED BY helper_role;
DROP ROLE helper_role;
-- case: SECURITY DEFINER opens a table
CREATE ROLE helper_role;
GRANT USAGE ON SCHEMA public TO helper_role;
CREATE FUNCTION peek() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$;
CREATE FUNCTION look() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$;
SET ROLE helper_role;
SELECT peek();
--> peek
-->   2
SELECT look();
--> ERROR 42501: permission denied for table t
-->   CONTEXT: SQL expression "(SELECT count(*) FROM t)"
-->     PL/pgSQL function look() line 1 at RETURN
RESET ROLE;
DROP OWNED BY helper_role;
DROP ROLE helper_role;
-- case: EXECUTE revoked
CREATE ROLE helper_role;
GRANT USAGE ON SCHEMA public TO helper_role;
CREATE FUNCTION secret() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
REVOKE EXECUTE ON FUNCTION secret() FROM PUBLIC;
SET ROLE helper_role;
SELECT secret();
--> ERROR 42501: permission denied for function secret
RESET ROLE;
GRANT EXECUTE ON FUNCTION secret() TO helper_role;
SET ROLE helper_role;
SELECT secret();
--> secret
-->   1
RESET ROLE;
DROP OWNED BY helper_role;
DROP ROLE helper_role;
-- case: ALTER FUNCTION's attributes
CREATE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'in'; RETURN a; END $$;
ALTER FUNCTION test(int) STRICT;
SELECT test(NULL);
--> test
-->   <null>
ALTER FUNCTION test(int) CALLED ON NULL INPUT IMMUTABLE COST 3;
SELECT test(NULL);
--> NOTICE 00000: in
-->   CONTEXT: PL/pgSQL function test(integer) line 1 at RAISE
--> test
-->   <null>
SELECT provolatile, procost FROM pg_proc WHERE proname = 'test';
--> provolatile | procost
-->   i | 3
-- case: ALTER FUNCTION SET and RESET
CREATE FUNCTION test() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN current_setting('application_name'); END $$;
SET application_name = 'session';
ALTER FUNCTION test() SET application_name = 'altered';
SELECT test();
--> test
-->   altered
ALTER FUNCTION test() RESET application_name;
SELECT test();
--> test
-->   session
-- case: ALTER FUNCTION RENAME and SET SCHEMA
CREATE SCHEMA other;
CREATE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a; END $$;
ALTER FUNCTION test(int) RENAME TO renamed;
SELECT renamed(1);
--> renamed
-->   1
ALTER FUNCTION renamed SET SCHEMA other;
SELECT other.renamed(2);
--> renamed
-->   2
SELECT renamed(3);
--> ERROR 42883: function renamed(integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
DROP SCHEMA other CASCADE;
--> NOTICE 00000: drop cascades to function other.renamed(integer)
-- case: ALTER PROCEDURE and ALTER ROUTINE
CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', a; END $$;
ALTER PROCEDURE p(int) RENAME TO q;
CALL q(1);
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function q(integer) line 1 at RAISE
ALTER ROUTINE q(int) RENAME TO r;
CALL r(2);
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function r(integer) line 1 at RAISE
ALTER FUNCTION r(int) RENAME TO s;
--> ERROR 42809: r(integer) is not a function
-- case: ALTER of a function that is not there
ALTER FUNCTION nosuch(int) STRICT;
--> ERROR 42883: function nosuch(integer) does not exist
DO $$ BEGIN ALTER FUNCTION nosuch() RENAME TO x; EXCEPTION WHEN undefined_function THEN RAISE NOTICE '%', SQLERRM; END $$;
--> NOTICE 00000: function nosuch() does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DROP FUNCTION by name, by types, and IF EXISTS
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION test(a text) RETURNS int LANGUAGE sql AS $$ SELECT 2 $$;
DROP FUNCTION test;
--> ERROR 42725: function name "test" is not unique
-->   HINT: Specify the argument list to select the function unambiguously.
DROP FUNCTION test(int);
DROP FUNCTION test;
DROP FUNCTION test;
--> ERROR 42883: could not find a function named "test"
DROP FUNCTION IF EXISTS test(int), nosuch();
--> NOTICE 00000: function test(pg_catalog.int4) does not exist, skipping
--> NOTICE 00000: function nosuch() does not exist, skipping
-- case: DROP of several at once
CREATE FUNCTION a1() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION a2() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
DROP FUNCTION a1(), a2();
SELECT a1();
--> ERROR 42883: function a1() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: DROP FUNCTION of a procedure
CREATE PROCEDURE p() LANGUAGE sql AS $$ SELECT 1 $$;
DROP FUNCTION p();
--> ERROR 42809: p() is not a function
DROP PROCEDURE p();
DROP ROUTINE IF EXISTS p();
--> NOTICE 00000: routine p() does not exist, skipping
-- case: DROP of a function that a default needs
CREATE FUNCTION d() RETURNS int LANGUAGE sql AS $$ SELECT 4 $$;
CREATE TABLE u (a int DEFAULT d());
DROP FUNCTION d();
--> ERROR 2BP01: cannot drop function d() because other objects depend on it
-->   DETAIL: default value for column a of table u depends on function d()
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP FUNCTION d() CASCADE;
--> NOTICE 00000: drop cascades to default value for column a of table u
INSERT INTO u DEFAULT VALUES;
--> changed 1
SELECT * FROM u;
--> a
-->   <null>
-- case: DROP of a type that a function uses
CREATE TYPE e AS ENUM ('a');
CREATE FUNCTION f(e) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
DROP TYPE e;
--> ERROR 2BP01: cannot drop type e because other objects depend on it
-->   DETAIL: function f(e) depends on type e
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP TYPE e CASCADE;
--> NOTICE 00000: drop cascades to function f(e)
SELECT count(*) FROM pg_proc WHERE proname = 'f';
--> count
-->   0
-- case: DROP of a table whose row a function takes
CREATE TABLE r (a int);
CREATE FUNCTION f(r) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
DROP TABLE r;
--> ERROR 2BP01: cannot drop table r because other objects depend on it
-->   DETAIL: function f(r) depends on type r
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
-- case: deployment is transactional
BEGIN;
CREATE FUNCTION test() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
SELECT test();
--> test
-->   1
ROLLBACK;
SELECT test();
--> ERROR 42883: function test() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: replacing is transactional
CREATE FUNCTION test() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
BEGIN;
CREATE OR REPLACE FUNCTION test() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END $$;
SELECT test();
--> test
-->   2
ROLLBACK;
SELECT test();
--> test
-->   1
-- case: COMMENT ON FUNCTION
CREATE FUNCTION test(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
COMMENT ON FUNCTION test(int) IS 'a test';
SELECT obj_description('test(int)'::regprocedure);
--> obj_description
-->   a test
-- case: a function in a schema, called by its full name
CREATE SCHEMA lib;
CREATE FUNCTION lib.helper(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a + 1; END $$;
CREATE FUNCTION outside(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN lib.helper(a) * lib.helper(0); END $$;
SELECT outside(4);
--> outside
-->   5
SELECT helper(1);
--> ERROR 42883: function helper(integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
DROP SCHEMA lib CASCADE;
--> NOTICE 00000: drop cascades to function lib.helper(integer)
-- case: a function's name in quotes
CREATE FUNCTION "My Func"("An Arg" int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN "An Arg" * 2; END $$;
SELECT "My Func"(3);
--> My Func
-->   6
SELECT "My Func"("An Arg" => 4);
--> My Func
-->   8
-- case: a function that hides a built-in only when qualified
CREATE FUNCTION upper(text) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$;
SELECT upper('a'), public.upper('a');
--> upper | upper
-->   A | mine
-- case: pg_get_functiondef, arguments and result
CREATE FUNCTION test(a int, b text DEFAULT 'x', VARIADIC c int[] DEFAULT '{}') RETURNS TABLE (d int) LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN; END $$;
SELECT pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname = 'test';
--> pg_get_function_arguments | pg_get_function_identity_arguments | pg_get_function_result
-->   a integer, b text DEFAULT 'x'::text, VARIADIC c integer[] DEFAULT '{}'::integer[] | a integer, b text, VARIADIC c integer[] | TABLE(d integer)
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'test';
--> pg_get_functiondef
-->   CREATE OR REPLACE FUNCTION public.test(a integer, b text DEFAULT 'x'::text, VARIADIC c integer[] DEFAULT '{}'::integer[])\n RETURNS TABLE(d integer)\n LANGUAGE plpgsql\n STABLE\nAS $function$ BEGIN RETURN; END $function$\n
-- case: pg_get_functiondef of a procedure with settings
CREATE PROCEDURE p(INOUT a int) LANGUAGE plpgsql SECURITY DEFINER SET work_mem = '1MB' AS $$ BEGIN NULL; END $$;
SELECT pg_get_functiondef('p'::regproc);
--> pg_get_functiondef
-->   CREATE OR REPLACE PROCEDURE public.p(INOUT a integer)\n LANGUAGE plpgsql\n SECURITY DEFINER\n SET work_mem TO '1MB'\nAS $procedure$ BEGIN NULL; END $procedure$\n
-- case: regproc and regprocedure
CREATE FUNCTION test(a int, b text) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
SELECT 'test'::regproc, 'test(int, text)'::regprocedure, to_regproc('nosuch') IS NULL, to_regprocedure('test(int)') IS NULL;
--> regproc | regprocedure | ?column? | ?column?
-->   test | test(integer,text) | t | t
-- case: information_schema.routines and parameters
CREATE FUNCTION test(a int, OUT b text) LANGUAGE plpgsql AS $$ BEGIN b := a; END $$;
SELECT routine_name, routine_type, data_type, external_language, security_type FROM information_schema.routines WHERE routine_name = 'test';
--> routine_name | routine_type | data_type | external_language | security_type
-->   test | FUNCTION | text | PLPGSQL | INVOKER
SELECT ordinal_position, parameter_mode, parameter_name, data_type FROM information_schema.parameters WHERE specific_schema = 'public' ORDER BY 1;
--> ordinal_position | parameter_mode | parameter_name | data_type
-->   1 | IN | a | integer
-->   2 | OUT | b | text
-- case: an outer row as CALL's argument is refused
CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CALL p((SELECT v FROM t WHERE id = 1));
--> ERROR 0A000: cannot use subquery in CALL argument
-->   POSITION: 8
-- case: CALL with expressions, casts and functions
CREATE PROCEDURE p(a int, b text, c date) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', a, b, c; END $$;
CALL p(1 + 1, upper('x'), date '2020-01-01' + 1);
--> NOTICE 00000: 2 X 2020-01-02
-->   CONTEXT: PL/pgSQL function p(integer,text,date) line 1 at RAISE
CALL p('3', NULL, '2020-02-02');
--> NOTICE 00000: 3 <NULL> 2020-02-02
-->   CONTEXT: PL/pgSQL function p(integer,text,date) line 1 at RAISE
-- case: CALL with defaults
CREATE PROCEDURE p(a int DEFAULT 1, b int DEFAULT 2) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', a, b; END $$;
CALL p();
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function p(integer,integer) line 1 at RAISE
CALL p(5);
--> NOTICE 00000: 5 2
-->   CONTEXT: PL/pgSQL function p(integer,integer) line 1 at RAISE
CALL p(b => 9);
--> NOTICE 00000: 1 9
-->   CONTEXT: PL/pgSQL function p(integer,integer) line 1 at RAISE
-- case: CALL with VARIADIC
CREATE PROCEDURE p(VARIADIC a int[]) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', a; END $$;
CALL p(1, 2, 3);
--> NOTICE 00000: {1,2,3}
-->   CONTEXT: PL/pgSQL function p(integer[]) line 1 at RAISE
CALL p(VARIADIC ARRAY[4]);
--> NOTICE 00000: {4}
-->   CONTEXT: PL/pgSQL function p(integer[]) line 1 at RAISE
-- case: CALL with INOUT of a polymorphic type
CREATE PROCEDURE p(a anyelement, INOUT b anyelement) LANGUAGE plpgsql AS $$ BEGIN b := a; END $$;
CALL p(1, 2);
--> b
-->   1
CALL p('x'::text, NULL);
--> b
-->   x
-- case: CALL with a polymorphic type unknown
CREATE PROCEDURE p(INOUT b anyelement) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CALL p(NULL);
--> ERROR 42804: could not determine polymorphic type because input has type unknown
-- case: CALL without parentheses
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CALL p;
--> ERROR 42601: syntax error at or near ";"
-->   POSITION: 7
-- case: a STRICT procedure is refused
CREATE PROCEDURE p(a int) LANGUAGE plpgsql STRICT AS $$ BEGIN NULL; END $$;
--> ERROR 42P13: invalid attribute in procedure definition
-->   POSITION: 44
-- case: a VOLATILE procedure is refused
CREATE PROCEDURE p(a int) LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN NULL; END $$;
--> ERROR 42P13: invalid attribute in procedure definition
-->   POSITION: 44
-- case: DO with LANGUAGE
DO LANGUAGE plpgsql $$ BEGIN RAISE NOTICE 'first'; END $$;
--> NOTICE 00000: first
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
DO $$ BEGIN RAISE NOTICE 'last'; END $$ LANGUAGE plpgsql;
--> NOTICE 00000: last
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DO in SQL is refused
DO LANGUAGE sql $$ SELECT 1 $$;
--> ERROR 0A000: language "sql" does not support inline code execution
-- case: DO in a language that does not exist
DO LANGUAGE nosuch $$ x $$;
--> ERROR 42704: language "nosuch" does not exist
-- case: DO with a plain string
DO 'BEGIN RAISE NOTICE ''plain''; END';
--> NOTICE 00000: plain
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DO without a body
DO LANGUAGE plpgsql;
--> ERROR 42601: no inline code specified
-- case: DO that returns a value
DO $$ BEGIN RETURN 1; END $$;
--> ERROR 42804: RETURN cannot have a parameter in function returning void
-->   POSITION: 20
-- case: DO that returns
DO $$ BEGIN RAISE NOTICE 'a'; RETURN; RAISE NOTICE 'b'; END $$;
--> NOTICE 00000: a
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DO with a parameter
DO $$ BEGIN RAISE NOTICE '%', $1; END $$;
--> ERROR 42P02: there is no parameter $1
-->   QUERY: $1
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a procedure's name through the search path
CREATE SCHEMA s1;
CREATE PROCEDURE s1.p() LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 's1'; END $$;
CALL p();
--> ERROR 42883: procedure p() does not exist
-->   HINT: No procedure matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 6
SET search_path = s1, public;
CALL p();
--> NOTICE 00000: s1
-->   CONTEXT: PL/pgSQL function s1.p() line 1 at RAISE
SET search_path = public;
DROP SCHEMA s1 CASCADE;
--> NOTICE 00000: drop cascades to function s1.p()
-- case: PREPARE and EXECUTE of a call
CREATE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a * 2; END $$;
PREPARE q(int) AS SELECT test($1) + test(1);
EXECUTE q(4);
--> ?column?
-->   10
CREATE OR REPLACE FUNCTION test(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a * 3; END $$;
EXECUTE q(4);
--> ?column?
-->   15
DEALLOCATE q;
