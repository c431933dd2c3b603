"""Takes processors from a server under load and gives them back; prints, plots and writes rates."""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.request

from side_by_side import archipel_binary, free_port

START_LIMIT_S = 60
STEP_S = 0.1
# How often two servers take turns, and for how long: whatever else drifts is a quarter of the rate on
# some machines.
PAIRS = 8
SPELL_S = 1.5
THESIS = "one of eight processors lost: the static system falls by 22 %, ATraPos is 11 % above it"
TARGET = 0.97
PHASES = ["all cores", "some lost", "all again"]
COLOURS = ["#1f6fb4", "#c8501e", "#3c8c3c"]


class Server:
    """One server on some cores, with its data in a folder that goes with it."""

    def __init__(self, binary: str, cores: set[int], settings: list[str]):
        self.folder = tempfile.TemporaryDirectory(prefix="archipel-processors-")
        port, page = free_port(), free_port()
        self.url = f"postgresql://archipel@127.0.0.1:{port}/archipel"
        self.stats_url = f"http://127.0.0.1:{page}/stats"
        command = [binary, "serve", "--data-dir", f"{self.folder.name}/data", "--listen",
                   f"127.0.0.1:{port}", "--http", f"127.0.0.1:{page}", "--set",
                   f"unix_socket_directories={self.folder.name}"]
        for setting in settings:
            command += ["--set", setting]
        log = open(f"{self.folder.name}/log", "w")
        bind = lambda: os.sched_setaffinity(0, cores)
        self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=bind)
        begun = time.monotonic()
        while True:
            try:
                self.statements()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() - begun > START_LIMIT_S:
                    raise SystemExit(pathlib.Path(log.name).read_text())
                time.sleep(0.05)

    def statements(self) -> tuple[float, int]:
        """The server's clock in seconds, and how many statements had ended by it."""
        with urllib.request.urlopen(self.stats_url, timeout=5) as answer:
            stats = json.load(answer)
        return stats["clock_us"] / 1e6, stats["transactions"]

    def bind(self, cores: set[int]):
        """As `taskset -a -p` does."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.sched_setaffinity(int(thread), cores)
            except ProcessLookupError:
                pass

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def watch(server: Server, seconds: float) -> list[float]:
    """Statements a second, step by step."""
    rates = []
    end = time.monotonic() + seconds
    clock, before = server.statements()
    while time.monotonic() < end:
        time.sleep(STEP_S)
        now, statements = server.statements()
        rates.append((statements - before) / (now - clock))
        clock, before = now, statements
    return rates


class Loaded:
    """A server with a load on it for so many seconds, which may rest."""

    def __init__(self, binary: str, options, settings: list[str], cores: set[int], seconds: float):
        self.server = Server(binary, cores, settings)
        self.driver = None
        try:
            url = ["--scale", str(options.scale), "--url", self.server.url]
            load = [binary, "workload", "load", "tatp", *url]
            subprocess.run(load, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            drive = [binary, "workload", "run", "tatp", *url, "--duration", str(int(seconds + 10)),
                     "--connections", str(options.connections), "--pipeline", "8",
                     "--set", "synchronous_commit=off", "--quiet"]
            self.driver = subprocess.Popen(drive, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(2)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.driver:
            self.driver.kill()
            self.driver.wait()
        self.server.stop()

    def rest(self, rests: bool):
        self.driver.send_signal(signal.SIGSTOP if rests else signal.SIGCONT)

    def watch(self, seconds: float) -> list[float]:
        rates = watch(self.server, seconds)
        if self.driver.poll() is not None:
            raise SystemExit(f"the load ended before its time, with status {self.driver.returncode}")
        return rates


def run(binary: str, options, settings: list[str], stages: list[set[int]]) -> list[list[float]]:
    """The rates of each stage; the server begins on the cores of the first one."""
    with Loaded(binary, options, settings, stages[0], (options.seconds + 1) * len(stages)) as loaded:
        rates = []
        for cores in stages:
            loaded.server.bind(cores)
            rates.append(loaded.watch(options.seconds))
        return rates


def in_turn(binary: str, options, every: set[int], left: set[int]) -> list[tuple[float, float]]:
    """What a server reaches that has lost cores, and one that was started on those that are left."""
    seconds = 2 * options.seconds + 60 + 3 * SPELL_S * (PAIRS + 1)
    with Loaded(binary, options, [], every, seconds) as lost:
        lost.watch(options.seconds / 2)
        lost.server.bind(left)
        lost.watch(options.seconds)
        lost.rest(True)
        with Loaded(binary, options, [], left, seconds) as started:
            started.rest(True)

            def rate(loaded: Loaded) -> float:
                loaded.rest(False)
                rates = loaded.watch(SPELL_S)
                loaded.rest(True)
                # As it begins, answers that waited for the driver are taken.
                return statistics.median(rates[2:])

            pairs = [(rate(lost), rate(started)) for _ in range(PAIRS + 1)]
    # The first of each finds cold caches.
    return pairs[1:]


def settled(rates: list[float]) -> float:
    """The second half of a phase: after the change was followed."""
    return statistics.median(rates[len(rates) // 2:])


def plot(lines: dict[str, list[float]], phase_s: float) -> str:
    width, height, left, bottom, top = 800, 400, 80, 50, 40
    most = max(max(points) for points in lines.values()) * 1.1
    longest = max(len(points) for points in lines.values())
    x = lambda step: left + step / longest * (width - left - 20)
    y = lambda rate: height - bottom - rate / most * (height - top - bottom)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
             f'<text x="{left}" y="20" font-size="15">Loss and return of processors</text>']
    for tick in range(6):
        rate = most * tick / 5
        parts.append(f'<path d="M{left} {y(rate):.1f}H{width - 20}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(rate) + 4:.1f}" text-anchor="end">{rate:,.0f}</text>')
    for number, phase in enumerate(PHASES):
        at = x(number * longest / len(PHASES))
        parts.append(f'<path d="M{at:.1f} {top}V{height - bottom}" stroke="#999" stroke-dasharray="3 3"/>'
                     f'<text x="{at + 3:.1f}" y="{height - bottom + 16}">{phase} ({phase_s:g} s)</text>')
    for number, (name, points) in enumerate(lines.items()):
        path = "L".join(f"{x(step):.1f} {y(rate):.1f}" for step, rate in enumerate(points))
        parts.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="1.6"/>'
                     f'<text x="{left + 10 + 230 * number}" y="35" fill="{COLOURS[number]}">{name}</text>')
    parts.append(f'<text transform="translate(14 {height / 2}) rotate(-90)" text-anchor="middle">'
                 'transactions a second</text></svg>')
    return "\n".join(parts) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=8, help="length of a phase")
    arguments.add_argument("--scale", type=int, default=1, help="hundreds of thousands of subscribers")
    arguments.add_argument("--connections", type=int, default=16)
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = arguments.parse_args()
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        raise SystemExit("with one core there is none to lose")
    left = set(every[:len(every) - max(1, len(every) // 4)])
    every = set(every)
    binary = archipel_binary()
    stages = [every, left, every]
    adaptive = run(binary, options, [], stages)
    static = run(binary, options, [f"archipel.executors={len(every)}", "archipel.adaptive=off"], stages)
    pairs = in_turn(binary, options, every, left)
    allowed = statistics.median(started for _, started in pairs)
    print(f"{len(every)} cores, {len(every) - len(left)} lost; TATP, {options.connections} connections")
    print(f"{'phase':<12} {'static/s':>10} {'adaptive/s':>11} {'ratio':>6} {'lowest 100 ms':>14}")
    rows = []
    for number, phase in enumerate(PHASES):
        one, other = settled(static[number]), settled(adaptive[number])
        lowest = min(adaptive[number])
        print(f"{phase:<12} {one:>10.0f} {other:>11.0f} {other / one:>6.2f} {lowest:>14.0f}")
        rows.append({"phase": phase, "static": one, "adaptive": other, "lowest_100_ms": lowest})
    share = statistics.median(lost / started for lost, started in pairs)
    verdict = "met" if share >= TARGET else "MISSED"
    print(f"target: {100 * TARGET:.0f} % of what the cores left allow ({allowed:.0f}/s), in the median of {PAIRS} pairs: "
          f"{100 * share:.1f} %: {verdict}")
    print(f"thesis: {THESIS}")
    result = {"experiment": "processor-loss", "cores": len(every), "lost": len(every) - len(left),
              "phases": rows, "allowed_by_cores_left": allowed, "pairs": pairs, "share_of_allowed": share, "target": TARGET, "met": share >= TARGET,
              "thesis": THESIS, "step_ms": STEP_S * 1000, "static_per_step": static,
              "adaptive_per_step": adaptive}
    lines = {"executors follow": sum(adaptive, []), "executors stay": sum(static, [])}
    for name, text in [("json", json.dumps(result, indent=2) + "\n"), ("svg", plot(lines, options.seconds))]:
        path = options.out / f"processor-loss.{name}"
        path.write_text(text)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
