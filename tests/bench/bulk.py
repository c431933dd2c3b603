"""What keyed reads and writes wait beside long work: the worst reply of the same table and of another one."""

import pathlib
import signal
import subprocess
import threading
import time

# Replies to keyed statements beside long work, but for writers of the table concerned.
TARGET_MS = 100
PROBES_A_SECOND = 200

SCHEMA = """
CREATE TABLE large (id bigint PRIMARY KEY, s integer NOT NULL, t text NOT NULL);
CREATE TABLE other (id integer PRIMARY KEY, v integer NOT NULL);
INSERT INTO other SELECT g, g FROM generate_series(1, 1000) g;
"""

# What is long, the last statement behind what comes before it, and whether it writes the large table: then its
# writers may wait.
WORK = {
    "UPDATE": (["UPDATE large SET s = s + 1 WHERE id <= {part}"], True),
    "UPDATE in a block": (["BEGIN", "UPDATE large SET s = s + 1 WHERE id <= {part}"], True),
    "COMMIT": (["COMMIT"], True),
    "UPDATE in another": (["BEGIN", "UPDATE large SET s = s + 1 WHERE id <= {part}"], True),
    "ROLLBACK": (["ROLLBACK"], True),
    "INSERT … SELECT": (["INSERT INTO large SELECT id + 100000000, s, t FROM large WHERE id <= {part}"], True),
    "CREATE INDEX": (["CREATE INDEX large_s ON large (s)"], True),
    "aggregate": (["SELECT count(*), sum(s) FROM large"], False),
    "cross join": (["SELECT count(*) FROM other a, other b WHERE a.v + b.v < 0"], False),
    "routine that reads": (["SELECT bulk_read({part})"], False),
    "long expression": (["SELECT length(regexp_replace(repeat('abcdefgh ', 400000), '(a.c)+?d', 'x', 'g'))"], False),
    "planning": (["SELECT 1 WHERE 1 IN ({many})"], False),
    "long result": (["SELECT id, s, t FROM large WHERE id <= {part}"], False),
    "TRUNCATE": (["TRUNCATE large"], True),
}

ROUTINE = """
CREATE FUNCTION bulk_read(n integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE total bigint := 0; row record;
BEGIN
    FOR row IN SELECT s FROM large WHERE id <= n LOOP total := total + row.s; END LOOP;
    RETURN total;
END $$;
"""

PROBES = {
    "read same": "\\set id random(1, 1000)\nSELECT s FROM large WHERE id = :id;\n",
    "read other": "\\set id random(1, 1000)\nSELECT v FROM other WHERE id = :id;\n",
    "write other": "\\set id random(1, 1000)\nUPDATE other SET v = v + 1 WHERE id = :id;\n",
}


class Probe:
    """One client that sends a keyed statement so often a second, and logs how long each reply took from when it was due."""

    def __init__(self, server, directory, name, statement):
        self.directory = directory / name.replace(" ", "-")
        self.directory.mkdir()
        script = self.directory / "statement.sql"
        script.write_text(statement, encoding="utf-8")
        command = [
            "pgbench", "-n", "-c", "1", "-T", "3600", "-M", "prepared", "-R", str(PROBES_A_SECOND), "-l",
            "--log-prefix", str(self.directory / "log"), "-f", str(script), server.url,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def stop(self):
        """Ends the client; the moments (Unix time, seconds) at which replies came, and how long each took (seconds)."""
        # Its time is up: pgbench ends as after -T, with its log written.
        self.process.send_signal(signal.SIGALRM)
        self.process.wait()
        replies = []
        for log in self.directory.glob("log*"):
            for line in log.read_text(encoding="utf-8").splitlines():
                fields = line.split()
                if len(fields) >= 6:
                    replies.append((int(fields[4]) + int(fields[5]) / 1e6, int(fields[2]) / 1e6))
        return replies


def worst_ms(replies, begin, end):
    """The longest reply that was under way between two moments, in milliseconds."""
    meanwhile = [took for at, took in replies if at >= begin and at - took <= end]
    return max(meanwhile, default=0.0) * 1000


def experiment(server, arguments, directory, psql):
    """Runs each kind of long work beside the probes."""
    session = psql(server)
    for statement in SCHEMA.strip().split(";\n"):
        session.run(statement.rstrip(";"))
    session.run(ROUTINE.strip().rstrip(";"))
    for begin in range(1, arguments.rows + 1, 50_000):
        end = min(begin + 49_999, arguments.rows)
        session.run(f"INSERT INTO large SELECT g, g % 1000, repeat('x', 60) FROM generate_series({begin}, {end}) g")
    fill = {"part": min(300_000, arguments.rows), "many": ", ".join(str(number) for number in range(100, 100_100))}
    figures, missed = {}, []
    for name, (statements, writes) in WORK.items():
        probes_in = directory / f"probes-{len(figures)}"
        probes_in.mkdir()
        probes = {probe: Probe(server, probes_in, probe, text) for probe, text in PROBES.items()}
        greeted = []
        stop = threading.Event()

        def greet():
            while not stop.is_set():
                begin = time.monotonic()
                psql(server).close()
                greeted.append(time.monotonic() - begin)

        greeter = threading.Thread(target=greet)
        time.sleep(1)
        greeter.start()
        time.sleep(0.3)
        greeted.clear()
        for statement in statements[:-1]:
            session.run(statement.format(**fill))
        begin = time.time()
        session.run(statements[-1].format(**fill))
        end = time.time()
        time.sleep(0.2)
        stop.set()
        greeter.join()
        found = {probe: worst_ms(client.stop(), begin, end) for probe, client in probes.items()}
        found["new connection"] = max(greeted, default=0.0) * 1000
        figures[name] = {"seconds": end - begin, "worst_ms": found}
        over = [probe for probe, took in found.items() if took > TARGET_MS]
        missed += [f"{name}: {probe}" for probe in over]
        print(
            f"  {name:20} {end - begin:7.2f} s   worst reply: " + ", ".join(f"{probe} {took:.0f} ms" for probe, took in found.items()),
            flush=True,
        )
        if writes and name == "INSERT … SELECT":
            session.run("DELETE FROM large WHERE id > 100000000")
    session.close()
    verdict = "met" if not missed else "MISSED by " + "; ".join(missed)
    print(f"  target at most {TARGET_MS} ms: {verdict}")
    return {"target_ms": TARGET_MS, "missed": missed, "work": figures}
