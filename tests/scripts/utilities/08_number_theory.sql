-- number theory package in its own schema
CREATE SCHEMA nt;
SET search_path = nt, public;
CREATE TABLE prime (p int PRIMARY KEY, ord int UNIQUE);
CREATE TABLE factor_cache (n bigint PRIMARY KEY, factors jsonb NOT NULL, hits int DEFAULT 0);

CREATE FUNCTION roman(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  vals CONSTANT int[] := '{1000,900,500,400,100,90,50,40,10,9,5,4,1}';
  syms CONSTANT text[] := '{M,CM,D,CD,C,XC,L,XL,X,IX,V,IV,I}';
  res text := '';
BEGIN
  IF n NOT BETWEEN 1 AND 3999 THEN
    RAISE numeric_value_out_of_range USING MESSAGE = format('%s has no roman form', n);
  END IF;
  FOR i IN array_lower(vals, 1) .. array_upper(vals, 1) LOOP
    WHILE n >= vals[i] LOOP
      res := res || syms[i];
      n := n - vals[i];
    END LOOP;
  END LOOP;
  RETURN NULLIF(res, '');
END $$;
CREATE FUNCTION unroman(r text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  total int := 0; cur int; prev int := 0; c text;
BEGIN
  FOREACH c IN ARRAY string_to_array(reverse(upper(r)), NULL) LOOP
    cur := CASE c WHEN 'I' THEN 1 WHEN 'V' THEN 5 WHEN 'X' THEN 10 WHEN 'L' THEN 50 WHEN 'C' THEN 100 WHEN 'D' THEN 500 WHEN 'M' THEN 1000 END;
    IF cur IS NULL THEN RETURN NULL; END IF;
    total := total + CASE WHEN cur < prev THEN -cur ELSE cur END;
    prev := greatest(prev, cur);
  END LOOP;
  IF roman(total) IS DISTINCT FROM upper(r) THEN
    RAISE WARNING '% is not canonical (should be %)', r, roman(total);
  END IF;
  RETURN total;
END $$;
SELECT n, roman(n), unroman(roman(n)) = n AS ok, rpad(to_char(n, 'RN'), 15) = to_char(n, 'RN') AS padded, to_char(n, 'FMrn') FROM (VALUES (1), (4), (1994), (3888), (3999)) v(n) ORDER BY n;
SELECT unroman('IIII'), unroman('abc'), unroman('mcmxc'), roman(NULL);
SELECT roman(0);
SELECT to_char(4000, 'RN'), unroman('MMMM');

CREATE FUNCTION gcd_all(VARIADIC xs bigint[]) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE g bigint := 0; x bigint; t bigint;
BEGIN
  FOREACH x IN ARRAY xs LOOP
    x := abs(x);
    WHILE x <> 0 LOOP
      t := g % x; g := x; x := t;
    END LOOP;
  END LOOP;
  RETURN g;
END $$;
SELECT gcd_all(12, 18, 27), gcd_all(0), gcd_all(-4, 6), gcd_all(VARIADIC '{}'), gcd(12, -18), lcm(4, 6), lcm(0, 5), gcd(1.5, 0.6);
SELECT gcd_all(VARIADIC NULL);
SELECT gcd_all();
SELECT lcm(9223372036854775807, 2);

CREATE PROCEDURE sieve(lim int) LANGUAGE plpgsql AS $$
DECLARE
  is_comp bool[] := array_fill(false, ARRAY[lim]);
  i int := 2; k int := 0; j int;
BEGIN
  TRUNCATE prime;
  WHILE i <= lim LOOP
    IF NOT is_comp[i] THEN
      k := k + 1;
      INSERT INTO prime VALUES (i, k);
      j := i * i;
      LOOP EXIT WHEN j > lim; is_comp[j] := true; j := j + i; END LOOP;
    END IF;
    i := i + 1;
  END LOOP;
  RAISE INFO '% primes up to %', k, lim;
END $$;
CALL sieve(60);
SELECT string_agg(p::text, ' ' ORDER BY p DESC) FROM prime;
SELECT a.p, b.p AS twin FROM prime a JOIN prime b ON b.p = a.p + 2 ORDER BY 1;
CALL sieve(-1);

CREATE FUNCTION factorize(n bigint) RETURNS TABLE (factor bigint, power int) LANGUAGE plpgsql AS $$
DECLARE d bigint := 2; m bigint := n; cached jsonb;
BEGIN
  UPDATE factor_cache fc SET hits = hits + 1 WHERE fc.n = factorize.n RETURNING factors INTO cached;
  IF FOUND THEN
    RETURN QUERY SELECT key::bigint, value::int FROM jsonb_each_text(cached) ORDER BY 1;
    RETURN;
  END IF;
  cached := '{}';
  WHILE d * d <= m LOOP
    power := 0;
    WHILE m % d = 0 LOOP power := power + 1; m := m / d; END LOOP;
    IF power > 0 THEN factor := d; cached := cached || jsonb_build_object(d, power); RETURN NEXT; END IF;
    d := d + CASE d WHEN 2 THEN 1 ELSE 2 END;
  END LOOP;
  IF m > 1 THEN factor := m; power := 1; cached := cached || jsonb_build_object(m, 1); RETURN NEXT; END IF;
  INSERT INTO factor_cache (n, factors) VALUES (factorize.n, cached);
END $$;
SELECT * FROM factorize(5040) ORDER BY factor;
SELECT * FROM factorize(5040) ORDER BY factor DESC;
SELECT x, coalesce((SELECT string_agg(factor || CASE WHEN power > 1 THEN '^' || power ELSE '' END, '·' ORDER BY factor) FROM factorize(x)), '-') f FROM unnest('{1,97,1001,65536,600851475143}'::bigint[]) x ORDER BY x;
SELECT * FROM factor_cache ORDER BY n;
CREATE FUNCTION fact(n int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN n <= 1 THEN 1 ELSE n * nt.fact(n - 1) END $$;
SELECT fact(0), fact(20), fact(30), factorial(30) = fact(30) AS same, length(fact(50)::text) AS digits;
SELECT factorial(-1);
CREATE FUNCTION powmod(b numeric, e bigint, m numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE r numeric := 1;
BEGIN
  b := b % m;
  WHILE e > 0 LOOP
    IF e & 1 = 1 THEN r := r * b % m; END IF;
    e := e >> 1; b := b * b % m;
  END LOOP;
  RETURN r;
END $$;
SELECT powmod(2, 1000, 1000000007), powmod(3, 0, 7), powmod(7, 9223372036854775807, 13);
SELECT powmod(2, 5, 0);
WITH RECURSIVE collatz(start, n, steps) AS (SELECT s, s::bigint, 0 FROM unnest(ARRAY[1, 6, 27]) s UNION ALL SELECT start, CASE n % 2 WHEN 0 THEN n / 2 ELSE 3 * n + 1 END, steps + 1 FROM collatz WHERE n > 1)
SELECT start, max(steps) AS steps, max(n) AS peak FROM collatz GROUP BY start ORDER BY start;
