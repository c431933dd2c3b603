"""Runs one workload against PostgreSQL 15 and Archipel in turns; prints and writes the ratio."""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")
START_LIMIT_S = 120
# Archipel's exit code for a port in use.
BUSY_PORT = 3


def archipel_binary() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(cache, "archipel", "target")
    binary = os.path.join(target, "release", "archipel")
    if not os.path.exists(binary):
        sys.exit(f"{binary} is missing: run deploy/up or cargo build --release --workspace first")
    return binary


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def as_postgres(command):
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


def memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)


class PostgreSql:
    """A cluster with fsync on and a quarter of the memory as shared buffers."""

    name = "postgresql"

    def __init__(self, directory: pathlib.Path):
        self.data = directory / "postgresql"
        self.port = free_port()
        self.data.mkdir()
        if os.geteuid() == 0:
            directory.chmod(0o755)
            shutil.chown(self.data, "postgres")
        initdb = [str(POSTGRES / "initdb"), "-A", "trust", "-U", "archipel", "--locale=C", "-E", "UTF8", "-D", str(self.data)]
        subprocess.run(as_postgres(initdb), check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": f"{memory_mb() // 4}MB",
            "max_connections": 200,
            "max_wal_size": "16GB",
            "checkpoint_timeout": "15min",
            "wal_buffers": "64MB",
        }
        with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.control("start", "-l", str(self.data / "log"))
        subprocess.run(
            [str(POSTGRES / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "archipel", "archipel"],
            check=True,
        )

    def control(self, *action):
        command = [str(POSTGRES / "pg_ctl"), "-w", "-D", str(self.data), *action]
        subprocess.run(as_postgres(command), check=True, stdout=subprocess.DEVNULL, cwd="/")

    @property
    def url(self):
        return f"postgresql://archipel@127.0.0.1:{self.port}/archipel"

    def resident_mb(self):
        return None

    def stop(self):
        self.control("stop", "-m", "immediate")


class Archipel:
    name = "archipel"

    def __init__(self, directory: pathlib.Path):
        self.data = directory / "archipel"
        self.log = open(directory / "archipel.log", "w", encoding="utf-8")
        self.start()

    def start(self, tries=5):
        self.port = free_port()
        self.process = subprocess.Popen(
            [archipel_binary(), "serve", "--http", "off", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data)],
            stdout=self.log,
            stderr=self.log,
        )
        begin = time.monotonic()
        while True:
            ready = subprocess.run(["psql", "-X", "-q", "-At", "-d", self.url, "-c", "SELECT 1"], capture_output=True)
            if ready.returncode == 0:
                return time.monotonic() - begin
            if self.process.poll() == BUSY_PORT and tries > 1:
                # A port that was free a moment ago may be some connection's own by now.
                return self.start(tries - 1)
            if self.process.poll() is not None or time.monotonic() - begin > START_LIMIT_S:
                with open(self.log.name, encoding="utf-8") as log:
                    sys.exit(f"Archipel did not start:\n{log.read()[-2000:]}")
            time.sleep(0.1)

    @property
    def url(self):
        return f"postgresql://archipel@127.0.0.1:{self.port}/archipel"

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) // 1024
        return None

    def recovery_s(self):
        """kill -9, start again, and the seconds until it answers."""
        self.process.kill()
        self.process.wait()
        return self.start()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def syncs_per_second(directory: pathlib.Path) -> float:
    """Synced appends of 4 kB this disk takes, measured in this very run."""
    path = directory / "sync"
    with open(path, "wb", buffering=0) as file:
        begin = time.monotonic()
        count = 0
        while time.monotonic() - begin < 1.0:
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
            count += 1
        elapsed = time.monotonic() - begin
    path.unlink()
    return count / elapsed


def drive(server, arguments, regime, directory):
    figures = directory / "figures.json"
    command = [
        archipel_binary(), "workload", "run", arguments.workload, "--url", server.url,
        "--scale", str(arguments.scale), "--duration", str(arguments.duration), "--warmup", "2", "--quiet",
        "--connections", str(regime["connections"]), "--pipeline", str(regime["pipeline"]),
        "--set", f"synchronous_commit={regime['synchronous_commit']}", "--json", str(figures),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(figures, encoding="utf-8") as file:
        return json.load(file)


def pgbench_check(server, arguments):
    """PostgreSQL's rate for one call of the workload, by pgbench and by our driver, with the same parameters."""
    only, script = {
        "tpcc": ("stock_level", "\\set w :client_id % {s} + 1\n\\set d :client_id % 10 + 1\n\\set t random(10, 20)\nCALL stock_level(:w, :d, :t);\n"),
        "tatp": ("get_access_data", "\\set s random(1, {s} * 100000)\nSELECT * FROM get_access_data(:s, 1::smallint);\n"),
    }[arguments.workload]
    with tempfile.NamedTemporaryFile("w", suffix=".sql", delete=False) as file:
        file.write(script.format(s=arguments.scale))
    command = ["pgbench", "-n", "-M", "prepared", "-c", "16", "-j", "1", "-T", str(arguments.duration), "-f", file.name, server.url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.unlink(file.name)
    rate = next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps"))
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        command = [
            archipel_binary(), "workload", "run", arguments.workload, "--url", server.url, "--scale", str(arguments.scale),
            "--duration", str(arguments.duration), "--quiet", "--connections", "16", "--only", only, "--json", figures.name,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        ours = json.load(open(figures.name, encoding="utf-8"))["throughput"]
    return {"call": only, "pgbench": rate, "driver": ours, "ratio": ours / rate}


def main():
    parser = argparse.ArgumentParser(prog="side-by-side")
    parser.add_argument("workload", choices=["tpcc", "tatp"])
    parser.add_argument("--scale", type=int)
    parser.add_argument("--duration", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.scale is None:
        arguments.scale = 10 if arguments.workload == "tpcc" else 1
    if arguments.rounds < 1 or arguments.duration < 1:
        parser.error("rounds and duration are at least 1")

    regimes = [
        {"name": "async", "synchronous_commit": "off", "connections": 16, "pipeline": 1},
        {"name": "durable", "synchronous_commit": "on", "connections": 64, "pipeline": 1},
    ]
    if arguments.workload == "tatp":
        regimes.append({"name": "pipelined", "synchronous_commit": "off", "connections": 16, "pipeline": 32})

    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        servers = []
        try:
            servers += [PostgreSql(directory), Archipel(directory)]
            result = {"workload": arguments.workload, "scale": arguments.scale, "rounds": arguments.rounds, "regimes": {}}
            for server in servers:
                load = [archipel_binary(), "workload", "load", arguments.workload, "--url", server.url, "--scale", str(arguments.scale)]
                subprocess.run(load, check=True)
            result["archipel_resident_after_load_mb"] = servers[1].resident_mb()
            result["driver_check"] = pgbench_check(servers[0], arguments)
            result["syncs_per_second"] = syncs_per_second(directory)
            for regime in regimes:
                runs = {server.name: [] for server in servers}
                for round_number in range(arguments.rounds):
                    # The order alternates, so that a drifting machine favours nobody.
                    for server in servers if round_number % 2 == 0 else reversed(servers):
                        figures = drive(server, arguments, regime, directory)
                        runs[server.name].append(figures)
                        print(f"  {regime['name']:<10} {server.name:<11} {figures['throughput']:>10.0f} tx/s  errors {figures['errors']}", flush=True)
                medians = {server: statistics.median(run["throughput"] for run in all_runs) for server, all_runs in runs.items()}
                ratio = medians["archipel"] / medians["postgresql"]
                result["regimes"][regime["name"]] = {**regime, "medians": medians, "ratio": ratio, "runs": runs}
            result["archipel_recovery_s"] = servers[1].recovery_s()
        finally:
            for server in servers:
                server.stop()

    print(f"\n{arguments.workload}, scale {arguments.scale}, medians of {arguments.rounds} (committed transactions a second)")
    print(f"{'regime':<12} {'connections':>11} {'PostgreSQL 15':>14} {'Archipel':>10} {'ratio':>7}")
    for name, regime in result["regimes"].items():
        medians = regime["medians"]
        print(f"{name:<12} {regime['connections']:>11} {medians['postgresql']:>14.0f} {medians['archipel']:>10.0f} {regime['ratio']:>6.2f}x")
    check = result["driver_check"]
    print(f"driver check ({check['call']} on PostgreSQL): pgbench {check['pgbench']:.0f}, driver {check['driver']:.0f}")
    print(f"synced 4 kB appends a second on this disk: {result['syncs_per_second']:.0f}")
    print(f"Archipel: {result['archipel_resident_after_load_mb']} MB resident after load, recovery after kill -9 {result['archipel_recovery_s']:.1f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
