#!/usr/bin/env python3
"""Records what PostgreSQL 15 makes of the characters of one-byte character sets in others, without UTF8 in between.

Usage: PGHOST=… PGPORT=… PGUSER=… PGDATABASE=… sql/types/src/encoding/record_pairs.py > sql/types/src/encoding/pairs.bin

For each pair of PAIRS, in that order, 128 bytes: what 0x80 to 0xff are, zero for what there is not. pair.rs reads it.
"""

import subprocess
import sys

CYRILLIC = ["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"]
PAIRS = [(a, b) for a in CYRILLIC for b in CYRILLIC if a != b] + [("LATIN2", "WIN1250"), ("WIN1250", "LATIN2")]

FUNCTION = """
create function pg_temp.other(code int, a name, b name) returns text language plpgsql as $$ begin
  return encode(convert(decode(to_hex(code), 'hex'), a, b), 'hex');
exception when untranslatable_character then return '00'; end $$
"""

for pair in PAIRS:
    query = "select pg_temp.other(code, '%s', '%s') from generate_series(128, 255) code order by code" % pair
    command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", FUNCTION, "-c", query]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len(lines) == 128
    sys.stdout.buffer.write(bytes.fromhex("".join(lines)))
