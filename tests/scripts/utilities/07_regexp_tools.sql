-- log analysis with the regexp function family
SET timezone = 'UTC';
CREATE TABLE raw_log (n int PRIMARY KEY, line text);
INSERT INTO raw_log VALUES
 (1, '10.0.0.1 - bob [10/Oct/2020:13:55:36 +0000] "GET /a?x=1 HTTP/1.1" 200 2326'),
 (2, '10.0.0.2 - - [10/Oct/2020:23:59:59 +0200] "POST /login HTTP/1.0" 302 -'),
 (3, 'garbage line'),
 (4, '::1 - "eve" [29/Feb/2020:00:00:01 -0530] "DELETE /a/b/c HTTP/2" 500 17'),
 (5, NULL),
 (6, '10.0.0.1 - bob [11/Oct/2020:01:00:00 +0000] "GET /b HTTP/1.1" 404 0');
CREATE TYPE hit AS (ip text, who text, at timestamptz, verb text, path text, status smallint, bytes bigint);

CREATE FUNCTION parse_hit(line text) RETURNS hit LANGUAGE plpgsql AS $$
DECLARE
  m text[]; h hit;
  re CONSTANT text := '^(\S+) - (-|"?\w+"?) \[([^\]]+)\] "([A-Z]+) (\S+) HTTP/[\d.]+" (\d{3}) (\d+|-)$';
BEGIN
  m := regexp_match(line, re);
  IF NOT FOUND THEN NULL; END IF;
  IF m IS NULL THEN RETURN NULL; END IF;
  h.ip := m[1];
  h.who := NULLIF(btrim(m[2], '"'), '-');
  h.at := to_timestamp(replace(left(m[3], 20), ':', ' '), 'DD/Mon/YYYY HH24 MI SS') - (substring(m[3] FROM '([+-]\d{4})$') || '')::int / 100 * interval '1 hour';
  h.verb := m[4]; h.path := m[5]; h.status := m[6];
  h.bytes := CASE WHEN m[7] <> '-' THEN m[7] END;
  RETURN h;
END $$;
SELECT n, (parse_hit(line)).* FROM raw_log ORDER BY n;
SELECT n, parse_hit(line) IS NULL AS isnull, parse_hit(line) IS NOT NULL AS isnotnull, NOT parse_hit(line) IS NULL AS some FROM raw_log ORDER BY n;

DO $$
DECLARE h hit; r record; tally jsonb := '{}'; k text;
BEGIN
  FOR r IN SELECT n, line FROM raw_log ORDER BY n DESC LOOP
    h := parse_hit(r.line);
    k := coalesce(h.status / 100 || 'xx', CASE WHEN r.line IS NULL THEN 'null' ELSE 'bad' END);
    tally := tally || jsonb_build_object(k, coalesce((tally ->> k)::int, 0) + 1);
    RAISE NOTICE '% -> % (%)', r.n, h, k;
  END LOOP;
  RAISE NOTICE 'tally %', tally;
END $$;

-- every function of the family
SELECT regexp_replace('foobarbaz', 'b..', 'X'), regexp_replace('foobarbaz', 'b..', 'X', 'g'), regexp_replace('foobarbaz', 'b(..)', '<\1|\&>', 'g'),
       regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i') AS r4, regexp_replace('abcabc', 'b', 'Z', 1, 2) AS r5;
SELECT regexp_count('123123123', '\d{3}', 1) c1, regexp_count('ABCabc', 'b', 1, 'i') c2, regexp_instr('number of your street, town', '[^,]+', 1, 2) i1,
       regexp_instr('ABCDEFGHI', '(c..)(...)', 1, 1, 1, 'i', 2) i2, regexp_substr('number of your street, town', '[^,]+', 1, 2) s1, regexp_substr('ABCDEFGHI', '(c..)(...)', 1, 1, 'i', 2) s2, regexp_like('Hello', 'hELLO', 'i') l;
SELECT regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('abc', 'x'), regexp_match('abc', 'b'), regexp_match('abc', '(x)?b(c)');
SELECT o, m FROM regexp_matches('a1b22c333', '([a-z])(\d+)', 'g') WITH ORDINALITY AS t(m, o) ORDER BY o;
SELECT o, '[' || w || ']' AS w FROM regexp_split_to_table('the  quick brown', '\s+') WITH ORDINALITY AS t(w, o) ORDER BY o;
SELECT regexp_split_to_array('a,b;c', '[,;]'), regexp_split_to_array('', ','), regexp_split_to_array('abc', ''), regexp_split_to_array('xAyaz', 'a', 'i');
SELECT substring('foobar' FROM 'o(.)b') a, substring('foobar' FROM 'o.b') b, substring('foobar' SIMILAR '%#"o_b#"%' ESCAPE '#') c, 'abc' SIMILAR TO '(a|b|c)+' d, 'a%c' LIKE 'a!%c' ESCAPE '!' e, 'ABC' ILIKE 'a_c' f;
SELECT 'line1' || chr(10) || 'line2' ~ '^line2$' AS plain, 'line1' || chr(10) || 'line2' ~ '(?n)^line2$' AS n, regexp_replace(E'a\nb', '.', '*', 'g') AS dot, regexp_replace(E'a\nb', '(?p).', '*', 'g') AS dotp;
SELECT 'word boundary' ~ '\mbound' AS m, 'inbound' ~ '\mbound' AS m2, 'aXb' ~* 'x' AS ci, 'abab' ~ '^(ab)\1$' AS backref, 'foo' !~ '^f(?=x)' AS look, 'foobar' ~ 'foo(?!baz)' AS neglook, 'xyzzy' ~ '(?<=x)y' AS behind;
SELECT regexp_match('XY1234Z', 'Y*([0-9]{1,3})') greedy, regexp_match('XY1234Z', 'Y*?([0-9]{1,3})') nongreedy, regexp_match('aaa', 'a{2,}?') ng;
SELECT quote_literal(E'it''s \\ ok'), quote_nullable(NULL), quote_ident('select'), quote_ident('ok_name'), quote_ident('Mixed "q"');
SELECT 'a' ~ '[';
SELECT 'a' ~ '(';
SELECT regexp_replace('a', 'b', 'c', 'q!');
SELECT regexp_match('a', 'a', 'g');
SELECT regexp_count('a', 'a', 0);

-- substitution helper using a callback by name
CREATE FUNCTION gsub(src text, re text, fn regprocedure) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m text; res text := ''; piece text; pos int := 1; at int;
BEGIN
  LOOP
    at := regexp_instr(src, re, pos);
    EXIT WHEN at = 0;
    m := regexp_substr(src, re, pos);
    EXECUTE 'SELECT ' || fn::oid::regproc || '($1)' INTO piece USING m;
    res := res || substr(src, pos, at - pos) || coalesce(piece, '');
    pos := at + greatest(length(m), 1);
  END LOOP;
  RETURN res || substr(src, pos);
END $$;
CREATE FUNCTION double_it(t text) RETURNS text LANGUAGE sql AS 'SELECT (t::int * 2)::text';
CREATE FUNCTION hide(t text) RETURNS text LANGUAGE sql AS $$SELECT CASE WHEN length(t) > 3 THEN repeat('*', length(t)) END$$;
SELECT gsub('3 apples and 14 pears', '\d+', 'double_it(text)'), gsub('my pin is secret', '\w+', 'hide(text)'), gsub('none', '\d', 'upper(text)'), gsub('abc', 'b', 'upper(text)');
SELECT gsub('x', 'x', 'missing(text)');
SELECT gsub('99999999999', '\d+', 'double_it(text)');
SELECT path_part, count(*) FROM raw_log, regexp_split_to_table(trim(LEADING '/' FROM split_part((parse_hit(line)).path, '?', 1)), '/') AS path_part GROUP BY 1 ORDER BY 2 DESC, 1;
