-- polymorphic array toolbox
CREATE SCHEMA arr;
CREATE FUNCTION arr.sort(a anyarray, descending boolean DEFAULT false) RETURNS anyarray LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN $2 THEN array(SELECT unnest($1) ORDER BY 1 DESC NULLS LAST) ELSE array(SELECT unnest($1) ORDER BY 1) END
$$;
CREATE FUNCTION arr.uniq(anyarray) RETURNS anyarray LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(array_agg(x ORDER BY o), $1[1:0]) FROM (SELECT x, min(o) AS o FROM unnest($1) WITH ORDINALITY t(x, o) GROUP BY x) s
$$;
CREATE FUNCTION arr.intersect(a anyarray, b anyarray) RETURNS anyarray LANGUAGE sql IMMUTABLE AS $$ SELECT array(SELECT unnest(a) INTERSECT SELECT unnest(b) ORDER BY 1) $$;
CREATE FUNCTION arr.except_all(a anyarray, b anyarray) RETURNS anyarray LANGUAGE sql IMMUTABLE AS $$ SELECT array(SELECT unnest(a) EXCEPT ALL SELECT unnest(b) ORDER BY 1) $$;
CREATE FUNCTION arr.rotate(a anyarray, k int) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE n int := cardinality(a); r a%TYPE := '{}';
BEGIN
  IF n IS NULL OR n < 2 THEN RETURN a; END IF;
  k := ((k % n) + n) % n;
  r := a[k + 1 :] || a[: k];
  RETURN r;
END $$;
CREATE FUNCTION arr.chunk(a anyarray, size int) RETURNS SETOF anyarray LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  FOR i IN 1 .. coalesce(array_length(a, 1), 0) BY size LOOP
    RETURN NEXT a[i : i + size - 1];
  END LOOP;
END $$;
CREATE FUNCTION arr.fold(a anyarray, op text, init anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$
DECLARE acc init%TYPE := init; e init%TYPE;
BEGIN
  FOREACH e IN ARRAY a LOOP
    EXECUTE format('SELECT $1 %s $2', op) USING acc, e INTO acc;
  END LOOP;
  RETURN acc;
END $$;
CREATE FUNCTION arr.bsearch(a anyarray, x anyelement) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE lo int := array_lower(a, 1); hi int := array_upper(a, 1); mid int;
BEGIN
  WHILE lo <= hi LOOP
    mid := (lo + hi) / 2;
    IF a[mid] = x THEN RETURN mid;
    ELSIF a[mid] < x THEN lo := mid + 1;
    ELSE hi := mid - 1;
    END IF;
  END LOOP;
  RETURN -coalesce(lo, 1);
END $$;
SELECT arr.sort('{3,1,NULL,2}'::int[]), arr.sort(ARRAY['b', 'a', NULL], true), arr.sort('{}'::date[]), arr.sort(NULL::int[]), arr.sort('{2024-02-01,1999-01-01}'::date[], descending => true);
SELECT arr.uniq(ARRAY[3,1,3,NULL,2,NULL,1]), arr.uniq('{}'::text[]), arr.uniq(NULL::int[]), arr.uniq(ARRAY[[1,2],[2,3]]);
SELECT arr.intersect('{1,2,2,3}'::int[], '{2,3,4,NULL}'), arr.except_all('{a,a,b}'::text[], '{a}'), arr.intersect(ARRAY[1.0], ARRAY[1.00]);
SELECT arr.intersect(ARRAY[1], ARRAY['a']);
SELECT arr.intersect(ARRAY[1], ARRAY[1.5]);
SELECT arr.sort('{1,2}');
SELECT k, arr.rotate('{a,b,c,d}'::text[], k) FROM generate_series(-1, 5, 2) k ORDER BY k;
SELECT arr.rotate('{}'::int[], 3), arr.rotate(NULL::int[], 1), arr.rotate('[5:7]={1,2,3}'::int[], 1);
SELECT o, c FROM arr.chunk(ARRAY[1,2,3,4,5], 2) WITH ORDINALITY t(c, o) ORDER BY o;
SELECT count(*) FROM arr.chunk(NULL::int[], 2);
SELECT arr.chunk(ARRAY[1], 0);
SELECT arr.fold(ARRAY[1,2,3,4], '*', 1), arr.fold(ARRAY['a','b'], '||', '>'::text), arr.fold('{}'::numeric[], '+', 7.5), arr.fold(ARRAY[5, 1], '- 2 *', 0), arr.fold(ARRAY[1, NULL], '+', 0);
SELECT arr.fold(ARRAY[1], '/ 0 +', 1);
SELECT arr.bsearch(ARRAY[1,3,5,7], x) FROM unnest(ARRAY[5, 0, 6, 9]) WITH ORDINALITY u(x, o) ORDER BY o;
SELECT arr.bsearch('{}'::int[], 1), arr.bsearch(ARRAY['a', 'c']::text[], 'c'), arr.bsearch('[0:2]={x,y,z}'::text[], 'x');

-- merge sort with recursion and a swap-based permutation generator
CREATE FUNCTION arr.msort(a anyarray) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE n int := cardinality(a); l a%TYPE; r a%TYPE; res a%TYPE := a[1:0]; i int := 1; j int := 1;
BEGIN
  IF n <= 1 THEN RETURN a; END IF;
  l := arr.msort(a[1 : n / 2]); r := arr.msort(a[n / 2 + 1 : n]);
  WHILE i <= cardinality(l) OR j <= cardinality(r) LOOP
    IF j > cardinality(r) OR (i <= cardinality(l) AND l[i] <= r[j]) THEN res := res || l[i]; i := i + 1;
    ELSE res := res || r[j]; j := j + 1;
    END IF;
  END LOOP;
  RETURN res;
END $$;
SELECT arr.msort(ARRAY[5,2,9,1,5,6]), arr.msort(ARRAY['pear','fig','apple']), arr.msort('{}'::float8[]), arr.msort(ARRAY['b', 'a', 'B']::name[]);
CREATE FUNCTION arr.permute(a anyarray, k int DEFAULT 1) RETURNS SETOF anyarray LANGUAGE plpgsql AS $$
DECLARE tmp a%TYPE;
BEGIN
  IF k >= cardinality(a) THEN RETURN NEXT a; RETURN; END IF;
  FOR i IN k .. cardinality(a) LOOP
    tmp := a;
    tmp[k] := a[i]; tmp[i] := a[k];
    RETURN QUERY SELECT * FROM arr.permute(tmp, k + 1);
  END LOOP;
END $$;
SELECT array_to_string(p, '') AS perm FROM arr.permute('{x,y,z}'::text[]) p ORDER BY 1;
SELECT count(*), count(DISTINCT p) FROM arr.permute(ARRAY[1,1,2,3]) p;

-- builtin corners
SELECT array_position(ARRAY[1,2,NULL,2], 2, 3) p1, array_position(ARRAY[1,NULL], NULL) p2, array_positions(ARRAY['a','b','a'], 'a') p3, array_remove(ARRAY[1,NULL,1,2], 1) rm, array_remove(ARRAY[1,NULL], NULL) rmn, array_replace(ARRAY[1,NULL], NULL, 0) rp, trim_array(ARRAY[1,2,3], 2) tr;
SELECT ARRAY[1,2] || 3 a, 0 || ARRAY[1] b, ARRAY[1] || NULL::int[] c, NULL::int || ARRAY[1] d, ARRAY[1] || '{2,3}' e, array_cat('{}', ARRAY[[1,2]]) f, array_prepend(NULL, ARRAY[1]) g;
SELECT ARRAY[1,2,3] @> ARRAY[2,2] c1, ARRAY[1,NULL] @> ARRAY[NULL]::int[] c2, '{}'::int[] <@ ARRAY[1] c3, ARRAY[1,2] && ARRAY[2,9] c4, ARRAY[1,2] < ARRAY[1,3] c5, ARRAY[1,2] < ARRAY[1,2,NULL] c6, ARRAY[1,NULL] = ARRAY[1,NULL] c7, ARRAY[2] > ARRAY[1,5,9] c8;
SELECT 2 = ANY (ARRAY[1,NULL,2]) a1, 3 = ANY (ARRAY[1,NULL]) a2, 3 <> ALL (ARRAY[1,NULL]) a3, 3 <> ALL ('{}'::int[]) a4, NULL = ANY ('{}'::int[]) a5, 5 > ALL (ARRAY[1,2]) a6, 'ab' LIKE ANY (ARRAY['x%', 'a_']) a7, 1 = ANY (NULL::int[]) a8;
SELECT array_length('{}'::int[], 1) l0, cardinality('{}'::int[]) c0, array_ndims('{}'::int[]) n0, array_dims('[2:3]={1,2}'::int[]) dm, ('[2:3]={1,2}'::int[])[1] oob, (ARRAY[1,2,3])[2:] s, (ARRAY[1,2,3])[-5:1] s2, (ARRAY[1,2,3])[3:1] s3, '{1,"",NULL,"NULL",a b}'::text[] lit;
SELECT array_to_string(ARRAY[1,NULL,3], ',', '*') t1, array_to_string(ARRAY[[1,2],[3,4]], '-') t2, string_to_array('a,,b', ',', '') t3, string_to_array('', ',') t4, string_to_array(NULL, ',') t5, string_to_array('abc', NULL) t6, string_to_array('abc', '') t7;
SELECT '{1,2'::int[];
SELECT '{{1,2},{3}}'::int[];
SELECT ARRAY[1] || ARRAY[[1,2],[3,4]];
SELECT trim_array(ARRAY[1], 2);
SELECT array_position(ARRAY[[1,2],[3,4]], 3);
SELECT ARRAY[];
