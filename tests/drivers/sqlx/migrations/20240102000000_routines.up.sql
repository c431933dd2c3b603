CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE after numeric;
BEGIN
    UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
    IF NOT FOUND THEN RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002'; END IF;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
CREATE PROCEDURE split(p_text text, OUT p_first text, INOUT p_rest refcursor) LANGUAGE plpgsql AS $$
BEGIN
    p_first := left(p_text, 1);
    OPEN p_rest FOR SELECT substr(p_text, 2);
END $$;
