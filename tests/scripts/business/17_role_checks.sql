SET timezone = 'UTC';
CREATE ROLE dt_clerk NOLOGIN;
CREATE ROLE dt_boss NOLOGIN IN ROLE dt_clerk;
CREATE ROLE dt_owner NOLOGIN;
CREATE SCHEMA vault AUTHORIZATION dt_owner;
GRANT USAGE ON SCHEMA vault TO dt_clerk;
SET ROLE dt_owner;
CREATE TABLE vault.payroll (id int PRIMARY KEY, person text, salary int, note text);
INSERT INTO vault.payroll VALUES (1, 'ann', 100, 'x'), (2, 'bob', 200, NULL), (3, 'cyd', 300, 'z');
CREATE TABLE vault.access_log (n serial, who text, what text);
GRANT SELECT (id, person), UPDATE (note) ON vault.payroll TO dt_clerk;
GRANT SELECT, DELETE ON vault.payroll TO dt_boss WITH GRANT OPTION;

CREATE FUNCTION vault.total(p_min int DEFAULT 0) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = vault, pg_temp AS $$
BEGIN
  INSERT INTO access_log(who, what) VALUES (current_user || '<' || (session_user <> current_user)::text, 'total ' || p_min);
  RETURN (SELECT sum(salary) FROM payroll WHERE salary >= p_min);
END $$;
CREATE FUNCTION vault.total_invoker(p_min int DEFAULT 0) RETURNS bigint LANGUAGE sql AS
  $$ SELECT sum(salary) FROM vault.payroll WHERE salary >= p_min $$;
CREATE FUNCTION vault.raise_pay(p_id int, p_by int) RETURNS vault.payroll LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE r vault.payroll;
BEGIN
  UPDATE vault.payroll SET salary = salary + p_by WHERE id = p_id RETURNING * INTO r;
  RETURN r;
END $$;
REVOKE ALL ON FUNCTION vault.raise_pay(int, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vault.raise_pay TO dt_boss;
CREATE VIEW vault.people AS SELECT id, person, length(person) AS len FROM vault.payroll;
CREATE VIEW vault.people_inv WITH (security_invoker = true) AS SELECT id, person, salary FROM vault.payroll;
GRANT SELECT ON vault.people, vault.people_inv TO dt_clerk;
CREATE PROCEDURE vault.purge(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM vault.payroll WHERE id >= n;
  GET DIAGNOSTICS n := ROW_COUNT;
END $$;
RESET ROLE;

SET ROLE dt_clerk;
SELECT id, person FROM vault.payroll ORDER BY id;
SELECT * FROM vault.payroll;
SELECT count(*) FROM vault.payroll;
SELECT salary FROM vault.payroll WHERE id = 1;
UPDATE vault.payroll SET note = 'by clerk' WHERE id = 1;
UPDATE vault.payroll SET note = 'c', salary = 0 WHERE id = 1;
DELETE FROM vault.payroll;
SELECT vault.total(150), current_user;
SELECT vault.total_invoker();
SELECT vault.raise_pay(1, 5);
SELECT * FROM vault.people ORDER BY id;
SELECT id, person FROM vault.people_inv ORDER BY id;
INSERT INTO vault.people VALUES (9, 'zed');
SELECT * FROM vault.access_log;
CREATE TABLE vault.mine (x int);
CALL vault.purge(99);
SELECT has_table_privilege('vault.payroll', 'SELECT') AS tab, has_column_privilege('vault.payroll', 'person', 'SELECT') AS col,
       has_function_privilege('vault.raise_pay(int,int)', 'EXECUTE') AS fn, has_schema_privilege('vault', 'CREATE') AS sch, pg_has_role('dt_boss', 'MEMBER') AS memb;
DO $$
BEGIN
  PERFORM salary FROM vault.payroll;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'caught % (%)', SQLERRM, SQLSTATE;
END $$;
SET ROLE dt_boss;
SELECT * FROM vault.raise_pay(1, 5);
SELECT vault.total_invoker(200), vault.total();
SELECT * FROM vault.people_inv ORDER BY id;
CALL vault.purge(3);
GRANT SELECT ON vault.payroll TO dt_clerk;
GRANT INSERT ON vault.payroll TO dt_clerk;
RESET ROLE;

-- a trigger that checks the invoking role, and a definer function reached through it
CREATE FUNCTION vault.guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_has_role(current_user, 'dt_boss', 'USAGE') AND NEW.salary > 1000 THEN
    RAISE EXCEPTION '% may not set salary %', current_user, NEW.salary USING ERRCODE = '42501';
  END IF;
  PERFORM vault.total(NEW.salary);
  RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE OF salary ON vault.payroll FOR EACH ROW EXECUTE FUNCTION vault.guard();
GRANT UPDATE (salary) ON vault.payroll TO dt_clerk;
SET ROLE dt_clerk;
UPDATE vault.payroll SET salary = salary * 10 WHERE id = 2 RETURNING *;
UPDATE vault.payroll SET salary = 900 WHERE id = 2 RETURNING id, salary;
SET ROLE dt_boss;
UPDATE vault.payroll SET salary = salary * 10 WHERE id = 2 RETURNING *;
RESET ROLE;
SELECT n, who, what FROM vault.access_log ORDER BY n;
SELECT grantee, privilege_type, is_grantable FROM information_schema.role_table_grants WHERE table_schema = 'vault' AND table_name = 'payroll' AND grantee LIKE 'dt\_%' ORDER BY 1, 2;
REVOKE SELECT ON vault.payroll FROM dt_boss;
REVOKE SELECT ON vault.payroll FROM dt_boss CASCADE;
SELECT proname, prosecdef, proconfig FROM pg_proc WHERE pronamespace = 'vault'::regnamespace ORDER BY proname;
DROP ROLE dt_owner;
DROP SCHEMA vault CASCADE;
DROP OWNED BY dt_clerk, dt_boss, dt_owner;
DROP ROLE dt_clerk, dt_boss, dt_owner;
DROP ROLE dt_clerk;
