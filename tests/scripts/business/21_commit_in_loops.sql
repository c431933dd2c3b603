SET timezone = 'UTC';
CREATE TABLE queue (id int PRIMARY KEY, amount int NOT NULL, done boolean NOT NULL DEFAULT false);
CREATE TABLE posted (id int PRIMARY KEY REFERENCES queue, amount int CHECK (amount < 100), batch int);
CREATE TABLE batches (no int PRIMARY KEY, rows int, state text);
CREATE TABLE trail (n int GENERATED ALWAYS AS IDENTITY, msg text);
INSERT INTO queue SELECT g, g * 13 FROM generate_series(1, 10) g;

CREATE PROCEDURE note(msg text, VARIADIC args text[] DEFAULT '{}') LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO trail(msg) VALUES (CASE WHEN cardinality(args) > 0 THEN format(msg, VARIADIC args) ELSE msg END);
END $$;
CREATE PROCEDURE post_all(size int DEFAULT 3) LANGUAGE plpgsql AS $$
DECLARE
  r record; b int := 0; k int := 0;
BEGIN
  FOR r IN SELECT * FROM queue WHERE NOT done ORDER BY id LOOP
    IF k = 0 THEN
      b := b + 1;
      INSERT INTO batches VALUES (b, 0, 'open');
    END IF;
    BEGIN
      INSERT INTO posted VALUES (r.id, r.amount, b);
      UPDATE batches SET rows = rows + 1 WHERE no = b;
    EXCEPTION WHEN check_violation THEN
      CALL note('skipped %s (%s)', r.id::text, r.amount::text);
    END;
    UPDATE queue SET done = true WHERE id = r.id;
    k := k + 1;
    IF k = size THEN
      UPDATE batches SET state = 'closed' WHERE no = b;
      COMMIT;
      CALL note('committed batch %s', b::text);
      k := 0;
    END IF;
    IF r.amount = 104 THEN
      ROLLBACK;
      CALL note('rolled back after %s', r.id::text);
    END IF;
  END LOOP;
  CALL note('end');
END $$;
CALL post_all();
SELECT * FROM batches ORDER BY no;
SELECT * FROM posted ORDER BY id;
SELECT id, done FROM queue ORDER BY id;
SELECT msg FROM trail ORDER BY n;
TRUNCATE posted, batches; TRUNCATE trail RESTART IDENTITY;
UPDATE queue SET done = false;

-- failing half way keeps what was committed
CREATE PROCEDURE fragile(stop_at int) LANGUAGE plpgsql AS $$
DECLARE i int;
BEGIN
  FOR i IN 1..6 BY 2 LOOP
    INSERT INTO batches VALUES (i, i * 10, 'frag');
    IF i >= stop_at THEN
      RAISE EXCEPTION 'stopped at %', i USING HINT = 'restart';
    END IF;
    COMMIT AND CHAIN;
  END LOOP;
END $$;
CALL fragile(3);
SELECT * FROM batches ORDER BY no;
CALL fragile(1);
DELETE FROM batches;
CALL fragile(99);
DELETE FROM batches WHERE no < 5;
-- where transaction control is not allowed
BEGIN;
CALL fragile(50);
ROLLBACK;
CREATE FUNCTION fn_commit() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
SELECT fn_commit();
CREATE PROCEDURE in_handler() LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO batches VALUES (500, 0, 'h');
    COMMIT;
  EXCEPTION WHEN division_by_zero THEN
    NULL;
  END;
END $$;
CALL in_handler();
CREATE PROCEDURE in_handler2() LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    PERFORM 1 / 0;
  EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'handling %', SQLSTATE;
    ROLLBACK;
  END;
END $$;
CALL in_handler2();
CREATE PROCEDURE with_set() LANGUAGE plpgsql SET work_mem = '1MB' AS $$ BEGIN COMMIT; END $$;
CALL with_set();
CREATE PROCEDURE outer_p(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO batches VALUES (n, 1, 'outer');
  CALL inner_p(n);
  INSERT INTO batches VALUES (n + 5, 2, 'after inner');
  ROLLBACK;
  INSERT INTO batches VALUES (n + 1, 3, 'last');
END $$;
CREATE PROCEDURE inner_p(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
  n := n * 10;
  COMMIT;
  INSERT INTO batches VALUES (n, 0, 'inner');
END $$;
CALL outer_p(60);
SELECT * FROM batches WHERE no >= 60 ORDER BY no;
DO $$
BEGIN
  CALL note('do %s', 'one'); COMMIT;
  CALL note('do two'); ROLLBACK;
  FOR i IN 1..3 LOOP
    CALL note('loop %s%%', i::text);
    IF i % 2 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
  END LOOP;
  EXECUTE 'CALL note($1)' USING 'dynamic';
  EXECUTE 'COMMIT';
END $$;
SELECT msg FROM trail ORDER BY n;
CREATE PROCEDURE cursor_hold() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM queue ORDER BY id; x int;
BEGIN
  OPEN c; FETCH c INTO x; RAISE NOTICE 'first %', x;
  COMMIT;
  FETCH c INTO x;
END $$;
CALL cursor_hold();
CREATE PROCEDURE dml_loop() LANGUAGE plpgsql AS $$
DECLARE x int;
BEGIN
  FOR x IN UPDATE queue SET amount = 0 WHERE id < 3 RETURNING id LOOP COMMIT; END LOOP;
END $$;
CALL dml_loop();
SELECT sum(amount) FROM queue;
