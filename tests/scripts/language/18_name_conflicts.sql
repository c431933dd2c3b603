SET timezone = 'UTC';
CREATE TABLE item (id int PRIMARY KEY, name text, price numeric, parent int);
INSERT INTO item VALUES (1, 'root', 10, NULL), (2, 'kid', 4, 1), (3, 'kid2', NULL, 1), (4, 'grandkid', 2.5, 2);

CREATE FUNCTION amb(id int) RETURNS TABLE (name text, price numeric) LANGUAGE plpgsql AS $$
BEGIN RETURN QUERY SELECT name, price FROM item WHERE id = 1; END $$;
SELECT * FROM amb(2);
CREATE FUNCTION use_col(id int) RETURNS TABLE (name text, price numeric) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT name, price FROM item WHERE id = use_col.id;
  name := 'var'; price := id;
  RETURN NEXT;
  UPDATE item SET price = price + 1 WHERE name = 'kid' AND id > use_col.id RETURNING name, price INTO name, price;
  RETURN NEXT;
  INSERT INTO item AS t (id, name) VALUES (1, use_col.name) ON CONFLICT (id) DO UPDATE SET name = t.name || '+' RETURNING id + 100, name INTO price, name;
  RETURN NEXT;
END $$;
SELECT * FROM use_col(1);
CREATE FUNCTION use_var(id int, INOUT name text = 'kid', OUT hits int) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE price numeric := 3;
BEGIN
  SELECT count(*) INTO hits FROM item WHERE id = 2;
  name := format('%s %s', name, (SELECT max(item.name) FROM item WHERE price < item.price));
END $$;
SELECT * FROM use_var(2);
SELECT * FROM use_var(1, 'arg');
CREATE FUNCTION conf_err(name text) RETURNS int LANGUAGE plpgsql AS $$
#variable_conflict error
DECLARE id int;
BEGIN
  SELECT item.id INTO id FROM item WHERE item.name = conf_err.name;
  RETURN id + (SELECT count(*) FROM item i WHERE i.id < id);
END $$;
SELECT conf_err('kid');
CREATE FUNCTION upsert_amb(id int, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO item(id, name) VALUES (id, name) ON CONFLICT (id) DO NOTHING; END $$;
SELECT upsert_amb(9, 'nine');

-- blocks, labels and shadowing
CREATE FUNCTION shadow(x int) RETURNS text LANGUAGE plpgsql AS $$
<<outer_b>>
DECLARE x text := 'outer ' || x; y int := 1; acc text := ''; rec record;
BEGIN
  acc := x || '|' || shadow.x;
  <<inner_b>>
  DECLARE x numeric := outer_b.y / 2.0; y text := x::text;
  BEGIN
    acc := concat_ws('|', acc, x, y, outer_b.x, inner_b.y, shadow.x);
    FOR x IN 1..2 LOOP
      DECLARE y int := x * 10; BEGIN acc := acc || '|' || x || ':' || y; outer_b.y := y; END;
    END LOOP;
    acc := acc || '|' || x;
    FOR rec IN SELECT shadow.x AS x, outer_b.x AS y LOOP acc := acc || '|' || rec.x || rec.y; END LOOP;
    EXIT inner_b WHEN shadow.x > 5;
    acc := acc || '|not exited';
  END inner_b;
  RETURN acc || '|' || y;
END $$;
SELECT shadow(3), shadow(6);
CREATE FUNCTION same_label() RETURNS int LANGUAGE plpgsql AS $$ <<a>> BEGIN <<b>> LOOP EXIT a; END LOOP c; RETURN 1; END $$;
CREATE FUNCTION exit_nowhere() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXIT; RETURN 1; END $$;
CREATE FUNCTION cont_block() RETURNS int LANGUAGE plpgsql AS $$ <<blk>> BEGIN CONTINUE blk; RETURN 1; END $$;
CREATE FUNCTION dup_var() RETURNS int LANGUAGE plpgsql AS $$ DECLARE a int; a text; BEGIN RETURN 1; END $$;
CREATE FUNCTION dup_par(a int, a text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION out_tab(a int) RETURNS TABLE (a int) LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION no_ret(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a > 0 THEN RETURN a; END IF; END $$;
SELECT no_ret(1);
SELECT no_ret(0);
CREATE FUNCTION wrong_ret() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION out_ret(OUT a int) LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION set_ret() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION next_ret() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; END $$;
CREATE FUNCTION mism() RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1, 2; END $$;
SELECT * FROM mism();
CREATE FUNCTION mism2() RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1; END $$;
SELECT * FROM mism2();
CREATE FUNCTION outs(INOUT a int, b int, OUT c text, VARIADIC d int[] = '{}') LANGUAGE plpgsql AS $$ BEGIN a := a + b; c := array_length(d, 1); END $$;
CREATE FUNCTION outs(INOUT a int, b int = 5, OUT c text, OUT d int) LANGUAGE plpgsql AS $$ BEGIN c := 'two'; d := b; END $$;
SELECT * FROM outs(1);
SELECT outs(1, 2, 3, 4), (outs(b => 3, a => 2)).*;
SELECT outs(1, 2);
SELECT * FROM outs(1, 2) AS x(p, q, r);
SELECT * FROM outs(VARIADIC d => '{1,2}', a => 1, b => 1);

-- hidden traps: parameters as aliases, ALIAS FOR, $n, reserved looking names, defaults evaluated each call
CREATE FUNCTION aliases(int, second text DEFAULT upper('dflt')) RETURNS text LANGUAGE plpgsql AS $$
DECLARE one ALIAS FOR $1; two ALIAS FOR second; "Quoted Var" int := $1; n CONSTANT int := one * 2; i int = 0; arr int[] DEFAULT array[$1, n];
BEGIN
  two := two || $2; "Quoted Var" := "Quoted Var" + 1;
  WHILE i < array_upper(arr, 1) LOOP i := i + 1; arr[i] := arr[i] + i; END LOOP;
  RETURN format('%s %s %s %s %s', one, second, "Quoted Var", n, arr);
END $$;
SELECT aliases(4), aliases(5, 'x'), aliases(NULL);
CREATE FUNCTION set_const() RETURNS void LANGUAGE plpgsql AS $$ DECLARE k CONSTANT int := 1; BEGIN k := 2; END $$;
CREATE FUNCTION into_loop() RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE a int; b text;
BEGIN FOR a, b IN SELECT id, name FROM item ORDER BY id DESC LOOP RETURN NEXT (a, b); END LOOP; RAISE NOTICE 'after: % %', a, b; END $$;
SELECT * FROM into_loop() AS f(k int, v text) WHERE k <> 3;
SELECT * FROM into_loop() AS f(k int, v int);
SELECT * FROM into_loop();
SELECT into_loop();
SELECT id, name, price FROM item ORDER BY id;
