-- 43.2 Structure of PL/pgSQL: blocks, labels, scopes, comments, options.
-- case: the manual's example of nested scopes
CREATE FUNCTION somefunc() RETURNS integer AS $$
<< outerblock >>
DECLARE
    quantity integer := 30;
BEGIN
    RAISE NOTICE 'Quantity here is %', quantity;  -- Prints 30
    quantity := 50;
    DECLARE
        quantity integer := 80;
    BEGIN
        RAISE NOTICE 'Quantity here is %', quantity;  -- Prints 80
        RAISE NOTICE 'Outer quantity here is %', outerblock.quantity;  -- Prints 50
    END;
    RAISE NOTICE 'Quantity here is %', quantity;  -- Prints 50
    RETURN quantity;
END;
$$ LANGUAGE plpgsql;
SELECT somefunc();
--> NOTICE 00000: Quantity here is 30
-->   CONTEXT: PL/pgSQL function somefunc() line 6 at RAISE
--> NOTICE 00000: Quantity here is 80
-->   CONTEXT: PL/pgSQL function somefunc() line 11 at RAISE
--> NOTICE 00000: Outer quantity here is 50
-->   CONTEXT: PL/pgSQL function somefunc() line 12 at RAISE
--> NOTICE 00000: Quantity here is 50
-->   CONTEXT: PL/pgSQL function somefunc() line 14 at RAISE
--> somefunc
-->   50
-- case: an empty block
DO $$ BEGIN END $$;
-- case: a block of NULL statements
DO $$ BEGIN NULL; NULL; END; $$;
-- case: DECLARE without declarations
DO $$ DECLARE BEGIN RAISE NOTICE 'here'; END $$;
--> NOTICE 00000: here
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: DECLARE repeated between declarations
DO $$ DECLARE a int := 1; DECLARE b int := 2; BEGIN RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: keywords in any case
DO $$ dEcLaRe x Int := 3; bEgIn RaIsE NoTiCe '%', X; eNd $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: quoted names keep their case
DO $$ DECLARE "Total" int := 1; total int := 2; BEGIN RAISE NOTICE '% %', "Total", total; END $$;
--> NOTICE 00000: 1 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a quoted name with a space and a quote
DO $$ DECLARE "a ""b" int := 7; BEGIN RAISE NOTICE '%', "a ""b"; END $$;
--> NOTICE 00000: 7
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: line and block comments, nested
DO $$
-- first
DECLARE /* a /* nested */ comment */ x int := 1; -- trailing
BEGIN
  /* before
     a statement */
  x := x /* inside */ + 1; -- after
  RAISE NOTICE '%', x;
END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 8 at RAISE
-- case: a comment that looks like a quote
DO $$ BEGIN -- it's fine
  RAISE NOTICE 'don''t'; /* can't stop */ END $$;
--> NOTICE 00000: don't
-->   CONTEXT: PL/pgSQL function inline_code_block line 2 at RAISE
-- case: a comment that is never closed
DO $$ BEGIN /* open NULL; END $$;
--> ERROR 42601: unterminated /* comment at or near "/* open NULL; END "
-->   POSITION: 13
-- case: a block's label after END
DO $$ <<a>> BEGIN <<b>> BEGIN RAISE NOTICE 'in'; END b; END a $$;
--> NOTICE 00000: in
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an end label that differs
DO $$ <<a>> BEGIN NULL; END b $$;
--> ERROR 42601: end label "b" differs from block's label "a"
-->   POSITION: 29
-- case: an end label without a label
DO $$ BEGIN NULL; END b $$;
--> ERROR 42601: end label "b" specified for unlabeled block
-->   POSITION: 23
-- case: a label that is a quoted name
DO $$ <<"My Block">> DECLARE x int := 1; BEGIN RAISE NOTICE '%', "My Block".x; END "My Block" $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: labels fold to lower case
DO $$ <<Outermost>> DECLARE x int := 5; BEGIN RAISE NOTICE '%', OUTERMOST.x; END outermost $$;
--> NOTICE 00000: 5
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: two nested blocks with one label
DO $$ <<a>> DECLARE x int := 1; BEGIN <<a>> DECLARE x int := 2; BEGIN RAISE NOTICE '%', a.x; END; END $$;
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the function's name qualifies its parameters
CREATE FUNCTION shade(x int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int := 100;
BEGIN
  RETURN x + shade.x;
END $$;
SELECT shade(1);
--> shade
-->   101
-- case: a block label hides the function's name
CREATE FUNCTION shade(x int) RETURNS int LANGUAGE plpgsql AS $$
<<shade>>
DECLARE y int := 2;
BEGIN
  RETURN shade.y + x;
END $$;
SELECT shade(40);
--> shade
-->   42
-- case: a qualified name that no block has
DO $$ <<a>> DECLARE x int := 1; BEGIN RAISE NOTICE '%', a.y; END $$;
--> ERROR 42P01: missing FROM-clause entry for table "a"
-->   QUERY: a.y
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a variable after its block has ended
DO $$ BEGIN DECLARE inner_one int := 1; BEGIN NULL; END; RAISE NOTICE '%', inner_one; END $$;
--> ERROR 42703: column "inner_one" does not exist
-->   QUERY: inner_one
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an inner variable is initialised at every entry
DO $$ BEGIN FOR i IN 1..3 LOOP DECLARE c int := 0; BEGIN c := c + i; RAISE NOTICE '%', c; END; END LOOP; END $$;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an initialisation sees the variables before it
DO $$ DECLARE a int := 2; b int := a * 10; c int := a + b; BEGIN RAISE NOTICE '%', c; END $$;
--> NOTICE 00000: 22
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an initialisation does not see variables after it
DO $$ DECLARE a int := b; b int := 1; BEGIN RAISE NOTICE '%', a; END $$;
--> ERROR 42703: column "b" does not exist
-->   QUERY: b
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: an inner initialisation sees the outer variable of the same name
DO $$ DECLARE a int := 2; BEGIN DECLARE a int := a + 1; BEGIN RAISE NOTICE '%', a; END; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: one name twice in a block
DO $$ DECLARE a int; a text; BEGIN END $$;
--> ERROR 42601: duplicate declaration at or near "a"
-->   POSITION: 22
-- case: a variable of an argument's name at the same level is allowed
CREATE FUNCTION hides(a int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE a text := 'local'; BEGIN RETURN a; END $$;
SELECT hides(1);
--> hides
-->   local
-- case: a missing semicolon
DO $$ BEGIN RAISE NOTICE 'a' END $$;
--> ERROR 42601: syntax error at or near "END"
-->   POSITION: 30
-- case: a missing END
DO $$ BEGIN NULL; $$;
--> ERROR 42601: syntax error at end of input
-->   POSITION: 19
-- case: something after END
DO $$ BEGIN NULL; END; SELECT 1; $$;
--> ERROR 42601: syntax error at or near "SELECT"
-->   POSITION: 24
-- case: an unknown statement word
DO $$ BEGIN FROBNICATE 1; END $$;
--> ERROR 42601: syntax error at or near "FROBNICATE"
-->   POSITION: 13
-- case: a statement that SQL does not know
DO $$ BEGIN SELEKT 1; END $$;
--> ERROR 42601: syntax error at or near "SELEKT"
-->   POSITION: 13
-- case: a body without a block
CREATE FUNCTION nobody() RETURNS int LANGUAGE plpgsql AS 'RETURN 1';
--> ERROR 42601: syntax error at or near "RETURN"
-->   POSITION: 59
-- case: an empty body
CREATE FUNCTION nobody() RETURNS int LANGUAGE plpgsql AS '';
--> ERROR 42601: syntax error at end of input
-->   POSITION: 59
-- case: the option lines before a body
CREATE FUNCTION opt(a int) RETURNS int LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  RETURN a;
END $$;
SELECT opt(3);
--> opt
-->   3
-- case: several option lines
CREATE FUNCTION opt(a int) RETURNS int LANGUAGE plpgsql AS $$
#print_strict_params on
#variable_conflict use_column
#print_strict_params off
BEGIN
  RETURN a + 1;
END $$;
SELECT opt(3);
--> opt
-->   4
-- case: an unknown option
CREATE FUNCTION opt() RETURNS int LANGUAGE plpgsql AS $$
#nonsense on
BEGIN RETURN 1; END $$;
--> ERROR 42601: syntax error at or near "nonsense"
-->   POSITION: 59
-- case: an option with a wrong value
CREATE FUNCTION opt() RETURNS int LANGUAGE plpgsql AS $$
#print_strict_params maybe
BEGIN RETURN 1; END $$;
--> ERROR XX000: unrecognized print_strict_params option maybe
-->   CONTEXT: compilation of PL/pgSQL function "opt" near line 1
-- case: an option inside the block
CREATE FUNCTION opt() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
#variable_conflict error
RETURN 1; END $$;
--> ERROR 42601: syntax error at or near "#"
-->   POSITION: 64
-- case: the dump option is accepted
CREATE FUNCTION opt() RETURNS int LANGUAGE plpgsql AS $$
#variable_conflict error
BEGIN RETURN 2; END $$;
SELECT opt();
--> opt
-->   2
-- case: a body in plain quotes with doubled quotes
CREATE FUNCTION quoted() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN ''it''''s''; END';
SELECT quoted();
--> quoted
-->   it's
-- case: a body as an escape string
CREATE FUNCTION escaped() RETURNS text LANGUAGE plpgsql AS E'BEGIN\n  RETURN \'a\\tb\';\nEND';
SELECT escaped();
--> escaped
-->   a\tb
-- case: dollar quotes inside dollar quotes
CREATE FUNCTION nested() RETURNS text LANGUAGE plpgsql AS $outer$
BEGIN
  RETURN $inner$a $ b 'c'$inner$ || $$x$$;
END $outer$;
SELECT nested();
--> nested
-->   a $ b 'c'x
-- case: line numbers count from the body's first line
CREATE FUNCTION lines() RETURNS int LANGUAGE plpgsql AS $$

BEGIN

  PERFORM 1;

  RETURN 1
    / 0;
END $$;
SELECT lines();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1
-->         / 0"
-->     PL/pgSQL function lines() line 7 at RETURN
-- case: line numbers when the body begins on its first line
CREATE FUNCTION lines() RETURNS int LANGUAGE plpgsql AS $$BEGIN
  RETURN 1 / 0;
END $$;
SELECT lines();
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function lines() line 2 at RETURN
-- case: an error in a declaration of a nested block
DO $$ BEGIN
  DECLARE
    a int := 1 / 0;
  BEGIN
    NULL;
  END;
END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: SQL expression "1 / 0"
-->     PL/pgSQL function inline_code_block line 3 during statement block local variable initialization
-- case: an error in the second declaration
CREATE FUNCTION second() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  a int := 1;
  b int := a / 0;
BEGIN
  RETURN b;
END $$;
SELECT second();
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function second() line 4 during statement block local variable initialization
-- case: a sub-block with its own exception clause
DO $$
BEGIN
  BEGIN
    RAISE NOTICE '%', 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'inner caught';
  END;
  RAISE NOTICE 'outer goes on';
END $$;
--> NOTICE 00000: inner caught
-->   CONTEXT: PL/pgSQL function inline_code_block line 6 at RAISE
--> NOTICE 00000: outer goes on
-->   CONTEXT: PL/pgSQL function inline_code_block line 8 at RAISE
-- case: EXIT leaves a labelled block
DO $$ BEGIN <<work>> BEGIN RAISE NOTICE 'one'; EXIT work; RAISE NOTICE 'never'; END; RAISE NOTICE 'two'; END $$;
--> NOTICE 00000: one
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: two
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: EXIT in a block without a label and no loop
DO $$ BEGIN BEGIN EXIT; END; END $$;
--> ERROR 42601: EXIT cannot be used outside a loop, unless it has a label
-->   POSITION: 19
-- case: a label before a statement that takes none
DO $$ BEGIN <<here>> RAISE NOTICE 'x'; END $$;
--> ERROR 42601: syntax error at or near "RAISE"
-->   POSITION: 22
-- case: reserved words as variables
DO $$ DECLARE loop int; BEGIN END $$;
--> ERROR 42601: syntax error at or near "loop"
-->   POSITION: 15
-- case: unreserved words as variables
DO $$ DECLARE notice int := 1; next int := 2; scroll int := 3; type int := 4; BEGIN RAISE NOTICE '% % % %', notice, next, scroll, type; END $$;
--> NOTICE 00000: 1 2 3 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: unreserved words as assignment targets
DO $$ DECLARE open int; next int; raise int; BEGIN open := 1; next := 2; raise := 3; RAISE NOTICE '%', open + next + raise; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: long names are cut
DO $$ DECLARE abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz int := 9; BEGIN RAISE NOTICE '%', abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk; END $$;
--> NOTICE 42622: identifier "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" will be truncated to "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
--> NOTICE 00000: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: names beyond ASCII
DO $$ DECLARE größe int := 4; BEGIN RAISE NOTICE '% %', größe, 'naïve'; END $$;
--> NOTICE 00000: 4 naïve
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
