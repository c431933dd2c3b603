-- Transactions on seats as PL/pgSQL routines. Load unchanged into PostgreSQL 15 and into Archipel.
-- Rows are locked in the order flight, reservation, customer.

CREATE OR REPLACE FUNCTION find_flights(p_from char, p_to char, p_day date)
RETURNS TABLE (flight integer, price numeric, seats_left integer)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT f_id, f_price, f_seats_left
      FROM flights
     WHERE f_from = p_from AND f_to = p_to AND f_day = p_day AND f_seats_left > 0
     ORDER BY f_price, f_id;
END
$$;

CREATE OR REPLACE FUNCTION find_open_seats(p_flight integer) RETURNS integer[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_seats integer;
    v_taken integer[] := '{}';
    v_open  integer[] := '{}';
    v_seat  integer;
BEGIN
    SELECT f_seats INTO STRICT v_seats FROM flights WHERE f_id = p_flight;
    FOR v_seat IN SELECT r_seat FROM reservations WHERE r_flight = p_flight ORDER BY r_seat LOOP
        v_taken := v_taken || v_seat;
    END LOOP;
    FOR v_seat IN 1 .. v_seats LOOP
        IF v_seat <> ALL (v_taken) THEN
            v_open := v_open || v_seat;
        END IF;
    END LOOP;
    RETURN v_open;
END
$$;

CREATE OR REPLACE PROCEDURE new_reservation(p_flight integer, p_seat integer, p_customer integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_price numeric;
    v_seats integer;
BEGIN
    UPDATE flights SET f_seats_left = f_seats_left - 1 WHERE f_id = p_flight AND f_seats_left > 0
    RETURNING f_price, f_seats INTO v_price, v_seats;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'flight % is full', p_flight USING ERRCODE = 'SR001';
    END IF;
    IF p_seat NOT BETWEEN 1 AND v_seats THEN
        RAISE EXCEPTION 'flight % has no seat %', p_flight, p_seat USING ERRCODE = 'SR002';
    END IF;
    BEGIN
        INSERT INTO reservations (r_flight, r_seat, r_customer, r_price)
        VALUES (p_flight, p_seat, p_customer, v_price);
    EXCEPTION WHEN unique_violation THEN
        RAISE EXCEPTION 'seat % of flight % is taken, or the customer has another', p_seat, p_flight
            USING ERRCODE = 'SR003';
    END;
    UPDATE customers SET c_reserved = c_reserved + 1, c_owes = c_owes + v_price WHERE c_id = p_customer;
END
$$;

-- Moves a customer to another seat of the same flight.
CREATE OR REPLACE PROCEDURE update_reservation(p_flight integer, p_customer integer, p_seat integer)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM flights WHERE f_id = p_flight FOR UPDATE;
    PERFORM FROM reservations WHERE r_flight = p_flight AND r_seat = p_seat;
    IF FOUND THEN
        RAISE EXCEPTION 'seat % of flight % is taken', p_seat, p_flight USING ERRCODE = 'SR003';
    END IF;
    UPDATE reservations SET r_seat = p_seat WHERE r_flight = p_flight AND r_customer = p_customer;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % has no seat on flight %', p_customer, p_flight USING ERRCODE = 'SR004';
    END IF;
END
$$;

CREATE OR REPLACE PROCEDURE delete_reservation(p_flight integer, p_customer integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_price numeric;
BEGIN
    UPDATE flights SET f_seats_left = f_seats_left + 1 WHERE f_id = p_flight;
    DELETE FROM reservations WHERE r_flight = p_flight AND r_customer = p_customer
    RETURNING r_price INTO v_price;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % has no seat on flight %', p_customer, p_flight USING ERRCODE = 'SR004';
    END IF;
    UPDATE customers SET c_reserved = c_reserved - 1, c_owes = c_owes - v_price WHERE c_id = p_customer;
END
$$;

CREATE OR REPLACE PROCEDURE update_customer(p_customer integer, p_phone varchar)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE customers SET c_phone = p_phone WHERE c_id = p_customer;
END
$$;
