"""How the time of statements grows with their size, on PostgreSQL 15 and Archipel: fitted exponents."""

import argparse
import math
import pathlib
import statistics

from both import both_servers, psql, timed_ms, write_json
from side_by_side import alternating

# An exponent is fitted to what takes longer than this: below, other things are measured.
FLOOR_MS = 1.0
# What an exponent may be above PostgreSQL's, for the logarithms and the noise.
MARGIN = 0.35

SETUP = """
CREATE TABLE points(id int PRIMARY KEY, a int, b int, c text);
INSERT INTO points SELECT n, n % 100, n % 10, 'c' || n FROM generate_series(1, 2000) n;
CREATE INDEX points_ab ON points(a, b);
CREATE TABLE target(a int, b int, c text);
CREATE FUNCTION given(a int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN a; END';
"""


# As asyncpg asks what types are made of, shortened.
TYPE_INFO = """
(SELECT t.oid, ns.nspname AS ns, t.typname AS name, t.typtype AS kind,
    (CASE WHEN t.typtype = 'd' THEN (
        WITH RECURSIVE bases(oid, depth) AS (
            SELECT t2.typbasetype, 0 FROM pg_type t2 WHERE t2.oid = t.oid
            UNION ALL
            SELECT t2.typbasetype, b.depth + 1 FROM pg_type t2, bases b
            WHERE b.oid = t2.oid AND t2.typbasetype <> 0
        ) SELECT oid FROM bases ORDER BY depth DESC LIMIT 1)
    END) AS basetype,
    t.typelem AS elemtype, r.rngsubtype AS range_subtype,
    (CASE WHEN t.typtype = 'c' THEN (
        SELECT array_agg(a.atttypid ORDER BY a.attnum) FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid
        WHERE a.attnum > 0 AND NOT a.attisdropped AND c.reltype = t.oid)
    END) AS attrtypoids
FROM pg_type t JOIN pg_namespace ns ON ns.oid = t.typnamespace LEFT JOIN pg_range r ON t.oid = r.rngtypid)
"""
INTROSPECTION = (
    "WITH RECURSIVE tree(oid, ns, name, kind, basetype, elemtype, range_subtype, attrtypoids, depth) AS ("
    f"SELECT ti.*, 0 FROM {TYPE_INFO} ti WHERE ti.oid = ANY({{oids}}) UNION ALL "
    f"SELECT ti.*, tt.depth + 1 FROM {TYPE_INFO} ti, tree tt WHERE ti.oid = tt.elemtype OR ti.oid = ANY(tt.attrtypoids)"
    " OR ti.oid = tt.range_subtype OR ti.oid = tt.basetype) SELECT DISTINCT * FROM tree ORDER BY depth DESC, oid"
)


# What clients ask about one table: Rails' columns, foreign keys and sequence of the key, JDBC's columns, psql's
# indexes and the standard's columns, shortened.
ABOUT_A_TABLE = [
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), c.collname,"
    " col_description(a.attrelid, a.attnum) FROM pg_attribute a"
    " LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum"
    " LEFT JOIN pg_type t ON a.atttypid = t.oid"
    " LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation"
    " WHERE a.attrelid = '{0}'::regclass AND a.attnum > 0",
    "SELECT t2.oid::regclass::text, a1.attname, a2.attname, c.conname FROM pg_constraint c"
    " JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid"
    " JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid"
    " JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid"
    " WHERE c.contype = 'f' AND t1.relname = '{0}'",
    "SELECT a.attname, s.relname FROM pg_class s, pg_attribute a, pg_depend d, pg_constraint c"
    " WHERE s.oid = d.objid AND s.relkind = 'S' AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid"
    " AND a.attrelid = c.conrelid AND a.attnum = c.conkey[1] AND c.contype = 'p'"
    " AND d.classid = 'pg_class'::regclass AND d.refobjid = '{0}'::regclass",
    "SELECT a.attname, t.typtype FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid"
    " JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON a.atttypid = t.oid"
    " WHERE a.attnum > 0 AND n.nspname LIKE 'asked' AND c.relname LIKE '{0}'",
    "SELECT c2.relname, pg_get_indexdef(i.indexrelid, 0, true), pg_get_constraintdef(con.oid, true)"
    " FROM pg_class c, pg_class c2, pg_index i LEFT JOIN pg_constraint con"
    " ON conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p', 'u', 'x')"
    " WHERE c.relname ~ '^({0})$' AND c.oid = i.indrelid AND i.indexrelid = c2.oid",
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{0}'",
]


def numbers(count, form="{}", between=", "):
    return between.join(form.format(number) for number in range(1, count + 1))


def prepared(count):
    """Executed with as many values as parameters."""
    parameters = numbers(count, "${}")
    return [
        f"PREPARE many AS SELECT count(*) FROM points WHERE id IN ({parameters})",
        f"EXECUTE many({numbers(count)})",
        "DEALLOCATE many",
    ]


def definitions(form, undo):
    """One definition after the other, and what takes all of them away again."""
    return lambda count: [*(form.format(number) for number in range(count)), *undo]


def over(columns, statement):
    """One about a table of so many columns, each of five rows."""
    return lambda n: [
        f"CREATE TABLE wide({numbers(n, 'c{} int')})",
        f"INSERT INTO wide SELECT {numbers(n, 'g % {}')} FROM generate_series(1, 5) g",
        statement.format(numbers(n, columns)),
        "DROP TABLE wide",
    ]


def among(statement):
    """One about so many rows of a table that has no key."""
    return lambda n: [f"INSERT INTO target SELECT g, g, 'c' FROM generate_series(1, {n}) g", statement, "TRUNCATE target"]


def within(schema, statements):
    """In a schema of its own, which goes with all that is in it."""
    return lambda n: [
        f"CREATE SCHEMA {schema}",
        f"SET search_path = {schema}, public",
        *statements(n),
        "RESET search_path",
        # The notice names everything.
        "SET client_min_messages = warning",
        f"DROP SCHEMA {schema} CASCADE",
    ]


def tables(n, columns="id int PRIMARY KEY, x int"):
    return [f"CREATE TABLE t{number}({columns})" for number in range(n)]


# The statements of each shape by size, and the least size.
SHAPES = {
    "values": (lambda n: [f"SELECT sum(x) FROM (VALUES {numbers(n, '({})')}) v(x)"], 2000),
    "insert values": (lambda n: [f"INSERT INTO target VALUES {numbers(n, '({0}, {0}, $${0}$$)')}", "TRUNCATE target"], 1000),
    "in list": (lambda n: [f"SELECT count(*) FROM points WHERE c IN ({numbers(n, '$$c{}$$')})"], 2000),
    "in list of keys": (lambda n: [f"SELECT count(*) FROM points WHERE id IN ({numbers(n)})"], 2000),
    "not in list": (lambda n: [f"SELECT count(*) FROM points WHERE a NOT IN ({numbers(n)})"], 2000),
    "parameters": (prepared, 2000),
    "or": (lambda n: [f"SELECT count(*) FROM points WHERE {numbers(n, 'id = {}', ' OR ')}"], 500),
    "or of ands": (lambda n: [f"SELECT count(*) FROM points WHERE {numbers(n, '(a = {0} AND b = 1)', ' OR ')}"], 250),
    "and": (lambda n: [f"SELECT count(*) FROM points WHERE {numbers(n, 'a <> -{}', ' AND ')}"], 250),
    "case": (lambda n: [f"SELECT CASE b {numbers(n, 'WHEN -{0} THEN {0}', ' ')} END FROM points WHERE id = 1"], 1000),
    "coalesce": (lambda n: [f"SELECT coalesce({numbers(n, 'nullif(b, b)')}) FROM points WHERE id = 1"], 1000),
    "array": (lambda n: [f"SELECT array_length(ARRAY[{numbers(n)}], 1)"], 4000),
    "casts": (lambda n: [f"SELECT array_length(ARRAY[{numbers(n, '$${}$$::int')}], 1)"], 2000),
    "with": (lambda n: [f"WITH {numbers(n, 'c{0} AS (SELECT {0} AS x)')} SELECT x FROM c{n}"], 250),
    "with, one by another": (
        lambda n: [f"WITH c0 AS (SELECT 1 AS x), {', '.join(f'c{i} AS (SELECT x + 1 AS x FROM c{i - 1})' for i in range(1, n))} SELECT x FROM c{n - 1}"],
        20,
    ),
    "union all": (lambda n: [f"SELECT count(*) FROM ({numbers(n, 'SELECT {}', ' UNION ALL ')}) u"], 100),
    "union": (lambda n: [f"SELECT count(*) FROM ({numbers(n, 'SELECT {}', ' UNION ')}) u"], 100),
    "select list": (lambda n: [f"SELECT {numbers(n, 'a + {0} AS c{0}')} FROM points WHERE id = 1"], 100),
    "group by": (lambda n: [f"SELECT {numbers(n, 'a + {}')} FROM points WHERE id < 3 GROUP BY {numbers(n, 'a + {}')}"], 100),
    "calls": (lambda n: [f"SELECT given(1) {numbers(n, ', given({})', '')}"], 100),
    "joins": (lambda n: [f"SELECT count(*) FROM points p0 {numbers(n, 'JOIN points p{0} ON p{0}.id = p0.id', ' ')} WHERE p0.id = 1"], 2),
    "view of moments": (
        lambda n: [
            # One of the literals is a text.
            f"CREATE VIEW moments AS SELECT * FROM target WHERE {numbers(n, 'now() > $$2020-01-01 00:00:01.{}$$', ' OR ')} OR c = $$2020-01-01 00:00:01.1$$",
            "DROP VIEW moments",
        ],
        100,
    ),
    "script": (lambda n: [f"DO $do$ BEGIN {numbers(n, 'PERFORM {};', ' ')} END $do$"], 250),
    "columns": (over("c{}", "SELECT {} FROM wide"), 75),
    "sort keys": (over("c{}", "SELECT c1 FROM wide ORDER BY {}"), 50),
    "group columns": (over("c{}", "SELECT count(*) FROM wide GROUP BY {}"), 50),
    "aggregates": (over("sum(c{})", "SELECT {} FROM wide"), 50),
    "elements": (lambda n: [f"SELECT count(*) FROM points WHERE a = ANY (ARRAY[{numbers(n)}])"], 1000),
    "arms over rows": (lambda n: [f"SELECT sum(CASE {numbers(n, 'WHEN a = -{0} THEN {0}', ' ')} END) FROM points"], 100),
    "rows in": (lambda n: [f"SELECT count(*) FROM points WHERE (id, a) IN ({numbers(n, '({0}, {0})')})"], 250),
    "joined values": (lambda n: [f"SELECT count(*) FROM points JOIN (VALUES {numbers(n, '({0}, $${0}$$)')}) v(x, y) ON id = x"], 1000),
    "upsert": (
        lambda n: [f"INSERT INTO points VALUES {numbers(n, '({0}, {0}, 1, $$c$$)')} ON CONFLICT (id) DO UPDATE SET b = points.b + 1"],
        125,
    ),
    "partners": (among("DELETE FROM target o WHERE NOT EXISTS (SELECT FROM target t WHERE t.b = o.a)"), 500),
    "ranges": (among("SELECT count(*) FROM target t JOIN points p ON p.id BETWEEN t.a AND t.b + 1"), 250),
    "heirs": (
        lambda n: [
            "CREATE TABLE heirs(a int, b int)",
            *(f"CREATE TABLE heir{i}() INHERITS (heirs)" for i in range(n)),
            *["SELECT count(*) FROM heirs WHERE b = 1"] * 20,
            "DROP TABLE heirs CASCADE",
        ],
        10,
    ),
    "views over views": (
        within("deep", lambda n: [
            "CREATE VIEW v0 AS SELECT a, b FROM target",
            *(f"CREATE VIEW v{i} AS SELECT a + 1 AS a, b FROM v{i - 1} WHERE b <> {i}" for i in range(1, n)),
            *[f"SELECT * FROM v{n - 1}"] * 5,
        ]),
        10,
    ),
    "with, filtered": (
        lambda n: [f"WITH c0 AS (SELECT a, b FROM target), {', '.join(f'c{i} AS (SELECT a + 1 AS a, b FROM c{i - 1} WHERE b > {i})' for i in range(1, n))} SELECT * FROM c{n - 1}"],
        10,
    ),
    "subqueries": (
        lambda n: [f"WITH c AS (SELECT a, b FROM target) SELECT {numbers(n, '(SELECT count(*) + {0} FROM c WHERE a > {0})')}"],
        10,
    ),
    "keys of jsonb": (
        lambda n: [
            f"WITH j AS (SELECT jsonb_object_agg('k' || g, g) AS o FROM generate_series(1, {n}) g) SELECT o @> o, length((o || o)::text), o ?& array(SELECT 'k' || g FROM generate_series(1, {n}) g) FROM j"
        ],
        500,
    ),
    "union all of tables": (lambda n: [f"SELECT count(*) FROM ({numbers(n, 'SELECT a + {} FROM target', ' UNION ALL ')}) u"], 25),
    "joined in a star": (
        within("star", lambda n: [
            *tables(n),
            f"CREATE TABLE facts({', '.join(f'x{i} int' for i in range(n))})",
            *["SELECT count(*) FROM facts " + " ".join(f"JOIN t{i} ON t{i}.id = x{i}" for i in range(n))] * 5,
        ]),
        8,
    ),
    "joined in a chain": (
        within("chain", lambda n: [
            *tables(n),
            *["SELECT count(*) FROM t0 " + " ".join(f"JOIN t{i} ON t{i}.id = t{i - 1}.x" for i in range(1, n))] * 5,
        ]),
        8,
    ),
    "left joins": (
        within("lefts", lambda n: [
            *tables(n),
            *["SELECT count(*) FROM t0 " + " ".join(f"LEFT JOIN t{i} ON t{i}.id = t{i - 1}.x" for i in range(1, n))] * 5,
        ]),
        8,
    ),
    "heirs of heirs": (
        within("heirs", lambda n: [
            "CREATE TABLE h0(a int, b int)",
            *(f"CREATE TABLE h{i}() INHERITS (h{i - 1})" for i in range(1, n)),
            *["SELECT count(*) FROM h0"] * 5,
        ]),
        10,
    ),
    "partitions": (
        within("parts", lambda n: [
            "CREATE TABLE parts(a int PRIMARY KEY, b int) PARTITION BY RANGE (a)",
            *(f"CREATE TABLE p{i} PARTITION OF parts FOR VALUES FROM ({i}) TO ({i + 1})" for i in range(n)),
            "INSERT INTO parts SELECT g, g FROM generate_series(0, 19) g",
            "SELECT * FROM parts WHERE a = 5",
            "UPDATE parts SET b = b + 1",
        ]),
        25,
    ),
    "partitions that come and go": (
        within("attached", lambda n: [
            "CREATE TABLE parts(a int PRIMARY KEY, b int) PARTITION BY RANGE (a)",
            *(f"CREATE TABLE p{i} PARTITION OF parts FOR VALUES FROM ({i}) TO ({i + 1})" for i in range(n)),
            *(f"ALTER TABLE parts DETACH PARTITION p{i}" for i in range(n)),
            *(f"ALTER TABLE parts ATTACH PARTITION p{i} FOR VALUES FROM ({i}) TO ({i + 1})" for i in range(n)),
        ]),
        25,
    ),
    "rows that may leave partitions": (
        within("moved", lambda n: [
            "BEGIN",
            "CREATE TABLE parts(a int PRIMARY KEY, b int) PARTITION BY RANGE (a)",
            *(f"CREATE TABLE p{i} PARTITION OF parts FOR VALUES FROM ({i}) TO ({i + 1})" for i in range(n)),
            "COMMIT",
            "INSERT INTO parts SELECT g, g FROM generate_series(0, 19) g",
            *["UPDATE parts SET a = a, b = b + 1"] * 5,
        ]),
        50,
    ),
    "keys to partitions": (
        within("referenced", lambda n: [
            "BEGIN",
            "CREATE TABLE parts(a int PRIMARY KEY, b int) PARTITION BY RANGE (a)",
            *(f"CREATE TABLE p{i} PARTITION OF parts FOR VALUES FROM ({i}) TO ({i + 1})" for i in range(n)),
            "COMMIT",
            "CREATE TABLE referring(id int PRIMARY KEY, x int REFERENCES parts)",
            *[f"DELETE FROM parts WHERE b > {i}" for i in range(5)],
        ]),
        50,
    ),
    "conditions of columns": (
        within("conditions", lambda n: [
            f"CREATE TABLE wide({numbers(n, 'c{0} int DEFAULT {0} CHECK (c{0} >= 0)')})",
            *["INSERT INTO wide DEFAULT VALUES"] * 5,
        ]),
        50,
    ),
    "columns that are altered": (
        within("altered", lambda n: [
            f"CREATE TABLE wide({numbers(n, 'c{0} int DEFAULT {0} CHECK (c{0} >= 0)')})",
            *(f"ALTER TABLE wide ADD COLUMN d{i} int DEFAULT {i}" for i in range(10)),
            *(f"ALTER TABLE wide ADD CHECK (c{i} > -1)" for i in range(1, 11)),
            *(f"ALTER TABLE wide ALTER c{i} SET DEFAULT 7" for i in range(1, 11)),
            *(f"ALTER TABLE wide RENAME c{i} TO e{i}" for i in range(1, 11)),
        ]),
        50,
    ),
    "indexes": (
        within("indexed", lambda n: [
            *tables(1),
            *(f"CREATE INDEX ON t0((x + {i}))" for i in range(n)),
            *["INSERT INTO t0 SELECT coalesce(max(id), 0) + 1, 1 FROM t0", "UPDATE t0 SET x = x + 1"] * 3,
        ]),
        10,
    ),
    "foreign keys": (
        within("keys", lambda n: [
            *tables(n),
            f"CREATE TABLE many({', '.join(f'x{i} int REFERENCES t{i}' for i in range(n))})",
            *["INSERT INTO many DEFAULT VALUES"] * 5,
        ]),
        10,
    ),
    "triggers": (
        within("triggered", lambda n: [
            *tables(1),
            "CREATE FUNCTION passed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
            *(f"CREATE TRIGGER g{i} BEFORE INSERT ON t0 FOR EACH ROW EXECUTE FUNCTION passed()" for i in range(n)),
            "INSERT INTO t0 SELECT g, g FROM generate_series(1, 20) g",
        ]),
        10,
    ),
    "rollup": (over("c{}", "SELECT count(*) FROM wide GROUP BY ROLLUP ({})"), 8),
    "moving frames": (
        lambda n: [f"SELECT sum(s) FROM (SELECT sum(g) OVER (ORDER BY g ROWS {n // 2} PRECEDING) AS s FROM generate_series(1, {n}) g) x"],
        500,
    ),
    "grown array": (lambda n: [f"DO $do$ DECLARE x int[] := '{{}}'; BEGIN FOR i IN 1..{n} LOOP x := x || i; END LOOP; END $do$"], 2000),
    "grown text": (lambda n: [f"DO $do$ DECLARE x text := ''; BEGIN FOR i IN 1..{n} LOOP x := x || 'abc'; END LOOP; END $do$"], 2000),
    "cursors": (
        lambda n: ["BEGIN", *(f"DECLARE k{i} CURSOR FOR SELECT id FROM points ORDER BY id" for i in range(n)), *(f"FETCH 2 FROM k{i}" for i in range(n)), "COMMIT"],
        25,
    ),
    "statements beside cursors": (
        lambda n: ["BEGIN", *(f"DECLARE k{i} CURSOR FOR SELECT {i}" for i in range(n)), *(f"SELECT {i}" for i in range(n)), "COMMIT"],
        250,
    ),
    "cursors held": (
        lambda n: [*(f"DECLARE k{i} CURSOR WITH HOLD FOR SELECT {i}" for i in range(n)), *(f"FETCH k{i}" for i in range(n)), "CLOSE ALL"],
        250,
    ),
    "prepared": (
        lambda n: [*(f"PREPARE q{i} AS SELECT * FROM points WHERE id = {i}" for i in range(n)), *(f"EXECUTE q{i}" for i in range(n)), "DEALLOCATE ALL"],
        25,
    ),
    "assignments": (lambda n: [f"DO $do$ DECLARE x int := 0; BEGIN {'x := x + 1; ' * n} END $do$"], 500),
    "handlers": (
        lambda n: [f"DO $do$ BEGIN {numbers(n, 'BEGIN PERFORM {}; EXCEPTION WHEN others THEN NULL; END;', ' ')} END $do$"],
        100,
    ),
    "savepoints": (
        lambda n: [";".join(["BEGIN", *(f"SAVEPOINT s{i}; SELECT {i}" for i in range(n)), "ROLLBACK"])],
        250,
    ),
    "functions": (
        definitions(
            "CREATE FUNCTION defined{}(a int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN a; END'",
            ["DO $do$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE proname LIKE 'defined%' LOOP EXECUTE 'DROP FUNCTION ' || f; END LOOP; END $do$"],
        ),
        50,
    ),
    "routines beside routines": (
        within("deployed", lambda n: [
            *tables(n),
            *(
                f"CREATE FUNCTION f{i}(a int) RETURNS int LANGUAGE sql AS 'SELECT x FROM t{i} WHERE id = a'"
                for i in range(n)
            ),
            *(f"CREATE TABLE another{i}(id int PRIMARY KEY)" for i in range(20)),
        ]),
        50,
    ),
    "overloads": (
        within("overloaded", lambda n: [
            *(f"CREATE TYPE c{i} AS (a int)" for i in range(n)),
            *(f"CREATE FUNCTION f(a c{i}) RETURNS int LANGUAGE sql AS 'SELECT 1'" for i in range(n)),
            *(f"SELECT f(ROW({i})::c{i})" for i in range(20)),
        ]),
        50,
    ),
    "schemas of a path": (
        lambda n: [
            *(f"CREATE SCHEMA sc{i}" for i in range(n)),
            *(f"CREATE TABLE sc{i}.t(a int)" for i in range(n)),
            f"SET search_path = {', '.join(f'sc{i}' for i in range(n))}",
            "SELECT count(*) FROM pg_class WHERE pg_table_is_visible(oid)",
            *(f"SELECT {i} FROM t" for i in range(20)),
            "RESET search_path",
            "SET client_min_messages = warning",
            *(f"DROP SCHEMA sc{i} CASCADE" for i in range(n)),
        ],
        50,
    ),
    "types introspected": (
        within("introspected", lambda n: [
            "CREATE DOMAIN d AS int",
            *(f"CREATE TABLE t{i}(id int PRIMARY KEY, x d, y text)" for i in range(n)),
            *[INTROSPECTION.format(oids="ARRAY['t1'::regtype::oid, 'd'::regtype::oid]")] * 3,
        ]),
        50,
    ),
    "tables asked about": (
        within("asked", lambda n: [
            "CREATE TABLE t0(id serial PRIMARY KEY, x int)",
            *(f"CREATE TABLE t{i}(id serial PRIMARY KEY, x int REFERENCES t{i - 1}, y text UNIQUE)" for i in range(1, n)),
            *(question.format(f"t{i}") for i in range(n) for question in ABOUT_A_TABLE),
        ]),
        50,
    ),
    "tables beside tables": (
        within("beside", lambda n: [
            *(f"CREATE TABLE t{i}(id int PRIMARY KEY, x int UNIQUE)" for i in range(n)),
            *["CREATE TABLE another(id int PRIMARY KEY, x int UNIQUE)", "DROP TABLE another"] * 10,
        ]),
        50,
    ),
    "tables": (
        definitions(
            "CREATE TABLE defined{}(a int PRIMARY KEY, b int CHECK (b > 0))",
            ["DO $do$ DECLARE t text; BEGIN FOR t IN SELECT relname FROM pg_class WHERE relname LIKE 'defined%' AND relkind = 'r' LOOP EXECUTE 'DROP TABLE ' || t; END LOOP; END $do$"],
        ),
        25,
    ),
}


def fitted(sizes, times):
    """The slope of the times over the sizes, both as logarithms; nothing where all is noise."""
    points = [(math.log(size), math.log(ms)) for size, ms in zip(sizes, times) if ms >= FLOOR_MS]
    if len(points) < 3:
        return None
    mean_x, mean_y = (statistics.mean(values) for values in zip(*points))
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points)


def measure(servers, name, arguments):
    statements, least = SHAPES[name]
    sizes = [least << doubling for doubling in range(arguments.doublings + 1)]
    times = {server.name: [] for server in servers}
    for size in sizes:
        made = statements(size)
        runs = {server.name: [] for server in servers}
        for server in alternating(servers, arguments.rounds):
            runs[server.name].append(sum(timed_ms(server, made)))
        for server in servers:
            times[server.name].append(min(runs[server.name]))
    exponents = {server: fitted(sizes, own) for server, own in times.items()}
    return {"sizes": sizes, "ms": times, "exponents": exponents}


def shown(exponent):
    return "   -" if exponent is None else f"{exponent:4.2f}"


def main():
    parser = argparse.ArgumentParser(prog="exponents")
    parser.add_argument("--doublings", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=list(SHAPES))
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.doublings < 2 or arguments.rounds < 1:
        parser.error("a slope takes two doublings and a round at least")

    result, cliffs = {}, []
    with both_servers() as (servers, _):
        for server in servers:
            psql(server, text=SETUP)
        print(f"{'shape':22} {'size':>8} {'archipel':>12} {'postgresql':>12}   exponents")
        for shape in SHAPES if arguments.only is None else [arguments.only]:
            found = result[shape] = measure(servers, shape, arguments)
            ours, theirs = (found["exponents"][server] for server in ("archipel", "postgresql"))
            last = {server: own[-1] for server, own in found["ms"].items()}
            steep = ours is not None and ours > max(1.0, theirs or 1.0) + MARGIN
            if steep:
                cliffs.append(shape)
            print(
                f"{shape:22} {found['sizes'][-1]:8} {last['archipel']:9.1f} ms {last['postgresql']:9.1f} ms"
                f"   {shown(ours)} {shown(theirs)}{'   steeper' if steep else ''}",
                flush=True,
            )
    write_json(arguments.json, result)
    print(f"{len(cliffs)} of {len(result)} grow faster than on PostgreSQL" + (f": {', '.join(cliffs)}" if cliffs else ""))


if __name__ == "__main__":
    main()
