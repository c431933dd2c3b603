"""What clients cost before they ask anything: storms, logins, idle connections; and COPY, and policies."""

import argparse
import asyncio
import collections
import os
import pathlib
import re
import resource
import ssl
import statistics
import subprocess
import tempfile
import time

from both import psql, timed_ms, write_json
from greeting import Client
from side_by_side import POSTGRES, Archipel, PostgreSql, Transport
from tls import certificate

PASSWORD = "a pencil, and some salt"
HBA = """local all all trust
host all guest 127.0.0.1/32 trust
host all archipel 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""
SETUP = f"""
CREATE ROLE guest LOGIN;
CREATE ROLE member LOGIN PASSWORD '{PASSWORD}';
CREATE TABLE rows_to_copy(id int PRIMARY KEY, a bigint, b double precision, c text, d timestamptz);
CREATE TABLE copied(LIKE rows_to_copy);
CREATE TABLE seen(id int PRIMARY KEY, owner text, note text);
INSERT INTO seen SELECT n, 'guest', 'note ' || n FROM generate_series(1, 10000) n;
CREATE TABLE guarded(LIKE seen INCLUDING ALL);
INSERT INTO guarded SELECT * FROM seen;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (owner = current_user);
GRANT SELECT ON seen, guarded TO guest;
"""


class Doors:
    """A server that takes a guest without a password and a member with one."""

    def __init__(self, kind, directory, transport, arguments):
        owner = "postgres" if kind is PostgreSql else "root"
        settings = {**certificate(directory, kind.name, owner), "max_connections": arguments.idle + 100}
        self.server = kind(directory, transport, settings)
        self.name, self.url = self.server.name, self.server.url
        psql(self.server, text=SETUP)
        hba = pathlib.Path(psql(self.server, "-c", "SHOW hba_file").strip() or self.server.data / "pg_hba.conf")
        hba.write_text(HBA, encoding="utf-8")
        psql(self.server, "-c", "SELECT pg_reload_conf()")
        time.sleep(1)

    def client(self, kind):
        """A client that comes plain, with a password, or with a password by TLS."""
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        if kind == "plain":
            return Client(self.server.port, "guest")
        return Client(self.server.port, "member", PASSWORD, trusting if kind == "SCRAM, TLS" else None)

    def memory_kb(self):
        """What the server's processes have for themselves, shared pages divided among them."""
        main = self.server.process_id()
        processes = subprocess.run(["pgrep", "-P", str(main)], capture_output=True, text=True).stdout.split()
        total = 0
        for process in [main, *processes]:
            try:
                with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as rollup:
                    total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
            except (FileNotFoundError, ProcessLookupError):
                continue
        return total

    def pgbench(self, user, script, arguments, *words, mode="disable"):
        """Transactions a second."""
        environment = {**os.environ, "PGSSLMODE": mode, "PGPASSWORD": PASSWORD, "PGUSER": user, "PGDATABASE": "archipel"}
        address = ["-h", "127.0.0.1", "-p", str(self.server.port)]
        command = [str(POSTGRES / "pgbench"), "-n", "-f", str(script), "-T", str(arguments.seconds), *words, *address]
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode != 0:
            raise SystemExit(f"{self.name}: {run.stderr[:400]}")
        return float(re.search(r"^tps = ([0-9.]+)", run.stdout, re.MULTILINE).group(1))


async def come_at_once(clients, stay):
    async def come(client):
        await client.come()
        if not stay:
            client.leave()

    await asyncio.gather(*(come(client) for client in clients))
    for client in clients:
        client.leave()


def storms(doors, arguments, _directory):
    result = {}
    for kind in ("plain", "SCRAM", "SCRAM, TLS"):
        for stay in (False, True):
            clients = [doors.client(kind) for _ in range(arguments.clients)]
            asyncio.run(come_at_once(clients, stay))
            outcomes = collections.Counter(client.outcome for client in clients)
            waits_ms = sorted(client.seconds * 1000 for client in clients)
            served = outcomes.pop("served", 0)
            title = f"storm, {kind}, " + ("all stay" if stay else "each leaves")
            print(
                f"{doors.name:<10} {title:<30} offered {arguments.clients}  served {served}  others {dict(outcomes)}"
                f"  median {statistics.median(waits_ms):.0f} ms, worst {waits_ms[-1]:.0f} ms",
                flush=True,
            )
            result[title] = {"served": served, "others": dict(outcomes), "median_ms": statistics.median(waits_ms)}
            settle(doors)
    return result


def settle(doors):
    """Until those who left have gone on the server's side too."""
    for _ in range(600):
        if psql(doors.server, "-c", "SELECT count(*) FROM pg_stat_activity WHERE usename <> 'archipel'").strip() == "0":
            return
        time.sleep(0.1)
    raise SystemExit(f"{doors.name}: clients that left are still there")


def logins(doors, arguments, directory):
    script = directory / "one.sql"
    script.write_text("SELECT 1;\n", encoding="utf-8")
    result = {}
    for title, user, mode in (("plain", "guest", "disable"), ("SCRAM", "member", "disable"), ("SCRAM, TLS", "member", "require")):
        for clients in (1, 16):
            found = [
                doors.pgbench(user, script, arguments, "-C", "-c", str(clients), "-j", str(min(clients, 4)), mode=mode)
                for _ in range(arguments.rounds)
            ]
            result[f"{title}, {clients}"] = statistics.median(found)
            print(f"{doors.name:<10} logins, {title}, {clients} at once: {statistics.median(found):.0f}/s", flush=True)
    return result


def idle(doors, arguments, _directory):
    result = {}

    async def hold(kind):
        settle(doors)
        before_kb = doors.memory_kb()
        clients = [doors.client(kind) for _ in range(arguments.idle)]
        # Not at once: what many logins need together is not what idle ones keep.
        for at in range(0, len(clients), 20):
            await asyncio.gather(*(client.come() for client in clients[at : at + 20]))
        refused = [client.outcome for client in clients if client.outcome != "served"]
        if refused:
            raise SystemExit(f"{doors.name}: {refused[0]}")
        each_kb = (doors.memory_kb() - before_kb) / len(clients)
        for client in clients:
            client.leave()
        return each_kb

    for kind in ("plain", "SCRAM, TLS"):
        result[kind] = asyncio.run(hold(kind))
        print(f"{doors.name:<10} idle, {kind}: {result[kind]:.1f} kB each of {arguments.idle}", flush=True)
        settle(doors)
    return result


def copy(doors, arguments, directory):
    psql(
        doors.server, "-c",
        "INSERT INTO rows_to_copy SELECT n, n * 1000003::bigint, n / 7.0, 'text of row ' || n, timestamptz '2026-01-01' + n * interval '1 s'"
        f" FROM generate_series(1, {arguments.rows}) n",
    )
    result = {}
    for form in ("text", "binary"):
        file = directory / f"{doors.name}.{form}"
        out, into = [], []
        for _ in range(arguments.rounds):
            out += timed_ms(doors.server, [f"\\copy rows_to_copy TO '{file}' (FORMAT {form})"])
            into += timed_ms(doors.server, [f"\\copy copied FROM '{file}' (FORMAT {form})"])
            psql(doors.server, "-c", "TRUNCATE copied")
        result[form] = {"out_ms": statistics.median(out), "in_ms": statistics.median(into)}
        print(
            f"{doors.name:<10} COPY, {form}: out {result[form]['out_ms']:.0f} ms, in {result[form]['in_ms']:.0f} ms"
            f" ({arguments.rows} rows, {file.stat().st_size >> 20} MB)",
            flush=True,
        )
    return result


def policies(doors, arguments, directory):
    found = {"seen": [], "guarded": []}
    for table in found:
        script = f"\\set id random(1, 10000)\nSELECT note FROM {table} WHERE id = :id;\n"
        (directory / f"{table}.sql").write_text(script, encoding="utf-8")
    for turn in range(arguments.rounds):
        for table in sorted(found, reverse=turn % 2 == 0):
            words = ["-M", "prepared", "-c", "4", "-j", "2"]
            found[table].append(doors.pgbench("guest", directory / f"{table}.sql", arguments, *words))
    plain, guarded = (statistics.median(found[table]) for table in ("seen", "guarded"))
    print(f"{doors.name:<10} keyed read {plain:.0f}/s, with a policy {guarded:.0f}/s: it costs {1 - guarded / plain:.1%}", flush=True)
    return {"plain": plain, "guarded": guarded}


EXPERIMENTS = {"storms": storms, "logins": logins, "idle": idle, "copy": copy, "policies": policies}


def main():
    parser = argparse.ArgumentParser(prog="clients")
    parser.add_argument("experiments", nargs="*", metavar="|".join(EXPERIMENTS))
    parser.add_argument("--clients", type=int, default=5000)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if unknown := set(arguments.experiments) - set(EXPERIMENTS):
        parser.error(f"there is no experiment {unknown.pop()}")
    if min(arguments.clients, arguments.idle, arguments.rows, arguments.seconds, arguments.rounds) < 1:
        parser.error("numbers are at least 1")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    results = {}
    with tempfile.TemporaryDirectory(prefix="archipel-bench-") as name:
        directory = pathlib.Path(name)
        # The oracle runs as another user.
        directory.chmod(0o755)
        transport = Transport(directory, tcp=True)
        for kind in (PostgreSql, Archipel):
            doors = Doors(kind, directory, transport, arguments)
            try:
                for title in arguments.experiments or EXPERIMENTS:
                    results.setdefault(title, {})[doors.name] = EXPERIMENTS[title](doors, arguments, directory)
            finally:
                doors.server.stop()
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
