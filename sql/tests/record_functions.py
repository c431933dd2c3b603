#!/usr/bin/env python3
"""Records what PostgreSQL 15 answers for built-in functions over sample arguments.

Usage: PGHOST=… PGPORT=… PGUSER=… sql/tests/record_functions.py > sql/tests/functions.tsv

Each row: oid, name, argument texts, result text or `!SQLSTATE`. NULL is \\N. The cluster must
have encoding UTF8 and the C locale; TimeZone is set to Europe/Berlin here.
"""

import itertools
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PER_FUNCTION = int(os.environ.get("PER_FUNCTION", "9"))

SAMPLES = {
    16: ["t", "f"],
    17: ["\\x", "\\x00ff", "\\x616263", "\\x6162"],
    18: ["a", "Z"],
    19: ["name", "Other Name"],
    20: ["0", "1", "-1", "7", "-12345678901", "9223372036854775807", "-9223372036854775808", "1000000"],
    21: ["0", "1", "-1", "3", "32767", "-32768", "100"],
    23: ["0", "1", "-1", "2", "5", "-7", "2147483647", "-2147483648", "100", "12"],
    25: ["", "a", "hello", "Hello World", "äöü straße", "  blanks  ", "a,b,c", "x%y_z", "ABC", "1.5", "b"],
    26: ["0", "23", "4294967295"],
    650: ["10.0.0.0/8", "192.168.1.0/24", "1.2.3.4/32", "0.0.0.0/0", "2001:4f8:3:ba::/64", "::1/128", "::ffff:1.2.3.0/120", "ff00::/8"],
    700: ["0", "1.5", "-2.25", "3.4e38", "1e-10", "NaN", "Infinity", "123456.7"],
    701: ["0", "1", "-1.5", "0.1", "1e300", "-1e-300", "NaN", "-Infinity", "2.5", "12345.678", "0.5"],
    774: ["08:00:2b:01:02:03:04:05", "08:00:2b:ff:fe:01:02:03", "00:00:00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff:ff:ff", "fd:fe:01:ff:fe:02:03:04"],
    829: ["08:00:2b:01:02:03", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "0c:42:a1:7f:80:01"],
    869: ["10.1.2.3", "10.1.2.3/8", "192.168.1.5/24", "0.0.0.0/0", "255.255.255.255", "10.0.0.0/9", "::", "::1/64", "2001:4f8:3:ba:2e0:81ff:fe22:d1f1", "2001:4f8::/32", "::1.2.3.4", "::ffff:10.1.2.3/120"],
    1042: ["abc", "abc  ", "x"],
    1043: ["abc", "x y", ""],
    1082: ["2000-01-01", "1999-12-31", "2024-02-29", "0044-03-15 BC", "infinity", "1970-01-01", "2021-01-03"],
    1083: ["00:00:00", "12:34:56.789", "23:59:59.999999", "24:00:00"],
    1114: ["2000-01-01 00:00:00", "2024-02-29 12:34:56.789012", "1999-12-31 23:59:59", "infinity", "0001-01-01 00:00:00 BC", "2024-03-31 02:30:00"],
    1184: ["2000-01-01 00:00:00+00", "2024-07-01 12:00:00.5+02", "2024-03-30 12:00:00+01", "-infinity", "1969-12-31 23:59:59+00"],
    1186: ["1 day", "-1 mon 2 days 03:04:05.678", "00:00:00", "1 year 2 mons", "36:00:00", "-00:00:01", "10 years -3 mons 45 days 12:00:00"],
    1560: ["", "0", "1", "101", "10110", "11111111", "010101010101", "1111000011110000", "x123456789a"],
    1562: ["", "0", "1", "101", "10110", "11111111", "010101010101", "1111000011110000", "x123456789a"],
    1700: ["0", "1", "-1.5", "0.001", "12345678901234567890.123456789", "NaN", "Infinity", "2.50", "100", "1e-20", "99999.99", "3"],
    2950: ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    1000: ["{t,f}", "{}"],
    1005: ["{1,2}", "{}"],
    1007: ["{1,2,3}", "{}", "{{1,2},{3,4}}", "[0:1]={5,NULL}", "{2}", "{3,1,1}"],
    1016: ["{1,2,3}", "{}", "{9000000000}"],
    1009: ["{a,b,c}", "{}", "{a,NULL,\"b c\"}", "{{x,y},{z,w}}", "{b}"],
    1231: ["{1.5,2}", "{}"],
}
# Arguments that only make sense as one of a few words or patterns, by function and position.
WORDS = {}
for name in ["date_part", "extract", "date_trunc"]:
    WORDS[(name, 0)] = ["year", "month", "day", "hour", "minute", "second", "week", "dow", "isodow", "doy", "quarter", "century",
                        "millennium", "decade", "epoch", "milliseconds", "microseconds", "isoyear", "julian", "timezone", "rubbish"]
WORDS[("timezone", 0)] = ["UTC", "America/New_York", "+03", "CET", "Nowhere/City"]
WORDS[("date_trunc", 2)] = ["UTC", "Australia/Sydney"]
PATTERNS = ["a", "b", "%l%", "_ello", "h", "", "HELLO", "a%", "x\\%y%"]
for name in ["textlike", "like", "notlike", "textnlike", "texticlike", "texticnlike"]:
    WORDS[(name, 1)] = PATTERNS
REGEXES = ["l+", "^h", "[a-c]", "(\\w)(\\w)", "o$", "^$", "\\s+", "\\d", "[[:upper:]]", "(", "x|y", ",", "\\mW"]
for name in ["textregexeq", "textregexne", "texticregexeq", "texticregexne", "regexp_match", "regexp_like", "regexp_count", "regexp_replace",
             "regexp_split_to_array", "regexp_substr", "textregexsubstr"]:
    WORDS[(name, 1)] = REGEXES
WORDS[("regexp_replace", 2)] = ["X", "[\\1]", "<\\&>", ""]
for name in ["regexp_match", "regexp_like", "regexp_split_to_array"]:
    WORDS[(name, 2)] = ["i", "", "x"]
WORDS[("regexp_replace", 3)] = ["g", "gi", ""]
WORDS[("encode", 1)] = WORDS[("decode", 1)] = ["hex", "base64", "escape", "rot13"]
WORDS[("decode", 0)] = ["616263", "YWJj", "a\\000b"]
TIME_TEMPLATES = ["YYYY-MM-DD HH24:MI:SS", "FMDay, FMDDth FMMonth YYYY", "Dy DD Mon YY", "HH12:MI:SS AM", "IYYY-IW-ID", "DDD Q WW J", "US MS",
                  "CC BC", "\"quoted\" YYYY", "Month|Day|", "SSSS", "yyyy", "RM"]
NUMBER_TEMPLATES = ["999", "9999.99", "0000", "FM999999.999", "9,999", "S999", "999MI", "999PR", "0.000", "FM990.00", "99999999999999999999.9999", "RN", "L999", "9999th", "SG99"]
WORDS[("to_char", 1)] = TIME_TEMPLATES
# The functions whose sample values would take PostgreSQL or a reader too long, or that
# depend on the session.
SKIP = {"row_security_active", "makeaclitem", "current_schemas", "pg_sleep", "repeat", "lpad", "rpad", "array_fill", "generate_series", "random", "gen_random_uuid", "now", "timeofday", "setseed",
        "clock_timestamp", "statement_timestamp", "transaction_timestamp", "version", "age", "factorial", "numeric_fac", "pg_size_bytes",
        "interval_hash", "power", "pow", "numeric_power", "dpow", "quote_literal", "set_config", "current_setting", "format_type",
        "concat", "concat_ws", "format", "pg_column_size", "pg_collation_for", "pg_typeof", "to_regtype", "dexp", "convert_from", "convert_to"}
EXTRA = [
    ("lpad", ["25", "23", "25"], ["hi", "5", "xy"]), ("lpad", ["25", "23"], ["hello", "3"]), ("rpad", ["25", "23"], ["hi", "4"]),
    ("repeat", ["25", "23"], ["ab", "3"]), ("repeat", ["25", "23"], ["ab", "-1"]), ("quote_literal", ["25"], ["it's"]), ("quote_literal", ["25"], ["a\\b"]),
    ("age", ["1114", "1114"], ["2024-03-31 00:00:00", "2024-02-29 12:00:00"]), ("age", ["1114", "1114"], ["2001-04-10 00:00:00", "1957-06-13 00:00:00"]),
    ("age", ["1114", "1114"], ["1957-06-13 00:00:00", "2001-04-10 05:00:00"]), ("age", ["1114", "1114"], ["2024-01-30 00:00:00", "2024-03-01 00:00:00"]),
]
for a, b in itertools.product(["2", "1.5", "-3", "0", "10", "0.5", "1.0000001"], ["0", "1", "2", "-2", "0.5", "10", "-1.5", "30", "100"]):
    EXTRA.append(("power", ["1700", "1700"], [a, b]))
    EXTRA.append(("power", ["701", "701"], [a, b]))
for a in ["0.1", "1", "2", "2.5", "10", "123.456", "1e-10", "99999999999999999999", "1.0001", "0.99999", "4", "1e40"]:
    for name in ["ln", "log", "sqrt", "exp"]:
        EXTRA.append((name, ["1700"], [a if name != "exp" or len(a) < 8 else "0.5"]))
for a, b in itertools.product(["1", "10", "7", "22", "-1", "0.001", "123456789.123", "1e20", "5.00"], ["3", "7", "0.3", "-2", "1e-8", "9999.5", "1e15"]):
    EXTRA.append(("numeric_div", ["1700", "1700"], [a, b]))
    EXTRA.append(("numeric_mod", ["1700", "1700"], [a, b]))
for n in ["0", "1", "-1", "12.345", "-0.005", "1234567.891", "0.5", "99.995", "485"]:
    for template in NUMBER_TEMPLATES:
        EXTRA.append(("to_char", ["1700", "25"], [n, template]))
for text, template in [("2024-02-29", "YYYY-MM-DD"), ("05 Dec 2000", "DD Mon YYYY"), ("20240131", "YYYYMMDD"), ("31/12/99", "DD/MM/YY"), ("2024-13-01", "YYYY-MM-DD"), ("xx", "YYYY")]:
    EXTRA.append(("to_date", ["25", "25"], [text, template]))


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def main():
    rng = random.Random(15)
    with open(os.path.join(HERE, "..", "data", "proc.tsv"), encoding="utf8") as file:
        procs = [line.rstrip("\n").split("\t") for line in file]
    calls = []
    for oid, name, key, kind, retset, strict, volatile, variadic, result, args, *_ in procs:
        args = args.split()
        if kind != "f" or retset == "t" or volatile == "v" or variadic != "0" or name in SKIP or not args:
            continue
        if result in ("2275", "2281", "2278") or "2275" in args or any(int(a) not in SAMPLES for a in args):
            continue
        # The sign alone is promised of three-way comparisons.
        if name.endswith("cmp") or name.startswith(("pg_", "has_", "hash", "to_reg", "obj_", "col_", "shobj", "lo_", "currval", "regclass", "brin", "ts_", "timetz", "tidl", "unicode", "normalize", "is_normal")) or "hash" in name:
            continue
        pools = [WORDS.get((name, i), SAMPLES[int(a)]) for i, a in enumerate(args)]
        if name == "to_char" and args[0] in ("20", "23", "700", "701", "1700"):
            pools[1] = NUMBER_TEMPLATES
        total = 1
        for pool in pools:
            total *= len(pool)
        combinations = list(itertools.islice(itertools.product(*pools), 4000))
        count = PER_FUNCTION * (4 if any((name, i) in WORDS for i in range(len(args))) else 1)
        if total > count:
            combinations = rng.sample(combinations, min(count, len(combinations)))
        for values in combinations:
            calls.append((oid, name, args, list(values)))
    by_signature = {(p[1], tuple(p[9].split())): p[0] for p in procs}
    for name, args, values in EXTRA:
        calls.append((by_signature[(name, tuple(args))], name, args, values))
    script = [
        "set timezone = 'Europe/Berlin'; set client_min_messages = error;",
        "create or replace function pg_temp.try(e text) returns text language plpgsql as $$ declare r text; begin execute 'select ' || e || '::text' into r; return coalesce(r, '\\N'); exception when others then return '!' || sqlstate; end $$;",
        "create temp table calls(n int, e text);",
        "copy calls from stdin;",
    ]
    escape = lambda s: s.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
    type_names = {int(line.split("\t")[0]): line.split("\t")[1] for line in open(os.path.join(HERE, "..", "data", "type.tsv"), encoding="utf8")}
    for n, (oid, name, args, values) in enumerate(calls):
        arguments = ", ".join(f"{quote(v)}::pg_catalog.\"{type_names[int(a)]}\"" for a, v in zip(args, values))
        script.append(f"{n}\t" + escape(f"pg_catalog.\"{name}\"({arguments})"))
    script += ["\\.", "select pg_temp.try(e) from calls order by n;"]
    ran = subprocess.run(["psql", "-XqAt", "-R", "\x02\x03", "-d", "template1"], input="\n".join(script), capture_output=True, text=True, encoding="utf8", check=True)
    sys.stderr.write(ran.stderr)
    results = ran.stdout.removesuffix("\n").split("\x02\x03")
    assert len(results) == len(calls), (len(results), len(calls))
    for (oid, name, args, values), result in zip(calls, results):
        shown = result if result.startswith(("!", "\\N")) else escape(result)
        print("\t".join([oid, name, *map(escape, values), shown]))


main()
