SET timezone = 'UTC';
-- Payout run over a ledger using every kind of plpgsql cursor navigation.
CREATE TABLE payee (id int PRIMARY KEY, name text NOT NULL, region text, balance numeric(9,2) NOT NULL, frozen boolean DEFAULT false);
CREATE TABLE payout_log (n int GENERATED ALWAYS AS IDENTITY, payee int, what text);
INSERT INTO payee SELECT g, 'payee ' || chr(96 + g), CASE WHEN g % 3 = 0 THEN NULL WHEN g % 3 = 1 THEN 'eu' ELSE 'us' END, g * 10.25, g = 4
FROM generate_series(1, 9) g;

CREATE FUNCTION walk(OUT trail text[], OUT last_found boolean) LANGUAGE plpgsql AS $$
DECLARE
  c SCROLL CURSOR FOR SELECT id FROM payee ORDER BY id;
  v int;
BEGIN
  trail := '{}';
  OPEN c;
  FETCH c INTO v;                trail := trail || format('next=%s', v);
  FETCH LAST FROM c INTO v;      trail := trail || format('last=%s', v);
  FETCH PRIOR FROM c INTO v;     trail := trail || format('prior=%s', v);
  FETCH ABSOLUTE 3 FROM c INTO v; trail := trail || format('abs3=%s', v);
  FETCH RELATIVE 2 FROM c INTO v; trail := trail || format('rel2=%s', v);
  FETCH RELATIVE -4 IN c INTO v; trail := trail || format('rel-4=%s', v);
  FETCH RELATIVE 0 FROM c INTO v; trail := trail || format('rel0=%s', v);
  FETCH ABSOLUTE -2 FROM c INTO v; trail := trail || format('abs-2=%s', v);
  FETCH FIRST FROM c INTO v;     trail := trail || format('first=%s', v);
  FETCH BACKWARD FROM c INTO v;  trail := trail || format('back=%s found=%s', coalesce(v::text, 'NULL'), FOUND);
  MOVE FORWARD 4 FROM c;         trail := trail || format('moved found=%s', FOUND);
  FETCH FORWARD FROM c INTO v;   trail := trail || format('fwd=%s', v);
  MOVE ABSOLUTE 100 FROM c;      trail := trail || format('off end found=%s', FOUND);
  FETCH NEXT FROM c INTO v;
  last_found := FOUND;
  MOVE BACKWARD 2 FROM c;
  FETCH RELATIVE 0 FROM c INTO v; trail := trail || format('rel0=%s', v);
  MOVE FORWARD ALL FROM c;
  FETCH PRIOR FROM c INTO v;     trail := trail || format('prior=%s', v);
  CLOSE c;
END $$;
SELECT t.ord, t.step FROM walk() w, unnest(w.trail) WITH ORDINALITY t(step, ord) ORDER BY ord;
SELECT last_found FROM walk();

CREATE FUNCTION pay_region(p_region text, p_min numeric DEFAULT 20) RETURNS TABLE (who text, paid numeric) LANGUAGE plpgsql AS $$
DECLARE
  due CURSOR (r text, lo numeric) FOR
    SELECT * FROM payee WHERE region IS NOT DISTINCT FROM r AND balance >= lo ORDER BY id FOR UPDATE;
  rec payee%ROWTYPE;
BEGIN
  OPEN due(lo := p_min, r := p_region);
  LOOP
    FETCH due INTO rec;
    EXIT WHEN NOT FOUND;
    IF rec.frozen THEN
      INSERT INTO payout_log(payee, what) VALUES (rec.id, 'frozen, skipped');
      CONTINUE;
    END IF;
    IF rec.balance > 85 THEN
      DELETE FROM payee WHERE CURRENT OF due;
      INSERT INTO payout_log(payee, what) VALUES (rec.id, 'closed');
    ELSE
      UPDATE payee SET balance = 0, name = upper(name) WHERE CURRENT OF due
      RETURNING payee.name INTO who;
      paid := rec.balance;
      RETURN NEXT;
    END IF;
  END LOOP;
  CLOSE due;
END $$;
SELECT * FROM pay_region('eu') ORDER BY who;
SELECT * FROM pay_region(NULL, 60) ORDER BY who;
SELECT * FROM pay_region('nowhere');
SELECT * FROM payee ORDER BY id;
SELECT * FROM payout_log ORDER BY n;

-- a FOR loop over a bound cursor with arguments, nested in itself via labels
DO $$
DECLARE
  outerc CURSOR FOR SELECT DISTINCT region FROM payee ORDER BY region NULLS FIRST;
  innerc CURSOR (r text) IS SELECT id, balance FROM payee WHERE region IS NOT DISTINCT FROM r ORDER BY id;
BEGIN
  <<regions>>
  FOR o IN outerc LOOP
    FOR i IN innerc(o.region) LOOP
      CONTINUE regions WHEN i.balance = 0;
      RAISE NOTICE 'region % id % balance %', o.region, i.id, i.balance;
      UPDATE payee SET balance = balance + 1 WHERE CURRENT OF innerc;
    END LOOP;
  END LOOP regions;
END $$;

-- errors
DO $$
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM payee ORDER BY id; v int;
BEGIN
  OPEN c; FETCH c INTO v; FETCH c INTO v; RAISE NOTICE 'at %', v;
  FETCH PRIOR FROM c INTO v;
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM;
END $$;
DO $$
DECLARE c CURSOR FOR SELECT 1; v int;
BEGIN
  FETCH c INTO v;
END $$;
DO $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
  OPEN c; OPEN c;
END $$;
DO $$
DECLARE c CURSOR (a int, b int) FOR SELECT a + b AS s; r record;
BEGIN
  OPEN c(1, b := 41); FETCH c INTO r; RAISE NOTICE 'sum %', r.s; CLOSE c;
  CLOSE c;
EXCEPTION WHEN invalid_cursor_name THEN RAISE NOTICE 'caught %', SQLERRM;
END $$;
DO $$
DECLARE c CURSOR FOR SELECT sum(balance) s FROM payee; r record;
BEGIN
  OPEN c; FETCH c INTO r;
  UPDATE payee SET balance = 1 WHERE CURRENT OF c;
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM;
END $$;
CREATE FUNCTION bad_args() RETURNS void LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a int) FOR SELECT a;
BEGIN OPEN c; END $$;
SELECT count(*), sum(balance) FROM payee;
