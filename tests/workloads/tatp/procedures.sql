-- The seven TATP transactions (version 1.0, section 3) as PL/pgSQL routines.
-- Load unchanged into PostgreSQL 15 and into Archipel.

CREATE OR REPLACE FUNCTION get_subscriber_data(p_s_id integer)
RETURNS SETOF subscriber
LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT * FROM subscriber s WHERE s.s_id = p_s_id;
END
$$;

CREATE OR REPLACE FUNCTION get_new_destination(
    p_s_id integer, p_sf_type smallint, p_start_time smallint, p_end_time smallint)
RETURNS TABLE (destination varchar)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT cf.numberx
      FROM special_facility sf
      JOIN call_forwarding cf ON cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type
     WHERE sf.s_id = p_s_id AND sf.sf_type = p_sf_type AND sf.is_active = 1
       AND cf.start_time <= p_start_time AND cf.end_time > p_end_time;
END
$$;

CREATE OR REPLACE FUNCTION get_access_data(
    p_s_id integer, p_ai_type smallint,
    OUT data1 smallint, OUT data2 smallint, OUT data3 char, OUT data4 char)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT ai.data1, ai.data2, ai.data3, ai.data4
      INTO data1, data2, data3, data4
      FROM access_info ai
     WHERE ai.s_id = p_s_id AND ai.ai_type = p_ai_type;
END
$$;

CREATE OR REPLACE PROCEDURE update_subscriber_data(
    p_s_id integer, p_bit_1 smallint, p_sf_type smallint, p_data_a smallint,
    INOUT p_updated boolean DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE subscriber SET bit_1 = p_bit_1 WHERE s_id = p_s_id;
    UPDATE special_facility SET data_a = p_data_a WHERE s_id = p_s_id AND sf_type = p_sf_type;
    p_updated := FOUND;
END
$$;

CREATE OR REPLACE PROCEDURE update_location(
    p_sub_nbr varchar, p_vlr_location integer, INOUT p_updated boolean DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE subscriber SET vlr_location = p_vlr_location WHERE sub_nbr = p_sub_nbr;
    p_updated := FOUND;
END
$$;

CREATE OR REPLACE PROCEDURE insert_call_forwarding(
    p_sub_nbr varchar, p_sf_type smallint, p_start_time smallint, p_end_time smallint,
    p_numberx varchar)
LANGUAGE plpgsql AS $$
DECLARE
    v_s_id    integer;
    v_sf_type smallint;
BEGIN
    SELECT s_id INTO STRICT v_s_id FROM subscriber WHERE sub_nbr = p_sub_nbr;
    FOR v_sf_type IN SELECT sf_type FROM special_facility WHERE s_id = v_s_id LOOP
        EXIT WHEN v_sf_type = p_sf_type;
    END LOOP;
    INSERT INTO call_forwarding (s_id, sf_type, start_time, end_time, numberx)
    VALUES (v_s_id, p_sf_type, p_start_time, p_end_time, p_numberx);
END
$$;

CREATE OR REPLACE PROCEDURE delete_call_forwarding(
    p_sub_nbr varchar, p_sf_type smallint, p_start_time smallint,
    INOUT p_deleted boolean DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_s_id integer;
BEGIN
    SELECT s_id INTO STRICT v_s_id FROM subscriber WHERE sub_nbr = p_sub_nbr;
    DELETE FROM call_forwarding
     WHERE s_id = v_s_id AND sf_type = p_sf_type AND start_time = p_start_time;
    p_deleted := FOUND;
END
$$;
