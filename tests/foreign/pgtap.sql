-- pgTAP at work: its own assertions, run as its users run them.
-- case: a plan and its tests
BEGIN;
SELECT plan(6);
--> plan
-->   1..6
SELECT ok(true, 'true is fine');
--> ok
-->   ok 1 - true is fine
SELECT ok(1 = 1);
--> ok
-->   ok 2
SELECT is(1 + 1, 2, 'addition');
--> is
-->   ok 3 - addition
SELECT isnt('a'::text, 'b', 'letters differ');
--> isnt
-->   ok 4 - letters differ
SELECT matches('archipelago'::text, '^arch', 'a pattern');
--> matches
-->   ok 5 - a pattern
SELECT cmp_ok(3, '<', 4, 'compared');
--> cmp_ok
-->   ok 6 - compared
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: tests that fail say why
BEGIN;
SELECT plan(4);
--> plan
-->   1..4
SELECT ok(false, 'fails');
--> ok
-->   not ok 1 - fails\n# Failed test 1: "fails"
SELECT is(1, 2, 'not the same');
--> is
-->   not ok 2 - not the same\n# Failed test 2: "not the same"\n#         have: 1\n#         want: 2
SELECT is(NULL::int, 2, 'nothing');
--> is
-->   not ok 3 - nothing\n# Failed test 3: "nothing"\n#         have: NULL\n#         want: 2
SELECT unalike('abc'::text, 'a%', 'alike after all');
--> unalike
-->   not ok 4 - alike after all\n# Failed test 4: "alike after all"\n#                   'abc'\n#          matches: 'a%'
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 4 tests of 4
ROLLBACK;
-- case: a plan that is not kept
BEGIN;
SELECT plan(3);
--> plan
-->   1..3
SELECT pass('one');
--> pass
-->   ok 1 - one
SELECT * FROM finish();
--> finish
-->   # Looks like you planned 3 tests but ran 1
ROLLBACK;
-- case: no plan
BEGIN;
SELECT no_plan();
--> no_plan
SELECT pass('one');
--> pass
-->   ok 1 - one
SELECT fail('two');
--> fail
-->   not ok 2 - two\n# Failed test 2: "two"
SELECT * FROM finish();
--> finish
-->   1..2
-->   # Looks like you failed 1 test of 2
ROLLBACK;
-- case: todo and skip
BEGIN;
SELECT plan(4);
--> plan
-->   1..4
SELECT todo('later', 2);
--> todo
SELECT ok(false, 'not yet');
--> ok
-->   not ok 1 - not yet # TODO later\n# Failed (TODO) test 1: "not yet"
SELECT ok(true, 'already');
--> ok
-->   ok 2 - already # TODO later
SELECT skip('not here', 2);
--> skip
-->   ok 3 # SKIP not here\nok 4 # SKIP not here
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: diag and notes
SELECT diag('a line');
--> diag
-->   # a line
SELECT diag('several', ' ', 'parts');
--> diag
-->   # several parts
-- case: throws_ok and lives_ok
BEGIN;
SELECT plan(6);
--> plan
-->   1..6
SELECT throws_ok('SELECT 1 / 0', '22012', 'division by zero', 'divides');
--> throws_ok
-->   ok 1 - divides
SELECT throws_ok('SELECT 1 / 0', '22012');
--> throws_ok
-->   ok 2 - threw 22012
SELECT throws_ok('SELECT 1', '22012', NULL, 'does not divide');
--> throws_ok
-->   not ok 3 - does not divide\n# Failed test 3: "does not divide"\n#       caught: no exception\n#       wanted: 22012
SELECT lives_ok('SELECT 1', 'lives');
--> lives_ok
-->   ok 4 - lives
SELECT lives_ok('SELECT nosuch', 'does not live');
--> lives_ok
-->   not ok 5 - does not live\n# Failed test 5: "does not live"\n#     died: 42703: column "nosuch" does not exist\n#         CONTEXT:\n#             PL/pgSQL function lives_ok(text,text) line 14 at EXECUTE
SELECT throws_like('SELECT 1 / 0', '%zero%', 'like zero');
--> throws_like
-->   ok 6 - like zero
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 2 tests of 6
ROLLBACK;
-- case: results_eq over queries
BEGIN;
SELECT plan(4);
--> plan
-->   1..4
CREATE TEMP TABLE fruit (id int, name text);
INSERT INTO fruit VALUES (1, 'apple'), (2, 'pear');
--> changed 2
SELECT results_eq('SELECT name FROM fruit ORDER BY id', ARRAY['apple', 'pear'], 'in order');
--> results_eq
-->   ok 1 - in order
SELECT results_eq('SELECT id, name FROM fruit ORDER BY id', $$VALUES (1, 'apple'), (2, 'pear')$$, 'both columns');
--> results_eq
-->   ok 2 - both columns
SELECT results_eq('SELECT name FROM fruit ORDER BY id DESC', ARRAY['apple', 'pear'], 'out of order');
--> results_eq
-->   not ok 3 - out of order\n# Failed test 3: "out of order"\n#     Results differ beginning at row 1:\n#         have: (pear)\n#         want: (apple)
SELECT results_ne('SELECT name FROM fruit ORDER BY id DESC', ARRAY['apple', 'pear'], 'not in order');
--> results_ne
-->   ok 4 - not in order
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 1 test of 4
ROLLBACK;
-- case: sets and bags
BEGIN;
SELECT plan(5);
--> plan
-->   1..5
SELECT set_eq('SELECT generate_series(1, 3)', ARRAY[3, 2, 1], 'a set');
--> set_eq
-->   ok 1 - a set
SELECT set_has('SELECT generate_series(1, 3)', 'SELECT 2', 'has two');
--> set_has
-->   ok 2 - has two
SELECT bag_eq('VALUES (1), (1), (2)', ARRAY[1, 2, 1], 'a bag');
--> bag_eq
-->   ok 3 - a bag
SELECT set_eq('SELECT 1', ARRAY[2], 'another set');
--> set_eq
-->   not ok 4 - another set\n# Failed test 4: "another set"\n#     Extra records:\n#         (1)\n#     Missing records:\n#         (2)
SELECT is_empty('SELECT 1 WHERE false', 'empty');
--> is_empty
-->   ok 5 - empty
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 1 test of 5
ROLLBACK;
-- case: row_eq and types
BEGIN;
SELECT plan(3);
--> plan
-->   1..3
CREATE TABLE pair (a int, b text);
SELECT row_eq('SELECT 1, ''x''::text', ROW(1, 'x')::pair, 'a row');
--> row_eq
-->   ok 1 - a row
SELECT isa_ok(1, 'integer', 'one');
--> isa_ok
-->   ok 2 - one isa integer
SELECT isa_ok('x'::text, 'integer', 'x');
--> isa_ok
-->   not ok 3 - x isa integer\n# Failed test 3: "x isa integer"\n#     x isn't a "integer" it's a "text"
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 1 test of 3
ROLLBACK;
-- case: tables and columns
BEGIN;
SELECT plan(12);
--> plan
-->   1..12
CREATE TABLE public.users (id int PRIMARY KEY, name text NOT NULL DEFAULT 'anon', age int CHECK (age > 0));
SELECT has_table('users');
--> has_table
-->   ok 1 - Table users should exist
SELECT has_table('public'::name, 'users'::name, 'users is there'::text);
--> has_table
-->   ok 2 - users is there
SELECT hasnt_table('nobody');
--> hasnt_table
-->   ok 3 - Table nobody should not exist
SELECT has_column('users', 'name');
--> has_column
-->   ok 4 - Column users.name should exist
SELECT hasnt_column('users', 'nothing');
--> hasnt_column
-->   ok 5 - Column users.nothing should not exist
SELECT col_not_null('users', 'name');
--> col_not_null
-->   ok 6 - Column users.name should be NOT NULL
SELECT col_is_null('users', 'age');
--> col_is_null
-->   ok 7 - Column users.age should allow NULL
SELECT col_type_is('users', 'id', 'integer');
--> col_type_is
-->   ok 8 - Column users.id should be type integer
SELECT col_has_default('users', 'name');
--> col_has_default
-->   ok 9 - Column users.name should have a default
SELECT col_default_is('users', 'name', 'anon'::text);
--> col_default_is
-->   ok 10 - Column users.name should default to 'anon'
SELECT has_pk('users');
--> has_pk
-->   ok 11 - Table users should have a primary key
SELECT col_is_pk('users', 'id');
--> col_is_pk
-->   ok 12 - Column users(id) should be a primary key
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: functions, views, sequences, schemas
BEGIN;
SELECT plan(10);
--> plan
-->   1..10
CREATE FUNCTION public.twice(int) RETURNS int LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN $1 * 2; END $$;
CREATE VIEW public.two AS SELECT 2 AS n;
CREATE SEQUENCE public.counted;
SELECT has_function('twice');
--> has_function
-->   ok 1 - Function twice() should exist
SELECT has_function('public', 'twice', ARRAY['integer']);
--> has_function
-->   ok 2 - Function public.twice(integer) should exist
SELECT function_lang_is('twice', 'plpgsql');
--> function_lang_is
-->   ok 3 - Function twice() should be written in plpgsql
SELECT function_returns('twice', 'integer');
--> function_returns
-->   ok 4 - Function twice() should return integer
SELECT is_strict('twice');
--> is_strict
-->   ok 5 - Function twice() should be strict
SELECT volatility_is('twice', 'volatile');
--> volatility_is
-->   ok 6 - Function twice() should be VOLATILE
SELECT has_view('two');
--> has_view
-->   ok 7 - View two should exist
SELECT has_sequence('counted');
--> has_sequence
-->   ok 8 - Sequence counted should exist
SELECT has_schema('public');
--> has_schema
-->   ok 9 - Schema public should exist
SELECT hasnt_schema('private');
--> hasnt_schema
-->   ok 10 - Schema private should not exist
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: indexes and keys
BEGIN;
SELECT plan(6);
--> plan
-->   1..6
CREATE TABLE public.par (id int PRIMARY KEY, code text UNIQUE);
CREATE TABLE public.chi (id int PRIMARY KEY, p int REFERENCES par);
CREATE INDEX chi_p ON chi (p);
SELECT has_index('chi', 'chi_p', 'p'::name);
--> has_index
-->   ok 1 - Index chi_p should exist
SELECT has_fk('chi');
--> has_fk
-->   ok 2 - Table chi should have a foreign key constraint
SELECT col_is_fk('chi', 'p');
--> col_is_fk
-->   ok 3 - Column chi(p) should be a foreign key
SELECT fk_ok('chi', 'p', 'par', 'id');
--> fk_ok
-->   ok 4 - chi(p) should reference par(id)
SELECT col_is_unique('par', 'code');
--> col_is_unique
-->   ok 5 - Column par(code) should have a unique constraint
SELECT index_is_unique('par', 'par_code_key');
--> index_is_unique
-->   ok 6 - Index par_code_key should be unique
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: triggers and enums
BEGIN;
SELECT plan(4);
--> plan
-->   1..4
CREATE TYPE public.mood AS ENUM ('sad', 'ok');
CREATE TABLE public.watched (a int);
CREATE FUNCTION public.watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER watcher BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION watch();
SELECT has_trigger('watched', 'watcher');
--> has_trigger
-->   ok 1 - Table watched should have trigger watcher
SELECT trigger_is('watched', 'watcher', 'watch');
--> trigger_is
-->   ok 2 - Trigger watcher should call watch()
SELECT has_enum('mood');
--> has_enum
-->   ok 3 - Enum mood should exist
SELECT enum_has_labels('mood', ARRAY['sad', 'ok']);
--> enum_has_labels
-->   ok 4 - Enum mood should have labels (sad, ok)
SELECT * FROM finish();
--> finish
ROLLBACK;
-- case: roles and owners
BEGIN;
SELECT plan(4);
--> plan
-->   1..4
SELECT has_role('archipel');
--> has_role
-->   ok 1 - Role archipel should exist
SELECT hasnt_role('nobody_here');
--> hasnt_role
-->   ok 2 - Role nobody_here should not exist
SELECT is_superuser('archipel');
--> is_superuser
-->   ok 3 - User archipel should be a super user
SELECT table_owner_is('users_not_there', 'archipel');
--> table_owner_is
-->   not ok 4 - Table users_not_there should be owned by archipel\n# Failed test 4: "Table users_not_there should be owned by archipel"\n#     Table users_not_there does not exist
SELECT * FROM finish();
--> finish
-->   # Looks like you failed 1 test of 4
ROLLBACK;
-- case: xUnit functions run by runtests
CREATE SCHEMA checks;
CREATE FUNCTION checks.setup_table() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE held (a int); END $$;
CREATE FUNCTION checks.test_insert() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO held VALUES (1); RETURN NEXT is((SELECT count(*) FROM held), 1::bigint, 'one row'); END $$;
CREATE FUNCTION checks.test_rolled_back() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT is((SELECT count(*) FROM held), 0::bigint, 'no row left'); END $$;
CREATE FUNCTION checks.test_dies() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / 0; RETURN NEXT pass('never'); END $$;
SELECT * FROM runtests('checks'::name);
--> ERROR 22012: division by zero
-->   CONTEXT: SQL statement "SELECT 1 / 0"
-->     PL/pgSQL function checks.test_dies() line 1 at PERFORM
-->     PL/pgSQL function _runner(text[],text[],text[],text[],text[]) line 62 at FOR over EXECUTE statement
-->     SQL function "runtests" statement 1
-->     SQL function "runtests" statement 1
DROP SCHEMA checks CASCADE;
--> NOTICE 00000: drop cascades to 4 other objects
-->   DETAIL: drop cascades to function checks.setup_table()
-->     drop cascades to function checks.test_insert()
-->     drop cascades to function checks.test_rolled_back()
-->     drop cascades to function checks.test_dies()
-- case: do_tap
CREATE SCHEMA checks;
CREATE FUNCTION checks.testone() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT pass('a'); RETURN NEXT ok(1 < 2, 'b'); END $$;
BEGIN;
SELECT plan(2);
--> plan
-->   1..2
SELECT * FROM do_tap('checks'::name);
--> do_tap
-->   # checks.testone()
-->   ok 1 - a
-->   ok 2 - b
SELECT * FROM finish();
--> finish
ROLLBACK;
DROP SCHEMA checks CASCADE;
--> NOTICE 00000: drop cascades to function checks.testone()
-- case: collect_tap and num_failed
BEGIN;
SELECT no_plan();
--> no_plan
SELECT collect_tap(pass('a'), fail('b'));
--> collect_tap
-->   ok 1 - a\nnot ok 2 - b\n# Failed test 2: "b"
SELECT num_failed();
--> num_failed
-->   1
SELECT * FROM finish();
--> finish
-->   1..2
-->   # Looks like you failed 1 test of 2
ROLLBACK;
-- case: versions and formatting
SELECT pgtap_version() >= 1.1 AS recent, pg_version_num() >= 150000 AS fifteen, os_name() IS NOT NULL AS somewhere;
--> recent | fifteen | somewhere
-->   t | t | t
SELECT display_oper('=', 96);
--> display_oper
-->   =(integer,integer)
