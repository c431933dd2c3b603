#!/usr/bin/env python3
"""Records which characters of other character sets PostgreSQL 15 reads and writes as which of Unicode's.

Usage: PGHOST=… PGPORT=… PGUSER=… PGDATABASE=… sql/types/src/encoding/record.py > sql/types/src/encoding/conversions.bin

The database must have encoding UTF8; two functions are made in it, in schema public, and dropped again. Every code
point but ASCII's is asked for, and every sequence of bytes that may be a character: about ten minutes.
conversion.rs says what the file is like.
"""

import subprocess
import sys

SINGLE = (
    "LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 WIN866 WIN874 KOI8R "
    "WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 WIN1253 WIN1254 WIN1255 WIN1257 KOI8U"
).split()
SEVERAL = "EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004".split()

FUNCTIONS = r"""
create function written_as(lo int, hi int, enc name) returns table(first int, bytes text) language plpgsql as $$
declare at int := lo; last int; msg text; bad text; c int;
begin
  while at <= hi loop
    last := least(at + 63, hi);
    while at <= last loop
      begin
        bytes := encode(convert_to((select string_agg(chr(i), E'\n' order by i) from generate_series(at, last) i), enc), 'hex');
        first := at; return next; at := last + 1;
      exception when untranslatable_character then
        get stacked diagnostics msg = message_text;
        bad := replace(substring(msg from 'byte sequence ((?:0x[0-9a-f]{2} ?)+)'), '0x', '');
        c := ascii(convert_from(decode(replace(bad, ' ', ''), 'hex'), 'UTF8'));
        if c > at then
          bytes := encode(convert_to((select string_agg(chr(i), E'\n' order by i) from generate_series(at, c - 1) i), enc), 'hex');
          first := at; return next;
        end if;
        at := c + 1;
      end;
    end loop;
  end loop;
end $$;
create function read_as(codes bytea[], enc name) returns table(code text, utf8 text) language plpgsql as $$
declare one bytea;
begin
  foreach one in array codes loop
    begin
      utf8 := encode(convert_to(convert_from(one, enc), 'UTF8'), 'hex'); code := encode(one, 'hex'); return next;
    exception when untranslatable_character or character_not_in_repertoire then null;
    end;
  end loop;
end $$;
"""


def ask(*queries):
    command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"]
    for query in queries:
        command += ["-c", query]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def candidates(name):
    """Sequences of bytes that may be a character, as a query."""
    parts = ["select decode(to_hex(i), 'hex') as b from generate_series(128, 255) i"]
    if name in SEVERAL:
        parts.append(
            "select decode(to_hex(i * 256 + j), 'hex') from generate_series(128, 255) i, generate_series(48, 255) j"
        )
    if name.startswith("EUC") or name == "JOHAB":
        parts.append(
            r"select '\x8f'::bytea || decode(to_hex(i * 256 + j), 'hex')"
            " from generate_series(160, 255) i, generate_series(160, 255) j"
        )
    if name == "EUC_TW":
        parts.append(
            r"select '\x8e'::bytea || decode(to_hex(k * 65536 + i * 256 + j), 'hex')"
            " from generate_series(161, 176) k, generate_series(161, 254) i, generate_series(161, 254) j"
        )
    if name == "GB18030":
        # The planes beyond the first are one row of numbers, which conversion.rs knows.
        parts.append(
            "select decode(to_hex(a) || to_hex(b) || to_hex(c) || to_hex(d), 'hex') from generate_series(129, 132) a,"
            " generate_series(48, 57) b, generate_series(129, 254) c, generate_series(48, 57) d"
        )
    return " union all ".join(parts)


def recorded(name):
    """What codes are read as, what pairs of characters are, and what characters are written as."""
    read, pairs, written = {}, {}, {}
    query = f"select * from read_as((select array_agg(b order by length(b), b) from ({candidates(name)}) q), '{name}')"
    for line in ask(query):
        code, text = line.split("|")
        code, text = bytes.fromhex(code), bytes.fromhex(text).decode()
        number = int.from_bytes(code, "big")
        if len(text) == 1:
            read[number] = ord(text)
        elif not is_two_codes(read, code, text):
            pairs[number] = [ord(character) for character in text]
    last = 0xFFFF if name == "GB18030" else 0x10FFFF
    ranges = [(0x80, 0xD7FF), (0xE000, last)]
    for line in ask(*[f"select * from written_as({low}, {high}, '{name}')" for low, high in ranges]):
        first, codes = line.split("|")
        for place, code in enumerate(bytes.fromhex(codes).split(b"\n")):
            written[int(first) + place] = int.from_bytes(code, "big")
    return read, pairs, written


def is_two_codes(read, code, text):
    """Whether bytes are one character after the other."""
    def one(part):
        return part[0] if part[0] < 0x80 else read.get(int.from_bytes(part, "big"))

    cuts = [(code[:at], code[at:]) for at in range(1, len(code))]
    return any([one(head), one(tail)] == [ord(character) for character in text] for head, tail in cuts)


def number(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def section(read, pairs, written):
    inverse = {}
    for code in sorted(read):
        inverse.setdefault(read[code], code)
    runs, items, at = [], sorted(read.items()), 0
    before, scalar = 0, 0
    while at < len(items):
        end = at
        while end + 1 < len(items) and items[end + 1] == (items[end][0] + 1, items[end][1] + 1):
            end += 1
        (code, first), length = items[at], end - at + 1
        gap, far = code - before - 1, first - scalar - 1
        zigzag = far * 2 if far >= 0 else -far * 2 - 1
        run = number(zigzag * 4 + (2 if gap else 0) + (1 if length > 1 else 0))
        runs.append(run + (number(gap) if gap else b"") + (number(length - 2) if length > 1 else b""))
        before, scalar, at = code + length - 1, first + length - 1, end + 1
    body = number(len(runs)) + b"".join(runs)
    others = sorted(one for one in set(inverse) | set(written) if inverse.get(one) != written.get(one))
    body += number(len(others))
    for place, one in enumerate(others):
        body += number(one - (others[place - 1] if place else 0)) + number(written.get(one, 0))
    body += number(len(pairs))
    for code, pair in sorted(pairs.items()):
        body += b"".join(map(number, [code, *pair]))
    return body


def main():
    ask(FUNCTIONS)
    for line in ask("select i || '|' || pg_encoding_to_char(i) from generate_series(0, 41) i"):
        code, name = line.split("|")
        if name in SINGLE or name in SEVERAL:
            body = section(*recorded(name))
            sys.stdout.buffer.write(bytes([int(code)]) + number(len(body)) + body)
    ask("drop function written_as, read_as")


if __name__ == "__main__":
    main()
