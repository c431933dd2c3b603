-- edit distance, LCS, soundex-like codes, fuzzy dictionary
CREATE TABLE dictionary (word text PRIMARY KEY, freq int NOT NULL DEFAULT 1 CHECK (freq >= 0));
INSERT INTO dictionary VALUES ('kitten', 40), ('sitting', 12), ('mitten', 7), ('smitten', 3), ('sitten', 0), ('saturday', 80), ('sunday', 90), ('', 1);

CREATE FUNCTION lev(a text, b text, ins int = 1, del int = 1, sub int = 1) RETURNS int
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  n CONSTANT int := length(a);
  m CONSTANT int := length(b);
  prev int[];
  cur int[];
  i int; j int;
BEGIN
  IF n = 0 THEN RETURN m * ins; ELSIF m = 0 THEN RETURN n * del; END IF;
  FOR j IN 0..m LOOP prev[j] := j * ins; END LOOP;
  FOR i IN 1..n LOOP
    cur := NULL;
    cur[0] := i * del;
    FOR j IN 1..m LOOP
      cur[j] := least(prev[j] + del, cur[j-1] + ins,
                      prev[j-1] + CASE WHEN substr(a, i, 1) = substr(b, j, 1) THEN 0 ELSE sub END);
    END LOOP;
    prev := cur;
  END LOOP;
  RETURN prev[array_upper(prev, 1)];
END $$;
SELECT lev('kitten', 'sitting') AS d1, lev('saturday','sunday') AS d2, lev('', 'abc') AS d3, lev('abc', '') AS d4, lev(NULL, 'x') AS d5,
       lev('abc', 'yabd', sub => 5) AS d6, lev(b => 'ab', a => 'ba', del => 3) AS d7;
SELECT lev('a', 'b', nope => 1);
SELECT lev(a => 'a', 'b');

CREATE FUNCTION lcs(x text, y text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  t int[] := array_fill(0, ARRAY[length(x) + 1, length(y) + 1], ARRAY[0, 0]);
  i int := length(x); j int := length(y);
  res text := '';
BEGIN
  FOR i IN 1..length(x) LOOP
    FOR j IN 1..length(y) LOOP
      IF substr(x, i, 1) = substr(y, j, 1) THEN
        t[i][j] := t[i-1][j-1] + 1;
      ELSE
        t[i][j] := greatest(t[i-1][j], t[i][j-1]);
      END IF;
    END LOOP;
  END LOOP;
  WHILE i > 0 AND j > 0 LOOP
    CASE
      WHEN substr(x, i, 1) = substr(y, j, 1) THEN
        res := substr(x, i, 1) || res; i := i - 1; j := j - 1;
      WHEN t[i-1][j] >= t[i][j-1] THEN i := i - 1;
      ELSE j := j - 1;
    END CASE;
  END LOOP;
  RETURN res;
END $$;
SELECT lcs('AGGTAB', 'GXTXAYB') AS l1, lcs('abc', 'def') AS l2, lcs('', 'q') AS l3, length(lcs('programming', 'gaming')) AS l4;
SELECT lcs(NULL, 'x');

CREATE FUNCTION soundex_ish(w text) RETURNS char(4) LANGUAGE plpgsql IMMUTABLE RETURNS NULL ON NULL INPUT AS $$
DECLARE
  u text := regexp_replace(upper(w), '[^A-Z]', '', 'g');
  codes text; c text; last text := '0'; res text;
BEGIN
  IF u = '' THEN RETURN ''; END IF;
  codes := translate(u, 'AEIOUYHWBFPVCGJKQSXZDTLMNR', '000000--111122222222334556');
  res := substr(u, 1, 1);
  last := substr(codes, 1, 1);
  FOREACH c IN ARRAY string_to_array(substr(codes, 2), NULL) LOOP
    IF c NOT IN ('0', '-') AND c <> last THEN res := res || c; END IF;
    IF c <> '-' THEN last := c; END IF;
  END LOOP;
  RETURN rpad(left(res, 4), 4, '0');
END $$;
SELECT n, soundex_ish(n), soundex_ish(n) = 'R163' AS r163 FROM (VALUES ('Robert'), ('Rupert'), ('Rubin'), ('Ashcraft'), ('Tymczak'), ('Pfister'), ('123'), (NULL)) v(n) ORDER BY n NULLS FIRST;

CREATE FUNCTION suggest(q text, max_d int DEFAULT 3, lim int DEFAULT 3)
RETURNS TABLE (rank bigint, word text, d int, score numeric) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  IF q IS NULL THEN
    RAISE NOTICE 'nothing to look up';
    RETURN;
  END IF;
  RETURN QUERY
    SELECT row_number() OVER w, word, s.d, round(freq::numeric / (1 + s.d), 2)
    FROM dictionary, LATERAL (SELECT lev(q, word)) AS s(d)
    WHERE s.d <= max_d
    WINDOW w AS (ORDER BY s.d, freq DESC, word)
    ORDER BY 1 LIMIT lim;
  IF NOT FOUND THEN
    RETURN NEXT;
    RETURN QUERY VALUES (0::bigint, q || '?', NULL::int, 'NaN'::numeric);
  END IF;
END $$;
SELECT * FROM suggest('kitten');
SELECT * FROM suggest('zzzzzzzzzzz');
SELECT * FROM suggest('sit', 4, NULL);
SELECT count(*) FROM suggest(NULL);

CREATE FUNCTION hamming(a text, b text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  ASSERT length(a) = length(b), format('lengths differ: %s vs %s', length(a), length(b));
  RETURN (SELECT count(*) FILTER (WHERE p IS DISTINCT FROM q) FROM unnest(string_to_array(a, NULL), string_to_array(b, NULL)) AS u(p, q));
END $$;
SELECT hamming('karolin', 'kathrin'), hamming('', '');
SELECT hamming('a', 'ab');
SELECT hamming(NULL, 'ab');
WITH pairs AS (SELECT a.word x, b.word y FROM dictionary a JOIN dictionary b ON a.word < b.word COLLATE "C" AND length(a.word) = length(b.word))
SELECT x, y, hamming(x, y), lev(x, y), starts_with(y, left(x, 1)) AS same_first FROM pairs ORDER BY x, y;
