"""What TLS costs: one server, encrypted and plain clients in turns."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

from both import psql, write_json
from side_by_side import POSTGRES, Archipel, Transport

# pgbench's own scripts, by what they are called here.
SCRIPTS = {"one row read": "select-only", "TPC-B": "tpcb-like"}
MODES = {"plain": "disable", "encrypted": "require"}
# pgbench's threads share the machine with the server.
CLIENT_THREADS = 4


def certificate(directory):
    """A server's settings with a certificate that it has signed itself."""
    files = {"ssl_cert_file": directory / "server.crt", "ssl_key_file": directory / "server.key"}
    command = [
        "openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-subj", "/CN=localhost", "-days", "1", "-out", str(files["ssl_cert_file"]), "-keyout", str(files["ssl_key_file"]),
    ]
    subprocess.run(command, check=True, capture_output=True)
    files["ssl_key_file"].chmod(0o600)
    return {"ssl": "on", **files}


def pgbench(server, mode, words):
    """pgbench's output, over connections of this mode."""
    environment = {**os.environ, "PGSSLMODE": MODES[mode], "PGOPTIONS": "-c synchronous_commit=off"}
    run = subprocess.run([str(POSTGRES / "pgbench"), *words, server.url], capture_output=True, text=True, env=environment)
    if run.returncode != 0:
        raise SystemExit(f"{mode}: {run.stderr[:400]}")
    return run.stdout


def throughput(server, mode, script, arguments):
    """Transactions a second."""
    threads = min(arguments.connections, CLIENT_THREADS)
    words = ["-n", "-M", "prepared", "-b", script, "-c", str(arguments.connections), "-j", str(threads)]
    output = pgbench(server, mode, [*words, "-T", str(arguments.duration)])
    return float(re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE).group(1))


def measure(server, script, arguments):
    runs = {mode: [] for mode in MODES}
    for turn in range(arguments.rounds):
        # Neither is always the first.
        for mode in sorted(MODES, reverse=turn % 2 == 0):
            runs[mode].append(throughput(server, mode, script, arguments))
    medians = {mode: statistics.median(found) for mode, found in runs.items()}
    return {"tps": medians, "runs": runs, "cost": 1 - medians["encrypted"] / medians["plain"]}


def main():
    parser = argparse.ArgumentParser(prog="tls")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--duration", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if min(arguments.connections, arguments.duration, arguments.rounds) < 1:
        parser.error("connections, duration and rounds are at least 1")
    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        server = Archipel(directory, Transport(directory, tcp=True), certificate(directory))
        try:
            pgbench(server, "plain", ["-i", "-q", "-s", str(max(arguments.connections, 10))])
            shown = psql(server, "-c", "SELECT version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            result = {title: measure(server, script, arguments) for title, script in SCRIPTS.items()}
        finally:
            server.stop()
    print(f"{arguments.connections} connections, {shown.strip().replace('|', ', ')}")
    for title, found in result.items():
        tps = found["tps"]
        print(f"{title:<14} plain {tps['plain']:>9.0f}/s  encrypted {tps['encrypted']:>9.0f}/s  TLS costs {found['cost']:>6.1%}")
    write_json(arguments.json, result)


if __name__ == "__main__":
    main()
