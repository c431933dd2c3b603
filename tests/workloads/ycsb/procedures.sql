-- YCSB's operations as PL/pgSQL routines. Load unchanged into PostgreSQL 15 and into Archipel.

CREATE OR REPLACE FUNCTION ycsb_read(p_key varchar) RETURNS SETOF usertable
LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT * FROM usertable u WHERE u.ycsb_key = p_key;
END
$$;

CREATE OR REPLACE FUNCTION ycsb_scan(p_from varchar, p_count integer) RETURNS SETOF usertable
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT * FROM usertable u WHERE u.ycsb_key >= p_from ORDER BY u.ycsb_key LIMIT p_count;
END
$$;

CREATE OR REPLACE PROCEDURE ycsb_insert(p_key varchar, p_value varchar)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usertable (ycsb_key, field0, field1, field2, field3, field4,
                           field5, field6, field7, field8, field9, letters)
    VALUES (p_key, p_value, p_value, p_value, p_value, p_value,
            p_value, p_value, p_value, p_value, p_value, 10 * ascii(p_value));
END
$$;

-- Writes one field.
CREATE OR REPLACE PROCEDURE ycsb_update(p_key varchar, p_field integer, p_value varchar)
LANGUAGE plpgsql AS $$
BEGIN
    CASE p_field
        WHEN 0 THEN
            UPDATE usertable SET field0 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field0) WHERE ycsb_key = p_key;
        WHEN 1 THEN
            UPDATE usertable SET field1 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field1) WHERE ycsb_key = p_key;
        WHEN 2 THEN
            UPDATE usertable SET field2 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field2) WHERE ycsb_key = p_key;
        WHEN 3 THEN
            UPDATE usertable SET field3 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field3) WHERE ycsb_key = p_key;
        WHEN 4 THEN
            UPDATE usertable SET field4 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field4) WHERE ycsb_key = p_key;
        WHEN 5 THEN
            UPDATE usertable SET field5 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field5) WHERE ycsb_key = p_key;
        WHEN 6 THEN
            UPDATE usertable SET field6 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field6) WHERE ycsb_key = p_key;
        WHEN 7 THEN
            UPDATE usertable SET field7 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field7) WHERE ycsb_key = p_key;
        WHEN 8 THEN
            UPDATE usertable SET field8 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field8) WHERE ycsb_key = p_key;
        ELSE
            UPDATE usertable SET field9 = p_value, written = written + 1,
                letters = letters + ascii(p_value) - ascii(field9) WHERE ycsb_key = p_key;
    END CASE;
END
$$;

-- Reads a record and writes all of it back, its fields moved on by one place: the sum of their
-- letters stays what it is by then.
CREATE OR REPLACE PROCEDURE ycsb_read_modify_write(p_key varchar)
LANGUAGE plpgsql AS $$
DECLARE
    v usertable%ROWTYPE;
BEGIN
    SELECT * INTO v FROM usertable WHERE ycsb_key = p_key FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE usertable
       SET field0 = v.field9, field1 = v.field0, field2 = v.field1, field3 = v.field2, field4 = v.field3,
           field5 = v.field4, field6 = v.field5, field7 = v.field6, field8 = v.field7, field9 = v.field8,
           written = written + 1
     WHERE ycsb_key = p_key;
END
$$;
