-- base conversion, checksums, encodings
CREATE DOMAIN radix AS int CHECK (VALUE BETWEEN 2 AND 62) ;
CREATE TYPE base_result AS (input numeric, base radix, digits text);

CREATE FUNCTION to_base(n numeric, b radix DEFAULT 36) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  alphabet CONSTANT text := '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
  q numeric := trunc(abs(n)); r int; s text := '';
BEGIN
  IF n IS NULL THEN RETURN NULL; END IF;
  IF n <> trunc(n) THEN
    RAISE EXCEPTION SQLSTATE '22023' USING MESSAGE = 'not an integer: ' || n;
  END IF;
  LOOP
    r := mod(q, b);
    s := substr(alphabet, r + 1, 1) || s;
    q := div(q, b);
    EXIT WHEN q = 0;
  END LOOP;
  RETURN CASE WHEN n < 0 THEN '-' ELSE '' END || s;
END $$;

CREATE FUNCTION from_base(s text, b radix = 36) RETURNS numeric LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  acc numeric := 0; ch char; v int; neg boolean := false;
BEGIN
  IF left(s, 1) = '-' THEN neg := true; s := substring(s FROM 2); END IF;
  FOR i IN 1 .. char_length(s) LOOP
    ch := substring(s, i, 1);
    v := strpos('0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', ch) - 1;
    IF v < 0 OR v >= b THEN
      RAISE invalid_text_representation USING MESSAGE = format('digit %L at position %s is not valid in base %s', ch, i, b), DETAIL = s;
    END IF;
    acc := acc * b + v;
  END LOOP;
  RETURN CASE neg WHEN true THEN -acc ELSE acc END;
END $$;

SELECT to_base(0), to_base(35), to_base(-1295), to_base(123456789012345678901234567890, 62), to_base(255, 2), to_base(NULL);
SELECT from_base('zz'), from_base('-10', 7), from_base('7fffffffffffffff', 16), from_base('', 2), from_base(NULL, 2);
SELECT to_base(5, 1);
SELECT to_base(5, 63);
SELECT to_base(2.5);
SELECT from_base('129', 8);
SELECT b, to_base(1000, b), from_base(to_base(1000, b), b) = 1000 AS ok FROM generate_series(2, 62, 12) AS b ORDER BY b;
SELECT to_base(NULL, NULL) IS NULL AS both_null, from_base('11', NULL) IS NULL AS strict_null;

-- round trip and composite results
CREATE FUNCTION bases(VARIADIC nums numeric[]) RETURNS SETOF base_result LANGUAGE plpgsql AS $$
DECLARE x numeric; b int; r base_result;
BEGIN
  FOREACH x IN ARRAY nums LOOP
    FOREACH b IN ARRAY '{16,8,2}'::int[] LOOP
      r := ROW(x, b, to_base(x, b));
      IF x = 13 AND b = 8 THEN r.digits := upper(r.digits) || '!'; END IF;
      RETURN NEXT r;
    END LOOP;
  END LOOP;
END $$;
SELECT * FROM bases(10, 13, -3) ORDER BY input, base DESC;
SELECT (b).digits, b::text AS whole FROM bases(VARIADIC ARRAY[7, 64]) AS b ORDER BY (b).input, (b).base;
SELECT ROW(1, 99, 'x')::base_result;

-- hex & friends
SELECT to_hex(255), to_hex(-1), to_hex(9223372036854775807), to_hex(-1::bigint);
SELECT x'1F'::int AS xi, ('x' || lpad('ff', 8, '0'))::bit(32)::int AS hex_cast, 10::bit(6) AS b10, (-2)::bit(5)::text AS neg;
SELECT encode('\x00ff10'::bytea, 'hex') h, encode(convert_to('héllo', 'UTF8'), 'base64') b64, encode('\x5c0041'::bytea, 'escape') esc;
SELECT convert_from(decode('aMOpbGxv', 'base64'), 'UTF8') AS txt, decode('4142', 'hex') AS hx, decode('A\\000\\134', 'escape') AS es;
SELECT decode('4g', 'hex');
SELECT decode('abc', 'hex');
SELECT decode('a', 'base64');
SELECT encode('\x01', 'base32');
SELECT md5(''), md5('a' || chr(233)), encode(sha256('abc'), 'hex');
SELECT get_byte('\x01ab'::bytea, 1), set_byte('\x0000'::bytea, 0, 255), get_bit('\x80'::bytea, 7), set_bit('\x00'::bytea, 3, 1), length('\x010203'::bytea), octet_length('é'), bit_length('ab');
SELECT get_byte('\x01'::bytea, 4);
SELECT ascii('€'), chr(8364), ascii(''), chr(65) || chr(97);
SELECT chr(0);

-- Luhn, ISBN and Adler32
CREATE FUNCTION luhn_ok(num text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT sum(CASE WHEN o % 2 = 0 THEN (d * 2) / 10 + (d * 2) % 10 ELSE d END) % 10 = 0
  FROM (SELECT c::int AS d, o FROM regexp_split_to_table(reverse(regexp_replace(num, '\D', '', 'g')), '') WITH ORDINALITY t(c, o)) s
$$;
SELECT n, luhn_ok(n) FROM (VALUES ('4539 1488 0343 6467'), ('8273 1232 7352 0569'), ('0'), (NULL)) AS t(n) ORDER BY n;
SELECT luhn_ok('none');
CREATE FUNCTION adler32(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE a bigint := 1; b bigint := 0;
BEGIN
  FOR k IN 0 .. octet_length(data) - 1 LOOP
    a := (a + get_byte(data, k)) % 65521;
    b := (b + a) % 65521;
  END LOOP;
  RETURN (b << 16) | a;
END $$;
SELECT to_hex(adler32('Wikipedia'::bytea)) AS wiki, adler32(''::bytea) AS e, adler32(NULL) AS n, adler32('\xffff') AS ff;
SELECT substring('\x0102030405'::bytea FROM 2 FOR 2) AS sub, '\x01'::bytea || '\x02' AS cat, position('\x03'::bytea IN '\x010203'::bytea) AS pos,
       overlay('\x000000'::bytea PLACING '\xff'::bytea FROM 2) AS ov, trim('\x00'::bytea FROM '\x000100'::bytea) AS tr, '\x01'::bytea < '\x0100'::bytea AS lt;
