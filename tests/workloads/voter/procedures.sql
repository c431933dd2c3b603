-- Voter's transactions as PL/pgSQL routines. Load unchanged into PostgreSQL 15 and into Archipel.

-- Answers 0 for a vote that counts, 1 for an unknown contestant, 2 for a line that has voted often
-- enough.
CREATE OR REPLACE PROCEDURE vote(
    p_phone_number bigint, p_contestant_number integer, p_votes_max integer,
    INOUT p_status integer DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    v_state varchar(2);
    v_nth   integer;
BEGIN
    PERFORM FROM contestants WHERE contestant_number = p_contestant_number;
    IF NOT FOUND THEN
        p_status := 1;
        RETURN;
    END IF;
    INSERT INTO callers AS c (phone_number, votes) VALUES (p_phone_number, 1)
    ON CONFLICT (phone_number) DO UPDATE SET votes = c.votes + 1 WHERE c.votes < p_votes_max
    RETURNING c.votes INTO v_nth;
    IF NOT FOUND THEN
        p_status := 2;
        RETURN;
    END IF;
    -- Lines of unknown areas count for no state.
    SELECT state INTO v_state FROM area_codes WHERE area_code = p_phone_number / 10000000;
    INSERT INTO votes (phone_number, nth, state, contestant_number, created)
    VALUES (p_phone_number, v_nth, coalesce(v_state, 'XX'), p_contestant_number, now());
    p_status := 0;
END
$$;

-- What a line has voted for.
CREATE OR REPLACE FUNCTION votes_of(p_phone_number bigint)
RETURNS TABLE (contestant_name varchar, created timestamptz)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT c.contestant_name, v.created
      FROM votes v JOIN contestants c ON c.contestant_number = v.contestant_number
     WHERE v.phone_number = p_phone_number
     ORDER BY v.nth;
END
$$;
