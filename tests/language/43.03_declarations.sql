-- 43.3 Declarations: variables, CONSTANT, NOT NULL, DEFAULT, %TYPE, %ROWTYPE, records, aliases, collations.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN short_text AS varchar(5) NOT NULL;
CREATE TYPE color AS ENUM ('red', 'green', 'blue');
CREATE TABLE item (id int PRIMARY KEY, name varchar(6) NOT NULL, price numeric(8,2) DEFAULT 1, tags text[], hue color, made date);
INSERT INTO item VALUES (1, 'alpha', 10.5, '{a,b}', 'red', '2020-02-29'), (2, 'beta', 20, NULL, 'blue', NULL);
--> changed 2
-- case: the manual's declarations
DO $$
DECLARE
  user_id integer;
  quantity numeric(5);
  url varchar;
  myrow item%ROWTYPE;
  myfield item.name%TYPE;
  arow RECORD;
BEGIN
  RAISE NOTICE '% % % % %', user_id, quantity, url, myrow, myfield;
END $$;
--> NOTICE 00000: <NULL> <NULL> <NULL> <NULL> <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 10 at RAISE
-- case: initialised with :=, = and DEFAULT
DO $$ DECLARE a int := 1; b int = 2; c int DEFAULT 3; BEGIN RAISE NOTICE '%', a + b + c; END $$;
--> NOTICE 00000: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: smallint overflow at declaration
DO $$ DECLARE x smallint := 40000; BEGIN END $$;
--> ERROR 22003: smallint out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: integer overflow at declaration
DO $$ DECLARE x int := 3000000000; BEGIN END $$;
--> ERROR 22003: integer out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: a text that is no integer
DO $$ DECLARE x int := 'abc'; BEGIN END $$;
--> ERROR 22P02: invalid input syntax for type integer: "abc"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: a text that is an integer
DO $$ DECLARE x int := ' 12 '; BEGIN RAISE NOTICE '%', x; END $$;
--> NOTICE 00000: 12
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: varchar(n) too long at declaration
DO $$ DECLARE x varchar(3) := 'abcd'; BEGIN END $$;
--> ERROR 22001: value too long for type character varying(3)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: varchar(n) with trailing blanks
DO $$ DECLARE x varchar(3) := 'ab   '; BEGIN RAISE NOTICE '[%]', x; END $$;
--> NOTICE 00000: [ab ]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: char(n) is padded
DO $$ DECLARE x char(5) := 'ab'; y character := 'q'; BEGIN RAISE NOTICE '[%] [%] %', x, y, length(x); END $$;
--> NOTICE 00000: [ab   ] [q] 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: numeric(p,s) rounds
DO $$ DECLARE x numeric(5,2) := 1.005; y numeric(3) := 9.5; BEGIN RAISE NOTICE '% %', x, y; END $$;
--> NOTICE 00000: 1.01 10
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: numeric(p,s) overflows
DO $$ DECLARE x numeric(3,1) := 123.4; BEGIN END $$;
--> ERROR 22003: numeric field overflow
-->   DETAIL: A field with precision 3, scale 1 must round to an absolute value less than 10^2.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: double precision and real
DO $$ DECLARE d double precision := 1e308; r real := 0.1; f float(24) := 1.5; g float := 2; BEGIN RAISE NOTICE '% % % %', d, r, f, g; END $$;
--> NOTICE 00000: 1e+308 0.1 1.5 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: boolean from texts
DO $$ DECLARE a bool := 'yes'; b boolean := 'off'; c bool := 't'; BEGIN RAISE NOTICE '% % %', a, b, c; END $$;
--> NOTICE 00000: t f t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: boolean from a wrong text
DO $$ DECLARE a bool := 'maybe'; BEGIN END $$;
--> ERROR 22P02: invalid input syntax for type boolean: "maybe"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: date, time and timestamp
DO $$ DECLARE d date := '2020-02-29'; t time := '12:30'; ts timestamp := '2020-01-01 00:00:01'; i interval := '1 day 02:00'; BEGIN RAISE NOTICE '% % % %', d, t, ts, i; END $$;
--> NOTICE 00000: 2020-02-29 12:30:00 2020-01-01 00:00:01 1 day 02:00:00
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a date that does not exist
DO $$ DECLARE d date := '2021-02-29'; BEGIN END $$;
--> ERROR 22008: date/time field value out of range: "2021-02-29"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: timestamptz in a time zone
SET timezone = 'UTC';
DO $$ DECLARE t timestamptz := '2020-06-01 12:00+02'; z timestamp with time zone(0) := '2020-01-01 00:00:00.6+00'; BEGIN RAISE NOTICE '% %', t, z; END $$;
--> ERROR 42601: syntax error at or near "("
-->   POSITION: 81
-->   CONTEXT: invalid type name "timestamp with time zone(0) "
-- case: bytea
DO $$ DECLARE b bytea := '\x0aff'; BEGIN RAISE NOTICE '% %', b, length(b); END $$;
--> NOTICE 00000: \x0aff 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: json and jsonb
DO $$ DECLARE j json := '{"b": 1, "a":2}'; k jsonb := '{"b": 1, "a":2}'; BEGIN RAISE NOTICE '% % %', j, k, k->'a'; END $$;
--> NOTICE 00000: {"b": 1, "a":2} {"a": 2, "b": 1} 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: json that is none
DO $$ DECLARE j jsonb := '{"a":'; BEGIN END $$;
--> ERROR 22P02: invalid input syntax for type json
-->   DETAIL: The input string ended unexpectedly.
-->   CONTEXT: JSON data, line 1: {"a":
-->     PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: uuid
DO $$ DECLARE u uuid := 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'; BEGIN RAISE NOTICE '%', u; END $$;
--> NOTICE 00000: a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: bigint arithmetic
DO $$ DECLARE b bigint := 9223372036854775807; BEGIN b := b + 1; END $$;
--> ERROR 22003: bigint out of range
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: an enum variable
DO $$ DECLARE c color := 'green'; BEGIN RAISE NOTICE '% % %', c, c > 'red', enum_range(c); c := 'pink'; END $$;
--> NOTICE 00000: green t {red,green,blue}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22P02: invalid input value for enum color: "pink"
-->   QUERY: c := 'pink'
-->   AT: 6
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: a domain variable is checked at declaration
DO $$ DECLARE p positive := -1; BEGIN END $$;
--> ERROR 23514: value for domain positive violates check constraint "positive_check"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-->   SCHEMA: public
-->   DATATYPE: positive
-->   CONSTRAINT: positive_check
-- case: a domain variable is checked at assignment
DO $$ DECLARE p positive := 3; BEGIN p := p - 3; END $$;
--> ERROR 23514: value for domain positive violates check constraint "positive_check"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-->   SCHEMA: public
-->   DATATYPE: positive
-->   CONSTRAINT: positive_check
-- case: a domain that is NOT NULL must be initialised
DO $$ DECLARE s short_text; BEGIN RAISE NOTICE 'never'; END $$;
--> ERROR 23502: domain short_text does not allow null values
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-->   SCHEMA: public
-->   DATATYPE: short_text
-- case: a domain over varchar(n) cuts nothing
DO $$ DECLARE s short_text := 'abcdefg'; BEGIN END $$;
--> ERROR 22001: value too long for type character varying(5)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: a domain refuses NULL later
DO $$ DECLARE s short_text := 'abc'; BEGIN s := NULL; END $$;
--> ERROR 23502: domain short_text does not allow null values
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-->   SCHEMA: public
-->   DATATYPE: short_text
-- case: an array of a domain
DO $$ DECLARE p positive[] := '{1,2}'; BEGIN p := p || 3; RAISE NOTICE '%', p; p[1] := 0; END $$;
--> NOTICE 00000: {1,2,3}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 23514: value for domain positive violates check constraint "positive_check"
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-->   SCHEMA: public
-->   DATATYPE: positive
-->   CONSTRAINT: positive_check
-- case: an uninitialised variable is NULL
DO $$ DECLARE a int; b text; c int[]; BEGIN RAISE NOTICE '% % %', a IS NULL, b IS NULL, c IS NULL; END $$;
--> NOTICE 00000: t t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONSTANT cannot be assigned
DO $$ DECLARE c CONSTANT int := 5; BEGIN c := 6; END $$;
--> ERROR 22005: variable "c" is declared CONSTANT
-->   POSITION: 42
-- case: CONSTANT as INTO target
DO $$ DECLARE c CONSTANT int := 5; BEGIN SELECT 1 INTO c; END $$;
--> ERROR 22005: variable "c" is declared CONSTANT
-->   POSITION: 56
-- case: CONSTANT record's field
DO $$ DECLARE r CONSTANT item%ROWTYPE := ROW(1, 'a', 2, NULL, NULL, NULL); BEGIN r.name := 'b'; END $$;
--> ERROR 22005: variable "r" is declared CONSTANT
-->   POSITION: 82
-- case: CONSTANT array's element
DO $$ DECLARE a CONSTANT int[] := '{1,2}'; BEGIN a[1] := 3; END $$;
--> ERROR 22005: variable "a" is declared CONSTANT
-->   POSITION: 50
-- case: CONSTANT without a value is NULL
DO $$ DECLARE c CONSTANT int; BEGIN RAISE NOTICE '%', c; END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: CONSTANT in GET DIAGNOSTICS
DO $$ DECLARE c CONSTANT int := 0; BEGIN GET DIAGNOSTICS c = ROW_COUNT; END $$;
--> ERROR 22005: variable "c" is declared CONSTANT
-->   POSITION: 58
-- case: CONSTANT as a FETCH target
DO $$ DECLARE c CONSTANT int := 0; k CURSOR FOR SELECT 1; BEGIN OPEN k; FETCH k INTO c; END $$;
--> ERROR 22005: variable "c" is declared CONSTANT
-->   POSITION: 86
-- case: CONSTANT with an expression evaluated per entry
CREATE FUNCTION stamp(n int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c CONSTANT int := n * 2; BEGIN RETURN c; END $$;
SELECT stamp(4), stamp(5);
--> stamp | stamp
-->   8 | 10
-- case: NOT NULL assigned NULL
DO $$ DECLARE a int NOT NULL := 1; BEGIN a := NULL; END $$;
--> ERROR 22004: null value cannot be assigned to variable "a" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: NOT NULL without a value
DO $$ DECLARE a int NOT NULL; BEGIN END $$;
--> ERROR 22004: variable "a" must have a default value, since it's declared NOT NULL
-->   POSITION: 21
-- case: NOT NULL initialised with NULL
DO $$ DECLARE a int NOT NULL := NULL; BEGIN END $$;
--> ERROR 22004: null value cannot be assigned to variable "a" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: NOT NULL through SELECT INTO
DO $$ DECLARE a int NOT NULL := 1; BEGIN SELECT id INTO a FROM item WHERE id = 99; END $$;
--> ERROR 22004: null value cannot be assigned to variable "a" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: NOT NULL for a record
DO $$ DECLARE r item NOT NULL := ROW(1, 'x', 1, NULL, NULL, NULL)::item; BEGIN RAISE NOTICE '%', r; r := NULL; END $$;
--> NOTICE 00000: (1,x,1.00,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> ERROR 22004: null value cannot be assigned to variable "r" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: CONSTANT NOT NULL
DO $$ DECLARE c CONSTANT text NOT NULL := 'k'; BEGIN RAISE NOTICE '%', c; END $$;
--> NOTICE 00000: k
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: NOT NULL before CONSTANT
DO $$ DECLARE c NOT NULL CONSTANT int := 1; BEGIN END $$;
--> ERROR 42601: missing data type declaration at or near "NOT"
-->   POSITION: 17
-- case: column %TYPE keeps the length
DO $$ DECLARE n item.name%TYPE := 'toolong'; BEGIN END $$;
--> ERROR 22001: value too long for type character varying(6)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: column %TYPE keeps the precision
DO $$ DECLARE p item.price%TYPE := 1.239; BEGIN RAISE NOTICE '%', p; END $$;
--> NOTICE 00000: 1.24
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: column %TYPE does not keep NOT NULL or the default
DO $$ DECLARE n item.name%TYPE; p item.price%TYPE; BEGIN RAISE NOTICE '% %', n IS NULL, p IS NULL; END $$;
--> NOTICE 00000: t t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %TYPE with a schema
DO $$ DECLARE n public.item.id%TYPE := 4; BEGIN RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %TYPE of a variable
DO $$ DECLARE a numeric(4,1) := 1.25; b a%TYPE := 2.35; BEGIN RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: 1.3 2.4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %TYPE of a record's field
DO $$ DECLARE r item; f r.hue%TYPE := 'red'; BEGIN RAISE NOTICE '%', f; END $$;
--> ERROR 42601: syntax error at or near "%"
-->   POSITION: 30
-->   CONTEXT: invalid type name "r.hue%TYPE "
-- case: %TYPE of an array column and its element
DO $$ DECLARE t item.tags%TYPE := '{x,y}'; BEGIN RAISE NOTICE '% %', t, t[2]; END $$;
--> NOTICE 00000: {x,y} y
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an array of %TYPE
DO $$ DECLARE t item.price%TYPE[]; BEGIN t := ARRAY[1, 2.5]; RAISE NOTICE '%', t; END $$;
--> ERROR 42601: syntax error at or near "["
-->   POSITION: 32
-- case: %TYPE in a function's arguments
CREATE FUNCTION find(i item.id%TYPE) RETURNS item.name%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT name FROM item WHERE id = i); END $$;
--> NOTICE 00000: type reference item.id%TYPE converted to integer
--> NOTICE 00000: type reference item.name%TYPE converted to character varying
SELECT find(2);
--> find
-->   beta
-- case: %TYPE of a column that is not there
DO $$ DECLARE a item.nosuch%TYPE; BEGIN END $$;
--> ERROR 42601: syntax error at or near "%"
-->   POSITION: 28
-->   CONTEXT: invalid type name "item.nosuch%TYPE"
-- case: %TYPE of a table that is not there
DO $$ DECLARE a nosuch.col%TYPE; BEGIN END $$;
--> ERROR 42601: syntax error at or near "%"
-->   POSITION: 27
-->   CONTEXT: invalid type name "nosuch.col%TYPE"
-- case: %TYPE of a parameter
CREATE FUNCTION same(p numeric) RETURNS text LANGUAGE plpgsql AS $$ DECLARE q p%TYPE := p / 3; BEGIN RETURN pg_typeof(q); END $$;
SELECT same(1);
--> same
-->   numeric
-- case: %TYPE of a polymorphic parameter
CREATE FUNCTION poly(p anyelement) RETURNS text LANGUAGE plpgsql AS $$ DECLARE q p%TYPE; BEGIN RETURN pg_typeof(q); END $$;
SELECT poly(1), poly('a'::text), poly(date '2020-01-01');
--> poly | poly | poly
-->   integer | text | date
-- case: %ROWTYPE
DO $$ DECLARE r item%ROWTYPE; BEGIN SELECT * INTO r FROM item WHERE id = 1; RAISE NOTICE '% % %', r.name, r.price, r.tags; END $$;
--> NOTICE 00000: alpha 10.50 {a,b}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %ROWTYPE with a schema
DO $$ DECLARE r public.item%ROWTYPE; BEGIN r.id := 3; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (3,,,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %ROWTYPE of a table that is not there
DO $$ DECLARE r nosuch%ROWTYPE; BEGIN END $$;
--> ERROR 42P01: relation "nosuch" does not exist
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: a table's name without %ROWTYPE
DO $$ DECLARE r item; BEGIN r.name := 'n'; r.price := 3; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (,n,3.00,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: %ROWTYPE of a view
CREATE VIEW cheap AS SELECT id, name FROM item WHERE price < 15;
DO $$ DECLARE r cheap%ROWTYPE; BEGIN FOR r IN SELECT * FROM cheap LOOP RAISE NOTICE '% %', r.id, r.name; END LOOP; END $$;
--> NOTICE 00000: 1 alpha
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a row variable's unknown field
DO $$ DECLARE r item; BEGIN r.nosuch := 1; END $$;
--> ERROR 42703: record "r" has no field "nosuch"
-->   CONTEXT: PL/pgSQL assignment "r.nosuch := 1"
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: a row variable's unknown field read
DO $$ DECLARE r item; BEGIN RAISE NOTICE '%', r.nosuch; END $$;
--> ERROR 42703: record "r" has no field "nosuch"
-->   CONTEXT: SQL expression "r.nosuch"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a row variable's field is checked against its type
DO $$ DECLARE r item; BEGIN r.name := 'much too long'; END $$;
--> ERROR 22001: value too long for type character varying(6)
-->   CONTEXT: PL/pgSQL assignment "r.name := 'much too long'"
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: a row variable initialised by a row
DO $$ DECLARE r item := ROW(7, 'seven', 7, ARRAY['z'], 'blue', '2020-01-01'); BEGIN RAISE NOTICE '% %', r.hue, r.made; END $$;
--> NOTICE 00000: blue 2020-01-01
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a row variable initialised with too few columns
DO $$ DECLARE r item := ROW(7, 'seven'); BEGIN RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (7,seven,,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a whole row compared
DO $$ DECLARE a item; b item; BEGIN SELECT * INTO a FROM item WHERE id = 1; b := a; RAISE NOTICE '% %', a = b, a IS DISTINCT FROM b; b.id := 5; RAISE NOTICE '% %', a < b, a = b; END $$;
--> NOTICE 00000: t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a row is NULL when all its fields are
DO $$ DECLARE r item; BEGIN RAISE NOTICE '% %', r IS NULL, r IS NOT NULL; r.id := 1; RAISE NOTICE '% %', r IS NULL, r IS NOT NULL; END $$;
--> NOTICE 00000: t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: f f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a dropped column is no field
ALTER TABLE item DROP COLUMN price;
DO $$ DECLARE r item; BEGIN SELECT * INTO r FROM item WHERE id = 1; RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (1,alpha,"{a,b}",red,2020-02-29)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an added column is a field
ALTER TABLE item ADD COLUMN extra int DEFAULT 9;
DO $$ DECLARE r item; BEGIN SELECT * INTO r FROM item WHERE id = 1; RAISE NOTICE '%', r.extra; END $$;
--> NOTICE 00000: 9
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record takes the shape of what is assigned
DO $$ DECLARE r record; BEGIN SELECT 1 AS a, 'x' AS b INTO r; RAISE NOTICE '% %', r.a, r.b; SELECT true AS c INTO r; RAISE NOTICE '%', r.c; END $$;
--> NOTICE 00000: 1 x
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record's field of the shape before
DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; SELECT 2 AS b INTO r; RAISE NOTICE '%', r.a; END $$;
--> ERROR 42703: record "r" has no field "a"
-->   CONTEXT: SQL expression "r.a"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record before it is assigned
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.a; END $$;
--> ERROR 55000: record "r" is not assigned yet
-->   DETAIL: The tuple structure of a not-yet-assigned record is indeterminate.
-->   CONTEXT: SQL expression "r.a"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a whole record before it is assigned
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record's field assigned before the record
DO $$ DECLARE r record; BEGIN r.a := 1; END $$;
--> ERROR 55000: record "r" is not assigned yet
-->   DETAIL: The tuple structure of a not-yet-assigned record is indeterminate.
-->   CONTEXT: PL/pgSQL assignment "r.a := 1"
-->     PL/pgSQL function inline_code_block line 1 at assignment
-- case: a record set to NULL
DO $$ DECLARE r record; BEGIN r := NULL; RAISE NOTICE '%', r IS NULL; END $$;
--> NOTICE 00000: t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record from no row keeps its columns as NULL
DO $$ DECLARE r record; BEGIN SELECT id, name INTO r FROM item WHERE id = 77; RAISE NOTICE '% % %', r, r.id IS NULL, FOUND; END $$;
--> NOTICE 00000: (,) t f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record assigned from a record
DO $$ DECLARE a record; b record; BEGIN SELECT 1 AS x, 2 AS y INTO a; b := a; b.x := 10; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: (1,2) (10,2)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record from ROW() has columns f1, f2
DO $$ DECLARE r record; BEGIN r := ROW(1, 'two', 3.0); RAISE NOTICE '% % %', r.f1, r.f2, r.f3; END $$;
--> ERROR XX000: failed to find conversion function from unknown to text
-->   CONTEXT: SQL expression "r.f2"
-->     PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record assigned to a row variable
DO $$ DECLARE r record; i item; BEGIN SELECT * INTO r FROM item WHERE id = 2; i := r; RAISE NOTICE '%', i.name; END $$;
--> NOTICE 00000: beta
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record of fewer columns assigned to a row variable
DO $$ DECLARE r record; i item; BEGIN SELECT 5 AS q INTO r; i := r; RAISE NOTICE '%', i; END $$;
--> NOTICE 00000: (5,,,,,)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record initialised in DECLARE
DO $$ DECLARE r record := ROW(1, 2); BEGIN RAISE NOTICE '%', r; END $$;
--> NOTICE 00000: (1,2)
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record as NOT NULL
DO $$ DECLARE r record NOT NULL := ROW(1); BEGIN r := NULL; END $$;
--> ERROR 22004: null value cannot be assigned to variable "r" declared NOT NULL
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at assignment
-- case: a record compared field by field
DO $$ DECLARE a record; b record; BEGIN a := ROW(1, NULL); b := ROW(1, NULL); RAISE NOTICE '% %', a = b, a IS NOT DISTINCT FROM b; END $$;
--> ERROR 42883: could not identify an equality operator for type unknown
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record's whole row in SQL
DO $$ DECLARE r record; t text; BEGIN SELECT 1 AS a, 2 AS b INTO r; SELECT row_to_json(r)::text INTO t; RAISE NOTICE '%', t; END $$;
--> NOTICE 00000: {"a":1,"b":2}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a record's field expanded
DO $$ DECLARE r record; n int; BEGIN SELECT 1 AS a, 2 AS b INTO r; SELECT sum(x) INTO n FROM (VALUES (r.a), (r.b)) v(x); RAISE NOTICE '%', n; END $$;
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ALIAS FOR a positional parameter
CREATE FUNCTION tax(real) RETURNS real AS $$
DECLARE
    subtotal ALIAS FOR $1;
BEGIN
    RETURN subtotal * 0.06;
END;
$$ LANGUAGE plpgsql;
SELECT tax(100);
--> tax
-->   6
-- case: ALIAS FOR a named parameter
CREATE FUNCTION tax(amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$ DECLARE a ALIAS FOR amount; BEGIN a := a + 1; RETURN amount; END $$;
SELECT tax(3);
--> tax
-->   4
-- case: ALIAS FOR an alias
CREATE FUNCTION chain(int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE a ALIAS FOR $1; b ALIAS FOR a; BEGIN RETURN b * 2; END $$;
SELECT chain(21);
--> chain
-->   42
-- case: ALIAS FOR an OUT parameter
CREATE FUNCTION outs(OUT x int, OUT y int) LANGUAGE plpgsql AS $$ DECLARE p ALIAS FOR $1; q ALIAS FOR y; BEGIN p := 1; q := 2; END $$;
SELECT * FROM outs();
--> x | y
-->   1 | 2
-- case: ALIAS FOR a variable
DO $$ DECLARE v int := 3; w ALIAS FOR v; BEGIN w := 4; RAISE NOTICE '%', v; END $$;
--> NOTICE 00000: 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ALIAS FOR something unknown
DO $$ DECLARE w ALIAS FOR nothing; BEGIN END $$;
--> ERROR 42704: variable "nothing" does not exist
-->   POSITION: 27
-- case: ALIAS FOR a parameter that is not there
CREATE FUNCTION one(int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE b ALIAS FOR $2; BEGIN RETURN b; END $$;
--> ERROR 42704: variable "$2" does not exist
-->   POSITION: 81
-- case: a positional parameter that is not there
CREATE FUNCTION one(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN $2; END $$;
SELECT one(1);
--> ERROR 42P02: there is no parameter $2
-->   QUERY: $2
-->   AT: 1
-->   CONTEXT: PL/pgSQL function one(integer) line 1 at RETURN
-- case: parameters by position and name are the same variable
CREATE FUNCTION mix(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN a := a + 1; RETURN $1; END $$;
SELECT mix(1);
--> mix
-->   2
-- case: a positional parameter assigned
CREATE FUNCTION mix(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN $1 := $1 * 3; RETURN $1; END $$;
SELECT mix(5);
--> mix
-->   15
-- case: parameters are variables of their own per call
CREATE FUNCTION countdown(n int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF n = 0 THEN RETURN 'lift-off'; END IF;
  n := n - 1;
  RETURN n + 1 || ' ' || countdown(n) || ' ' || n;
END $$;
SELECT countdown(3);
--> countdown
-->   3 2 1 lift-off 0 1 2
-- case: OUT parameters begin as NULL
CREATE FUNCTION o(OUT a int, INOUT b int) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', a, b; END $$;
SELECT * FROM o(5);
--> NOTICE 00000: <NULL> 5
-->   CONTEXT: PL/pgSQL function o(integer) line 1 at RAISE
--> a | b
-->   <null> | 5
-- case: COLLATE in a declaration
DO $$ DECLARE a text COLLATE "C" := 'b'; BEGIN RAISE NOTICE '%', a < 'C'; END $$;
--> NOTICE 00000: f
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: COLLATE on a type without collation
DO $$ DECLARE a int COLLATE "C" := 1; BEGIN END $$;
--> ERROR 42804: collations are not supported by type integer
-->   POSITION: 21
-- case: COLLATE in an expression
CREATE FUNCTION less_than(a text, b text) RETURNS boolean AS $$ BEGIN RETURN a < b COLLATE "C"; END; $$ LANGUAGE plpgsql;
SELECT less_than('a', 'B'), less_than('A', 'b');
--> less_than | less_than
-->   f | t
-- case: a type that does not exist
DO $$ DECLARE a nosuchtype; BEGIN END $$;
--> ERROR 42704: type "nosuchtype" does not exist
-->   POSITION: 17
-- case: a type in a schema that does not exist
DO $$ DECLARE a nosuch.thing; BEGIN END $$;
--> ERROR 3F000: schema "nosuch" does not exist
-->   POSITION: 17
-- case: pseudo-types cannot be variables
DO $$ DECLARE a anyelement; BEGIN END $$;
--> ERROR 0A000: variable "a" has pseudo-type anyelement
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: void cannot be a variable
DO $$ DECLARE a void; BEGIN END $$;
--> ERROR 0A000: variable "a" has pseudo-type void
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: trigger cannot be a variable
DO $$ DECLARE a trigger; BEGIN END $$;
--> ERROR 0A000: variable "a" has pseudo-type trigger
-->   CONTEXT: compilation of PL/pgSQL function "inline_code_block" near line 1
-- case: a type's modifiers that are wrong
DO $$ DECLARE a numeric(0); BEGIN END $$;
--> ERROR 22023: NUMERIC precision 0 must be between 1 and 1000
-->   POSITION: 17
-- case: a declaration without a type
DO $$ DECLARE a; BEGIN END $$;
--> ERROR 42601: missing data type declaration at or near ";"
-->   POSITION: 16
-- case: a declaration with junk after the type
DO $$ DECLARE a int foo; BEGIN END $$;
--> ERROR 42601: syntax error at or near "foo"
-->   POSITION: 21
-->   CONTEXT: invalid type name "int foo"
-- case: an array with bounds in its declaration
DO $$ DECLARE a int[3][2] := '{{1,2},{3,4},{5,6}}'; BEGIN RAISE NOTICE '% %', a, array_dims(a); END $$;
--> NOTICE 00000: {{1,2},{3,4},{5,6}} [1:3][1:2]
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: the ARRAY spelling of an array type
DO $$ DECLARE a int ARRAY := '{1}'; b text ARRAY[4]; BEGIN b[2] := 'x'; RAISE NOTICE '% %', a, b; END $$;
--> NOTICE 00000: {1} [2:2]={x}
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an array literal that is none
DO $$ DECLARE a int[] := '1,2'; BEGIN END $$;
--> ERROR 22P02: malformed array literal: "1,2"
-->   DETAIL: Array value must start with "{" or dimension information.
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: variables of system types
DO $$ DECLARE n name := 'abc'; o oid := 12; r regclass := 'item'; BEGIN RAISE NOTICE '% % %', n, o, r; END $$;
--> NOTICE 00000: abc 12 item
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a regclass of a table that is not there
DO $$ DECLARE r regclass := 'nosuch'; BEGIN END $$;
--> ERROR 42P01: relation "nosuch" does not exist
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: bit strings
DO $$ DECLARE b bit(3) := B'101'; v varbit := '11'; BEGIN RAISE NOTICE '% %', b, v; END $$;
--> NOTICE 00000: 101 11
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: ranges
DO $$ DECLARE r int4range := '[1,5)'; BEGIN RAISE NOTICE '% %', r, r @> 3; END $$;
--> NOTICE 00000: [1,5) t
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a variable shadows a function's name
DO $$ DECLARE length int := 3; BEGIN RAISE NOTICE '% %', length, length('abcd'); END $$;
--> NOTICE 00000: 3 4
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: a variable named as a type
DO $$ DECLARE text text := 'a'; date int := 1; BEGIN RAISE NOTICE '% %', text, date; END $$;
--> NOTICE 00000: a 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an initialisation that runs a query
DO $$ DECLARE n int := (SELECT count(*) FROM item); m int := max(id) FROM item; BEGIN RAISE NOTICE '% %', n, m; END $$;
--> NOTICE 00000: 2 2
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE
-- case: an initialisation that returns several rows
DO $$ DECLARE n int := (SELECT id FROM item); BEGIN END $$;
--> ERROR 21000: more than one row returned by a subquery used as an expression
-->   CONTEXT: SQL expression "(SELECT id FROM item)"
-->     PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: an initialisation that returns several columns
DO $$ DECLARE n int := (SELECT 1, 2); BEGIN END $$;
--> ERROR 42601: subquery must return only one column
-->   QUERY: (SELECT 1, 2)
-->   AT: 1
-->   CONTEXT: PL/pgSQL function inline_code_block line 1 during statement block local variable initialization
-- case: the warning about shadowed variables
SET plpgsql.extra_warnings = 'shadowed_variables';
CREATE FUNCTION foo(f1 int) RETURNS int AS $$
DECLARE
f1 int;
BEGIN
RETURN f1;
END;
$$ LANGUAGE plpgsql;
--> WARNING 42712: variable "f1" shadows a previously defined variable
-->   POSITION: 55
-- case: the error about shadowed variables
SET plpgsql.extra_errors = 'shadowed_variables';
CREATE FUNCTION foo(f1 int) RETURNS int AS $$
DECLARE
f1 int;
BEGIN
RETURN f1;
END;
$$ LANGUAGE plpgsql;
--> ERROR 42712: variable "f1" shadows a previously defined variable
-->   POSITION: 55
-- case: shadowing in an inner block and by a loop
SET plpgsql.extra_warnings = 'all';
CREATE FUNCTION foo(x int) RETURNS int AS $$
DECLARE y int := 1;
BEGIN
  DECLARE y int := 2; x int := 3; BEGIN NULL; END;
  FOR y IN 1..2 LOOP NULL; END LOOP;
  RETURN x;
END;
$$ LANGUAGE plpgsql;
--> WARNING 42712: variable "y" shadows a previously defined variable
-->   POSITION: 82
--> WARNING 42712: variable "x" shadows a previously defined variable
-->   POSITION: 94
