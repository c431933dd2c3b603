-- 43.1 Overview: argument and result types.
CREATE TABLE part (id int PRIMARY KEY, name text, price numeric(10,2));
INSERT INTO part VALUES (1, 'bolt', 0.25), (2, 'nut', 0.10), (3, 'gear', 12.50);
--> changed 3
-- case: no arguments
CREATE FUNCTION answer() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 42; END $$;
SELECT answer();
--> answer
-->   42
-- case: scalar arguments by position
CREATE FUNCTION area(a numeric, b numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN a * b; END $$;
SELECT area(2.5, 4);
--> area
-->   10.0
-- case: arguments without names
CREATE FUNCTION area(numeric, numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN $1 * $2; END $$;
SELECT area(3, 0.5);
--> area
-->   1.5
-- case: an array argument
CREATE FUNCTION longest(words text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE w text; best text := '';
BEGIN
  FOREACH w IN ARRAY words LOOP
    IF length(w) > length(best) THEN best := w; END IF;
  END LOOP;
  RETURN best;
END $$;
SELECT longest(ARRAY['a', 'ccc', 'bb']);
--> longest
-->   ccc
-- case: a table's row as argument
CREATE FUNCTION label(p part) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN p.name || ': ' || p.price; END $$;
SELECT label(part) FROM part ORDER BY id;
--> label
-->   bolt: 0.25
-->   nut: 0.10
-->   gear: 12.50
SELECT label(p) FROM part p WHERE id = 2;
--> label
-->   nut: 0.10
SELECT label(ROW(9, 'cog', 1.5)::part);
--> label
-->   cog: 1.50
-- case: functional notation on a row
CREATE FUNCTION doubled(part) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN $1.price * 2; END $$;
SELECT p.doubled FROM part p ORDER BY id;
--> doubled
-->   0.50
-->   0.20
-->   25.00
-- case: a row as result
CREATE FUNCTION cheapest() RETURNS part LANGUAGE plpgsql AS $$
DECLARE p part;
BEGIN
  SELECT * INTO p FROM part ORDER BY price LIMIT 1;
  RETURN p;
END $$;
SELECT cheapest();
--> cheapest
-->   (2,nut,0.10)
SELECT * FROM cheapest();
--> id | name | price
-->   2 | nut | 0.10
SELECT (cheapest()).name;
--> name
-->   nut
-- case: SETOF a scalar
CREATE FUNCTION names() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT name FROM part ORDER BY name LOOP
    RETURN NEXT r.name;
  END LOOP;
END $$;
SELECT * FROM names();
--> names
-->   bolt
-->   gear
-->   nut
SELECT names();
--> names
-->   bolt
-->   gear
-->   nut
-- case: SETOF a table's rows
CREATE FUNCTION cheap(numeric) RETURNS SETOF part LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT * FROM part WHERE price < $1 ORDER BY id;
END $$;
SELECT * FROM cheap(1);
--> id | name | price
-->   1 | bolt | 0.25
-->   2 | nut | 0.10
SELECT name FROM cheap(100) WHERE id > 1;
--> name
-->   nut
-->   gear
-- case: RETURNS record with a column list by the caller
CREATE FUNCTION pair() RETURNS record LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT 1, 'x'::text INTO r; RETURN r; END $$;
SELECT * FROM pair() AS (a int, b text);
--> a | b
-->   1 | x
SELECT pair();
--> pair
-->   (1,x)
-- case: RETURNS record without a column list
CREATE FUNCTION pair() RETURNS record LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 2); END $$;
SELECT * FROM pair();
--> ERROR 42601: a column definition list is required for functions returning "record"
-->   POSITION: 15
-- case: RETURNS record with a wrong column list
CREATE FUNCTION pair() RETURNS record LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 'x'::text); END $$;
SELECT * FROM pair() AS (a int, b int);
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Returned type text does not match expected type integer in column 2.
-->   CONTEXT: PL/pgSQL function pair() while casting return value to function's return type
-- case: RETURNS record with too few columns listed
CREATE FUNCTION pair() RETURNS record LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 'x'::text); END $$;
SELECT * FROM pair() AS (a int);
--> ERROR 42804: returned record type does not match expected record type
-->   DETAIL: Number of returned columns (2) does not match expected column count (1).
-->   CONTEXT: PL/pgSQL function pair() while casting return value to function's return type
-- case: SETOF record
CREATE FUNCTION pairs() RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT g, g * g FROM generate_series(1, 3) g;
END $$;
SELECT * FROM pairs() AS p(n int, square int);
--> n | square
-->   1 | 1
-->   2 | 4
-->   3 | 9
-- case: void
CREATE FUNCTION nothing() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'done'; END $$;
SELECT nothing();
--> NOTICE 00000: done
-->   CONTEXT: PL/pgSQL function nothing() line 1 at RAISE
--> nothing
-->
SELECT nothing() IS NULL AS is_null;
--> NOTICE 00000: done
-->   CONTEXT: PL/pgSQL function nothing() line 1 at RAISE
--> is_null
-->   f
-- case: void with an explicit RETURN
CREATE FUNCTION nothing() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
SELECT nothing();
--> nothing
-->
-- case: one OUT parameter
CREATE FUNCTION half(a int, OUT h int) LANGUAGE plpgsql AS $$ BEGIN h := a / 2; END $$;
SELECT half(9);
--> half
-->   4
SELECT * FROM half(9);
--> h
-->   4
-- case: several OUT parameters
CREATE FUNCTION divide(a int, b int, OUT quotient int, OUT remainder int) LANGUAGE plpgsql AS $$
BEGIN
  quotient := a / b;
  remainder := a % b;
END $$;
SELECT divide(17, 5);
--> divide
-->   (3,2)
SELECT * FROM divide(17, 5);
--> quotient | remainder
-->   3 | 2
SELECT quotient FROM divide(17, 5);
--> quotient
-->   3
-- case: an INOUT parameter
CREATE FUNCTION increment(INOUT n int) LANGUAGE plpgsql AS $$ BEGIN n := n + 1; END $$;
SELECT increment(4);
--> increment
-->   5
-- case: OUT before IN
CREATE FUNCTION reversed(OUT r text, s text) LANGUAGE plpgsql AS $$ BEGIN r := reverse(s); END $$;
SELECT reversed('abc');
--> reversed
-->   cba
-- case: unnamed OUT parameters
CREATE FUNCTION unnamed(int, OUT int, OUT text) LANGUAGE plpgsql AS $$ BEGIN $2 := $1 + 1; $3 := 't'; END $$;
SELECT * FROM unnamed(1);
--> column1 | column2
-->   2 | t
-- case: RETURNS together with OUT
CREATE FUNCTION agree(a int, OUT b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN b := a; END $$;
SELECT agree(5);
--> agree
-->   5
-- case: RETURNS that contradicts OUT
CREATE FUNCTION contradict(OUT b int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN b := 1; END $$;
--> ERROR 42P13: function result type must be integer because of OUT parameters
-- case: RETURNS TABLE
CREATE FUNCTION stock(lowest numeric) RETURNS TABLE (part_name text, worth numeric) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT p.name, p.price FROM part p WHERE p.price >= lowest ORDER BY p.id;
END $$;
SELECT * FROM stock(0.2);
--> part_name | worth
-->   bolt | 0.25
-->   gear | 12.50
SELECT part_name FROM stock(0) ORDER BY worth DESC LIMIT 1;
--> part_name
-->   gear
-- case: RETURNS SETOF with OUT parameters
CREATE FUNCTION couple(OUT a int, OUT b text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..2 LOOP a := i; b := repeat('z', i); RETURN NEXT; END LOOP;
END $$;
SELECT * FROM couple();
--> a | b
-->   1 | z
-->   2 | zz
-- case: polymorphic anyelement
CREATE FUNCTION larger(a anyelement, b anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$
BEGIN
  IF a > b THEN RETURN a; END IF;
  RETURN b;
END $$;
SELECT larger(1, 2), larger('b'::text, 'a'), larger(1.5, 2.5);
--> larger | larger | larger
-->   2 | b | 2.5
SELECT larger(1, 'x'::text);
--> ERROR 42883: function larger(integer, text) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: polymorphic anyarray to anyelement
CREATE FUNCTION first_of(a anyarray) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN a[1]; END $$;
SELECT first_of(ARRAY[3, 4]), first_of(ARRAY['x', 'y']);
--> first_of | first_of
-->   3 | x
-- case: polymorphic anyelement to anyarray
CREATE FUNCTION twice(a anyelement) RETURNS anyarray LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY[a, a]; END $$;
SELECT twice(1), twice(true), twice('q'::text);
--> twice | twice | twice
-->   {1,1} | {t,t} | {q,q}
-- case: polymorphic without knowing the type
CREATE FUNCTION twice(a anyelement) RETURNS anyarray LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY[a, a]; END $$;
SELECT twice('q');
--> ERROR 42804: could not determine polymorphic type because input has type unknown
SELECT twice(NULL);
--> ERROR 42804: could not determine polymorphic type because input has type unknown
-- case: anycompatible finds a common type
CREATE FUNCTION bigger(a anycompatible, b anycompatible) RETURNS anycompatible LANGUAGE plpgsql AS $$
BEGIN RETURN CASE WHEN a > b THEN a ELSE b END; END $$;
SELECT bigger(1, 2.5), bigger(3::bigint, 2);
--> bigger | bigger
-->   2.5 | 3
-- case: anycompatiblearray
CREATE FUNCTION appended(a anycompatiblearray, b anycompatible) RETURNS anycompatiblearray LANGUAGE plpgsql AS $$
BEGIN RETURN a || b; END $$;
SELECT appended(ARRAY[1, 2], 3.5);
--> appended
-->   {1,2,3.5}
-- case: anynonarray refuses arrays
CREATE FUNCTION plain(a anynonarray) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a::text; END $$;
SELECT plain(5);
--> plain
-->   5
SELECT plain(ARRAY[1]);
--> ERROR 42883: function plain(integer[]) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: anyenum
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION last_mood(anyenum) RETURNS anyenum LANGUAGE plpgsql AS $$ BEGIN RETURN enum_last($1); END $$;
SELECT last_mood('sad'::mood);
--> last_mood
-->   happy
-- case: polymorphic OUT parameters
CREATE FUNCTION dup(a anyelement, OUT b anyelement, OUT c anyarray) LANGUAGE plpgsql AS $$ BEGIN b := a; c := ARRAY[a, a]; END $$;
SELECT * FROM dup(22);
--> b | c
-->   22 | {22,22}
SELECT * FROM dup('xyz'::text);
--> b | c
-->   xyz | {xyz,xyz}
-- case: a polymorphic result without a polymorphic argument
CREATE FUNCTION nowhere() RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42P13: cannot determine result data type
-->   DETAIL: A result of type anyelement requires at least one input of type anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange.
-- case: VARIADIC
CREATE FUNCTION total(VARIADIC n numeric[]) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE s numeric := 0; x numeric;
BEGIN
  FOREACH x IN ARRAY n LOOP s := s + x; END LOOP;
  RETURN s;
END $$;
SELECT total(1, 2.5, 3);
--> total
-->   6.5
SELECT total(VARIADIC ARRAY[4, 5]);
--> total
-->   9
SELECT total();
--> ERROR 42883: function total() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: VARIADIC with an empty array
CREATE FUNCTION howmany(VARIADIC n int[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN coalesce(array_length(n, 1), 0); END $$;
SELECT howmany(VARIADIC '{}'::int[]);
--> howmany
-->   0
SELECT howmany(VARIADIC NULL);
--> howmany
-->   0
-- case: VARIADIC after other arguments
CREATE FUNCTION joined(separator text, VARIADIC parts text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN array_to_string(parts, separator); END $$;
SELECT joined('-', 'a', 'b', 'c');
--> joined
-->   a-b-c
SELECT joined('-');
--> ERROR 42883: function joined(unknown) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: VARIADIC anyarray
CREATE FUNCTION least_of(VARIADIC anyarray) RETURNS anyelement LANGUAGE plpgsql AS $$
BEGIN RETURN (SELECT min(x) FROM unnest($1) x); END $$;
SELECT least_of(3, 1, 2), least_of('b'::text, 'a');
--> least_of | least_of
-->   1 | a
-- case: defaults
CREATE FUNCTION greet(name text, greeting text DEFAULT 'Hello', mark text = '!') RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN greeting || ', ' || name || mark; END $$;
SELECT greet('Ada');
--> greet
-->   Hello, Ada!
SELECT greet('Ada', 'Bye');
--> greet
-->   Bye, Ada!
SELECT greet('Ada', mark => '?');
--> greet
-->   Hello, Ada?
SELECT greet(greeting := 'Hi', name := 'Bob');
--> greet
-->   Hi, Bob!
SELECT greet();
--> ERROR 42883: function greet() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: a default that is an expression
CREATE FUNCTION later(d date DEFAULT date '2020-01-31' + 1, n int DEFAULT length('abc')) RETURNS date LANGUAGE plpgsql AS $$ BEGIN RETURN d + n; END $$;
SELECT later(), later(date '2021-01-01'), later(n => 0);
--> later | later | later
-->   2020-02-04 | 2021-01-04 | 2020-02-01
-- case: a default before an argument without one
CREATE FUNCTION wrong(a int DEFAULT 1, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
--> ERROR 42P13: input parameters after one with a default value must also have defaults
-- case: a positional argument after a named one
CREATE FUNCTION two(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a - b; END $$;
SELECT two(b => 1, a => 5);
--> two
-->   4
SELECT two(a => 1, 5);
--> ERROR 42601: positional argument cannot follow named argument
-->   POSITION: 20
-- case: an argument named twice
CREATE FUNCTION two(a int, b int DEFAULT 2) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a - b; END $$;
SELECT two(1, a => 5);
--> ERROR 42883: function two(integer, a => integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: a name that no argument has
CREATE FUNCTION two(a int, b int DEFAULT 2) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a - b; END $$;
SELECT two(1, c => 5);
--> ERROR 42883: function two(integer, c => integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: the manual's concat_lower_or_upper
CREATE FUNCTION concat_lower_or_upper(a text, b text, uppercase boolean DEFAULT false) RETURNS text AS $$
 SELECT CASE WHEN $3 THEN UPPER($1 || ' ' || $2) ELSE LOWER($1 || ' ' || $2) END;
$$ LANGUAGE SQL IMMUTABLE STRICT;
SELECT concat_lower_or_upper('Hello', 'World', true);
--> concat_lower_or_upper
-->   HELLO WORLD
SELECT concat_lower_or_upper('Hello', 'World', uppercase => true);
--> concat_lower_or_upper
-->   HELLO WORLD
SELECT concat_lower_or_upper(a => 'Hello', b => 'World');
--> concat_lower_or_upper
-->   hello world
-- case: a domain as argument and result
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FUNCTION fewer(p positive) RETURNS positive LANGUAGE plpgsql AS $$ BEGIN RETURN p - 1; END $$;
SELECT fewer(3);
--> fewer
-->   2
SELECT fewer(1);
--> ERROR 23514: value for domain positive violates check constraint "positive_check"
-->   CONTEXT: PL/pgSQL function fewer(positive) while casting return value to function's return type
-->   SCHEMA: public
-->   DATATYPE: positive
-->   CONSTRAINT: positive_check
SELECT fewer(0);
--> ERROR 23514: value for domain positive violates check constraint "positive_check"
-->   SCHEMA: public
-->   DATATYPE: positive
-->   CONSTRAINT: positive_check
-- case: an enum as argument and result
CREATE TYPE size AS ENUM ('small', 'large');
CREATE FUNCTION other(s size) RETURNS size LANGUAGE plpgsql AS $$ BEGIN RETURN CASE s WHEN 'small' THEN 'large' ELSE 'small' END; END $$;
SELECT other('small'), other('large');
--> other | other
-->   large | small
SELECT other('huge');
--> ERROR 22P02: invalid input value for enum size: "huge"
-->   POSITION: 14
-- case: a function in WHERE, ORDER BY and GROUP BY
CREATE FUNCTION band(p numeric) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN CASE WHEN p < 1 THEN 'low' ELSE 'high' END; END $$;
SELECT band(price), count(*) FROM part GROUP BY band(price) ORDER BY band(price);
--> band | count
-->   high | 1
-->   low | 2
SELECT name FROM part WHERE band(price) = 'low' ORDER BY name;
--> name
-->   bolt
-->   nut
-- case: a function in a default and a check
CREATE FUNCTION start_price() RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
CREATE FUNCTION fine(numeric) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 < 100; END $$;
CREATE TABLE offer (id int PRIMARY KEY, price numeric DEFAULT start_price() CHECK (fine(price)));
INSERT INTO offer (id) VALUES (1);
--> changed 1
INSERT INTO offer VALUES (2, 1000);
--> ERROR 23514: new row for relation "offer" violates check constraint "offer_price_check"
-->   DETAIL: Failing row contains (2, 1000).
-->   SCHEMA: public
-->   TABLE: offer
-->   CONSTRAINT: offer_price_check
SELECT * FROM offer;
--> id | price
-->   1 | 5
