-- money allocation and rounding policies
CREATE TYPE rounding AS ENUM ('half_up', 'half_even', 'floor', 'ceiling', 'truncate');
CREATE DOMAIN cents AS bigint NOT NULL DEFAULT 0;
CREATE TABLE invoice (id int PRIMARY KEY, total numeric(12,2) NOT NULL, policy rounding NOT NULL DEFAULT 'half_up', status text DEFAULT 'open' CHECK (status IN ('open', 'split', 'void')));
CREATE TABLE invoice_part (invoice_id int REFERENCES invoice, n int, weight numeric, amount numeric(12,2), PRIMARY KEY (invoice_id, n));
CREATE TABLE ledger (seq serial PRIMARY KEY, acct text, delta cents);
CREATE TABLE balance (acct text PRIMARY KEY, amt cents, CONSTRAINT no_overdraft CHECK (amt >= -500));

CREATE FUNCTION round_to(x numeric, places int, how rounding) RETURNS numeric LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  scaled numeric := x * 10::numeric ^ places; base numeric;
BEGIN
  CASE how
    WHEN 'half_up' THEN base := round(scaled);
    WHEN 'floor' THEN base := floor(scaled);
    WHEN 'ceiling' THEN base := ceil(scaled);
    WHEN 'half_even' THEN
      base := round(scaled);
      IF abs(scaled - trunc(scaled)) = 0.5 AND base % 2 <> 0 THEN base := base - sign(scaled); END IF;
  END CASE;
  RETURN round(base / 10::numeric ^ places, greatest(places, 0));
END $$;
CREATE FUNCTION round_to(x numeric, places int = 2) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT round_to(x, places, 'half_up') $$;
SELECT x, round_to(x, 1, 'half_up') hu, round_to(x, 1, 'half_even') he, round_to(x, 1, 'floor') fl, round_to(x, 1, 'ceiling') ce, round_to(x) d
FROM unnest('{0.25,0.35,-0.25,-0.35,1.149,-1.151,0}'::numeric[]) AS x ORDER BY x;
SELECT round_to(12345, -2, 'half_even'), round_to(NULL, 1, 'floor'), round_to(places => 3, x => 1.23456);
SELECT round_to(1.5, 0, 'truncate');
SELECT round_to(1.5, 0, 'bogus');

CREATE FUNCTION allocate(total numeric, weights numeric[]) RETURNS TABLE (n int, weight numeric, amount numeric) LANGUAGE plpgsql AS $$
DECLARE
  wsum numeric; remaining bigint; cents_total bigint := total * 100;
BEGIN
  SELECT sum(w) INTO wsum FROM unnest(weights) AS w;
  IF coalesce(wsum, 0) = 0 THEN
    RAISE EXCEPTION 'weights % cannot carry %', coalesce(weights::text, 'NULL'), total USING ERRCODE = 'invalid_parameter_value';
  END IF;
  CREATE TEMP TABLE IF NOT EXISTS shares (k int, w numeric, c bigint, frac numeric) ON COMMIT DELETE ROWS;
  DELETE FROM shares;
  INSERT INTO shares SELECT o, u, floor(cents_total * u / wsum), cents_total * u / wsum - floor(cents_total * u / wsum) FROM unnest(weights) WITH ORDINALITY AS t(u, o);
  SELECT cents_total - sum(c) INTO remaining FROM shares;
  UPDATE shares s SET c = c + 1 FROM (SELECT k FROM shares ORDER BY frac DESC, k LIMIT remaining) AS lucky WHERE lucky.k = s.k;
  RETURN QUERY SELECT k, w, (c / 100.0)::numeric(12,2) FROM shares ORDER BY k;
END $$;
SELECT * FROM allocate(100, '{1,1,1}') ORDER BY n;
SELECT * FROM allocate(0.05, '{3,0,7}') ORDER BY n;
SELECT * FROM allocate(-10, '{1,2}') ORDER BY n;
SELECT * FROM allocate(10, '{}');
SELECT * FROM allocate(10, NULL);
SELECT sum(amount) = 1000.01 AS exact FROM allocate(1000.01, (SELECT array_agg(g) FROM generate_series(1, 7) g));

CREATE FUNCTION split_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE p record;
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.total, OLD.policy) IS NOT DISTINCT FROM (NEW.total, NEW.policy) THEN RETURN NULL; END IF;
  DELETE FROM invoice_part WHERE invoice_id = NEW.id;
  FOR p IN SELECT * FROM allocate(round_to(NEW.total, CASE NEW.policy WHEN 'half_up' THEN 2 ELSE 0 END, NEW.policy), ARRAY[60, 25, 15]) LOOP
    INSERT INTO invoice_part VALUES (NEW.id, p.n, p.weight, p.amount);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER split AFTER INSERT OR UPDATE ON invoice FOR EACH ROW EXECUTE PROCEDURE split_invoice();
CREATE FUNCTION part_to_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE TG_OP
    WHEN 'INSERT' THEN INSERT INTO ledger (acct, delta) VALUES (TG_ARGV[0] || NEW.n, NEW.amount * 100); RETURN NEW;
    WHEN 'DELETE' THEN INSERT INTO ledger (acct, delta) VALUES (TG_ARGV[0] || OLD.n, OLD.amount * -100); RETURN OLD;
  END CASE;
END $$;
CREATE TRIGGER post AFTER INSERT OR DELETE ON invoice_part FOR EACH ROW EXECUTE FUNCTION part_to_ledger('acct_');
CREATE FUNCTION ledger_to_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO balance AS b SELECT acct, sum(delta) FROM added GROUP BY acct
  ON CONFLICT (acct) DO UPDATE SET amt = b.amt + excluded.amt;
  RETURN NULL;
END $$;
CREATE TRIGGER roll AFTER INSERT ON ledger REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ledger_to_balance();

INSERT INTO invoice VALUES (1, 99.99, 'half_up'), (2, 10.50, 'half_even'), (3, 11.5, 'half_even');
UPDATE invoice SET total = 100.01 WHERE id = 1;
UPDATE invoice SET status = 'split' WHERE id = 1;
INSERT INTO invoice VALUES (4, 1, 'truncate');
INSERT INTO invoice VALUES (5, -1000);
UPDATE invoice SET status = 'closed' WHERE id = 2;
SELECT * FROM invoice_part ORDER BY invoice_id, n;
SELECT acct, sum(delta), count(*), array_agg(delta ORDER BY seq) FROM ledger GROUP BY acct ORDER BY acct;
SELECT * FROM balance ORDER BY acct;
INSERT INTO ledger (acct, delta) VALUES ('x', NULL);
INSERT INTO ledger (acct) VALUES ('y') RETURNING acct, delta;
SELECT to_char(1234567.891, 'FM9,999,999.00'), to_char(-5, '999PR'), to_char(0.5, '0.00'), to_char(12, 'S099'), to_char(1e6, '9.99EEEE'), to_char(12345, '999'), to_char(5, '99th'), to_char(123.4, 'FM999V99'), to_number('($1,234.56)', 'L9,999.99PR') ;
SELECT amt::text || '¢' AS label, amt / 100 AS units, amt % 100 AS rest, to_char(amt / 100.0, 'MI999D99') FROM balance ORDER BY amt, acct;
