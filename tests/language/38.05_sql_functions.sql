-- 38.5 Query language (SQL) functions.
CREATE TABLE emp (name text PRIMARY KEY, salary numeric, age int, boss text);
INSERT INTO emp VALUES ('Bill', 4200, 40, NULL), ('Sam', 3000, 30, 'Bill'), ('Ann', -1, 25, 'Bill');
--> changed 3
CREATE TABLE bank (accountno int PRIMARY KEY, balance numeric);
INSERT INTO bank VALUES (17, 500);
--> changed 1
-- case: the manual's clean_emp
CREATE FUNCTION clean_emp() RETURNS void AS '
    DELETE FROM emp
        WHERE salary < 0;
' LANGUAGE SQL;
SELECT clean_emp();
--> clean_emp
-->   <null>
SELECT count(*) FROM emp;
--> count
-->   2
-- case: the manual's clean_emp as a procedure
CREATE PROCEDURE clean_emp() AS '
    DELETE FROM emp
        WHERE salary < 0;
' LANGUAGE SQL;
CALL clean_emp();
SELECT count(*) FROM emp;
--> count
-->   2
-- case: one()
CREATE FUNCTION one() RETURNS integer AS $$
    SELECT 1 AS result;
$$ LANGUAGE SQL;
SELECT one();
--> one
-->   1
-- case: arguments by name
CREATE FUNCTION add_em(x integer, y integer) RETURNS integer AS $$
    SELECT x + y;
$$ LANGUAGE SQL;
SELECT add_em(1, 2) AS answer;
--> answer
-->   3
-- case: arguments by number
CREATE FUNCTION add_em(integer, integer) RETURNS integer AS $$
    SELECT $1 + $2;
$$ LANGUAGE SQL;
SELECT add_em(1, 2) AS answer;
--> answer
-->   3
-- case: tf1 with an UPDATE and a SELECT
CREATE FUNCTION tf1 (accountno integer, debit numeric) RETURNS numeric AS $$
    UPDATE bank
        SET balance = balance - debit
        WHERE accountno = tf1.accountno;
    SELECT balance FROM bank WHERE accountno = tf1.accountno;
$$ LANGUAGE SQL;
SELECT tf1(17, 100.0);
--> tf1
-->   400.0
-- case: tf1 with RETURNING
CREATE FUNCTION tf1 (accountno integer, debit numeric) RETURNS numeric AS $$
    UPDATE bank
        SET balance = balance - debit
        WHERE accountno = tf1.accountno
    RETURNING balance;
$$ LANGUAGE SQL;
SELECT tf1(17, 100.0);
--> tf1
-->   400.0
-- case: a name that is a column and an argument is the column
CREATE FUNCTION f(accountno int) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM bank WHERE accountno = accountno $$;
SELECT f(-5);
--> f
-->   1
-- case: a result that is converted by assignment
CREATE FUNCTION add_em(x integer, y integer) RETURNS float8 AS $$
    SELECT x + y;
$$ LANGUAGE SQL;
SELECT add_em(1, 2);
--> add_em
-->   3
-- case: a result that is not converted
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 'x'::text $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Actual return type is text.
-->   CONTEXT: SQL function "f"
-- case: no final SELECT
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ DELETE FROM emp $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.
-->   CONTEXT: SQL function "f"
-- case: two columns where one is due
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1, 2 $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Final statement must return exactly one column.
-->   CONTEXT: SQL function "f"
-- case: an empty body
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ $$;
--> ERROR 42P13: return type mismatch in function declared to return integer
-->   DETAIL: Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.
-->   CONTEXT: SQL function "f"
-- case: an empty body that returns void
CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ $$;
SELECT f();
--> f
-->   <null>
-- case: a syntax error in the body
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELEC 1 $$;
--> ERROR 42601: syntax error at or near "SELEC"
-->   POSITION: 52
-- case: an unknown table in the body
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT a FROM nosuch $$;
--> ERROR 42P01: relation "nosuch" does not exist
-->   POSITION: 66
-- case: an unknown column in the body
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT nosuch FROM emp $$;
--> ERROR 42703: column "nosuch" does not exist
-->   POSITION: 59
-- case: an unknown argument in the body
CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS $$ SELECT $2 $$;
--> ERROR 42P02: there is no parameter $2
-->   POSITION: 64
-- case: no row is NULL
CREATE FUNCTION f(a int) RETURNS text LANGUAGE sql AS $$ SELECT name FROM emp WHERE age = a $$;
SELECT f(40), f(41) IS NULL AS none;
--> f | none
-->   Bill | t
-- case: several rows give the first
CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT name FROM emp ORDER BY age $$;
SELECT f();
--> f
-->   Ann
-- case: double_salary over a row argument
CREATE FUNCTION double_salary(emp) RETURNS numeric AS $$
    SELECT $1.salary * 2 AS salary;
$$ LANGUAGE SQL;
SELECT name, double_salary(emp.*) AS dream FROM emp WHERE age > 26 ORDER BY name;
--> name | dream
-->   Bill | 8400
-->   Sam | 6000
SELECT name, double_salary(ROW(name, salary * 1.1, age, boss)) AS dream FROM emp WHERE name = 'Sam';
--> name | dream
-->   Sam | 6600.0
SELECT e.name, e.double_salary FROM emp e WHERE age = 30;
--> name | double_salary
-->   Sam | 6000
-- case: new_emp returns a row
CREATE FUNCTION new_emp() RETURNS emp AS $$
    SELECT text 'None' AS name,
        1000.0 AS salary,
        25 AS age,
        text 'x' AS boss;
$$ LANGUAGE SQL;
SELECT new_emp();
--> new_emp
-->   (None,1000.0,25,x)
SELECT * FROM new_emp();
--> name | salary | age | boss
-->   None | 1000.0 | 25 | x
SELECT (new_emp()).name;
--> name
-->   None
SELECT name(new_emp());
--> name
-->   None
-- case: new_emp as ROW(…)::emp
CREATE FUNCTION new_emp() RETURNS emp AS $$
    SELECT ROW('None', 1000.0, 25, 'x')::emp;
$$ LANGUAGE SQL;
SELECT * FROM new_emp();
--> name | salary | age | boss
-->   None | 1000.0 | 25 | x
-- case: a row of the wrong width
CREATE FUNCTION new_emp() RETURNS emp AS $$ SELECT 'None'::text, 1000.0 $$ LANGUAGE SQL;
--> ERROR 42P13: return type mismatch in function declared to return emp
-->   DETAIL: Final statement returns too few columns.
-->   CONTEXT: SQL function "new_emp"
-- case: getname over a function's row
CREATE FUNCTION getname(emp) RETURNS text AS $$
    SELECT $1.name;
$$ LANGUAGE SQL;
CREATE FUNCTION some_emp() RETURNS emp LANGUAGE sql AS $$ SELECT * FROM emp WHERE name = 'Sam' $$;
SELECT getname(some_emp());
--> getname
-->   Sam
-- case: an OUT parameter
CREATE FUNCTION add_em (IN x int, IN y int, OUT sum int)
AS 'SELECT x + y'
LANGUAGE SQL;
SELECT add_em(3,7);
--> add_em
-->   10
-- case: several OUT parameters
CREATE FUNCTION sum_n_product (x int, y int, OUT sum int, OUT product int)
AS 'SELECT x + y, x * y'
LANGUAGE SQL;
SELECT * FROM sum_n_product(11,42);
--> sum | product
-->   53 | 462
SELECT sum_n_product(2, 3);
--> sum_n_product
-->   (5,6)
-- case: OUT parameters dropped by their inputs
CREATE FUNCTION sum_n_product (x int, y int, OUT sum int, OUT product int) AS 'SELECT x + y, x * y' LANGUAGE SQL;
DROP FUNCTION sum_n_product (x int, y int, OUT sum int, OUT product int);
CREATE FUNCTION sum_n_product (x int, y int, OUT sum int, OUT product int) AS 'SELECT x + y, x * y' LANGUAGE SQL;
DROP FUNCTION sum_n_product (int, int);
SELECT sum_n_product(1, 2);
--> ERROR 42883: function sum_n_product(integer, integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: a procedure with an OUT parameter
CREATE PROCEDURE tp1 (accountno integer, debit numeric, OUT new_balance numeric) AS $$
    UPDATE bank
        SET balance = balance - debit
        WHERE accountno = tp1.accountno
    RETURNING balance;
$$ LANGUAGE SQL;
CALL tp1(17, 100.0, NULL);
--> new_balance
-->   400.0
CALL tp1(17, 100.0);
--> ERROR 42883: procedure tp1(integer, numeric) does not exist
-->   HINT: No procedure matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 6
-- case: a procedure with an INOUT parameter
CREATE PROCEDURE twice(INOUT a int) LANGUAGE sql AS $$ SELECT a * 2 $$;
CALL twice(4);
--> a
-->   8
-- case: VARIADIC mleast
CREATE FUNCTION mleast(VARIADIC arr numeric[]) RETURNS numeric AS $$
    SELECT min($1[i]) FROM generate_subscripts($1, 1) g(i);
$$ LANGUAGE SQL;
SELECT mleast(10, -1, 5, 4.4);
--> mleast
-->   -1
SELECT mleast(ARRAY[10, -1, 5, 4.4]);
--> ERROR 42883: function mleast(numeric[]) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
SELECT mleast(VARIADIC ARRAY[10, -1, 5, 4.4]);
--> mleast
-->   -1
SELECT mleast(VARIADIC ARRAY[]::numeric[]);
--> mleast
-->   <null>
SELECT mleast(VARIADIC arr => ARRAY[10, -1, 5, 4.4]);
--> mleast
-->   -1
SELECT mleast(arr => 10);
--> ERROR 42883: function mleast(arr => integer) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: defaults
CREATE FUNCTION foo(a int, b int DEFAULT 2, c int DEFAULT 3)
RETURNS int
LANGUAGE SQL
AS $$
    SELECT $1 + $2 + $3;
$$;
SELECT foo(10, 20, 30);
--> foo
-->   60
SELECT foo(10, 20);
--> foo
-->   33
SELECT foo(10);
--> foo
-->   15
SELECT foo();
--> ERROR 42883: function foo() does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
SELECT foo(10, c => 1);
--> foo
-->   13
-- case: a function as a table source
CREATE FUNCTION getemp(int) RETURNS emp AS $$
    SELECT * FROM emp WHERE age = $1;
$$ LANGUAGE SQL;
SELECT *, upper(name) FROM getemp(40) AS t1;
--> name | salary | age | boss | upper
-->   Bill | 4200 | 40 | <null> | BILL
SELECT * FROM getemp(1);
--> name | salary | age | boss
-->   <null> | <null> | <null> | <null>
-- case: SETOF a table's rows
CREATE FUNCTION older(int) RETURNS SETOF emp AS $$
    SELECT * FROM emp WHERE age > $1 ORDER BY age;
$$ LANGUAGE SQL;
SELECT * FROM older(26) AS t1;
--> name | salary | age | boss
-->   Sam | 3000 | 30 | Bill
-->   Bill | 4200 | 40 | <null>
SELECT count(*) FROM older(0);
--> count
-->   3
-- case: SETOF record with OUT parameters
CREATE FUNCTION sum_n_product_with_tab (x int, OUT sum int, OUT product int)
RETURNS SETOF record
AS $$
    SELECT $1 + tab.age, $1 * tab.age FROM emp tab ORDER BY age;
$$ LANGUAGE SQL;
SELECT * FROM sum_n_product_with_tab(10);
--> sum | product
-->   35 | 250
-->   40 | 300
-->   50 | 400
-- case: RETURNS TABLE
CREATE FUNCTION rows_of (x int) RETURNS TABLE(sum int, product int) AS $$
    SELECT $1 + tab.age, $1 * tab.age FROM emp tab ORDER BY age;
$$ LANGUAGE SQL;
SELECT product FROM rows_of(2) WHERE sum > 30;
--> product
-->   60
-->   80
-- case: RETURNS TABLE with an explicit OUT is refused
CREATE FUNCTION f(OUT a int) RETURNS TABLE(b int) AS $$ SELECT 1, 2 $$ LANGUAGE SQL;
--> ERROR 42601: OUT and INOUT arguments aren't allowed in TABLE functions
-- case: listchildren over LATERAL
CREATE FUNCTION listchildren(text) RETURNS SETOF text AS $$
    SELECT name FROM emp WHERE boss = $1 ORDER BY name
$$ LANGUAGE SQL STABLE;
SELECT * FROM listchildren('Bill');
--> listchildren
-->   Ann
-->   Sam
SELECT e.name, child FROM emp e, LATERAL listchildren(name) AS child ORDER BY 1, 2;
--> name | child
-->   Bill | Ann
-->   Bill | Sam
SELECT name, listchildren(name) FROM emp ORDER BY 1, 2;
--> name | listchildren
-->   Bill | Ann
-->   Bill | Sam
-- case: a set function in CASE is refused
CREATE FUNCTION s(int) RETURNS SETOF int LANGUAGE sql AS $$ SELECT generate_series(1, $1) $$;
SELECT CASE WHEN true THEN s(2) END;
--> ERROR 0A000: set-returning functions are not allowed in CASE
-->   HINT: You might be able to move the set-returning function into a LATERAL FROM item.
-->   POSITION: 28
-- case: two set functions of other lengths
CREATE FUNCTION s(int) RETURNS SETOF int LANGUAGE sql AS $$ SELECT generate_series(1, $1) $$;
SELECT s(1) AS a, s(3) AS b;
--> a | b
-->   1 | 1
-->   <null> | 2
-->   <null> | 3
-- case: a nested set function
CREATE FUNCTION s(int) RETURNS SETOF int LANGUAGE sql AS $$ SELECT generate_series(1, $1) $$;
SELECT s(s(3));
--> s
-->   1
-->   1
-->   2
-->   1
-->   2
-->   3
-- case: ROWS FROM
CREATE FUNCTION s(int) RETURNS SETOF int LANGUAGE sql AS $$ SELECT generate_series(1, $1) $$;
SELECT * FROM ROWS FROM (s(2), s(3)) AS t(a, b);
--> a | b
-->   1 | 1
-->   2 | 2
-->   <null> | 3
-- case: the last of several statements gives the result
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2; INSERT INTO bank VALUES (1, 1); SELECT count(*)::int FROM bank; $$;
SELECT f();
--> f
-->   2
-- case: INSERT RETURNING as a set
CREATE FUNCTION f() RETURNS SETOF bank LANGUAGE sql AS $$ INSERT INTO bank VALUES (1, 10), (2, 20) RETURNING * $$;
SELECT * FROM f() ORDER BY 1;
--> accountno | balance
-->   1 | 10
-->   2 | 20
-- case: only the first row of RETURNING is the result but all rows change
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ UPDATE emp SET age = age + 1 RETURNING 1 $$;
SELECT f();
--> f
-->   1
SELECT sum(age) FROM emp;
--> sum
-->   98
-- case: WITH that changes
CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ WITH d AS (DELETE FROM emp WHERE age < 35 RETURNING *) SELECT count(*) FROM d $$;
SELECT f();
--> f
-->   2
SELECT count(*) FROM emp;
--> count
-->   1
-- case: polymorphic make_array
CREATE FUNCTION make_array(anyelement, anyelement) RETURNS anyarray AS $$
    SELECT ARRAY[$1, $2];
$$ LANGUAGE SQL;
SELECT make_array(1, 2) AS intarray, make_array('a'::text, 'b') AS textarray;
--> intarray | textarray
-->   {1,2} | {a,b}
SELECT make_array('a', 'b');
--> ERROR 42804: could not determine polymorphic type because input has type unknown
SELECT make_array(1, 2.5);
--> ERROR 42883: function make_array(integer, numeric) does not exist
-->   HINT: No function matches the given name and argument types. You might need to add explicit type casts.
-->   POSITION: 8
-- case: polymorphic make_array2 with a common type
CREATE FUNCTION make_array2(anycompatible, anycompatible) RETURNS anycompatiblearray AS $$
    SELECT ARRAY[$1, $2];
$$ LANGUAGE SQL;
SELECT make_array2(1, 2.5) AS numericarray, make_array2('a', 'b') AS textarray;
--> numericarray | textarray
-->   {1,2.5} | {a,b}
-- case: is_greater over any type
CREATE FUNCTION is_greater(anyelement, anyelement) RETURNS bool AS $$
    SELECT $1 > $2;
$$ LANGUAGE SQL;
SELECT is_greater(1, 2), is_greater('b'::text, 'a'::text);
--> is_greater | is_greater
-->   f | t
-- case: a polymorphic result from nothing
CREATE FUNCTION invalid_func() RETURNS anyelement AS $$
    SELECT 1;
$$ LANGUAGE SQL;
--> ERROR 42P13: cannot determine result data type
-->   DETAIL: A result of type anyelement requires at least one input of type anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange.
-- case: dup with polymorphic OUT
CREATE FUNCTION dup (f1 anyelement, OUT f2 anyelement, OUT f3 anyarray) AS 'select $1, array[$1,$1]' LANGUAGE SQL;
SELECT * FROM dup(22);
--> f2 | f3
-->   22 | {22,22}
-- case: anyleast
CREATE FUNCTION anyleast (VARIADIC anyarray) RETURNS anyelement AS $$
    SELECT min($1[i]) FROM generate_subscripts($1, 1) g(i);
$$ LANGUAGE SQL;
SELECT anyleast(10, -1, 5, 4);
--> anyleast
-->   -1
SELECT anyleast('abc'::text, 'def');
--> anyleast
-->   abc
-- case: concat_values with VARIADIC anyarray after text
CREATE FUNCTION concat_values(text, VARIADIC anyarray) RETURNS text AS $$
    SELECT array_to_string($2, $1);
$$ LANGUAGE SQL;
SELECT concat_values('|', 1, 4, 2);
--> concat_values
-->   1|4|2
-- case: COLLATE in a function
CREATE FUNCTION anyleast (VARIADIC anyarray) RETURNS anyelement AS $$
    SELECT min($1[i] COLLATE "C") FROM generate_subscripts($1, 1) g(i);
$$ LANGUAGE SQL;
SELECT anyleast('abc'::text, 'ABC');
--> anyleast
-->   ABC
-- case: BEGIN ATOMIC
CREATE FUNCTION add_em(x int, y int) RETURNS int LANGUAGE sql
BEGIN ATOMIC
  SELECT x + y;
END;
SELECT add_em(3, 4);
--> add_em
-->   7
-- case: BEGIN ATOMIC with several statements
CREATE PROCEDURE pay(no int, amount numeric) LANGUAGE sql
BEGIN ATOMIC
  UPDATE bank SET balance = balance - amount WHERE accountno = no;
  INSERT INTO bank VALUES (no + 1, amount);
END;
CALL pay(17, 50);
SELECT * FROM bank ORDER BY 1;
--> accountno | balance
-->   17 | 450
-->   18 | 50
-- case: BEGIN ATOMIC with CASE inside
CREATE FUNCTION sign_of(n int) RETURNS text LANGUAGE sql
BEGIN ATOMIC
  SELECT CASE WHEN n > 0 THEN 'plus' WHEN n < 0 THEN 'minus' ELSE 'zero' END AS sign;
END;
SELECT sign_of(1), sign_of(0), sign_of(-1);
--> sign_of | sign_of | sign_of
-->   plus | zero | minus
-- case: BEGIN ATOMIC keeps its objects from being dropped
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql BEGIN ATOMIC SELECT sum(balance) FROM bank; END;
DROP TABLE bank;
--> ERROR 2BP01: cannot drop table bank because other objects depend on it
-->   DETAIL: function total() depends on table bank
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
SELECT total();
--> total
-->   500
-- case: BEGIN ATOMIC is bound at creation
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql BEGIN ATOMIC SELECT sum(balance) FROM bank; END;
ALTER TABLE bank RENAME COLUMN balance TO saldo;
SELECT total();
--> total
-->   500
-- case: BEGIN ATOMIC with an unknown table
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql BEGIN ATOMIC SELECT sum(x) FROM nosuch; END;
--> ERROR 42P01: relation "nosuch" does not exist
-->   POSITION: 86
-- case: BEGIN ATOMIC in PL/pgSQL
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql BEGIN ATOMIC SELECT 1; END;
--> ERROR 42P13: inline SQL function body only valid for language SQL
-- case: RETURN as a body
CREATE FUNCTION add_em(x int, y int) RETURNS int LANGUAGE sql RETURN x + y;
SELECT add_em(5, 6);
--> add_em
-->   11
-- case: RETURN with a subquery
CREATE FUNCTION eldest() RETURNS text LANGUAGE sql STABLE RETURN (SELECT name FROM emp ORDER BY age DESC LIMIT 1);
SELECT eldest();
--> eldest
-->   Bill
-- case: RETURN of another type
CREATE FUNCTION f(a int) RETURNS text LANGUAGE sql RETURN a + 1;
-- case: inlining does not change volatile calls
CREATE SEQUENCE s;
CREATE FUNCTION nxt() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT nextval('s') $$;
SELECT nxt() + nxt(), currval('s');
--> ?column? | currval
-->   3 | 2
SELECT nxt() FROM generate_series(1, 3);
--> nxt
-->   3
-->   4
-->   5
-- case: STRICT with NULL
CREATE FUNCTION f(a int, b int) RETURNS int LANGUAGE sql STRICT AS $$ SELECT coalesce(a, 0) + b $$;
SELECT f(NULL, 1) IS NULL AS n, f(1, 2);
--> n | f
-->   t | 3
-- case: STRICT and a set
CREATE FUNCTION f(a int) RETURNS SETOF int LANGUAGE sql STRICT AS $$ SELECT generate_series(1, a) $$;
SELECT count(*) FROM f(NULL);
--> count
-->   0
SELECT count(*) FROM f(3);
--> count
-->   3
-- case: an error inside has its context
CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS $$ SELECT 1 / a $$;
SELECT f(0);
--> ERROR 22012: division by zero
-->   CONTEXT: SQL function "f" during inlining
-- case: an error in the second statement
CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS $$
  INSERT INTO bank VALUES (a, a);
  SELECT 1 / (a - 1);
$$;
SELECT f(1);
--> ERROR 22012: division by zero
-->   CONTEXT: SQL function "f" statement 2
SELECT count(*) FROM bank;
--> count
-->   1
-- case: a constraint's error inside has its context
CREATE FUNCTION f(a int) RETURNS void LANGUAGE sql AS $$ INSERT INTO bank VALUES (a, 1) $$;
SELECT f(17);
--> ERROR 23505: duplicate key value violates unique constraint "bank_pkey"
-->   DETAIL: Key (accountno)=(17) already exists.
-->   CONTEXT: SQL function "f" statement 1
-->   SCHEMA: public
-->   TABLE: bank
-->   CONSTRAINT: bank_pkey
-- case: functions that call each other
CREATE FUNCTION sq(a int) RETURNS int LANGUAGE sql AS $$ SELECT a * a $$;
CREATE FUNCTION quad(a int) RETURNS int LANGUAGE sql AS $$ SELECT sq(sq(a)) $$;
SELECT quad(3);
--> quad
-->   81
-- case: recursion
CREATE FUNCTION fact(n int) RETURNS numeric LANGUAGE sql AS $$ SELECT 1::numeric $$;
CREATE OR REPLACE FUNCTION fact(n int) RETURNS numeric LANGUAGE sql AS $$ SELECT CASE WHEN n < 2 THEN 1 ELSE n * fact(n - 1) END $$;
SELECT fact(20);
--> fact
-->   2432902008176640000
-- case: a function in an index and in a check
CREATE FUNCTION low(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lower($1) $$;
CREATE UNIQUE INDEX ON emp (low(name));
INSERT INTO emp VALUES ('BILL', 1, 1);
--> ERROR 23505: duplicate key value violates unique constraint "emp_low_idx"
-->   DETAIL: Key (low(name))=(bill) already exists.
-->   SCHEMA: public
-->   TABLE: emp
-->   CONSTRAINT: emp_low_idx
-- case: a function in a view
CREATE FUNCTION grade(numeric) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN $1 > 3500 THEN 'A' ELSE 'B' END $$;
CREATE VIEW graded AS SELECT name, grade(salary) FROM emp;
SELECT * FROM graded ORDER BY name;
--> name | grade
-->   Ann | B
-->   Bill | A
-->   Sam | B
DROP FUNCTION grade(numeric);
--> ERROR 2BP01: cannot drop function grade(numeric) because other objects depend on it
-->   DETAIL: view graded depends on function grade(numeric)
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
-- case: a function in an aggregate and as one
CREATE FUNCTION bonus(numeric) RETURNS numeric LANGUAGE sql AS $$ SELECT $1 * 0.1 $$;
SELECT sum(bonus(salary)), max(bonus(salary)) FROM emp;
--> sum | max
-->   719.9 | 420.0
-- case: an array result and an array argument
CREATE FUNCTION names(int[]) RETURNS text[] LANGUAGE sql AS $$ SELECT array_agg(name ORDER BY name) FROM emp WHERE age = ANY ($1) $$;
SELECT names(ARRAY[40, 25]);
--> names
-->   {Ann,Bill}
-- case: a void function whose last statement returns rows
CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT 1; SELECT name FROM emp $$;
SELECT f();
--> f
-->   <null>
-- case: transaction commands are refused
CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ BEGIN; SELECT 1; COMMIT $$;
SELECT f();
--> ERROR 0A000: BEGIN is not allowed in an SQL function
-->   CONTEXT: SQL function "f" during startup
-- case: DDL inside
CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ CREATE TABLE fresh (a int); $$;
SELECT f();
--> f
-->   <null>
SELECT count(*) FROM fresh;
--> count
-->   0
-- case: SETOF void
CREATE FUNCTION f() RETURNS SETOF void LANGUAGE sql AS $$ SELECT FROM emp $$;
SELECT count(*) FROM f();
--> count
-->   0
-- case: RETURNS record with a column list
CREATE FUNCTION f() RETURNS record LANGUAGE sql AS $$ SELECT 1, 'a'::text $$;
SELECT * FROM f() AS t(x int, y text);
--> x | y
-->   1 | a
SELECT * FROM f();
--> ERROR 42601: a column definition list is required for functions returning "record"
-->   POSITION: 15
-- case: a comment at the end of the body
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 5; -- the end
$$;
SELECT f();
--> f
-->   5
