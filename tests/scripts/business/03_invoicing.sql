SET timezone = 'UTC';
CREATE SCHEMA billing;
SET search_path = billing, public;
CREATE SEQUENCE invoice_seq START 7 MINVALUE 1 MAXVALUE 12 CACHE 1;
CREATE TABLE tax_rates (country text, category text, rate numeric(5,4) NOT NULL, UNIQUE (country, category));
INSERT INTO tax_rates VALUES ('NL', 'std', 0.21), ('NL', 'low', 0.09), ('DE', 'std', 0.19), ('DE', NULL, 0.07);

CREATE TABLE invoices (
  id int PRIMARY KEY DEFAULT nextval('billing.invoice_seq'),
  number text UNIQUE,
  country text NOT NULL,
  issued date NOT NULL,
  due date,
  lines jsonb NOT NULL DEFAULT '[]'::jsonb,
  net numeric(10,2), tax numeric(10,2), gross numeric(10,2),
  CONSTRAINT gross_adds_up CHECK (gross = net + tax),
  CONSTRAINT due_after CHECK (due >= issued)
);

CREATE FUNCTION rate_for(c text, cat text DEFAULT 'std') RETURNS numeric
LANGUAGE plpgsql STABLE STRICT AS $f$
DECLARE r numeric;
BEGIN
  SELECT rate INTO r FROM tax_rates WHERE country = c AND category = cat;
  IF r IS NULL THEN
    RAISE EXCEPTION 'no tax rate for %/%', c, cat USING ERRCODE = 'T0001';
  END IF;
  RETURN r;
END $f$;

CREATE FUNCTION fill_invoice() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE
  ln jsonb; i int; line_net numeric; acc_net numeric := 0; acc_tax numeric := 0;
BEGIN
  NEW.number := format('%s-%s-%s', NEW.country, to_char(NEW.issued, 'YYYYMM'), lpad(NEW.id::text, 5, '0'));
  NEW.due := coalesce(NEW.due, NEW.issued + 30);
  FOR ln, i IN SELECT value, ordinality FROM jsonb_array_elements(NEW.lines) WITH ORDINALITY LOOP
    <<one_line>>
    BEGIN
      line_net := round((ln->>'qty')::numeric * (ln->>'price')::numeric, 2);
      IF line_net IS NULL THEN
        EXIT one_line;
      END IF;
      acc_net := acc_net + line_net;
      acc_tax := acc_tax + round(line_net * coalesce(rate_for(NEW.country, ln->>'cat'), 0), 2);
      NEW.lines := jsonb_set(NEW.lines, ARRAY[(i - 1)::text, 'net'], to_jsonb(line_net));
    END one_line;
  END LOOP;
  NEW.net := acc_net; NEW.tax := acc_tax; NEW.gross := acc_net + acc_tax;
  RETURN NEW;
END $f$;
CREATE TRIGGER fill BEFORE INSERT ON invoices FOR EACH ROW EXECUTE PROCEDURE fill_invoice();

INSERT INTO invoices(country, issued, lines) VALUES
  ('NL', '2024-01-31', '[{"qty": 3, "price": 9.99, "cat": "std"}, {"qty": 1.5, "price": "4.33", "cat": "low"}]'),
  ('NL', '2024-02-29', '[{"qty": null, "price": 1, "cat": "std"}, {"qty": 2, "price": 10}]'),
  ('DE', date '2023-12-15', '[]')
RETURNING id, number, due, net, tax, gross;
INSERT INTO invoices(country, issued, lines) VALUES ('FR', '2024-01-01', '[{"qty": 1, "price": 1, "cat": "std"}]');
INSERT INTO invoices(country, issued, lines) VALUES ('NL', '2024-01-01', '[{"qty": "abc", "price": 1, "cat": "std"}]');
INSERT INTO invoices(country, issued, lines) VALUES ('NL', '2024-01-01', '{"not": "array"}');
INSERT INTO invoices(country, issued, due) VALUES ('NL', '2024-01-01', '2023-12-31');
-- the sequence is used up by now
INSERT INTO invoices(country, issued) VALUES ('NL', '2024-01-01');
SELECT last_value, is_called FROM invoice_seq;
SELECT setval('invoice_seq', 11, false), currval('invoice_seq');
ALTER SEQUENCE invoice_seq MAXVALUE 20;
INSERT INTO invoices(country, issued, due) VALUES ('NL', '2024-03-01', NULL) RETURNING id, number, due;

SELECT id, number, jsonb_pretty(lines) FROM invoices WHERE id = 7;
SELECT rate_for('NL'), rate_for(NULL), rate_for(cat => NULL, c => 'DE');
SELECT rate_for('DE', 'low');
SELECT i.number, l.n, l.line->>'net' AS net, coalesce(l.line->>'cat', '(none)') AS cat
  FROM invoices i LEFT JOIN LATERAL (
    SELECT * FROM jsonb_array_elements(i.lines) WITH ORDINALITY x(line, n)) l ON true
 ORDER BY i.id, l.n;

-- dunning levels through a set returning function used with ROWS and a CASE over ranges
CREATE FUNCTION dunning(asof date) RETURNS TABLE (number text, days int, level text) LANGUAGE plpgsql ROWS 10 AS $f$
#variable_conflict use_column
BEGIN
  FOR number, days IN SELECT number, asof - due FROM invoices WHERE due < asof ORDER BY due LOOP
    CASE
      WHEN days <= 14 THEN level := 'reminder';
      WHEN days BETWEEN 15 AND 45 THEN level := 'first notice';
      WHEN days < 60 THEN level := 'second notice';
    END CASE;
    RETURN NEXT;
  END LOOP;
END $f$;
SELECT * FROM dunning('2024-03-05');
SELECT * FROM dunning('2024-04-10');
SELECT number, count(*) OVER (PARTITION BY level), level FROM dunning(date '2024-03-10') ORDER BY 1;
SELECT to_char(issued, 'FMMonth DD, YYYY') AS d, to_char(gross, 'FM999G990D00') AS g, to_char(-tax, '9990.00PR') AS t,
       extract(quarter FROM issued) AS q, date_trunc('month', issued)::date + interval '1 month - 1 day' AS eom
  FROM invoices ORDER BY invoices.issued;
