SET timezone = 'UTC';
CREATE TYPE acct_kind AS ENUM ('asset', 'liability', 'equity', 'income', 'expense');
CREATE TABLE accounts (code text PRIMARY KEY CHECK (code ~ '^\d{4}$'), name text NOT NULL, kind acct_kind NOT NULL,
  parent text REFERENCES accounts DEFERRABLE INITIALLY IMMEDIATE);
CREATE TABLE journal (id int PRIMARY KEY, booked_on date NOT NULL, memo text, posted boolean NOT NULL DEFAULT false);
CREATE TABLE entries (
  id serial PRIMARY KEY,
  journal_id int NOT NULL REFERENCES journal DEFERRABLE INITIALLY DEFERRED,
  account text NOT NULL REFERENCES accounts,
  debit numeric(14,2), credit numeric(14,2),
  CONSTRAINT one_side CHECK (num_nonnulls(debit, credit) = 1),
  CONSTRAINT positive CHECK (coalesce(debit, credit) > 0)
);

CREATE FUNCTION check_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE d numeric; c numeric;
BEGIN
  SELECT coalesce(sum(debit), 0), coalesce(sum(credit), 0) INTO d, c
    FROM entries WHERE journal_id = NEW.journal_id;
  IF d <> c THEN
    RAISE EXCEPTION 'journal % is out of balance by %', NEW.journal_id, d - c
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT OR UPDATE ON entries
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_balanced();

BEGIN;
SET CONSTRAINTS accounts_parent_fkey DEFERRED;
INSERT INTO accounts VALUES ('1010', 'Cash', 'asset', '1000'), ('1020', 'Bank', 'asset', '1000');
INSERT INTO accounts VALUES ('1000', 'Assets', 'asset', NULL), ('4000', 'Sales', 'income', NULL), ('5000', 'Costs', 'expense', NULL), ('5010', 'Rent', 'expense', '5000');
COMMIT;
INSERT INTO accounts VALUES ('6010', 'X', 'asset', '6000');
INSERT INTO accounts VALUES ('60a', 'X', 'asset', NULL);

-- entries first, journal header afterwards, all in one transaction
BEGIN;
INSERT INTO entries(journal_id, account, debit, credit) VALUES (1, '1010', 100, NULL), (1, '4000', NULL, 100);
INSERT INTO journal VALUES (1, '2024-01-05', 'cash sale');
COMMIT;
BEGIN;
INSERT INTO journal VALUES (2, '2024-01-06', 'broken');
INSERT INTO entries(journal_id, account, debit) VALUES (2, '1010', 50);
INSERT INTO entries(journal_id, account, credit) VALUES (2, '4000', 49.99);
COMMIT;
BEGIN;
INSERT INTO entries(journal_id, account, debit, credit) VALUES (77, '1010', 5, NULL), (77, '4000', NULL, 5);
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
INSERT INTO entries(journal_id, account, debit, credit) VALUES (1, '1010', 5, 5);
INSERT INTO entries(journal_id, account, debit) VALUES (1, '1010', -5);

CREATE FUNCTION post(p_id int, p_on date, p_memo text, p_moves jsonb) RETURNS journal LANGUAGE plpgsql AS $$
DECLARE k text; v numeric; j journal%ROWTYPE;
BEGIN
  INSERT INTO journal VALUES (p_id, p_on, p_memo);
  FOR k, v IN SELECT key, value::numeric FROM jsonb_each_text(p_moves) ORDER BY key LOOP
    IF v >= 0 THEN INSERT INTO entries(journal_id, account, debit) VALUES (p_id, k, v);
    ELSE INSERT INTO entries(journal_id, account, credit) VALUES (p_id, k, abs(v)); END IF;
  END LOOP;
  SET CONSTRAINTS balanced IMMEDIATE;
  UPDATE journal SET posted = true WHERE id = p_id RETURNING * INTO j;
  SET CONSTRAINTS balanced DEFERRED;
  RETURN j;
END $$;
SELECT * FROM post(3, '2024-01-31', 'rent', '{"5010": 40, "1010": -40}');
SELECT * FROM post(4, '2024-02-10', 'split', '{"1020": 70.25, "1010": 29.75, "4000": -100}');
SELECT * FROM post(5, '2024-02-11', 'bad', '{"1020": 70.25, "4000": -100}');
SELECT * FROM post(3, '2024-02-11', 'dup', '{}');
SELECT * FROM post(6, '2024-02-11', 'unknown account', '{"9999": 1, "1010": -1}');

-- balances: sign depends on the kind; roll up to parents recursively
CREATE VIEW balances AS
  SELECT a.code, a.parent, a.kind,
         coalesce(sum(CASE WHEN a.kind IN ('asset', 'expense') THEN coalesce(e.debit, 0) - coalesce(e.credit, 0)
                           ELSE coalesce(e.credit, 0) - coalesce(e.debit, 0) END), 0) AS bal
    FROM accounts a LEFT JOIN entries e ON e.account = a.code GROUP BY a.code;
CREATE FUNCTION rolled(p_code text) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE t numeric; ch text;
BEGIN
  SELECT bal INTO t FROM balances WHERE code = p_code;
  FOR ch IN SELECT code FROM accounts WHERE parent = p_code LOOP
    t := t + rolled(ch);
  END LOOP;
  RETURN t;
END $$;
SELECT code, kind, bal, rolled(code) FROM balances ORDER BY code;
SELECT account, j.booked_on, coalesce(debit, -credit) AS amt,
       sum(coalesce(debit, -credit)) OVER (PARTITION BY account ORDER BY j.booked_on, e.id) AS running,
       lag(coalesce(debit, -credit)) OVER w AS prev, first_value(j.memo) OVER w AS first_memo
  FROM entries e JOIN journal j ON j.id = e.journal_id WINDOW w AS (PARTITION BY account ORDER BY j.booked_on, e.id) ORDER BY 1, 2, e.id;
SELECT sum(debit) = sum(credit) AS books_balance, sum(debit) FROM entries;
SELECT kind, array_agg(code ORDER BY code DESC) FROM accounts GROUP BY kind ORDER BY kind;
