-- permission masks, bit strings, bloom filter, gray codes, CRC
CREATE TABLE perm (bitpos smallint PRIMARY KEY CHECK (bitpos BETWEEN 0 AND 15), name text UNIQUE NOT NULL);
CREATE TABLE role (name text PRIMARY KEY, mask int NOT NULL DEFAULT 0, inherits text REFERENCES role, flags bit(8) DEFAULT B'00000000', hist bit varying(12) NOT NULL DEFAULT B'');
INSERT INTO perm SELECT o - 1, n FROM unnest('{read,write,exec,grant,admin}'::text[]) WITH ORDINALITY t(n, o);

CREATE FUNCTION mask_of(VARIADIC names text[]) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE m int := 0; nm text; p perm;
BEGIN
  FOREACH nm IN ARRAY names LOOP
    IF nm LIKE '-%' THEN
      SELECT * INTO STRICT p FROM perm WHERE name = substr(nm, 2);
      m := m & ~(1 << p.bitpos);
    ELSIF nm = '*' THEN
      m := m | (SELECT bit_or(1 << bitpos) FROM perm);
    ELSE
      SELECT * INTO STRICT p FROM perm WHERE name = nm;
      m := m | (1 << p.bitpos);
    END IF;
  END LOOP;
  RETURN m;
EXCEPTION WHEN no_data_found THEN
  RAISE EXCEPTION 'no permission "%"', nm USING HINT = 'known: ' || (SELECT string_agg(name, ' ' ORDER BY bitpos) FROM perm), ERRCODE = 'P0002';
END $$;
CREATE FUNCTION names_of(mask int) RETURNS text[] LANGUAGE sql STABLE AS $$ SELECT coalesce(array_agg(name ORDER BY bitpos), '{}') FROM perm WHERE mask & (1 << bitpos) <> 0 $$;
CREATE FUNCTION effective_mask(r text) RETURNS int LANGUAGE sql STABLE AS $$
  WITH RECURSIVE up AS (SELECT name, mask, inherits FROM role WHERE name = r UNION SELECT p.name, p.mask, p.inherits FROM role p JOIN up ON p.name = up.inherits)
  SELECT bit_or(mask) FROM up
$$;
INSERT INTO role VALUES ('guest', mask_of('read'), NULL, DEFAULT, DEFAULT), ('dev', mask_of('write', 'exec'), 'guest', B'10101010', DEFAULT), ('root', mask_of('*', '-grant'), NULL, X'F0', B'101');
UPDATE role SET inherits = 'dev' WHERE name = 'guest';
SELECT name, mask, mask::bit(5) AS bits, names_of(mask), names_of(effective_mask(name)) AS eff, flags, flags::int, (flags | B'00001111')::text AS lo FROM role ORDER BY name;
SELECT mask_of('read', 'fly');
SELECT mask_of(), effective_mask('nobody'), names_of(0), names_of(NULL);
SELECT mask_of(VARIADIC '{}'::text[]), effective_mask('nobody') AS none, names_of(0) AS zero, names_of(NULL) AS nul;
CREATE FUNCTION push_hist() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.hist := OLD.hist || CASE WHEN NEW.mask > OLD.mask THEN B'1' ELSE B'0' END;
  IF length(NEW.hist) > 4 THEN NEW.hist := substring(NEW.hist FROM 2); END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER h BEFORE UPDATE OF mask ON role FOR EACH ROW EXECUTE FUNCTION push_hist();
DO $$ DECLARE v int; BEGIN FOREACH v IN ARRAY '{1,5,2,8,8,31}'::int[] LOOP UPDATE role SET mask = v WHERE name IN ('root', 'guest'); END LOOP; END $$;
SELECT name, mask, hist, length(hist), hist::bit(3) AS cut, hist::bit(8) AS pad FROM role ORDER BY name;

-- bit string operators
SELECT B'1100' & B'1010' a, B'1100' | B'1010' o, B'1100' # B'1010' x, ~ B'1100' n, B'1100' << 1 sl, B'1100' >> 3 sr, B'11' || B'00' c, B'10' < B'100' lt, B'1' = B'10' eq;
SELECT X'1F' h, length(X'1F') l, octet_length(B'101010101') ol, bit_count(B'10110') bc, bit_count('\xff01'::bytea) bcb, get_bit(B'100', 0) g, set_bit(B'100', 2, 1) s, position(B'11' IN B'00110') p, overlay(B'00000' PLACING B'11' FROM 3) ov, substring(B'110011' FROM 2 FOR 3) sub;
SELECT B'101'::bit(5), B'10111'::bit(3), 5::bit(8), (-5)::bit(8), 5::bigint::bit(66), B'0101'::int, X'FFFFFFFF'::bit(32)::int, B'101'::varbit(2), '101'::bit, ''::varbit = B'' AS empty;
SELECT '0x'::text::varbit;
SELECT '102'::bit(3);
SELECT B'12';
SELECT B'11' & B'101';
SELECT get_bit(B'1', 3);
INSERT INTO role (name, flags) VALUES ('bad', B'101');
INSERT INTO role (name, hist) VALUES ('bad', B'1010101010101');
INSERT INTO role (name, flags) VALUES ('cast', B'101'::bit(8)) RETURNING flags, hist = B'' AS e;
SELECT bit_and(f), bit_or(f), bit_xor(f), string_agg(f::text, ',' ORDER BY f) FROM (VALUES (B'1101'), (B'0111'), (NULL)) v(f);
SELECT bit_and(x), bit_or(x), bit_xor(x) FROM (VALUES (12), (10)) v(x);

-- integer tricks
CREATE FUNCTION popcount(x bigint) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE n int := 0;
BEGIN
  WHILE x <> 0 LOOP x := x & (x - 1); n := n + 1; END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION gray(n int) RETURNS bit varying LANGUAGE sql IMMUTABLE AS $$ SELECT (n # (n >> 1))::bit(4)::varbit $$;
CREATE FUNCTION ungray(b bit varying) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE v int := lpad(b::text, 32, '0')::bit(32)::int; m int := v >> 1;
BEGIN
  WHILE m <> 0 LOOP v := v # m; m := m >> 1; END LOOP;
  RETURN v;
END $$;
SELECT popcount(255), popcount(0), popcount(-1 & 65535), popcount(NULL), popcount(9223372036854775807);
SELECT n, gray(n), ungray(gray(n)) = n AS rt, bit_count(gray(n)) - bit_count(gray(n - 1)) AS delta FROM generate_series(1, 10, 3) n ORDER BY n;
SELECT 1 << 31 a, 1 << 32 b, -1 >> 31 c, -8 >> 1 d, ~0 e, 6 & 3 f, 6 | 3 g, 6 # 3 h, (1::bigint << 40) i, 5 & NULL j, (1::smallint << 15::int) k;
SELECT 1::smallint & 3::bigint, pg_typeof(1::smallint & 3::bigint), pg_typeof(1::smallint << 2);
CREATE FUNCTION reverse_bits(n int, w int = 8) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE r int := 0;
BEGIN FOR i IN REVERSE w - 1 .. 0 LOOP r := r | (((n >> i) & 1) << (w - 1 - i)); END LOOP; RETURN r; END $$;
SELECT reverse_bits(1), reverse_bits(6, 4), reverse_bits(255, 0), reverse_bits(1, 32);
CREATE FUNCTION crc16(data bytea, poly int DEFAULT 40961) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE crc int := 65535; i int := 0;
BEGIN
  WHILE i < length(data) LOOP
    crc := crc # get_byte(data, i);
    FOR k IN 1..8 LOOP
      crc := CASE WHEN crc & 1 = 1 THEN (crc >> 1) # poly ELSE crc >> 1 END;
    END LOOP;
    i := i + 1;
  END LOOP;
  RETURN upper(lpad(to_hex(crc), 4, '0'));
END $$;
SELECT crc16('123456789'), crc16(''), crc16('\x00'), crc16('\xffff', 0);
-- bloom filter in a varbit column
CREATE TABLE bloom (id int PRIMARY KEY, bits varbit NOT NULL);
INSERT INTO bloom VALUES (1, repeat('0', 64)::varbit);
CREATE FUNCTION bloom_pos(w text) RETURNS int[] LANGUAGE sql IMMUTABLE AS $$ SELECT array_agg(get_byte(decode(md5(w || k), 'hex'), 0) % 64 ORDER BY k) FROM generate_series(1, 3) k $$;
CREATE PROCEDURE bloom_add(w text) LANGUAGE plpgsql AS $$
DECLARE p int;
BEGIN
  FOREACH p IN ARRAY bloom_pos(w) LOOP UPDATE bloom SET bits = set_bit(bits::bit(64), p, 1) WHERE id = 1; END LOOP;
END $$;
CALL bloom_add('apple'); CALL bloom_add('pear'); CALL bloom_add('fig');
SELECT w, bloom_pos(w), (SELECT bool_and(get_bit(bits::bit(64), p) = 1) FROM bloom, unnest(bloom_pos(w)) p) AS maybe FROM unnest('{apple,fig,kiwi,plum}'::text[]) w ORDER BY w;
SELECT bits, bit_count(bits) FROM bloom;
