"""Plain SQL on PostgreSQL 15 and Archipel in turns: pgbench's statements, COPY, analytical queries, planning."""

import argparse
import os
import pathlib
import statistics
import struct
import subprocess

from both import both_servers, psql, timed_ms, write_json
from side_by_side import POSTGRES, alternating, archipel_binary, settle

ROOT = pathlib.Path(__file__).parent
CLIENTS = 16
# Statements between a client's two looks at its socket, when it pipelines.
PIPELINE = 16
# What the servers should reach beside PostgreSQL.
TARGETS = {"prepared": 1.2, "pipelined": 1.3, "simple": 1.0, "copy": 1.5, "analytics": 1.0}
PLAN_TARGET_MS = 5.0


def statements(scale):
    account = f"\\set aid random(1, {100_000 * scale})\n\\set delta random(-5000, 5000)\n"
    return {
        "select": account + "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
        "update": account + "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n",
        "insert": account + "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);\n",
    }


def pipelined(script):
    return "\\startpipeline\n" + script * PIPELINE + "\\endpipeline\n"


def compared(runs, higher_is_better):
    medians = {server: statistics.median(values) for server, values in runs.items()}
    ours, theirs = medians["archipel"], medians["postgresql"]
    return {"medians": medians, "ratio": ours / theirs if higher_is_better else theirs / ours, "runs": runs}


def pgbench(servers, arguments, directory):
    """Statements a second."""
    environment = {**os.environ, "PGOPTIONS": "-c synchronous_commit=off"}
    for server in servers:
        load = [str(POSTGRES / "pgbench"), "-i", "-q", "-s", str(arguments.scale), server.url]
        subprocess.run(load, check=True, capture_output=True)
        settle(server)
    results = {}
    for mode in ("prepared", "simple", "pipelined"):
        for name, script in statements(arguments.scale).items():
            path = directory / "script.sql"
            path.write_text(pipelined(script) if mode == "pipelined" else script, encoding="utf-8")
            command = [
                str(POSTGRES / "pgbench"), "-n", "-M", "simple" if mode == "simple" else "prepared",
                "-c", str(CLIENTS), "-j", "1", "-T", str(arguments.duration), "-f", str(path),
            ]
            runs = {server.name: [] for server in servers}
            for server in alternating(servers, arguments.rounds):
                output = subprocess.run([*command, server.url], check=True, capture_output=True, text=True, env=environment).stdout
                rate = next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps"))
                runs[server.name].append(rate * (PIPELINE if mode == "pipelined" else 1))
            results[f"{mode} {name}"] = compared(runs, True)
            tell(f"{mode} {name}", results[f"{mode} {name}"], "statements/s", TARGETS[mode])
    return results


def narrow_rows(directory, count):
    """The same rows in text and in binary: paths, by form."""
    paths = {"text": directory / "rows.tsv", "binary": directory / "rows.bin"}
    row = struct.Struct(">hiqiiii")
    with open(paths["text"], "w", encoding="ascii") as text, open(paths["binary"], "wb") as binary:
        binary.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for number in range(count):
            kind, amount = number % 1000, number * 7 % 100_003
            text.write(f"{number}\t{kind}\t{amount}\n")
            binary.write(row.pack(3, 8, number, 4, kind, 4, amount))
        binary.write(b"\xff\xff")
    return paths


def copy(servers, arguments, directory):
    """Seconds of a COPY of narrow rows, in text and in binary."""
    paths = narrow_rows(directory, arguments.copy_rows)
    results = {f"copy {form}": copied(servers, arguments, form, path) for form, path in paths.items()}
    for server, seconds in results["copy binary"]["medians"].items():
        print(f"copy binary of copy text, {server}: {seconds / results['copy text']['medians'][server]:.2f}")
    return results


def copied(servers, arguments, form, path):
    runs = {server.name: [] for server in servers}
    for server in alternating(servers, arguments.rounds):
        psql(server, "-c", "DROP TABLE IF EXISTS narrow", "-c", "CREATE TABLE narrow (id bigint PRIMARY KEY, kind int, amount int)")
        ms = timed_ms(server, ["SET synchronous_commit = off", f"\\copy narrow FROM '{path}' (FORMAT {form})"])
        runs[server.name].append(ms[-1] / 1000)
        count = psql(server, "-c", "SELECT count(*) FROM narrow").strip()
        if count != str(arguments.copy_rows):
            raise SystemExit(f"{server.name} has {count} rows of {arguments.copy_rows}")
    for server in servers:
        psql(server, "-c", "DROP TABLE narrow")
    result = compared(runs, False)
    tell(f"copy {form}", result, "s", TARGETS["copy"])
    return result


def analytics(servers, arguments):
    """Milliseconds of each query, and of all."""
    lines = (ROOT / "statements.sql").read_text(encoding="utf-8").splitlines()
    text = " ".join(line.strip() for line in lines if not line.startswith("--"))
    queries = [query.strip() for query in text.split(";") if query.strip()]
    for server in servers:
        load = [archipel_binary(), "workload", "load", "tpcc", "--url", server.url, "--scale", "1"]
        subprocess.run(load, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settle(server)
        psql(server, "-c", "ANALYZE")
    results, totals = {}, {server.name: [0.0] * arguments.rounds for server in servers}
    for number, query in enumerate(queries, 1):
        runs = {server.name: [] for server in servers}
        for server in servers:
            # Once beforehand: neither plans or reads from disk in a measured run.
            psql(server, "-c", query)
        for server in alternating(servers, arguments.rounds):
            runs[server.name] += timed_ms(server, [query])
        results[f"query {number}"] = compared(runs, False)
        tell(f"query {number}", results[f"query {number}"], "ms")
        for name, values in runs.items():
            totals[name] = [total + value for total, value in zip(totals[name], values)]
    results["all queries"] = compared(totals, False)
    tell("all queries", results["all queries"], "ms", TARGETS["analytics"])
    return results


def planning(server, arguments):
    """Milliseconds of EXPLAIN for a join of six tables, each time with a text of its own."""
    join = (
        "EXPLAIN SELECT c_last, sum(ol_amount) FROM customer, orders, order_line, stock, item, district "
        "WHERE c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id "
        "AND s_w_id = ol_supply_w_id AND s_i_id = ol_i_id AND i_id = ol_i_id AND d_w_id = c_w_id AND d_id = c_d_id "
        "AND i_price > {} GROUP BY c_last HAVING count(*) > {}"
    )
    texts = [join.format(number, number) for number in range(arguments.rounds * 5)]
    times = timed_ms(server, texts)
    median = statistics.median(times)
    verdict = "met" if median < PLAN_TARGET_MS else "missed"
    print(f"planning a join of six tables: {median:.2f} ms (target {PLAN_TARGET_MS} ms: {verdict})", flush=True)
    return {"median_ms": median, "runs": times}


def tell(name, result, unit, target=None):
    medians = result["medians"]
    verdict = "" if target is None else f"   target {target}x: {'met' if result['ratio'] >= target else 'missed'}"
    print(f"{name:<18} PostgreSQL {medians['postgresql']:>12.1f}  Archipel {medians['archipel']:>12.1f} {unit:<13} {result['ratio']:>6.2f}x{verdict}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="statements")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--duration", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copy-rows", type=int, default=2_000_000)
    parser.add_argument("--only", choices=["pgbench", "copy", "analytics"])
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if min(arguments.scale, arguments.duration, arguments.rounds, arguments.copy_rows) < 1:
        parser.error("scale, duration, rounds and rows are at least 1")

    result = {"scale": arguments.scale, "rounds": arguments.rounds}
    with both_servers() as (servers, directory):
        if arguments.only in (None, "pgbench"):
            result["pgbench"] = pgbench(servers, arguments, directory)
        if arguments.only in (None, "copy"):
            result["copy"] = copy(servers, arguments, directory)
        if arguments.only in (None, "analytics"):
            result["analytics"] = analytics(servers, arguments)
            result["planning"] = planning(servers[1], arguments)
    write_json(arguments.json, result)


if __name__ == "__main__":
    main()
