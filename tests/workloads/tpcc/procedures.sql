-- The five TPC-C transactions (revision 5.11, clauses 2.4 to 2.8) as PL/pgSQL procedures.
-- Load unchanged into PostgreSQL 15 and into Archipel.

-- 2.4. The unused item number of one order in a hundred raises, and so rolls back.
CREATE OR REPLACE PROCEDURE new_order(
    p_w_id integer, p_d_id integer, p_c_id integer,
    p_item_ids integer[], p_supply_w_ids integer[], p_quantities integer[],
    INOUT p_o_id integer DEFAULT NULL, INOUT p_total numeric DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_w_tax      numeric;
    v_d_tax      numeric;
    v_discount   numeric;
    v_last       text;
    v_credit     text;
    v_count      integer := array_length(p_item_ids, 1);
    v_all_local  integer := 1;
    v_price      numeric;
    v_name       text;
    v_data       text;
    v_dist_info  text;
    v_amount     numeric;
    v_sum        numeric := 0;
BEGIN
    SELECT w_tax INTO v_w_tax FROM warehouse WHERE w_id = p_w_id;

    UPDATE district SET d_next_o_id = d_next_o_id + 1
     WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_next_o_id - 1, d_tax INTO p_o_id, v_d_tax;

    SELECT c_discount, c_last, c_credit INTO v_discount, v_last, v_credit
      FROM customer
     WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;

    FOR i IN 1 .. v_count LOOP
        IF p_supply_w_ids[i] <> p_w_id THEN
            v_all_local := 0;
        END IF;
    END LOOP;

    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (p_w_id, p_d_id, p_o_id, p_c_id, now(), NULL, v_count, v_all_local);

    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w_id, p_d_id, p_o_id);

    FOR i IN 1 .. v_count LOOP
        SELECT i_price, i_name, i_data INTO v_price, v_name, v_data
          FROM item
         WHERE i_id = p_item_ids[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'Item number is not valid';
        END IF;

        UPDATE stock
           SET s_quantity = CASE WHEN s_quantity >= p_quantities[i] + 10
                                 THEN s_quantity - p_quantities[i]
                                 ELSE s_quantity - p_quantities[i] + 91 END,
               s_ytd = s_ytd + p_quantities[i],
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt
                            + CASE WHEN p_supply_w_ids[i] <> p_w_id THEN 1 ELSE 0 END
         WHERE s_w_id = p_supply_w_ids[i] AND s_i_id = p_item_ids[i]
        RETURNING CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                              WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                              WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                              ELSE s_dist_10 END
          INTO v_dist_info;

        v_amount := p_quantities[i] * v_price;
        v_sum := v_sum + v_amount;

        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
                                ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
        VALUES (p_w_id, p_d_id, p_o_id, i, p_item_ids[i], p_supply_w_ids[i],
                NULL, p_quantities[i], v_amount, v_dist_info);
    END LOOP;

    p_total := v_sum * (1 - v_discount) * (1 + v_w_tax + v_d_tax);
END
$$;

-- 2.5. A customer is named by number, or (p_c_id NULL) by last name: the middle one by first name.
CREATE OR REPLACE PROCEDURE payment(
    p_w_id integer, p_d_id integer, p_c_w_id integer, p_c_d_id integer,
    INOUT p_c_id integer, p_c_last text, p_amount numeric,
    INOUT p_balance numeric DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_w_name text;
    v_d_name text;
    v_credit text;
    v_data   text;
    v_count  bigint;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id
    RETURNING w_name INTO v_w_name;

    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_name INTO v_d_name;

    IF p_c_id IS NULL THEN
        SELECT count(*) INTO v_count
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        SELECT c_id INTO STRICT p_c_id
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
         ORDER BY c_first
         LIMIT 1 OFFSET (v_count - 1) / 2;
    END IF;

    UPDATE customer
       SET c_balance = c_balance - p_amount,
           c_ytd_payment = c_ytd_payment + p_amount,
           c_payment_cnt = c_payment_cnt + 1
     WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id
    RETURNING c_credit, c_balance INTO v_credit, p_balance;

    IF v_credit = 'BC' THEN
        SELECT c_data INTO v_data
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id;
        UPDATE customer
           SET c_data = substr(p_c_id || ' ' || p_c_d_id || ' ' || p_c_w_id || ' ' || p_d_id || ' '
                               || p_w_id || ' ' || p_amount || ' | ' || v_data, 1, 500)
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id;
    END IF;

    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (p_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, now(), p_amount,
            v_w_name || '    ' || v_d_name);
END
$$;

-- 2.6. The lines of the customer's newest order come back as arrays.
CREATE OR REPLACE PROCEDURE order_status(
    p_w_id integer, p_d_id integer, INOUT p_c_id integer, p_c_last text,
    INOUT p_balance numeric DEFAULT NULL, INOUT p_o_id integer DEFAULT NULL,
    INOUT p_entry_d timestamptz DEFAULT NULL, INOUT p_carrier_id integer DEFAULT NULL,
    INOUT p_item_ids integer[] DEFAULT NULL, INOUT p_amounts numeric[] DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_count  bigint;
    v_first  text;
    v_middle text;
    v_last   text;
BEGIN
    IF p_c_id IS NULL THEN
        SELECT count(*) INTO v_count
          FROM customer
         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        SELECT c_id INTO STRICT p_c_id
          FROM customer
         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
         ORDER BY c_first
         LIMIT 1 OFFSET (v_count - 1) / 2;
    END IF;

    SELECT c_balance, c_first, c_middle, c_last INTO p_balance, v_first, v_middle, v_last
      FROM customer
     WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;

    SELECT o_id, o_entry_d, o_carrier_id INTO p_o_id, p_entry_d, p_carrier_id
      FROM orders
     WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = p_c_id
     ORDER BY o_id DESC
     LIMIT 1;

    SELECT array_agg(ol_i_id ORDER BY ol_number), array_agg(ol_amount ORDER BY ol_number)
      INTO p_item_ids, p_amounts
      FROM order_line
     WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = p_o_id;
END
$$;

-- 2.7. The oldest undelivered order of each of the ten districts.
CREATE OR REPLACE PROCEDURE delivery(
    p_w_id integer, p_carrier_id integer, INOUT p_delivered integer DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_o_id  integer;
    v_c_id  integer;
    v_total numeric;
BEGIN
    p_delivered := 0;
    FOR d IN 1 .. 10 LOOP
        SELECT no_o_id INTO v_o_id
          FROM new_order
         WHERE no_w_id = p_w_id AND no_d_id = d
         ORDER BY no_o_id
         LIMIT 1
           FOR UPDATE;
        CONTINUE WHEN NOT FOUND;

        DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = d AND no_o_id = v_o_id;
        -- Another delivery may have taken it while this one waited for its row.
        CONTINUE WHEN NOT FOUND;

        UPDATE orders SET o_carrier_id = p_carrier_id
         WHERE o_w_id = p_w_id AND o_d_id = d AND o_id = v_o_id
        RETURNING o_c_id INTO v_c_id;

        UPDATE order_line SET ol_delivery_d = now()
         WHERE ol_w_id = p_w_id AND ol_d_id = d AND ol_o_id = v_o_id;

        SELECT sum(ol_amount) INTO v_total
          FROM order_line
         WHERE ol_w_id = p_w_id AND ol_d_id = d AND ol_o_id = v_o_id;

        UPDATE customer
           SET c_balance = c_balance + v_total, c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = p_w_id AND c_d_id = d AND c_id = v_c_id;

        p_delivered := p_delivered + 1;
    END LOOP;
END
$$;

-- 2.8. Items of the last twenty orders whose stock is below the threshold.
CREATE OR REPLACE PROCEDURE stock_level(
    p_w_id integer, p_d_id integer, p_threshold integer, INOUT p_low_stock bigint DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_next_o_id integer;
BEGIN
    SELECT d_next_o_id INTO v_next_o_id FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;

    SELECT count(DISTINCT s_i_id) INTO p_low_stock
      FROM order_line JOIN stock ON s_w_id = p_w_id AND s_i_id = ol_i_id
     WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id
       AND ol_o_id >= v_next_o_id - 20 AND ol_o_id < v_next_o_id
       AND s_quantity < p_threshold;
END
$$;
