-- nested documents <-> relational rows, jsonpath queries
SET timezone = 'UTC';
CREATE TYPE grade AS ENUM ('low', 'mid', 'high');
CREATE TABLE author (id int PRIMARY KEY, name text UNIQUE, born date);
CREATE TABLE book (id serial PRIMARY KEY, author_id int REFERENCES author ON DELETE CASCADE, title text, price numeric(6,2), g grade, tags text[], meta jsonb);
CREATE PROCEDURE load_docs(docs jsonb) LANGUAGE plpgsql AS $$
DECLARE
  d record; n int; bad jsonb;
BEGIN
  FOR d IN SELECT * FROM jsonb_to_recordset(docs) AS x(id int, name text, born date, books jsonb) LOOP
    INSERT INTO author SELECT d.id, d.name, d.born ON CONFLICT (id) DO UPDATE SET name = coalesce(excluded.name, author.name), born = coalesce(excluded.born, author.born);
    BEGIN
      INSERT INTO book (author_id, title, price, g, tags, meta)
      SELECT d.id, b.title, b.price, b.g, b.tags, b.meta FROM jsonb_to_recordset(CASE jsonb_typeof(d.books) WHEN 'array' THEN d.books WHEN 'object' THEN jsonb_build_array(d.books) END) AS b(title text, price numeric, g grade, tags text[], meta jsonb);
      GET DIAGNOSTICS n = ROW_COUNT;
      RAISE NOTICE 'author %: % books', d.id, n;
    EXCEPTION WHEN data_exception THEN
      RAISE NOTICE 'author %: % (%)', d.id, SQLERRM, SQLSTATE;
    END;
  END LOOP;
  IF NOT FOUND THEN RAISE NOTICE 'empty load'; END IF;
END $$;
CALL load_docs('[{"id": 1, "name": "Ann", "born": "1970-01-31", "books": [{"title": "T1", "price": 9.999, "g": "low", "tags": ["a", "b"], "meta": {"pages": 100, "dims": [1.5, 2]}}, {"title": "T2", "price": "12", "extra": 1, "meta": null}]},
 {"id": 2, "name": "Bob", "books": {"title": "Solo", "tags": [], "g": null, "meta": "str"}}, {"id": 3, "name": "Cid", "books": [{"title": "ok"}, {"g": "best"}]}, {"id": 2, "born": "1980-05-05"}, {"id": 4, "books": [{"price": 123456}]}]');
CALL load_docs('[]');
CALL load_docs('[{"id": "x"}]');
CALL load_docs('{"id": 1}');
CALL load_docs('[1]');
SELECT * FROM author ORDER BY id;
SELECT id, author_id, title, price, g, tags, meta, meta IS NULL AS sqlnull, jsonb_typeof(meta) FROM book ORDER BY id;

-- documents back
SELECT jsonb_pretty(jsonb_agg(jsonb_build_object('author', name, 'born', to_char(born, 'Mon YYYY'), 'books', (
   SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(b) - 'author_id' - 'id') ORDER BY b.id), '[]') FROM book b WHERE b.author_id = a.id)) ORDER BY a.id)) FROM author a WHERE id < 3;
SELECT json_object_agg(name, born ORDER BY id) FROM author;
SELECT json_object_agg(name, born ORDER BY id) FROM author WHERE name IS NOT NULL;
SELECT jsonb_object_agg(coalesce(title, 'untitled'), coalesce(price, 0)) FILTER (WHERE g IS NULL) FROM book;
SELECT json_build_object('k', 1, 'k', 2, 'arr', ARRAY[[1,2],[3,4]], 'row', ROW(1, 'x'), 'ts', timestamptz '2024-01-02 03:04:05.6', 'n', NULL, 'nan', 'NaN'::float8, 'b', true, 'j', '{"z" : 1}'::json);
SELECT json_build_array(1, 'a', NULL, '{}'::jsonb, 1.50, date '2024-01-01', interval '1 day'), jsonb_build_array(VARIADIC ARRAY['p', NULL]), json_build_object(), jsonb_object('{a,1,b,NULL}'), jsonb_object('{x,y}', '{1,2}'), array_to_json(ARRAY[[1,2],[3,NULL]]), row_to_json(ROW(1, 'f')), to_json('q"x'::text);
SELECT row_to_json(t, true) FROM (SELECT id, name FROM author ORDER BY id LIMIT 1) t;
SELECT jsonb_object_agg(NULL::text, 1);
SELECT jsonb_build_object('a');
SELECT jsonb_build_object(NULL, 1);
SELECT jsonb_object('{a,b,c}');

-- expansion functions
SELECT b.id, k, v FROM book b, jsonb_each_text(CASE WHEN jsonb_typeof(meta) = 'object' THEN meta END) AS e(k, v) ORDER BY 1, 2;
SELECT o, e, jsonb_typeof(e) FROM jsonb_array_elements('[1, "two", null, [3], {"k": 4}, true, 1e2]') WITH ORDINALITY t(e, o) ORDER BY o;
SELECT * FROM jsonb_array_elements_text('[1, "two", null, {"k" : 4}]') WITH ORDINALITY ORDER BY 2;
SELECT * FROM jsonb_array_elements('"scalar"');
SELECT * FROM jsonb_each('[1]');
SELECT * FROM json_each('{"b": 1, "a": {"x": 2}, "b": 3}') ORDER BY key, value::text;
SELECT * FROM jsonb_to_record('{"a": 1, "B": "x", "c": [1, 2], "d": {"p": 5, "q": "z"}, "e": "2024-02-29"}') AS r(a text, "B" char(3), c int[], d jsonb, e date, f int);
SELECT * FROM json_populate_record(ROW(7, 'dflt', '2000-01-01')::author, '{"id": null, "born": "1999-12-31"}');
SELECT * FROM jsonb_populate_recordset(NULL::book, '[{"title": "p", "tags": "{q,r}", "g": "high"}, {"id": 5, "meta": [1]}]') ORDER BY id NULLS FIRST;
SELECT (jsonb_populate_record(NULL::book, '{"tags": {"a": 1}}')).tags;
SELECT (jsonb_populate_record(NULL::book, '{"tags": [["a"], "b"]}')).tags;

-- operators and jsonpath
CREATE TABLE ev (n int, j jsonb);
INSERT INTO ev VALUES (1, '{"type": "click", "pos": {"x": 3, "y": 4}, "path": ["home", "item"]}'), (2, '{"type": "key", "codes": [65, 66, 300], "pos": {"x": null}}'), (3, '{"type": "click", "pos": {"x": "7"}}'), (4, '[{"type": "nested"}]'), (5, 'null'), (6, NULL);
SELECT n, j -> 'pos' -> 'x' AS jx, j #>> '{pos,x}' AS tx, j @> '{"type": "click"}' AS c, j ? 'codes' AS q, j ?| '{codes,path}' AS qa, j ?& '{type,pos}' AS qb, j @? '$.codes[*] ? (@ > 100)' AS p, j @@ '$.pos.x == 3' AS pp FROM ev ORDER BY n;
SELECT n, v FROM ev, jsonb_path_query(j, '$.** ? (@.type() == "number")') v ORDER BY n, v;
SELECT n, jsonb_path_query_array(j, '$.codes[0 to 1, last]') a, jsonb_path_query_first(j, '$.path[last]') l, jsonb_path_exists(j, '$.pos.y ? (@ >= $min)', '{"min": 4}') e, jsonb_path_query_array(j, '$.keyvalue().key') k FROM ev WHERE jsonb_typeof(j) = 'object' ORDER BY n;
SELECT jsonb_path_query_array('[1, 2.7, -3, "x5"]', '$[*] ? (@.type() == "number").ceiling()') c, jsonb_path_query('{"a": [1, 2]}', '$.a.size() + 1') s, jsonb_path_query_array('["abc", "Abd", "x"]', '$[*] ? (@ like_regex "^ab" flag "i")') r, jsonb_path_query_array('["abc", "xbc"]', '$[*] ? (@ starts with "a")') st, jsonb_path_match('{"a": 5}', 'exists($.a ? (@ > 4 && @ < 6))') m;
SELECT jsonb_path_query('{"a": 1}', 'strict $.b');
SELECT jsonb_path_query('{"a": 1}', 'strict $.b', silent => true);
SELECT jsonb_path_query('{"a": "x"}', '$.a + 1');
SELECT jsonb_path_match('[1]', '$[0]');
SELECT '{"a": 1}' @? 'not a path[';
SELECT '{"a": 1, }'::jsonb;
SELECT '{"b":1,"a":[1, 2.50,1E3,"\u00e9\n"],"b":2}'::jsonb, '{"b":1,"a":2,"b":2}'::json, '[1,2]'::jsonb < '[1,3]' lt, '{"a":1}'::jsonb = '{"a":1.0}' eq, '"a"'::jsonb > '1' ty, '[]'::jsonb < 'null' emp;
SELECT ('{"n": 12.7}'::jsonb -> 'n')::int, ('true'::jsonb)::bool, ('[1]'::jsonb -> 0)::numeric, ('null'::jsonb)::text;
SELECT ('"5"'::jsonb)::int;
SELECT '"\u0000"'::jsonb;
