SET timezone = 'UTC';
CREATE TYPE coupon_kind AS ENUM ('percent', 'fixed', 'bogo');
ALTER TYPE coupon_kind ADD VALUE 'freeship' BEFORE 'bogo';
CREATE DOMAIN coupon_code AS varchar(12) CHECK (VALUE SIMILAR TO '[A-Z0-9]{4,12}');
CREATE TABLE coupons (
  code coupon_code PRIMARY KEY, kind coupon_kind NOT NULL, amount numeric(8,2),
  min_spend numeric DEFAULT 0, max_uses int, used int NOT NULL DEFAULT 0,
  starts date NOT NULL DEFAULT DATE '2024-01-01', ends date DEFAULT 'infinity', rules jsonb,
  stackable bool NOT NULL DEFAULT false,
  CONSTRAINT amount_fits CHECK (CASE kind WHEN 'percent' THEN amount BETWEEN 0 AND 100 WHEN 'fixed' THEN amount > 0 ELSE amount IS NULL END),
  CONSTRAINT use_cap CHECK (used <= max_uses)
);
CREATE TABLE redemptions (code coupon_code REFERENCES coupons, cart int, saved numeric(8,2), UNIQUE NULLS NOT DISTINCT (code, cart));
INSERT INTO coupons(code, kind, amount, min_spend, max_uses, rules, stackable) VALUES
  ('TENOFF', 'percent', 10, 0, NULL, '{"skus": ["A", "B"]}', true),
  ('FIVER', 'fixed', 5, 20, 2, NULL, true),
  ('BIGSALE', 'percent', 50, 100, 1, '{"first_order": true}', false),
  ('SHIPIT', 'freeship', NULL, 30, NULL, NULL, true),
  ('BOGO2024', 'bogo', NULL, 0, 5, '{"skus": ["C"], "cap": 7.5}', true);
INSERT INTO coupons(code, kind, amount) VALUES ('bad', 'fixed', 1);
INSERT INTO coupons(code, kind, amount) VALUES ('TOOLONGCODE123', 'fixed', 1);
INSERT INTO coupons(code, kind, amount) VALUES ('PCT200', 'percent', 200);
INSERT INTO coupons(code, kind) VALUES ('NULLY', 'percent') RETURNING code, amount;
INSERT INTO coupons(code, kind, amount) VALUES ('SHIPPY', 'freeship', 3);

CREATE FUNCTION discount(c coupons, cart jsonb) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
  base numeric; skus text[];
BEGIN
  IF c.rules ? 'skus' THEN
    skus := ARRAY(SELECT jsonb_array_elements_text(c.rules -> 'skus'));
  END IF;
  SELECT sum((l ->> 'price')::numeric * coalesce((l ->> 'qty')::int, 1)) INTO base
    FROM jsonb_path_query(cart, '$.lines[*] ? (@.price > 0)') l
   WHERE skus IS NULL OR l ->> 'sku' = ANY (skus);
  RETURN CASE c.kind
    WHEN 'percent' THEN round(base * c.amount / 100, 2)
    WHEN 'fixed' THEN least(c.amount, base)
    WHEN 'freeship' THEN coalesce((cart -> 'shipping')::numeric, 0)
    WHEN 'bogo' THEN (
      SELECT least(min((l ->> 'price')::numeric), (c.rules ->> 'cap')::numeric)
        FROM jsonb_array_elements(cart -> 'lines') l WHERE l ->> 'sku' = ANY (skus) AND (l ->> 'qty')::int >= 2)
  END;
END $$;

CREATE FUNCTION redeem(p_cart jsonb, p_on date, VARIADIC p_codes text[] DEFAULT '{}')
RETURNS TABLE (code text, saved numeric, note text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  c coupons; spend numeric := 0; i int; applied int := 0; v_tab text; v_con text; v_type text;
BEGIN
  SELECT coalesce(sum((l->>'price')::numeric * coalesce((l->>'qty')::int, 1)), 0) INTO spend FROM jsonb_array_elements(p_cart->'lines') l;
  FOR i IN coalesce(array_lower(p_codes, 1), 1) .. coalesce(array_upper(p_codes, 1), 0) LOOP
    redeem.code := upper(p_codes[i]); redeem.saved := NULL; redeem.note := NULL;
    BEGIN
      SELECT k.* INTO STRICT c FROM coupons k WHERE k.code = redeem.code FOR UPDATE;
      ASSERT p_on BETWEEN c.starts AND c.ends, 'coupon not valid on ' || p_on;
      IF spend < c.min_spend THEN
        note := format('needs %s more', c.min_spend - spend);
      ELSIF applied > 0 AND NOT c.stackable THEN
        note := 'not stackable';
      ELSE
        saved := coalesce(discount(c, p_cart), 0);
        INSERT INTO redemptions VALUES (c.code, (p_cart->>'id')::int, saved);
        UPDATE coupons k SET used = k.used + 1 WHERE k.code = c.code;
        applied := applied + 1;
      END IF;
    EXCEPTION
      WHEN no_data_found THEN note := 'no such coupon';
      WHEN assert_failure THEN note := SQLERRM;
      WHEN unique_violation THEN note := 'already used here'; saved := 0;
      WHEN check_violation THEN
        GET STACKED DIAGNOSTICS v_tab = TABLE_NAME, v_con = CONSTRAINT_NAME, v_type = PG_DATATYPE_NAME;
        note := concat_ws('/', v_tab, v_con, nullif(v_type, '')); saved := 0;
    END;
    RETURN NEXT;
  END LOOP;
END $$;
\set cart1 '{"id": 1, "shipping": 4.95, "lines": [{"sku": "A", "price": 20, "qty": 2}, {"sku": "C", "price": 9, "qty": 3}, {"sku": "Z", "price": 0}]}'
SELECT * FROM redeem(:'cart1', '2024-02-01', 'tenoff', 'FIVER', 'nope', 'BIGSALE', 'SHIPIT', 'bogo2024', 'tenoff');
SELECT * FROM redeem('{"id": 2, "lines": [{"sku": "A", "price": 150}]}', '2024-02-01', 'bigsale', 'fiver');
SELECT * FROM redeem('{"id": 3, "lines": [{"sku": "A", "price": 150}]}', '2024-02-01', 'bigsale', 'fiver', 'tenoff');
SELECT * FROM redeem('{"lines": []}', '2023-02-01', VARIADIC ARRAY['tenoff', NULL]);
SELECT * FROM redeem('{"lines": []}', '2024-02-01', VARIADIC '{tenoff,tenoff}');
SELECT * FROM redeem('{"lines": [{"price": "x"}]}', '2024-02-01', 'tenoff');
SELECT count(*) FROM redeem('{"lines": []}', '2024-02-01');
SELECT code, kind, used, max_uses, d.value FROM coupons c, LATERAL discount(c, :'cart1') AS d(value) ORDER BY kind, code;
SELECT * FROM redemptions ORDER BY code, cart NULLS FIRST;
SELECT kind, count(*), string_agg(code, ',' ORDER BY code) FROM coupons GROUP BY kind ORDER BY kind;
SELECT code, rules @> '{"skus": ["A"]}' AS has_a, rules ?& ARRAY['skus', 'cap'] AS both, rules #> '{skus,-1}' AS last_sku,
       jsonb_typeof(rules -> 'cap') AS cap_type, rules @? '$.cap ? (@ > 7)' AS big_cap FROM coupons WHERE rules IS NOT NULL ORDER BY code;
ALTER TYPE coupon_kind RENAME VALUE 'bogo' TO 'two_for_one';
SELECT enum_first(NULL::coupon_kind), enum_last(NULL::coupon_kind), 'freeship'::coupon_kind < 'two_for_one' AS before_last;
SELECT discount(c, :'cart1') FROM coupons c WHERE code = 'BOGO2024';
UPDATE coupons SET ends = '2024-01-31' WHERE isfinite(ends) IS FALSE AND code = 'SHIPIT' RETURNING code, ends - starts AS days;
