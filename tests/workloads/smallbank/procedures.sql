-- SmallBank's six transactions as PL/pgSQL routines.
-- Load unchanged into PostgreSQL 15 and into Archipel.

CREATE OR REPLACE FUNCTION balance(p_custid integer) RETURNS numeric
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_savings  numeric;
    v_checking numeric;
BEGIN
    SELECT bal INTO STRICT v_savings FROM savings WHERE custid = p_custid;
    SELECT bal INTO STRICT v_checking FROM checking WHERE custid = p_custid;
    RETURN v_savings + v_checking;
END
$$;

CREATE OR REPLACE PROCEDURE deposit_checking(p_custid integer, p_amount numeric)
LANGUAGE plpgsql AS $$
BEGIN
    IF p_amount < 0 THEN
        RAISE EXCEPTION 'Invalid amount %', p_amount;
    END IF;
    UPDATE checking SET bal = bal + p_amount, deposited = deposited + p_amount WHERE custid = p_custid;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'No account of customer %', p_custid;
    END IF;
END
$$;

-- A negative amount is taken out; savings do not go below zero. A customer's checking account is
-- locked before the savings, as by all others.
CREATE OR REPLACE PROCEDURE transact_savings(p_custid integer, p_amount numeric)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM checking WHERE custid = p_custid FOR UPDATE;
    UPDATE savings SET bal = bal + p_amount WHERE custid = p_custid AND bal + p_amount >= 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Negative savings of customer %', p_custid;
    END IF;
    UPDATE checking SET deposited = deposited + p_amount WHERE custid = p_custid;
END
$$;

-- All of one customer's money goes to another's checking account. Rows are locked in the order of
-- the customers, so that two such calls do not wait for each other.
CREATE OR REPLACE PROCEDURE amalgamate(p_from integer, p_to integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_savings  numeric;
    v_checking numeric;
BEGIN
    IF p_from = p_to THEN
        RETURN;
    END IF;
    IF p_from < p_to THEN
        SELECT bal INTO STRICT v_checking FROM checking WHERE custid = p_from FOR UPDATE;
    ELSE
        PERFORM FROM checking WHERE custid = p_to FOR UPDATE;
        SELECT bal INTO STRICT v_checking FROM checking WHERE custid = p_from FOR UPDATE;
    END IF;
    SELECT bal INTO STRICT v_savings FROM savings WHERE custid = p_from FOR UPDATE;
    UPDATE savings SET bal = 0 WHERE custid = p_from;
    UPDATE checking SET bal = 0, transferred = transferred - (v_savings + v_checking) WHERE custid = p_from;
    UPDATE checking SET bal = bal + v_savings + v_checking, transferred = transferred + v_savings + v_checking
     WHERE custid = p_to;
END
$$;

-- A cheque beyond the customer's money costs a penalty of one.
CREATE OR REPLACE PROCEDURE write_check(p_custid integer, p_amount numeric)
LANGUAGE plpgsql AS $$
DECLARE
    v_savings  numeric;
    v_checking numeric;
    v_taken    numeric := p_amount;
BEGIN
    SELECT bal INTO STRICT v_checking FROM checking WHERE custid = p_custid FOR UPDATE;
    SELECT bal INTO STRICT v_savings FROM savings WHERE custid = p_custid;
    IF v_savings + v_checking < p_amount THEN
        v_taken := p_amount + 1;
    END IF;
    UPDATE checking SET bal = bal - v_taken, deposited = deposited - v_taken WHERE custid = p_custid;
END
$$;

CREATE OR REPLACE PROCEDURE send_payment(p_from integer, p_to integer, p_amount numeric)
LANGUAGE plpgsql AS $$
BEGIN
    IF p_from = p_to THEN
        RETURN;
    END IF;
    IF p_from > p_to THEN
        PERFORM FROM checking WHERE custid = p_to FOR UPDATE;
    END IF;
    UPDATE checking SET bal = bal - p_amount, transferred = transferred - p_amount
     WHERE custid = p_from AND bal >= p_amount;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Insufficient funds of customer %', p_from;
    END IF;
    UPDATE checking SET bal = bal + p_amount, transferred = transferred + p_amount WHERE custid = p_to;
END
$$;
