-- linear algebra with multi-dimensional arrays and with sparse rows
CREATE DOMAIN square AS numeric[] CHECK (VALUE IS NULL OR (array_ndims(VALUE) = 2 AND array_length(VALUE, 1) = array_length(VALUE, 2)));
CREATE TABLE mat (name text PRIMARY KEY, m numeric[][] NOT NULL);
CREATE TABLE sparse (name text, i int, j int, v float8, PRIMARY KEY (name, i, j));
INSERT INTO mat VALUES ('A', '{{1,2},{3,4}}'), ('B', ARRAY[[0, 1], [1, 0]]), ('C', '{{1,2,3},{4,5,6}}'), ('S', '{{1,2},{2,4}}'), ('E', '{}'), ('V', '{5,6}'), ('N', '{{1,NULL},{0,2}}');

CREATE FUNCTION matmul(a numeric[], b numeric[]) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  n int := array_length(a, 1); k int := array_length(a, 2); p int := array_length(b, 2);
  r numeric[]; s numeric;
BEGIN
  IF k IS DISTINCT FROM array_length(b, 1) OR k IS NULL THEN
    RAISE EXCEPTION 'shapes % and % do not match', coalesce(array_dims(a), 'empty'), coalesce(array_dims(b), 'empty') USING ERRCODE = '2202E';
  END IF;
  r := array_fill(NULL::numeric, ARRAY[n, p]);
  FOR i IN 1..n LOOP
    FOR j IN 1..p LOOP
      s := 0;
      FOR t IN 1..k LOOP s := s + a[i][t] * b[t][j]; END LOOP;
      r[i][j] := s;
    END LOOP;
  END LOOP;
  RETURN r;
END $$;
CREATE OPERATOR ** (LEFTARG = numeric[], RIGHTARG = numeric[], FUNCTION = matmul);
SELECT x.name || '**' || y.name AS prod, x.m ** y.m AS res FROM mat x, mat y WHERE array_ndims(x.m) = 2 AND array_ndims(y.m) = 2 AND array_length(x.m, 2) = array_length(y.m, 1) ORDER BY 1;
SELECT (SELECT m FROM mat WHERE name = 'C') ** (SELECT m FROM mat WHERE name = 'C');
SELECT (SELECT m FROM mat WHERE name = 'E') ** (SELECT m FROM mat WHERE name = 'A');
SELECT '{{1}}' ** NULL::numeric[] IS NULL AS strict_null;

CREATE FUNCTION transpose(a anyarray) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE r a%TYPE; row_ a%TYPE;
BEGIN
  FOR j IN array_lower(a, 2) .. array_upper(a, 2) LOOP
    row_ := NULL;
    FOR i IN array_lower(a, 1) .. array_upper(a, 1) LOOP row_ := row_ || a[i][j]; END LOOP;
    r := CASE WHEN r IS NULL THEN ARRAY[row_] ELSE r || row_ END;
  END LOOP;
  RETURN r;
END $$;
SELECT name, transpose(m) FROM mat WHERE array_ndims(m) = 2 ORDER BY name;
SELECT transpose(ARRAY[['a', 'b', 'c']]), transpose('[0:1][5:6]={{1,2},{3,4}}'::int[]);
SELECT transpose(m) FROM mat WHERE name = 'V';

CREATE FUNCTION det(m square) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE n int := array_length(m, 1); d numeric := 1; f numeric; piv int; tmp numeric;
BEGIN
  FOR c IN 1 .. n LOOP
    piv := NULL;
    FOR r IN c .. n LOOP
      IF m[r][c] <> 0 THEN piv := r; EXIT; END IF;
    END LOOP;
    IF piv IS NULL THEN RETURN 0; END IF;
    IF piv <> c THEN
      d := -d;
      FOR k IN 1 .. n LOOP tmp := m[c][k]; m[c][k] := m[piv][k]; m[piv][k] := tmp; END LOOP;
    END IF;
    d := d * m[c][c];
    FOR r IN c + 1 .. n LOOP
      f := m[r][c] / m[c][c];
      FOR k IN c .. n LOOP m[r][k] := m[r][k] - f * m[c][k]; END LOOP;
    END LOOP;
  END LOOP;
  RETURN d;
END $$;
SELECT name, det(m)::numeric(12,4) FROM mat WHERE name IN ('A', 'B', 'S') ORDER BY name;
SELECT det('{{0,2,1},{1,0,0},{3,1,4}}')::numeric(8,2), det('{{7}}');
SELECT det(NULL);
SELECT det('{{1,2,3},{4,5,6}}');
SELECT det(m) FROM mat WHERE name = 'V';

-- slices, assignment into sub-ranges, FOREACH SLICE
DO $$
DECLARE
  g int[] := array_fill(0, ARRAY[3, 4]);
  r int[]; e int; acc text := '';
BEGIN
  g[2:3][2:3] := ARRAY[[1, 2], [3, 4]];
  g[1][4] := 9;
  RAISE NOTICE 'g=% dims=%', g, array_dims(g);
  FOREACH r SLICE 1 IN ARRAY g LOOP
    RAISE NOTICE 'row % sum=%', r, (SELECT sum(x) FROM unnest(r) x);
  END LOOP;
  FOREACH r SLICE 2 IN ARRAY g[2:3] LOOP RAISE NOTICE 'whole %', r; END LOOP;
  FOREACH e IN ARRAY g[:][1:2] LOOP acc := acc || e || ' '; END LOOP;
  RAISE NOTICE 'flat %', acc;
  RAISE NOTICE 'slices % % % %', g[2:2][:], g[:1], g[2], g[1][1:2];
  BEGIN
    g[5][1] := 1;
  EXCEPTION WHEN array_subscript_error THEN RAISE NOTICE 'cannot grow: %', SQLERRM;
  END;
  BEGIN
    g[1:2][1:2] := ARRAY[1];
  EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'short: % %', SQLSTATE, SQLERRM;
  END;
  FOREACH r SLICE 3 IN ARRAY g LOOP NULL; END LOOP;
END $$;
DO $$ DECLARE x int; BEGIN FOREACH x SLICE 1 IN ARRAY ARRAY[[1],[2]] LOOP NULL; END LOOP; END $$;
SELECT (m)[1:2][2:2] AS col2, m[2:2] AS row2, m[1][1] AS e, m[9][9] AS oob, m[1] AS partial FROM mat WHERE name = 'C';
UPDATE mat SET m[1][2] = m[1][2] * 10, m[2][1] = NULL WHERE name = 'A' RETURNING m;
UPDATE mat SET m[3:4] = '{7,8}' WHERE name = 'V' RETURNING m, array_upper(m, 1);
UPDATE mat SET m[6] = 1 WHERE name = 'V' RETURNING m;
UPDATE mat SET m[0] = 0 WHERE name = 'V' RETURNING m, array_lower(m, 1);

INSERT INTO sparse SELECT name, i, j, m[i][j] FROM mat, generate_subscripts(m, 1) i, generate_subscripts(m, 2) j WHERE m[i][j] IS NOT NULL AND m[i][j] <> 0;
SELECT a.i, b.j, sum(a.v * b.v) FROM sparse a JOIN sparse b ON a.j = b.i WHERE a.name = 'B' AND b.name = 'C' GROUP BY a.i, b.j ORDER BY 1, 2;
SELECT name, array_agg(r ORDER BY i) FROM (SELECT name, i, array_agg(v ORDER BY j) r FROM sparse WHERE name IN ('C', 'S') GROUP BY name, i) s GROUP BY name ORDER BY name;
SELECT array_agg(ARRAY[x, y] ORDER BY x, y) FROM generate_series(1, 2) x, generate_series(1, 2) y;
SELECT array_agg(a) FROM (VALUES (ARRAY[1]), (ARRAY[1, 2])) v(a);
SELECT array_fill(7, ARRAY[2, 2], ARRAY[0, -1]), array_fill('x'::text, '{}'), array_fill(NULL::int, ARRAY[2]);
SELECT array_fill(1, ARRAY[2, NULL]);
SELECT array_fill(1, ARRAY[2], ARRAY[1, 1]);
