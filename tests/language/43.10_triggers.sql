-- 43.10 Trigger functions.
CREATE TABLE emp (empname text PRIMARY KEY, salary int, last_date text, last_user text);
CREATE TABLE audit (n serial, op text, what text);
-- case: the manual's emp_stamp
CREATE FUNCTION emp_stamp() RETURNS trigger AS $emp_stamp$
    BEGIN
        -- Check that empname and salary are given
        IF NEW.empname IS NULL THEN
            RAISE EXCEPTION 'empname cannot be null';
        END IF;
        IF NEW.salary IS NULL THEN
            RAISE EXCEPTION '% cannot have null salary', NEW.empname;
        END IF;
        -- Who works for us when they must pay for it?
        IF NEW.salary < 0 THEN
            RAISE EXCEPTION '% cannot have a negative salary', NEW.empname;
        END IF;
        NEW.last_date := '2020-01-01';
        NEW.last_user := current_user;
        RETURN NEW;
    END;
$emp_stamp$ LANGUAGE plpgsql;
CREATE TRIGGER emp_stamp BEFORE INSERT OR UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION emp_stamp();
INSERT INTO emp VALUES ('joe', 5);
--> changed 1
INSERT INTO emp VALUES ('jim');
--> ERROR P0001: jim cannot have null salary
-->   CONTEXT: PL/pgSQL function emp_stamp() line 8 at RAISE
UPDATE emp SET salary = -1;
--> ERROR P0001: joe cannot have a negative salary
-->   CONTEXT: PL/pgSQL function emp_stamp() line 12 at RAISE
SELECT * FROM emp;
--> empname | salary | last_date | last_user
-->   joe | 5 | 2020-01-01 | archipel
-- case: the manual's process_emp_audit
CREATE FUNCTION process_emp_audit() RETURNS TRIGGER AS $emp_audit$
    BEGIN
        IF (TG_OP = 'DELETE') THEN
            INSERT INTO audit (op, what) SELECT 'D', OLD::text;
        ELSIF (TG_OP = 'UPDATE') THEN
            INSERT INTO audit (op, what) SELECT 'U', NEW::text;
        ELSIF (TG_OP = 'INSERT') THEN
            INSERT INTO audit (op, what) SELECT 'I', NEW::text;
        END IF;
        RETURN NULL; -- result is ignored since this is an AFTER trigger
    END;
$emp_audit$ LANGUAGE plpgsql;
CREATE TRIGGER emp_audit AFTER INSERT OR UPDATE OR DELETE ON emp FOR EACH ROW EXECUTE FUNCTION process_emp_audit();
INSERT INTO emp VALUES ('a', 1), ('b', 2);
--> changed 2
UPDATE emp SET salary = salary * 10 WHERE empname = 'a';
--> changed 1
DELETE FROM emp WHERE empname = 'b';
--> changed 1
SELECT op, what FROM audit ORDER BY n;
--> op | what
-->   I | (a,1,,)
-->   I | (b,2,,)
-->   U | (a,10,,)
-->   D | (b,2,,)
-- case: the manual's view trigger
CREATE VIEW emp_view AS SELECT e.empname, e.salary, max(a.what) AS last_updated FROM emp e LEFT JOIN audit a ON a.op = e.empname GROUP BY 1, 2;
CREATE FUNCTION update_emp_view() RETURNS TRIGGER AS $$
    BEGIN
        IF (TG_OP = 'DELETE') THEN
            DELETE FROM emp WHERE empname = OLD.empname;
            IF NOT FOUND THEN RETURN NULL; END IF;
            OLD.last_updated = 'now';
            INSERT INTO audit (op, what) VALUES (OLD.empname, 'D');
            RETURN OLD;
        ELSIF (TG_OP = 'UPDATE') THEN
            UPDATE emp SET salary = NEW.salary WHERE empname = OLD.empname;
            IF NOT FOUND THEN RETURN NULL; END IF;
            INSERT INTO audit (op, what) VALUES (NEW.empname, 'U');
            RETURN NEW;
        ELSIF (TG_OP = 'INSERT') THEN
            INSERT INTO emp VALUES (NEW.empname, NEW.salary);
            INSERT INTO audit (op, what) VALUES (NEW.empname, 'I');
            RETURN NEW;
        END IF;
    END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER emp_audit INSTEAD OF INSERT OR UPDATE OR DELETE ON emp_view FOR EACH ROW EXECUTE FUNCTION update_emp_view();
INSERT INTO emp_view (empname, salary) VALUES ('x', 1), ('y', 2);
--> changed 2
UPDATE emp_view SET salary = 9 WHERE empname = 'x' RETURNING empname, salary;
--> empname | salary
-->   x | 9
--> changed 1
DELETE FROM emp_view WHERE empname = 'y' RETURNING *;
--> empname | salary | last_updated
-->   y | 2 | I
--> changed 1
SELECT * FROM emp_view;
--> empname | salary | last_updated
-->   x | 9 | U
-- case: the manual's summary table
CREATE TABLE sales_fact (time_key int, amount numeric);
CREATE TABLE sales_sum (time_key int PRIMARY KEY, amount numeric);
CREATE FUNCTION maint() RETURNS TRIGGER AS $$
    DECLARE
        delta_key int;
        delta_amount numeric;
    BEGIN
        IF (TG_OP = 'DELETE') THEN
            delta_key = OLD.time_key;
            delta_amount = -1 * OLD.amount;
        ELSIF (TG_OP = 'UPDATE') THEN
            IF (OLD.time_key != NEW.time_key) THEN
                RAISE EXCEPTION 'Update of time_key : % -> % not allowed', OLD.time_key, NEW.time_key;
            END IF;
            delta_key = OLD.time_key;
            delta_amount = NEW.amount - OLD.amount;
        ELSIF (TG_OP = 'INSERT') THEN
            delta_key = NEW.time_key;
            delta_amount = NEW.amount;
        END IF;
        <<insert_update>>
        LOOP
            UPDATE sales_sum SET amount = amount + delta_amount WHERE time_key = delta_key;
            EXIT insert_update WHEN found;
            BEGIN
                INSERT INTO sales_sum VALUES (delta_key, delta_amount);
                EXIT insert_update;
            EXCEPTION WHEN UNIQUE_VIOLATION THEN
                -- do nothing
            END;
        END LOOP insert_update;
        RETURN NULL;
    END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER maint AFTER INSERT OR UPDATE OR DELETE ON sales_fact FOR EACH ROW EXECUTE FUNCTION maint();
INSERT INTO sales_fact VALUES (1, 10), (1, 20), (2, 35), (2, 15);
--> changed 4
UPDATE sales_fact SET amount = amount * 2;
--> changed 4
DELETE FROM sales_fact WHERE time_key = 1 AND amount = 20;
--> changed 1
UPDATE sales_fact SET time_key = 3;
--> ERROR P0001: Update of time_key : 1 -> 3 not allowed
-->   CONTEXT: PL/pgSQL function maint() line 11 at RAISE
SELECT * FROM sales_sum ORDER BY 1;
--> time_key | amount
-->   1 | 40
-->   2 | 100
-- case: the manual's transition tables
CREATE FUNCTION process_emp_audit() RETURNS TRIGGER AS $$
    BEGIN
        IF (TG_OP = 'DELETE') THEN
            INSERT INTO audit (op, what) SELECT 'D', o.empname FROM old_table o ORDER BY 2;
        ELSIF (TG_OP = 'UPDATE') THEN
            INSERT INTO audit (op, what) SELECT 'U', n.empname || n.salary FROM new_table n ORDER BY 2;
        ELSIF (TG_OP = 'INSERT') THEN
            INSERT INTO audit (op, what) SELECT 'I', n.empname FROM new_table n ORDER BY 2;
        END IF;
        RETURN NULL;
    END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER a_ins AFTER INSERT ON emp REFERENCING NEW TABLE AS new_table FOR EACH STATEMENT EXECUTE FUNCTION process_emp_audit();
CREATE TRIGGER a_upd AFTER UPDATE ON emp REFERENCING OLD TABLE AS old_table NEW TABLE AS new_table FOR EACH STATEMENT EXECUTE FUNCTION process_emp_audit();
CREATE TRIGGER a_del AFTER DELETE ON emp REFERENCING OLD TABLE AS old_table FOR EACH STATEMENT EXECUTE FUNCTION process_emp_audit();
INSERT INTO emp VALUES ('a', 1), ('b', 2), ('c', 3);
--> changed 3
UPDATE emp SET salary = salary + 1 WHERE salary < 3;
--> changed 2
DELETE FROM emp WHERE salary > 2;
--> changed 2
SELECT op, what FROM audit ORDER BY n;
--> op | what
-->   I | a
-->   I | b
-->   I | c
-->   U | a2
-->   U | b3
-->   D | b
-->   D | c
-- case: all the TG_ variables
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % % % % % % % %', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_RELID = 'emp'::regclass, TG_RELNAME, TG_TABLE_NAME, TG_TABLE_SCHEMA, TG_NARGS;
  RETURN NULL;
END $$;
CREATE TRIGGER t1 AFTER INSERT ON emp FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER t2 BEFORE UPDATE OR DELETE ON emp FOR EACH STATEMENT EXECUTE FUNCTION tell();
CREATE TRIGGER t3 AFTER TRUNCATE ON emp FOR EACH STATEMENT EXECUTE FUNCTION tell();
INSERT INTO emp VALUES ('x');
--> NOTICE 00000: t1 AFTER ROW INSERT t emp emp public 0
-->   CONTEXT: PL/pgSQL function tell() line 3 at RAISE
--> changed 1
UPDATE emp SET salary = 1;
--> NOTICE 00000: t2 BEFORE STATEMENT UPDATE t emp emp public 0
-->   CONTEXT: PL/pgSQL function tell() line 3 at RAISE
--> changed 1
DELETE FROM emp;
--> NOTICE 00000: t2 BEFORE STATEMENT DELETE t emp emp public 0
-->   CONTEXT: PL/pgSQL function tell() line 3 at RAISE
--> changed 1
TRUNCATE emp;
--> NOTICE 00000: t3 AFTER STATEMENT TRUNCATE t emp emp public 0
-->   CONTEXT: PL/pgSQL function tell() line 3 at RAISE
-- case: TG_ARGV
CREATE FUNCTION args() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % % % %', TG_NARGS, TG_ARGV[0], TG_ARGV[1], TG_ARGV[2], TG_ARGV[9] IS NULL; FOR i IN 0..TG_NARGS - 1 LOOP RAISE NOTICE '%', TG_ARGV[i]; END LOOP; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION args('one', 2, 'it''s');
INSERT INTO emp VALUES ('x');
--> NOTICE 00000: 3 one 2 it's t
-->   CONTEXT: PL/pgSQL function args() line 1 at RAISE
--> NOTICE 00000: one
-->   CONTEXT: PL/pgSQL function args() line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function args() line 1 at RAISE
--> NOTICE 00000: it's
-->   CONTEXT: PL/pgSQL function args() line 1 at RAISE
--> changed 1
-- case: TG_ARGV without arguments
CREATE FUNCTION args() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_NARGS, TG_ARGV; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION args();
INSERT INTO emp VALUES ('x');
--> NOTICE 00000: 0 <NULL>
-->   CONTEXT: PL/pgSQL function args() line 1 at RAISE
--> changed 1
-- case: TG_ARGV as a column's name in dynamic SQL
CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE emp SET %I = coalesce(%I, 0) + 1 WHERE empname <> $1', TG_ARGV[0], TG_ARGV[0]) USING NEW.empname; RETURN NEW; END $$;
CREATE TRIGGER t AFTER INSERT ON emp FOR EACH ROW EXECUTE FUNCTION bump('salary');
INSERT INTO emp VALUES ('a');
--> changed 1
INSERT INTO emp VALUES ('b'), ('c');
--> changed 2
SELECT empname, salary FROM emp ORDER BY 1;
--> empname | salary
-->   a | 2
-->   b | 1
-->   c | 1
-- case: a BEFORE trigger that returns NULL skips the row
CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.salary > 100 THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION skip();
INSERT INTO emp VALUES ('a', 1), ('b', 200), ('c', 3);
--> changed 2
INSERT INTO emp VALUES ('d', 500) RETURNING *;
--> empname | salary | last_date | last_user
--> changed 0
SELECT empname FROM emp ORDER BY 1;
--> empname
-->   a
-->   c
-- case: a BEFORE DELETE trigger that returns NULL keeps the row
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.empname = 'boss' THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER t BEFORE DELETE ON emp FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO emp VALUES ('boss'), ('x');
--> changed 2
DELETE FROM emp;
--> changed 1
SELECT empname FROM emp;
--> empname
-->   boss
-- case: a BEFORE UPDATE trigger that returns OLD changes nothing
CREATE FUNCTION freeze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER t BEFORE UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION freeze();
INSERT INTO emp VALUES ('x', 1);
--> changed 1
UPDATE emp SET salary = 2 RETURNING salary;
--> salary
-->   1
--> changed 1
-- case: a BEFORE trigger that returns another row
CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE e emp; BEGIN e := NEW; e.empname := upper(NEW.empname); e.salary := length(NEW.empname); RETURN e; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION other();
INSERT INTO emp VALUES ('abc') RETURNING *;
--> empname | salary | last_date | last_user
-->   ABC | 3 | <null> | <null>
--> changed 1
-- case: a BEFORE trigger that returns a row constructor
CREATE FUNCTION built() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(NEW.empname, 5, 'd', 'u'); END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION built();
INSERT INTO emp VALUES ('abc') RETURNING *;
--> ERROR 42804: returned row structure does not match the structure of the triggering table
-->   DETAIL: Returned type unknown does not match expected type text in column 3.
-->   CONTEXT: PL/pgSQL function built() during function exit
-- case: a BEFORE trigger that returns a row of another shape
CREATE FUNCTION short() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 2); END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION short();
INSERT INTO emp VALUES ('abc');
--> ERROR 42804: returned row structure does not match the structure of the triggering table
-->   DETAIL: Returned type integer does not match expected type text in column 1.
-->   CONTEXT: PL/pgSQL function short() during function exit
-- case: a trigger that returns a scalar
CREATE FUNCTION scalar() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION scalar();
INSERT INTO emp VALUES ('abc');
--> ERROR 42804: cannot return non-composite value from function returning composite type
-->   CONTEXT: PL/pgSQL function scalar() line 1 at RETURN
-- case: a trigger that returns nothing
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION nothing();
INSERT INTO emp VALUES ('abc');
--> ERROR 2F005: control reached end of trigger procedure without RETURN
-->   CONTEXT: PL/pgSQL function nothing()
-- case: a trigger with RETURN alone
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
--> ERROR 42601: missing expression at or near ";"
-->   POSITION: 78
-- case: NEW assigned as a whole
CREATE FUNCTION whole() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SELECT NEW.empname || '!', 1, NULL, NULL INTO NEW; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION whole();
INSERT INTO emp VALUES ('abc');
--> changed 1
SELECT * FROM emp;
--> empname | salary | last_date | last_user
-->   abc! | 1 | <null> | <null>
-- case: NEW in DELETE is NULL
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', NEW IS NULL, OLD.empname; RETURN OLD; END $$;
CREATE TRIGGER t BEFORE DELETE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('abc');
--> changed 1
DELETE FROM emp;
--> NOTICE 00000: t abc
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: OLD in INSERT is NULL
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', OLD, OLD.salary; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('abc');
--> NOTICE 00000: <NULL> <NULL>
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: NEW in a statement trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', NEW; RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp FOR EACH STATEMENT EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('abc');
--> NOTICE 00000: <NULL>
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: a field that NEW has not
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.nosuch := 1; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('abc');
--> ERROR 42703: record "new" has no field "nosuch"
-->   CONTEXT: PL/pgSQL assignment "NEW.nosuch := 1"
-->     PL/pgSQL function f() line 1 at assignment
-- case: one function for several tables
CREATE TABLE other (id int, stamp text);
CREATE TABLE third (name text, stamp text);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.stamp := TG_TABLE_NAME; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER t BEFORE INSERT ON third FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO other VALUES (1) RETURNING *;
--> id | stamp
-->   1 | other
--> changed 1
INSERT INTO third VALUES ('x') RETURNING *;
--> name | stamp
-->   x | third
--> changed 1
INSERT INTO other VALUES (2) RETURNING *;
--> id | stamp
-->   2 | other
--> changed 1
-- case: a generic function with to_jsonb
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (op, what) VALUES (TG_OP, to_jsonb(coalesce(NEW, OLD))::text); RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT OR DELETE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('abc', 3);
--> changed 1
DELETE FROM emp;
--> changed 1
SELECT op, what FROM audit ORDER BY n;
--> op | what
-->   INSERT | {"salary": 3, "empname": "abc", "last_date": null, "last_user": null}
-->   DELETE | {"salary": 3, "empname": "abc", "last_date": null, "last_user": null}
-- case: WHEN on NEW
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'rich %', NEW.empname; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW WHEN (NEW.salary > 10) EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 5), ('b', 50), ('c', NULL);
--> NOTICE 00000: rich b
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 3
-- case: WHEN on OLD and NEW
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% -> %', OLD.salary, NEW.salary; RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON emp FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 5), ('b', 6);
--> changed 2
UPDATE emp SET salary = 6;
--> NOTICE 00000: 5 -> 6
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 2
-- case: UPDATE OF columns
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'salary'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE UPDATE OF salary, last_user ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 5);
--> changed 1
UPDATE emp SET last_date = 'x';
--> changed 1
UPDATE emp SET last_user = 'u';
--> NOTICE 00000: salary
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
UPDATE emp SET salary = salary;
--> NOTICE 00000: salary
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: triggers fire in the order of their names
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_user := coalesce(NEW.last_user, '') || TG_NAME || ' '; RETURN NEW; END $$;
CREATE TRIGGER zz BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER aa BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER "Mm" BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a') RETURNING last_user;
--> last_user
-->   Mm aa zz
--> changed 1
-- case: row and statement triggers in their order
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', TG_WHEN, TG_LEVEL, CASE WHEN TG_LEVEL = 'ROW' THEN NEW.empname END; RETURN NEW; END $$;
CREATE TRIGGER a BEFORE INSERT ON emp FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE TRIGGER b BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER c AFTER INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER d AFTER INSERT ON emp FOR EACH STATEMENT EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('x'), ('y');
--> NOTICE 00000: BEFORE STATEMENT <NULL>
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: BEFORE ROW x
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: BEFORE ROW y
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: AFTER ROW x
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: AFTER ROW y
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: AFTER STATEMENT <NULL>
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 2
-- case: a statement trigger without rows
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_OP, TG_WHEN; RETURN NULL; END $$;
CREATE TRIGGER b BEFORE UPDATE ON emp EXECUTE FUNCTION f();
CREATE TRIGGER a AFTER UPDATE ON emp FOR STATEMENT EXECUTE PROCEDURE f();
UPDATE emp SET salary = 1 WHERE false;
--> NOTICE 00000: UPDATE BEFORE
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: UPDATE AFTER
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 0
-- case: INSERT ON CONFLICT fires both
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', TG_OP, TG_WHEN, NEW.salary; RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER a AFTER INSERT OR UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('x', 1);
--> NOTICE 00000: INSERT BEFORE 1
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: INSERT AFTER 1
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
INSERT INTO emp VALUES ('x', 2) ON CONFLICT (empname) DO UPDATE SET salary = emp.salary + excluded.salary;
--> NOTICE 00000: INSERT BEFORE 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: UPDATE BEFORE 3
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: UPDATE AFTER 3
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
INSERT INTO emp VALUES ('x', 2) ON CONFLICT DO NOTHING;
--> NOTICE 00000: INSERT BEFORE 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 0
-- case: a trigger that changes its own table
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.salary > 0 THEN INSERT INTO emp VALUES (NEW.empname || NEW.salary, NEW.salary - 1); END IF; RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('r', 3);
--> changed 1
SELECT empname FROM emp ORDER BY 1;
--> empname
-->   r
-->   r3
-->   r32
-->   r321
-- case: pg_trigger_depth()
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', pg_trigger_depth(); IF pg_trigger_depth() < 3 THEN UPDATE emp SET salary = salary + 1; END IF; RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('r', 0);
--> changed 1
UPDATE emp SET salary = 10;
--> NOTICE 00000: 1
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
-->     SQL statement "UPDATE emp SET salary = salary + 1"
-->     PL/pgSQL function f() line 1 at SQL statement
--> NOTICE 00000: 3
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
-->     SQL statement "UPDATE emp SET salary = salary + 1"
-->     PL/pgSQL function f() line 1 at SQL statement
-->     SQL statement "UPDATE emp SET salary = salary + 1"
-->     PL/pgSQL function f() line 1 at SQL statement
--> changed 1
SELECT salary FROM emp;
--> salary
-->   12
-- case: an error in a trigger undoes the statement
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.salary = 3 THEN RAISE EXCEPTION 'no three' USING HINT = 'take four'; END IF; RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp SELECT 'e' || g, g FROM generate_series(1, 4) g;
--> ERROR P0001: no three
-->   HINT: take four
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
SELECT count(*) FROM emp;
--> count
-->   0
-- case: the context of an error below a trigger
CREATE FUNCTION deeper(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / a; END $$;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.salary := deeper(NEW.salary);
  RETURN NEW;
END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
DO $$ BEGIN INSERT INTO emp VALUES ('x', 0); END $$;
--> ERROR 22012: division by zero
-->   CONTEXT: PL/pgSQL function deeper(integer) line 1 at RETURN
-->     PL/pgSQL function f() line 3 at assignment
-->     SQL statement "INSERT INTO emp VALUES ('x', 0)"
-->     PL/pgSQL function inline_code_block line 1 at SQL statement
-- case: a trigger's exception handled in the trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := 100 / NEW.salary; RETURN NEW; EXCEPTION WHEN division_by_zero THEN NEW.salary := -1; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 0), ('b', 5) RETURNING *;
--> empname | salary | last_date | last_user
-->   a | -1 | <null> | <null>
-->   b | 20 | <null> | <null>
--> changed 2
-- case: a deferred constraint trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'checked %', NEW.empname; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON emp DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();
BEGIN;
INSERT INTO emp VALUES ('a');
--> changed 1
SELECT 1 AS before_commit;
--> before_commit
-->   1
COMMIT;
--> NOTICE 00000: checked a
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
-- case: a constraint trigger made immediate
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT sum(salary) FROM emp) > 10 THEN RAISE EXCEPTION 'budget'; END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON emp DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();
BEGIN;
INSERT INTO emp VALUES ('a', 20);
--> changed 1
SET CONSTRAINTS t IMMEDIATE;
--> ERROR P0001: budget
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
ROLLBACK;
BEGIN;
INSERT INTO emp VALUES ('a', 20);
--> changed 1
UPDATE emp SET salary = 5;
--> changed 1
COMMIT;
SELECT salary FROM emp;
--> salary
-->   5
-- case: a trigger in a transaction that rolls back
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (op) VALUES (NEW.empname); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
BEGIN;
INSERT INTO emp VALUES ('a');
--> changed 1
ROLLBACK;
SELECT count(*) FROM audit;
--> count
-->   0
-- case: disabling and enabling
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'fired'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
ALTER TABLE emp DISABLE TRIGGER t;
INSERT INTO emp VALUES ('a');
--> changed 1
ALTER TABLE emp ENABLE TRIGGER ALL;
INSERT INTO emp VALUES ('b');
--> NOTICE 00000: fired
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: DROP TRIGGER and what is left
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'fired'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
DROP FUNCTION f();
--> ERROR 2BP01: cannot drop function f() because other objects depend on it
-->   DETAIL: trigger t on table emp depends on function f()
-->   HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP TRIGGER t ON emp;
DROP FUNCTION f();
INSERT INTO emp VALUES ('a');
--> changed 1
DROP TRIGGER t ON emp;
--> ERROR 42704: trigger "t" for table "emp" does not exist
DROP TRIGGER IF EXISTS t ON emp;
--> NOTICE 00000: trigger "t" for relation "emp" does not exist, skipping
-- case: CREATE OR REPLACE TRIGGER
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'f'; RETURN NEW; END $$;
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'g'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION g();
INSERT INTO emp VALUES ('a');
--> NOTICE 00000: g
-->   CONTEXT: PL/pgSQL function g() line 1 at RAISE
--> changed 1
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 42710: trigger "t" for relation "emp" already exists
-- case: replacing the function changes the trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'old'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a');
--> NOTICE 00000: old
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'new'; RETURN NEW; END $$;
INSERT INTO emp VALUES ('b');
--> NOTICE 00000: new
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: a function that does not return trigger
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 42P17: function f must return type trigger
-- case: a trigger function with arguments
CREATE FUNCTION f(a int) RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
--> ERROR 42P13: trigger functions cannot have declared arguments
-->   HINT: The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.
-->   CONTEXT: compilation of PL/pgSQL function "f" near line 1
-- case: a trigger function called directly
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
SELECT f();
--> ERROR 0A000: trigger functions can only be called as triggers
-->   CONTEXT: compilation of PL/pgSQL function "f" near line 1
-- case: a trigger on a table that is not there
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON nosuch FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 42P01: relation "nosuch" does not exist
-- case: a trigger with a function that is not there
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION nosuch();
--> ERROR 42883: function nosuch() does not exist
-- case: INSTEAD OF on a table
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t INSTEAD OF INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 42809: "emp" is a table
-->   DETAIL: Tables cannot have INSTEAD OF triggers.
-- case: BEFORE ROW on a view
CREATE VIEW v AS SELECT * FROM emp;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON v FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 42809: "v" is a view
-->   DETAIL: Views cannot have row-level BEFORE or AFTER triggers.
-- case: TRUNCATE FOR EACH ROW
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t BEFORE TRUNCATE ON emp FOR EACH ROW EXECUTE FUNCTION f();
--> ERROR 0A000: TRUNCATE FOR EACH ROW triggers are not supported
-- case: transition tables in a row trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% of %', NEW.empname, (SELECT count(*) FROM fresh); RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp REFERENCING NEW TABLE AS fresh FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a'), ('b');
--> NOTICE 00000: a of 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: b of 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 2
-- case: transition tables joined
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN SELECT empname, n.salary - o.salary AS d FROM o JOIN n USING (empname) ORDER BY 1 LOOP RAISE NOTICE '% %', r.empname, r.d; END LOOP; RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON emp REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 1), ('b', 2);
--> changed 2
UPDATE emp SET salary = salary * 3;
--> NOTICE 00000: a 2
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: b 4
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 2
-- case: transition tables for BEFORE are refused
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION f();
--> ERROR 42P17: transition table name can only be specified for an AFTER trigger
-- case: an OLD TABLE for INSERT is refused
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION f();
--> ERROR 42P17: OLD TABLE can only be specified for a DELETE or UPDATE trigger
-- case: a transition table cannot be changed
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM fresh; RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT ON emp REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a');
--> ERROR 0A000: relation "fresh" cannot be the target of a modifying statement
-->   CONTEXT: SQL statement "DELETE FROM fresh"
-->     PL/pgSQL function f() line 1 at SQL statement
-- case: cascaded deletes fire the child's triggers
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE chi (id int PRIMARY KEY, p int REFERENCES par ON DELETE CASCADE);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_TABLE_NAME, OLD.id; RETURN OLD; END $$;
CREATE TRIGGER t BEFORE DELETE ON chi FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER t AFTER DELETE ON par FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO par VALUES (1);
--> changed 1
INSERT INTO chi VALUES (10, 1), (11, 1);
--> changed 2
DELETE FROM par;
--> NOTICE 00000: chi 10
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
-->     SQL statement "DELETE FROM ONLY "public"."chi" WHERE $1 OPERATOR(pg_catalog.=) "p""
--> NOTICE 00000: chi 11
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
-->     SQL statement "DELETE FROM ONLY "public"."chi" WHERE $1 OPERATOR(pg_catalog.=) "p""
--> NOTICE 00000: par 1
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: a generated column in triggers
CREATE TABLE gen (a int, b int GENERATED ALWAYS AS (a * 2) STORED);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_WHEN, NEW; NEW.a := NEW.a + 1; RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT ON gen FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER a AFTER INSERT ON gen FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO gen (a) VALUES (1);
--> NOTICE 00000: BEFORE (1,)
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: AFTER (2,4)
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
SELECT * FROM gen;
--> a | b
-->   2 | 4
-- case: a serial filled by a trigger
CREATE SEQUENCE ids START 100;
CREATE TABLE num (id int PRIMARY KEY, v text);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id IS NULL THEN NEW.id := nextval('ids'); END IF; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON num FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO num (v) VALUES ('a'), ('b') RETURNING id;
--> id
-->   100
-->   101
--> changed 2
INSERT INTO num VALUES (5, 'c') RETURNING id;
--> id
-->   5
--> changed 1
-- case: a counter kept by a trigger
CREATE TABLE box (id int PRIMARY KEY, n int DEFAULT 0);
CREATE TABLE thing (id int PRIMARY KEY, box int);
INSERT INTO box VALUES (1), (2);
--> changed 2
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN UPDATE box SET n = n - 1 WHERE id = OLD.box; END IF;
  IF TG_OP IN ('UPDATE', 'INSERT') THEN UPDATE box SET n = n + 1 WHERE id = NEW.box; END IF;
  RETURN NULL; END $$;
CREATE TRIGGER t AFTER INSERT OR DELETE OR UPDATE OF box ON thing FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO thing VALUES (1, 1), (2, 1), (3, 2);
--> changed 3
UPDATE thing SET box = 2 WHERE id = 1;
--> changed 1
DELETE FROM thing WHERE id = 3;
--> changed 1
SELECT * FROM box ORDER BY id;
--> id | n
-->   1 | 1
-->   2 | 1
-- case: a history table
CREATE TABLE hist (LIKE emp, at int);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO hist SELECT OLD.*, 1; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE UPDATE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('a', 1);
--> changed 1
UPDATE emp SET salary = 2;
--> changed 1
UPDATE emp SET salary = 3;
--> changed 1
SELECT empname, salary, at FROM hist ORDER BY salary;
--> empname | salary | at
-->   a | 1 | 1
-->   a | 2 | 1
-- case: a trigger and COPY
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.salary := coalesce(NEW.salary, 7); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp SELECT 'g' || g FROM generate_series(1, 3) g;
--> changed 3
SELECT sum(salary) FROM emp;
--> sum
-->   21
-- case: MERGE fires triggers of each action
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_OP, coalesce(NEW.empname, OLD.empname); RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON emp FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO emp VALUES ('u', 1), ('d', 2);
--> NOTICE 00000: INSERT u
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: INSERT d
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 2
MERGE INTO emp USING (VALUES ('u'), ('d'), ('i')) s(k) ON empname = k WHEN MATCHED AND k = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET salary = 5 WHEN NOT MATCHED THEN INSERT (empname) VALUES (k);
--> NOTICE 00000: UPDATE u
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: DELETE d
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> NOTICE 00000: INSERT i
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 3
SELECT empname, salary FROM emp ORDER BY 1;
--> empname | salary
-->   i | <null>
-->   u | 5
-- case: a subquery in WHEN is refused
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW WHEN (EXISTS (SELECT 1)) EXECUTE FUNCTION f();
--> ERROR 0A000: cannot use subquery in trigger WHEN condition
-->   POSITION: 58
-- case: NEW in WHEN of a DELETE trigger is refused
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER t BEFORE DELETE ON emp FOR EACH ROW WHEN (NEW.salary > 1) EXECUTE FUNCTION f();
--> ERROR 42P17: DELETE trigger's WHEN condition cannot reference NEW values
-->   POSITION: 58
-- case: renaming a trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', TG_NAME; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION f();
ALTER TRIGGER t ON emp RENAME TO renamed;
INSERT INTO emp VALUES ('a');
--> NOTICE 00000: renamed
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: information_schema and pg_trigger
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT OR DELETE ON emp FOR EACH ROW EXECUTE FUNCTION f('x');
SELECT tgname, tgtype, tgenabled, tgnargs, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'emp'::regclass;
--> tgname | tgtype | tgenabled | tgnargs | pg_get_triggerdef
-->   t | 15 | O | 1 | CREATE TRIGGER t BEFORE INSERT OR DELETE ON public.emp FOR EACH ROW EXECUTE FUNCTION f('x')
SELECT trigger_name, event_manipulation, action_timing, action_orientation FROM information_schema.triggers WHERE event_object_table = 'emp' ORDER BY 2;
--> trigger_name | event_manipulation | action_timing | action_orientation
-->   t | DELETE | BEFORE | ROW
-->   t | INSERT | BEFORE | ROW
-- case: the old spelling EXECUTE PROCEDURE
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'x'; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON emp FOR EACH ROW EXECUTE PROCEDURE f();
INSERT INTO emp VALUES ('a');
--> NOTICE 00000: x
-->   CONTEXT: PL/pgSQL function f() line 1 at RAISE
--> changed 1
-- case: the manual's event trigger
CREATE FUNCTION snitch() RETURNS event_trigger AS $$
BEGIN
    RAISE NOTICE 'snitch: % %', tg_event, tg_tag;
END;
$$ LANGUAGE plpgsql;
CREATE EVENT TRIGGER snitch ON ddl_command_start EXECUTE FUNCTION snitch();
CREATE TABLE noticed (a int);
--> NOTICE 00000: snitch: ddl_command_start CREATE TABLE
-->   CONTEXT: PL/pgSQL function snitch() line 3 at RAISE
DROP EVENT TRIGGER snitch;
