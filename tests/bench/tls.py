"""What TLS costs: encrypted and plain clients in turns, on Archipel and on PostgreSQL."""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

from both import psql, write_json
from side_by_side import POSTGRES, Archipel, PostgreSql, Transport, processor_s

# pgbench's own scripts, by what they are called here.
SCRIPTS = {"one row read": "select-only", "TPC-B": "tpcb-like"}
MODES = {"plain": "disable", "encrypted": "require"}
# pgbench's threads share the machine with the server.
CLIENT_THREADS = 4


def certificate(directory, name, owner):
    """A server's settings with a certificate that it has signed itself, the key being this user's alone."""
    files = {"ssl_cert_file": directory / f"{name}.crt", "ssl_key_file": directory / f"{name}.key"}
    command = [
        "openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-subj", "/CN=localhost", "-days", "1", "-out", str(files["ssl_cert_file"]), "-keyout", str(files["ssl_key_file"]),
    ]
    subprocess.run(command, check=True, capture_output=True)
    files["ssl_key_file"].chmod(0o600)
    if os.geteuid() == 0:
        shutil.chown(files["ssl_key_file"], owner)
    return {"ssl": "on", **files}


def pgbench(server, mode, words):
    """pgbench's output, over connections of this mode."""
    environment = {**os.environ, "PGSSLMODE": MODES[mode], "PGOPTIONS": "-c synchronous_commit=off"}
    run = subprocess.run([str(POSTGRES / "pgbench"), *words, server.url], capture_output=True, text=True, env=environment)
    if run.returncode != 0:
        raise SystemExit(f"{mode}: {run.stderr[:400]}")
    return run.stdout


def run_once(server, mode, script, arguments):
    """Transactions a second, and microseconds of the server's processors for each."""
    threads = min(arguments.connections, CLIENT_THREADS)
    words = ["-n", "-M", "prepared", "-b", script, "-c", str(arguments.connections), "-j", str(threads)]
    before = processor_s(server.process_id())
    output = pgbench(server, mode, [*words, "-T", str(arguments.duration)])
    used_s = processor_s(server.process_id()) - before
    number = int(re.search(r"actually processed: ([0-9]+)", output).group(1))
    return float(re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE).group(1)), used_s / number * 1e6


def measure(server, script, arguments):
    runs = {mode: [] for mode in MODES}
    for turn in range(arguments.rounds):
        # Neither is always the first.
        for mode in sorted(MODES, reverse=turn % 2 == 0):
            runs[mode].append(run_once(server, mode, script, arguments))
    tps = {mode: statistics.median(found[0] for found in runs[mode]) for mode in MODES}
    server_us = {mode: statistics.median(found[1] for found in runs[mode]) for mode in MODES}
    return {
        "tps": tps,
        "server_us": server_us,
        "runs": runs,
        "cost": 1 - tps["encrypted"] / tps["plain"],
        "server_cost": 1 - server_us["plain"] / server_us["encrypted"],
    }


def report(name, arguments, shown, result):
    print(f"{name}, {arguments.connections} connections, {shown.strip().replace('|', ', ')}")
    for title, found in result.items():
        tps, server_us = found["tps"], found["server_us"]
        print(
            f"{title:<14} plain {tps['plain']:>9.0f}/s  encrypted {tps['encrypted']:>9.0f}/s  TLS costs {found['cost']:>6.1%};"
            f"  of the server's processors {server_us['plain']:.1f} and {server_us['encrypted']:.1f} us, TLS {found['server_cost']:.1%}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(prog="tls")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--duration", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if min(arguments.connections, arguments.duration, arguments.rounds) < 1:
        parser.error("connections, duration and rounds are at least 1")
    results = {}
    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        # The oracle runs as another user.
        directory.chmod(0o755)
        transport = Transport(directory, tcp=True)
        for kind, owner in ((Archipel, "root"), (PostgreSql, "postgres")):
            server = kind(directory, transport, certificate(directory, kind.name, owner))
            try:
                pgbench(server, "plain", ["-i", "-q", "-s", str(max(arguments.connections, 10))])
                shown = psql(server, "-c", "SELECT version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
                result = {title: measure(server, script, arguments) for title, script in SCRIPTS.items()}
            finally:
                server.stop()
            report(server.name, arguments, shown, result)
            results[server.name] = result
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
