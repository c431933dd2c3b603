"""What benches of statements share: both servers side by side, psql on either, the times it tells."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

from side_by_side import Archipel, PostgreSql, Transport


def psql(server, *words, text=None):
    command = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", server.url, *words]
    run = subprocess.run(command, capture_output=True, text=True, input=text)
    if run.returncode != 0:
        raise SystemExit(f"{server.name}: {run.stderr[:400]}")
    return run.stdout


def timed_ms(server, statements):
    """Milliseconds of each statement, all in one session."""
    text = "\\timing on\n" + "".join(f"{statement};\n" for statement in statements)
    lines = psql(server, text=text).splitlines()
    return [float(line.split()[1]) for line in lines if line.startswith("Time: ")]


@contextlib.contextmanager
def both_servers():
    """PostgreSQL and Archipel on Unix sockets, in this order, and a directory for what a bench writes."""
    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        if os.geteuid() == 0:
            # The oracle's user walks through it.
            directory.chmod(0o755)
        transport = Transport(directory, tcp=False)
        servers = []
        try:
            for kind in (PostgreSql, Archipel):
                servers.append(kind(directory, transport))
            yield servers, directory
        finally:
            for server in servers:
                server.stop()


def write_json(path, result):
    """Leaves the figures where they were asked for, if they were."""
    if path:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
