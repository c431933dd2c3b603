"""Routines on PostgreSQL 15 and Archipel in turns: loops, the CPU of new_order, compilation."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

from both import both_servers, psql, timed_ms, write_json
from side_by_side import alternating, archipel_binary, settle

ROOT = pathlib.Path(__file__).parent
LOOPS = ["arithmetic", "strings", "arrays"]
ROUNDS_OF_A_LOOP = 1_000_000
CONNECTIONS = [1, 16]
LOOKS_MAX = 1_000
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CALL = "CALL new_order(1, 1, 1, '{1,2}', '{1,1}', '{1,1}')"


def loops(servers, rounds):
    """Milliseconds of a call, its answers alike on both servers."""
    result = {}
    for name in LOOPS:
        call = f"SELECT {name}({ROUNDS_OF_A_LOOP})"
        answers = {psql(server, "-c", call) for server in servers}
        if len(answers) != 1:
            raise SystemExit(f"{name} answers differently: {answers}")
        times = {server.name: [] for server in servers}
        for server in alternating(servers, rounds):
            times[server.name] += timed_ms(server, [call])
        medians = {server: statistics.median(values) for server, values in times.items()}
        result[name] = {"ms": medians, "ratio": medians["postgresql"] / medians["archipel"], "runs": times}
    return result


def ticks_of(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    # utime, stime, and those of children that were waited for.
    return sum(map(int, fields[11:15]))


def cpu_s(server):
    """CPU seconds of a server's processes up to now, those that have ended included."""
    if server.name == "archipel":
        return ticks_of(server.process.pid) / TICKS_A_SECOND
    postmaster = int((server.data / "postmaster.pid").read_text(encoding="ascii").split()[0])
    children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children")
    # Backends of connections that have been closed end in a moment: what they took is their
    # parent's then.
    for _ in range(LOOKS_MAX):
        before = children.read_text(encoding="ascii")
        try:
            ticks = ticks_of(postmaster) + sum(map(ticks_of, before.split()))
            if children.read_text(encoding="ascii") == before:
                return ticks / TICKS_A_SECOND
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    raise SystemExit("the processes of PostgreSQL come and go")


def new_order(servers, rounds, duration, directory):
    """CPU microseconds of the server a committed new_order, by connections."""
    for server in servers:
        load = [archipel_binary(), "workload", "load", "tpcc", "--url", server.url]
        subprocess.run(load, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settle(server)
    result = {}
    figures = directory / "figures.json"
    for connections in CONNECTIONS:
        runs = {server.name: [] for server in servers}
        for server in alternating(servers, rounds):
            drive = [
                archipel_binary(), "workload", "run", "tpcc", "--url", server.url,
                "--connections", str(connections), "--only", "new_order", "--duration", str(duration),
                "--set", "synchronous_commit=off", "--quiet", "--json", str(figures),
            ]
            before = cpu_s(server)
            subprocess.run(drive, check=True, stdout=subprocess.DEVNULL)
            used = cpu_s(server) - before
            call = json.loads(figures.read_text(encoding="utf-8"))["transactions"]["new_order"]
            runs[server.name].append(used * 1e6 / (call["count"] + call.get("rejected", 0)))
        medians = {server: statistics.median(values) for server, values in runs.items()}
        ratio = medians["postgresql"] / medians["archipel"]
        result[connections] = {"cpu_us": medians, "ratio": ratio, "runs": runs}
    return result


def in_process(duration, directory):
    """CPU microseconds of a committed new_order of the same size without wire, session and log."""
    build = ["cargo", "bench", "-q", "--workspace", "--bench", "tpcc", "--no-run", "--message-format", "json"]
    built = subprocess.run(build, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    programs = [line["executable"] for line in map(json.loads, built.splitlines()) if line.get("executable")]
    figures = directory / "in-process.json"
    run = [programs[-1], "1", str(duration), "executors=1", "only=new_order", f"json={figures}"]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    alone, = json.loads(figures.read_text(encoding="utf-8"))
    return 1e6 / alone["processor_time"]["transactions_per_second"]


def compilation(server, rounds):
    """Milliseconds to compile new_order, binding its CALL and the answer taken off."""
    source = (ROOT.parent / "workloads" / "tpcc" / "procedures.sql").read_text(encoding="utf-8")
    start = source.index("CREATE OR REPLACE PROCEDURE new_order")
    end = source.index("$$;", source.index("$$", start) + 2) + 3
    create = source[start:end].rstrip(";")
    times = []
    for _ in range(max(rounds, 10)):
        _, first, second = timed_ms(server, [create, f"EXPLAIN {CALL}", f"EXPLAIN {CALL}"])
        times.append(first - second)
    return {"ms": statistics.median(times), "runs": times}


def report(result):
    print(f"{'a million rounds':<18} {'PostgreSQL 15':>14} {'Archipel':>10} {'ratio':>7}")
    for name, loop in result["loops"].items():
        ms = loop["ms"]
        print(f"{name:<18} {ms['postgresql']:>11.0f} ms {ms['archipel']:>7.0f} ms {loop['ratio']:>6.1f}x")
    print("new_order, CPU of a call")
    for connections, measured in result["new_order"].items():
        cpu, ratio = measured["cpu_us"], measured["ratio"]
        name = f"  {connections} at a time"
        print(f"{name:<18} {cpu['postgresql']:>11.0f} µs {cpu['archipel']:>7.0f} µs {ratio:>6.1f}x")
    cpu, alone = result["new_order"][CONNECTIONS[0]]["cpu_us"], result["in_process_us"]
    print(f"{'  in-process':<18} {'':>14} {alone:>7.0f} µs {cpu['postgresql'] / alone:>6.1f}x")
    print(f"new_order is compiled in {result['compile']['ms']:.1f} ms")


def main():
    parser = argparse.ArgumentParser(prog="routines")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.duration < 1:
        parser.error("rounds and duration are at least 1")
    with both_servers() as (servers, directory):
        for server in servers:
            psql(server, "-f", str(ROOT / "routines.sql"))
        result = {
            "loops": loops(servers, arguments.rounds),
            "new_order": new_order(servers, arguments.rounds, arguments.duration, directory),
            "compile": compilation(servers[1], arguments.rounds),
        }
        result["in_process_us"] = in_process(arguments.duration, directory)
    report(result)
    write_json(arguments.json, result)


if __name__ == "__main__":
    main()
