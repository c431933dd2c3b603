-- The tables that made-up statements are about, with their rows. What their columns are, `table.rs`
-- tells the generator.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN amount AS int CHECK (VALUE > -1000);
CREATE TYPE pair AS (a int, b text);

CREATE TABLE part (id int PRIMARY KEY, name text, size smallint, price numeric(10,2), made date, ok boolean);
CREATE TABLE sale (id int PRIMARY KEY, part int REFERENCES part, n bigint NOT NULL, at timestamp, rate float8, note varchar(10));
CREATE INDEX ON sale (part);
CREATE INDEX ON part (name);
INSERT INTO part SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE 'p' || i % 5 END, CASE WHEN i % 4 = 0 THEN NULL ELSE i - 6 END, CASE WHEN i % 6 = 0 THEN NULL ELSE i * 1.25 - 7 END, date '2024-02-27' + i, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END FROM generate_series(1, 14) i;
INSERT INTO sale SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE i % 14 + 1 END, i * 3 - 20, CASE WHEN i % 4 = 1 THEN NULL ELSE timestamp '2024-03-01 10:00' + i * interval '7 hours' END, CASE WHEN i % 6 = 2 THEN NULL ELSE (i - 9) / 4.0 END, CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('ab', i % 4) END FROM generate_series(1, 24) i;

CREATE TABLE thing (
    id int PRIMARY KEY, code char(4), word varchar(6), ratio real, zoned timestamptz, clock time, zclock timetz,
    span interval, ident uuid, doc json, docb jsonb, bytes bytea, ints int[], texts text[], mood mood, amount amount,
    pair pair
);
INSERT INTO thing VALUES
    (1, 'ab', 'word', 0.5, '2024-03-31 00:30+00', '12:30', '12:30+02', '1 day', '00000000-0000-0000-0000-000000000001', '{"a": 1, "b": "x"}', '{"a": 1, "b": "x", "c": [1, 2.50, null]}', '\x6162', '{1,2,3}', '{a,b}', 'ok', 3, '(1,a)'),
    (2, 'abcd', '', -2.25, '2024-10-27 01:00+00', '00:00', '10:30+00', '-2 hours', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[1, {"a" : 2}, "b"]', '[3, "a", {"a": null}]', '\x', '{}', '{}', 'sad', 0, '(2,"x y")'),
    (3, 'x', 'p1 ', 1e5, '1999-12-31 23:59:59.999999+00', '23:59:59.999999', '00:15:30.25+02:30', '1 month 3 days', NULL, 'null', '"s"', '\xff00', '{7,NULL,-3}', '{p1,NULL,"",x y}', 'happy', -40, '(,)'),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, '', 'abc', 0, '1969-07-20 20:17+00', '04:05:06.7', '23:00-05', '1 year -1 day 2:03', '00000000-0000-0000-0000-000000000001', '"s"', 'null', '\x41', '{1}', '{b,a}', 'ok', 999, '(1,b)'),
    (6, 'ab', 'Word', 0.1, '2024-03-31 01:30+00', '12:30', '12:30+00', '24 hours', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{}', '{}', '\x616263', '{4,5}', '{a}', NULL, NULL, '(-3,)'),
    (7, 'é', 'sechs6', -0.0, '2024-02-29 12:00+00', '18:00', '18:00-08', '00:00:00.000001', NULL, '7', '{"a": {"a": 2}, "b": [1], "c": "d"}', NULL, '{3,2,1}', NULL, 'sad', 7, NULL);

CREATE TABLE node (id int PRIMARY KEY, above int, label text NOT NULL);
CREATE INDEX ON node (above);
INSERT INTO node SELECT i, CASE WHEN i % 6 = 1 THEN NULL ELSE i / 2 END, chr(96 + i) FROM generate_series(1, 12) i;

CREATE TABLE tally (id int PRIMARY KEY, k text UNIQUE, n int DEFAULT 7, at date DEFAULT '2024-01-01');
INSERT INTO tally SELECT i, CASE WHEN i % 4 <> 0 THEN 'p' || i END, i * 2 - 7, date '2024-02-20' + i FROM generate_series(1, 8) i;

CREATE TABLE stock (kind text, id int, n int, at date, PRIMARY KEY (kind, id)) PARTITION BY LIST (kind);
CREATE TABLE stock_a PARTITION OF stock FOR VALUES IN ('a');
CREATE TABLE stock_bc PARTITION OF stock FOR VALUES IN ('b', 'c');
CREATE TABLE stock_other PARTITION OF stock DEFAULT;
INSERT INTO stock SELECT chr(97 + i % 5), i, CASE WHEN i % 4 <> 3 THEN i * 5 - 30 END, date '2024-02-25' + i % 6 FROM generate_series(1, 18) i;

CREATE TABLE ledger (id int, day date NOT NULL, v numeric) PARTITION BY RANGE (day);
CREATE TABLE ledger_1 PARTITION OF ledger FOR VALUES FROM (MINVALUE) TO ('2024-03-01');
CREATE TABLE ledger_2 PARTITION OF ledger FOR VALUES FROM ('2024-03-01') TO ('2024-04-01') PARTITION BY HASH (id);
CREATE TABLE ledger_2_even PARTITION OF ledger_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE ledger_2_odd PARTITION OF ledger_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE ledger_3 PARTITION OF ledger DEFAULT;
INSERT INTO ledger SELECT i, date '2024-02-27' + i * 3, CASE WHEN i % 5 <> 0 THEN i * 2.5 - 11 END FROM generate_series(1, 15) i;

CREATE VIEW dear AS SELECT id, name, price, made FROM part WHERE price > 0 OR price IS NULL;
CREATE VIEW busy AS SELECT part, count(*) AS sales, sum(n) AS total, max(at) AS latest FROM sale GROUP BY part;

CREATE TABLE kept_sale AS SELECT * FROM sale;
CREATE TABLE kept_thing AS SELECT * FROM thing;
CREATE TABLE kept_tally AS SELECT * FROM tally;
CREATE TABLE kept_stock AS SELECT * FROM stock;
CREATE TABLE kept_ledger AS SELECT * FROM ledger;
