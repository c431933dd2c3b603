-- URL and query-string handling with routing table
CREATE FUNCTION url_decode(enc text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  bin bytea := ''; tok text;
BEGIN
  FOR tok IN SELECT (regexp_matches(replace(enc, '+', ' '), '(%[0-9a-fA-F]{2}|.)', 'gs'))[1] LOOP
    IF length(tok) = 3 THEN bin := bin || decode(substr(tok, 2), 'hex');
    ELSE bin := bin || convert_to(tok, 'utf8');
    END IF;
  END LOOP;
  RETURN convert_from(bin, 'utf8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
  RETURN '<invalid>';
END $$;
CREATE FUNCTION url_encode(raw text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(string_agg(CASE WHEN c ~ '^[A-Za-z0-9_.~-]$' THEN c
    ELSE (SELECT string_agg('%' || upper(lpad(to_hex(get_byte(convert_to(c, 'utf8'), i)), 2, '0')), '' ORDER BY i)
          FROM generate_series(0, octet_length(c) - 1) AS i) END, '' ORDER BY o), '')
  FROM regexp_split_to_table(raw, '') WITH ORDINALITY AS t(c, o)
$$;
SELECT url_encode('a b&c=é/100%') AS e, url_decode('a%20b%26c%3D%C3%A9%2F100%25') AS d, url_decode('x+y%2By%') AS p, url_decode('%ff%fe') AS inv, url_encode('') = '' AS empty, url_decode(NULL) AS n;
SELECT s, url_decode(url_encode(s)) = s AS rt FROM (VALUES ('日本'), (E'tab\there'), ('~tilde')) v(s) ORDER BY s COLLATE "C";

CREATE FUNCTION parse_query(qs text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  part text; k text; v jsonb; res jsonb := '{}'; old jsonb;
BEGIN
  FOREACH part IN ARRAY string_to_array(ltrim(qs, '?'), '&') LOOP
    IF part = '' THEN CONTINUE; END IF;
    k := url_decode(split_part(part, '=', 1));
    IF strpos(part, '=') = 0 THEN v := 'true';
    ELSE v := to_jsonb(url_decode(substr(part, strpos(part, '=') + 1)));
    END IF;
    IF v #>> '{}' ~ '^-?(0|[1-9]\d*)$' AND jsonb_typeof(v) = 'string' THEN v := (v #>> '{}')::jsonb; END IF;
    old := res -> k;
    IF k LIKE '%[]' THEN
      k := left(k, -2);
      res := jsonb_set(res, ARRAY[k], coalesce(res -> k, '[]') || jsonb_build_array(v));
    ELSIF k ~ '^\w+\[\w+\]$' THEN
      res := res || jsonb_build_object(split_part(k, '[', 1), coalesce(res -> split_part(k, '[', 1), '{}') || jsonb_build_object(rtrim(split_part(k, '[', 2), ']'), v));
    ELSIF old IS NULL THEN
      res := jsonb_set(res, ARRAY[k], v, true);
    ELSE
      res := jsonb_set(res, ARRAY[k], CASE jsonb_typeof(old) WHEN 'array' THEN old ELSE jsonb_build_array(old) END || v);
    END IF;
  END LOOP;
  RETURN res;
END $$;
SELECT q, parse_query(q) FROM (VALUES (1, '?a=1&b=two+words&flag'), (2, 'x=1&x=2&x=three'), (3, 't[]=a&t[]=b&f[lo]=1&f[hi]=9'), (4, ''), (5, '&&=v&k=&k2=a=b'), (6, 'n=007&m=-5')) v(o, q) ORDER BY o;
SELECT parse_query(NULL);

CREATE TABLE route (id int PRIMARY KEY, method text NOT NULL, pattern text NOT NULL, handler regproc);
CREATE FUNCTION h_user(args jsonb) RETURNS text LANGUAGE sql AS $$ SELECT 'user ' || (args ->> 'id')::int * 2 $$;
CREATE FUNCTION h_search(args jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE lim int := least(coalesce((args ->> 'limit')::int, 10), 50); parts text[];
BEGIN
  IF args ? 'q' IS NOT TRUE THEN RAISE EXCEPTION 'missing parameter' USING ERRCODE = 'UQ400', DETAIL = jsonb_pretty(args); END IF;
  SELECT array_agg(k || '=' || (args ->> k) ORDER BY k) INTO parts FROM jsonb_object_keys(args - ARRAY['limit', 'q']) k;
  RETURN format('search %L limit %s filters %s', args ->> 'q', lim, coalesce(parts::text, 'none'));
END $$;
INSERT INTO route VALUES (1, 'GET', '/users/:id', 'h_user'), (2, 'GET', '/search', 'h_search'), (3, 'POST', '/users/:id/tags/:tag', NULL);

CREATE FUNCTION dispatch(meth text, url text, OUT status int, OUT body text) LANGUAGE plpgsql AS $$
DECLARE
  r route; path text := split_part(url, '?', 1); args jsonb; names text[]; vals text[]; re text;
BEGIN
  FOR r IN SELECT * FROM route WHERE method = upper(meth) ORDER BY id LOOP
    re := '^' || regexp_replace(r.pattern, ':\w+', '([^/]+)', 'g') || '$';
    vals := regexp_match(path, re);
    CONTINUE WHEN vals IS NULL;
    names := ARRAY(SELECT m[1] FROM regexp_matches(r.pattern, ':(\w+)', 'g') AS m);
    args := parse_query(substr(url, length(path) + 1));
    IF names <> '{}' THEN args := args || jsonb_object(names, vals); END IF;
    IF r.handler IS NULL THEN
      status := 501; body := args::text; RETURN;
    END IF;
    EXECUTE format('SELECT %s($1)', r.handler) INTO body USING args;
    status := 200;
    RETURN;
  END LOOP;
  status := 404;
EXCEPTION
  WHEN SQLSTATE 'UQ400' THEN status := 400; GET STACKED DIAGNOSTICS body = PG_EXCEPTION_DETAIL;
  WHEN invalid_text_representation THEN status := 422; body := SQLERRM;
END $$;
SELECT t.o, t.u, d.status, d.body FROM (VALUES (1, 'get', '/users/21'), (2, 'GET', '/users/abc'), (3, 'GET', '/search?q=rock+%26+roll&limit=500&year=1970'),
  (4, 'GET', '/search?limit=2'), (5, 'POST', '/users/7/tags/x%20y'), (6, 'DELETE', '/users/1'), (7, 'GET', '/search')) AS t(o, m, u)
LEFT JOIN LATERAL dispatch(t.m, t.u) d ON true ORDER BY t.o;
SELECT dispatch('GET', '/users/99999999999');
SELECT regexp_replace('http://user:pw@host:8080/p', '^(\w+)://(?:([^:@]+)(?::([^@]*))?@)?([^:/]+)(?::(\d+))?(.*)$', '\1 \2 \3 \4 \5 \6');
