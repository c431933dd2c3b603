"""Runs one workload against PostgreSQL 15 and Archipel in turns; prints and writes the ratio."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")
START_LIMIT_S = 120
WARMUP_S = 2
# Archipel's exit code for a port in use.
BUSY_PORT = 3


def archipel_binary() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if given := os.environ.get("ARCHIPEL_BINARY"):
        return given
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(cache, "archipel", "target")
    binary = os.path.join(target, "release", "archipel")
    if not os.path.exists(binary):
        sys.exit(f"{binary} is missing: run deploy/up or cargo build --release --workspace first")
    return binary


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Transport:
    """How clients reach a server of this run: Unix sockets in one folder, or TCP on loopback."""

    def __init__(self, directory: pathlib.Path, tcp: bool):
        self.name = "tcp" if tcp else "unix"
        self.folder = directory / "sockets"
        self.folder.mkdir()
        # The oracle runs as another user.
        self.folder.chmod(0o777)

    def url(self, port: int) -> str:
        if self.name == "tcp":
            return f"postgresql://archipel@127.0.0.1:{port}/archipel"
        return f"postgresql://archipel@/archipel?host={self.folder}&port={port}"


def as_postgres(command):
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


def processor_s(process: int) -> float:
    """What a process and its ended children have used of processors, in seconds."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        # Behind the command's name, which may hold anything, utime is the twelfth.
        ticks = stat.read().rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)


class PostgreSql:
    """A cluster with fsync on and a quarter of the memory as shared buffers."""

    name = "postgresql"

    def __init__(self, directory: pathlib.Path, transport: Transport, settings=None):
        self.data = directory / "postgresql"
        self.port = free_port()
        self.url = transport.url(self.port)
        self.data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self.data, "postgres")
        initdb = [str(POSTGRES / "initdb"), "-A", "trust", "-U", "archipel", "--locale=C", "-E", "UTF8", "-D", str(self.data)]
        subprocess.run(as_postgres(initdb), check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": transport.folder,
            "shared_buffers": f"{memory_mb() // 4}MB",
            "max_connections": 200,
            "max_wal_size": "16GB",
            "checkpoint_timeout": "15min",
            "wal_buffers": "64MB",
            **(settings or {}),
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

    def resident_mb(self):
        return None

    def process_id(self):
        with open(self.data / "postmaster.pid", encoding="ascii") as file:
            return int(file.readline())

    def stop(self):
        self.control("stop", "-m", "immediate")


class Archipel:
    name = "archipel"

    def __init__(self, directory: pathlib.Path, transport: Transport, settings=None):
        self.transport = transport
        self.settings = settings or {}
        self.data = directory / "archipel"
        self.log = open(directory / "archipel.log", "w", encoding="utf-8")
        self.start()

    def start(self, tries=5):
        self.port = free_port()
        self.process = subprocess.Popen(
            [
                archipel_binary(), "serve", "--http", "off", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data),
                "--set", f"unix_socket_directories={self.transport.folder}",
                *(word for name, value in self.settings.items() for word in ("--set", f"{name}={value}")),
            ],
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
        return self.transport.url(self.port)

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) // 1024
        return None

    def process_id(self):
        return self.process.pid

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


class Canned:
    """Answers every call with fixed bytes: what kernel, wire and driver allow."""

    name = "canned"

    def __init__(self, workload: str, transport: Transport):
        self.url = transport.url(free_port())
        self.process = subprocess.Popen([archipel_binary(), "workload", "canned", workload, "--url", self.url])

    def stop(self):
        self.process.kill()
        self.process.wait()


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


def settle(server):
    """Both begin alike: what the load left to write is written, and none of it falls into a run."""
    subprocess.run(["psql", "-X", "-q", "-d", server.url, "-c", "CHECKPOINT"], check=True)


def drive(url, arguments, directory, *, duration, connections, pipeline=1, synchronous_commit="off", only=None):
    figures = directory / "figures.json"
    command = [
        archipel_binary(), "workload", "run", arguments.workload, "--url", url,
        "--scale", str(arguments.scale), "--duration", str(duration), "--warmup", str(WARMUP_S), "--quiet",
        "--connections", str(connections), "--pipeline", str(pipeline),
        "--set", f"synchronous_commit={synchronous_commit}", "--json", str(figures),
    ]
    if only:
        command += ["--only", ",".join(only)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(figures, encoding="utf-8") as file:
        return json.load(file)


def children_cpu_s() -> float:
    """CPU seconds of the commands that have ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def pgbench_scripts(arguments, connections):
    """Calls pgbench can draw the driver's own parameters for, each with its weight in the mix."""
    if arguments.workload == "tpcc":
        # As the driver's terminals: a home warehouse and a district each.
        scale = arguments.scale
        home = f":client_id % {scale}" if connections >= scale else f":client_id * {scale} / {connections}"
        draw = f"\\set w {home} + 1\n\\set d :client_id % 10 + 1\n\\set t random(10, 20)\n"
        return {"stock_level": (1, draw + "CALL stock_level(:w, :d, :t);\n")}
    subscribers = arguments.scale * 100_000
    a = 65_535 if subscribers <= 1_000_000 else 1_048_575 if subscribers <= 10_000_000 else 2_097_151
    draw = f"\\set s (random(0, {a}) | random(1, {subscribers})) % {subscribers} + 1\n\\set f random(1, 4)\n"
    times = "\\set b random(0, 2) * 8\n\\set e random(1, 24)\n"
    data = "\\set b random(0, 1)\n\\set d random(0, 255)\n"
    return {
        "get_subscriber_data": (35, draw + "SELECT * FROM get_subscriber_data(:s);\n"),
        "get_new_destination": (10, draw + times + "SELECT * FROM get_new_destination(:s, :f, :b, :e);\n"),
        "get_access_data": (35, draw + "SELECT * FROM get_access_data(:s, :f);\n"),
        "update_subscriber_data": (2, draw + data + "CALL update_subscriber_data(:s, :b, :f, :d);\n"),
    }


def pgbench_check(server, arguments, directory):
    """PostgreSQL's rate for the same calls with the same parameters, by pgbench and by our driver."""
    connections = 16
    duration = max(arguments.duration // 2, 2)
    scripts = pgbench_scripts(arguments, connections)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(connections), "-j", "1", "-T", str(duration)]
    for name, (weight, text) in scripts.items():
        path = directory / f"{name}.sql"
        path.write_text(text, encoding="utf-8")
        command += ["-f", f"{path}@{weight}"]
    environment = {**os.environ, "PGOPTIONS": "-c synchronous_commit=off"}
    rates = {"pgbench": [], "driver": []}
    own_us = {"pgbench": [], "driver": []}
    for _ in range(arguments.rounds):
        before = children_cpu_s()
        output = subprocess.run([*command, server.url], check=True, capture_output=True, text=True, env=environment).stdout
        rates["pgbench"].append(next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps")))
        own_us["pgbench"].append((children_cpu_s() - before) * 1e6 / (rates["pgbench"][-1] * duration))
        before = children_cpu_s()
        figures = drive(server.url, arguments, directory, duration=duration, connections=connections, only=list(scripts))
        rates["driver"].append(figures["throughput"])
        own_us["driver"].append((children_cpu_s() - before) * 1e6 / (figures["throughput"] * (duration + WARMUP_S)))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    cpu_us = {name: statistics.median(values) for name, values in own_us.items()}
    return {"calls": list(scripts), "medians": medians, "client_cpu_us": cpu_us, "ratio": medians["driver"] / medians["pgbench"], "runs": rates}


def in_turn(servers, number):
    """The servers in the order of a round: it alternates, so that a drifting machine favours nobody."""
    return servers if number % 2 == 0 else servers[::-1]


def alternating(servers, rounds):
    for number in range(rounds):
        yield from in_turn(servers, number)


def measure(regime, servers, canned, arguments, directory):
    """The regime's runs, taking turns, and what follows from them."""
    settings = {name: regime[name] for name in ("connections", "pipeline", "synchronous_commit")}
    durable = regime["synchronous_commit"] == "on"
    runs = {server.name: [] for server in servers}
    ceilings, syncs = [], []
    for round_number in range(arguments.rounds):
        if durable:
            syncs.append(syncs_per_second(directory))
        else:
            # Nothing is kept, so a canned answer cannot be durable.
            ceilings.append(drive(canned.url, arguments, directory, duration=2, **settings)["throughput"])
        for server in in_turn(servers, round_number):
            figures = drive(server.url, arguments, directory, duration=arguments.duration, **settings)
            runs[server.name].append(figures)
            print(f"  {regime['name']:<10} {server.name:<11} {figures['throughput']:>10.0f} tx/s  errors {figures['errors']}", flush=True)
    medians = {server: statistics.median(run["throughput"] for run in all_runs) for server, all_runs in runs.items()}
    result = {**regime, "medians": medians, "ratio": medians["archipel"] / medians["postgresql"], "runs": runs}
    if durable:
        result["syncs_per_second"] = statistics.median(syncs)
        # Group commit: each client can see a commit for every other sync.
        result["commits_syncs_allow"] = regime["connections"] * result["syncs_per_second"] / 2
    else:
        ceiling = statistics.median(ceilings)
        result["canned"] = {"median": ceiling, "runs": ceilings, "share": {name: rate / ceiling for name, rate in medians.items()}}
    return result


def report(result):
    print(f"\n{result['workload']}, scale {result['scale']}, {result['transport']} sockets, medians of {result['rounds']} (committed transactions a second)")
    print(f"{'regime':<12} {'connections':>11} {'PostgreSQL 15':>14} {'Archipel':>10} {'ratio':>7}   beside")
    for name, regime in result["regimes"].items():
        medians = regime["medians"]
        if "canned" in regime:
            share = regime["canned"]["share"]
            beside = f"canned answers {regime['canned']['median']:.0f}: PostgreSQL {share['postgresql']:.0%}, Archipel {share['archipel']:.0%} of it"
        else:
            allowed = regime["commits_syncs_allow"]
            beside = f"{regime['syncs_per_second']:.0f} syncs a second allow {allowed:.0f}: Archipel {medians['archipel'] / allowed:.0%} of it"
        print(f"{name:<12} {regime['connections']:>11} {medians['postgresql']:>14.0f} {medians['archipel']:>10.0f} {regime['ratio']:>6.2f}x   {beside}")
    check = result["driver_check"]
    off = check["ratio"] - 1
    cpu = check["client_cpu_us"]
    if abs(off) <= 0.10:
        verdict = "within 10 %"
    else:
        verdict = "NOT within 10 %" + (": in PostgreSQL's favour, by the lighter client" if off > 0 else "")
    print(
        f"PostgreSQL by pgbench and by this driver, same calls and parameters ({', '.join(check['calls'])}): "
        f"{check['medians']['pgbench']:.0f} and {check['medians']['driver']:.0f}, {off:+.1%}: {verdict} (CPU of the client a call: pgbench {cpu['pgbench']:.1f} µs, driver {cpu['driver']:.1f} µs)"
    )
    print(f"Archipel: {result['archipel_resident_after_load_mb']} MB resident after load, recovery after kill -9 {result['archipel_recovery_s']:.1f} s")


def main():
    parser = argparse.ArgumentParser(prog="side-by-side")
    parser.add_argument("workload", choices=["tpcc", "tatp"])
    parser.add_argument("--scale", type=int)
    parser.add_argument("--duration", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tcp", action="store_true", help="TCP on loopback instead of Unix sockets")
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
        if os.geteuid() == 0:
            # The oracle's user walks through it.
            directory.chmod(0o755)
        transport = Transport(directory, arguments.tcp)
        result = {"workload": arguments.workload, "scale": arguments.scale, "rounds": arguments.rounds, "transport": transport.name}
        started = []
        try:
            servers = []
            for kind in (PostgreSql, Archipel):
                servers.append(kind(directory, transport))
                started.append(servers[-1])
            canned = Canned(arguments.workload, transport)
            started.append(canned)
            for server in servers:
                load = [archipel_binary(), "workload", "load", arguments.workload, "--url", server.url, "--scale", str(arguments.scale)]
                subprocess.run(load, check=True)
            result["archipel_resident_after_load_mb"] = servers[1].resident_mb()
            for server in servers:
                settle(server)
            result["driver_check"] = pgbench_check(servers[0], arguments, directory)
            result["regimes"] = {regime["name"]: measure(regime, servers, canned, arguments, directory) for regime in regimes}
            result["archipel_recovery_s"] = servers[1].recovery_s()
        finally:
            for server in started:
                server.stop()

    report(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
