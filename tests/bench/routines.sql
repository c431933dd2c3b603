-- Loops without a table. Loads unchanged into PostgreSQL 15 and into Archipel.

CREATE FUNCTION arithmetic(p_rounds integer) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_sum bigint := 0;
BEGIN
    FOR i IN 1 .. p_rounds LOOP
        v_sum := v_sum + i * 7 % 1000 - i / 3;
        IF v_sum < 0 THEN
            v_sum := v_sum + 1000000007;
        END IF;
    END LOOP;
    RETURN v_sum;
END
$$;

CREATE FUNCTION strings(p_rounds integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_text text := '';
BEGIN
    FOR i IN 1 .. p_rounds LOOP
        v_text := substr(v_text || chr(97 + i % 26), 1 + length(v_text) / 64, 64);
        IF left(v_text, 1) = 'q' THEN
            v_text := upper(v_text);
        END IF;
    END LOOP;
    RETURN v_text;
END
$$;

CREATE FUNCTION arrays(p_rounds integer) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_cells integer[] := array_fill(0, ARRAY[100]);
    v_sum   bigint := 0;
BEGIN
    FOR i IN 1 .. p_rounds LOOP
        v_cells[1 + i % 100] := v_cells[1 + (i + 1) % 100] + i % 7;
    END LOOP;
    FOR i IN 1 .. 100 LOOP
        v_sum := v_sum + v_cells[i];
    END LOOP;
    RETURN v_sum;
END
$$;
