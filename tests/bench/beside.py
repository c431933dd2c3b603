"""What TPC-C pays for what goes on beside it: a snapshot, an aggregate, a checkpoint; and how fast a restart is."""

import argparse
import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import time

import bulk
from side_by_side import Archipel, Transport, archipel_binary

# Room for any log of a run: no checkpoint begins by itself.
NO_CHECKPOINTS = 1 << 40
# The first second of a phase still feels the one before it.
SETTLE_S = 1


class Psql:
    """One session that stays open between its statements."""

    def __init__(self, server):
        command = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", server.url]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(self, statement):
        """Runs it to its end; its output's lines."""
        self.process.stdin.write(f"{statement};\n\\echo done\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))
        raise SystemExit(f"psql ended at: {statement}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Load:
    """The driver beside everything else."""

    def __init__(self, server, arguments, directory, seconds, *, rate=0, warmup=2):
        self.figures = directory / "figures.json"
        self.process = subprocess.Popen(
            [
                archipel_binary(), "workload", "run", "tpcc", "--url", server.url, "--scale", str(arguments.scale),
                "--duration", str(seconds), "--warmup", str(warmup), "--connections", str(arguments.connections),
                "--rate", str(rate), "--set", f"synchronous_commit={arguments.synchronous_commit}", "--quiet",
                "--json", str(self.figures),
            ],
            stdout=subprocess.DEVNULL,
        )

    def result(self):
        if self.process.wait() != 0:
            raise SystemExit("the driver failed")
        return json.loads(self.figures.read_text(encoding="utf-8"))


@contextlib.contextmanager
def opened(directory, arguments, settings):
    """A server with TPC-C in it; nothing of it is kept."""
    directory.mkdir()
    server = Archipel(directory, Transport(directory, arguments.tcp), settings)
    try:
        if arguments.experiment != "bulk":
            load = [archipel_binary(), "workload", "load", "tpcc", "--url", server.url, "--scale", str(arguments.scale)]
            subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
        yield server
    finally:
        # No orderly stop.
        server.process.kill()
        server.process.wait()


def phase(figures, begin, end):
    """Transactions a second between two moments (seconds of the Unix epoch), whole seconds only."""
    began, each = figures["run"]["began"], figures["run"]["committed_each_second"]
    inside = [count for number, count in enumerate(each) if began + number >= begin + SETTLE_S and began + number + 1 <= end]
    return statistics.mean(inside) if inside else None


def verdict(ratio, target, met):
    print(f"  {ratio}   target {target}: {'met' if met else 'MISSED'}")


def experiment_snapshot(server, arguments, directory):
    window = arguments.seconds
    load = Load(server, arguments, directory, 2 * window + arguments.hold + 4)
    time.sleep(2 + SETTLE_S)
    before = time.time()
    time.sleep(window)
    session = Psql(server)
    taken = time.time()
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    first = session.run("SELECT sum(w_ytd) FROM warehouse")
    time.sleep(arguments.hold)
    held = time.time()
    versions = int(session.run("SELECT version_bytes FROM archipel.log")[0])
    # Truth is part of the price: what the snapshot shows has not moved.
    if session.run("SELECT sum(w_ytd) FROM warehouse") != first:
        raise SystemExit("the snapshot moved")
    session.run("COMMIT")
    session.close()
    given_back = time.time()
    figures = load.result()
    rates = {
        "before": phase(figures, before, taken),
        "at first": phase(figures, taken, taken + window),
        "at last": phase(figures, held - window, held),
        "after": phase(figures, given_back, figures["run"]["began"] + figures["seconds"]),
    }
    without = statistics.mean([rates["before"], rates["after"]])
    cost = 1 - rates["at last"] / without
    print(f"snapshot held {held - taken:.0f} s, {versions / 1e6:.0f} MB of versions; transactions a second: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
    verdict(f"{cost:+.1%} of the throughput", "at most 10 %", cost <= 0.10)
    return {"cost": cost, "target": 0.10, "rates": rates, "version_bytes": versions, "load": figures}


def experiment_aggregate(server, arguments, directory):
    statement = "SELECT count(*), sum(ol_amount), avg(ol_quantity) FROM order_line"
    # Warm first: the store has yet to sort what the load brought.
    peak = Load(server, arguments, directory, max(arguments.seconds // 2, 3), warmup=8).result()["throughput"]
    rate = int(peak / 2)
    alone, beside, took = [], [], []
    for _ in range(arguments.rounds):
        alone.append(Load(server, arguments, directory, arguments.seconds, rate=rate).result())
        load = Load(server, arguments, directory, arguments.seconds, rate=rate, warmup=2)
        stop = threading.Event()

        def analyse():
            session = Psql(server)
            while not stop.is_set():
                begin = time.monotonic()
                session.run(statement)
                took.append(time.monotonic() - begin)
            session.close()

        analyst = threading.Thread(target=analyse)
        analyst.start()
        beside.append(load.result())
        stop.set()
        analyst.join()
    p99 = {name: statistics.median(run["transactions"]["new_order"]["p99"] for run in runs) for name, runs in (("alone", alone), ("beside", beside))}
    p50 = {name: statistics.median(run["transactions"]["new_order"]["p50"] for run in runs) for name, runs in (("alone", alone), ("beside", beside))}
    ratio = p99["beside"] / p99["alone"]
    unsent = max(run["run"]["unsent"] for run in alone + beside)
    print(
        f"{rate} transactions a second, half of {peak:.0f}; {len(took)} aggregates, {statistics.median(took):.2f} s each; new_order p50 {p50['alone']} µs alone, "
        f"{p50['beside']} beside, p99 {p99['alone']} µs alone, {p99['beside']} beside; calls that never left: {unsent}"
    )
    verdict(f"{ratio:.2f}x the p99 of new_order", "at most 2x", ratio <= 2)
    return {"ratio": ratio, "target": 2, "rate": rate, "peak": peak, "aggregate_s": took, "p99_us": p99, "p50_us": p50, "alone": alone, "beside": beside}


def watched(server, arguments, directory, *, checkpoints):
    """The driver's figures of one run, and what checkpoints were under way when, in seconds of it."""
    session = Psql(server)
    # The load's rows, and the leaves that a first checkpoint writes anyway.
    session.run("CHECKPOINT")
    figures = Load(server, arguments, directory, arguments.hold).result()
    began, end = figures["run"]["began"], figures["run"]["began"] + figures["seconds"]
    rows = session.run("SELECT extract(epoch FROM began), duration_ms, state, rows, bytes FROM archipel.checkpoints WHERE reason = 'log' ORDER BY began")
    session.close()
    spans = []
    for row in rows:
        begin, took, state, written, size = row.split("|")
        begin = float(begin)
        until = end if state == "running" else begin + int(took) / 1000
        if until > began:
            spans.append({"begin": begin - began, "end": until - began, "state": state, "rows": int(written), "bytes": int(size)})
    if bool(spans) != checkpoints:
        raise SystemExit(f"checkpoints in {figures['seconds']:.0f} s: {spans}; choose another --log or --hold")
    return figures, spans


def experiment_checkpoint(server, arguments, directory):
    figures, spans = watched(server, arguments, directory, checkpoints=True)
    # Tables grow: what a second brings is compared with the same second of a run without them.
    with opened(directory / "without", arguments, {"archipel.checkpoint_bytes": NO_CHECKPOINTS}) as other:
        without, _ = watched(other, arguments, directory, checkpoints=False)

    def beside_each(figures):
        each = enumerate(figures["run"]["committed_each_second"])
        return [count for number, count in each if any(number >= span["begin"] and number + 1 <= span["end"] for span in spans)]

    rates = {"without": statistics.mean(beside_each(without)), "beside": statistics.mean(beside_each(figures))}
    cost = 1 - rates["beside"] / rates["without"]
    told = ", ".join(f"{span['begin']:.0f} to {span['end']:.0f} s ({span['state']}, {span['rows']} rows, {span['bytes'] / 1e6:.0f} MB)" for span in spans)
    print(f"checkpoints: {told}; transactions a second in these {len(beside_each(figures))} s: beside {rates['beside']:.0f}, in a run without {rates['without']:.0f}")
    verdict(f"{cost:+.1%} of the throughput", "at most 10 %", cost <= 0.10)
    return {"cost": cost, "target": 0.10, "rates": rates, "checkpoints": spans, "load": figures, "load_without": without}


TOLD = re.compile(
    r"read (?P<records>\d+) records in (?P<log_mb>[\d.]+) MB of log in (?P<read_s>[\d.]+) s; made rows of them and of (?P<rows>\d+) checkpoint rows "
    r"in (?P<build_s>[\d.]+) s \((?P<rows_a_core>\d+) a second a core\); index entries and partitions in (?P<rebuild_s>[\d.]+) s"
)


# The server's own default.
RESTART_TARGET_S = 15


def experiment_recovery(server, arguments, directory):
    executors = int(Psql(server).run("SELECT count(*) FROM archipel.executors")[0])
    load = Load(server, arguments, directory, arguments.seconds).result()
    took = server.recovery_s()
    server.log.flush()
    told = [match for match in TOLD.finditer(pathlib.Path(server.log.name).read_text(encoding="utf-8"))]
    if not told:
        raise SystemExit("the server did not tell what its recovery cost")
    last = {name: float(value) for name, value in told[-1].groupdict().items()}
    work_s = last["read_s"] + last["build_s"] + last["rebuild_s"]
    figures = {
        "restart_s": took,
        "work_s": work_s,
        "executors": executors,
        "log_mb_per_second_core": last["log_mb"] / work_s / executors,
        "rows_per_second_core": (last["rows"] + last["records"]) / work_s / executors,
        **last,
    }
    print(
        f"after kill -9: answers in {took:.1f} s, of which {work_s:.1f} s read {last['log_mb']:.0f} MB of log ({last['records']:.0f} records) and {last['rows']:.0f} checkpoint rows, "
        f"index entries included"
    )
    print(f"  {figures['log_mb_per_second_core']:.1f} MB of log and {figures['rows_per_second_core']:.0f} rows and records a second and core, all steps together ({executors} cores)")
    verdict(f"{took:.1f} s to the first answer", f"archipel.restart_target, {RESTART_TARGET_S} s", took <= RESTART_TARGET_S)
    return {**figures, "target": RESTART_TARGET_S, "load": load}


def experiment_bulk(server, arguments, directory):
    return bulk.experiment(server, arguments, directory, Psql)


EXPERIMENTS = {
    "snapshot": experiment_snapshot,
    "aggregate": experiment_aggregate,
    "checkpoint": experiment_checkpoint,
    "recovery": experiment_recovery,
    "bulk": experiment_bulk,
}


def main():
    parser = argparse.ArgumentParser(prog="beside")
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--scale", type=int, default=4)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=12, help="length of a window")
    parser.add_argument("--hold", type=int, default=60, help="how long the snapshot stays open, or the checkpoint is watched")
    parser.add_argument("--rounds", type=int, default=1, help="turns of alone and beside (aggregate)")
    parser.add_argument("--log", type=int, default=128 << 20, help="bytes of log at which a checkpoint begins (checkpoint)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the large table (bulk)")
    parser.add_argument("--synchronous-commit", choices=["on", "off"], default="off")
    parser.add_argument("--tcp", action="store_true", help="TCP on loopback instead of Unix sockets")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    settings = {}
    if arguments.experiment == "checkpoint":
        settings["archipel.checkpoint_bytes"] = arguments.log
    elif arguments.experiment != "recovery":
        settings["archipel.checkpoint_bytes"] = NO_CHECKPOINTS
    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        with opened(directory / "server", arguments, settings) as server:
            of = f"{arguments.rows} rows" if arguments.experiment == "bulk" else f"TPC-C, scale {arguments.scale}, {arguments.connections} connections"
            print(f"{arguments.experiment}: {of}, synchronous_commit {arguments.synchronous_commit}", flush=True)
            result = EXPERIMENTS[arguments.experiment](server, arguments, directory)
    run = {name: getattr(arguments, name) for name in ("scale", "connections", "synchronous_commit", "seconds", "hold", "log")}
    if arguments.json:
        arguments.json.write_text(json.dumps({"experiment": arguments.experiment, **run, **result}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
