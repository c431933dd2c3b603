"""A client of PostgreSQL's protocol that logs in, asks one thing, and says what became of it."""

import asyncio
import base64
import hashlib
import hmac
import os
import struct
import time

# How long a client waits for the server before it counts as unanswered.
PATIENCE_S = 120
SSL_REQUEST = struct.pack("!II", 8, 80877103)


def framed(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


async def message(reader):
    """The next message's kind and body."""
    kind, length = struct.unpack("!cI", await reader.readexactly(5))
    return kind, await reader.readexactly(length - 4)


class Scram:
    """The client's half of SCRAM-SHA-256 without channel binding (RFC 5802, RFC 7677)."""

    def __init__(self, password):
        self.password = password.encode()
        self.bare = "n=,r=" + base64.b64encode(os.urandom(18)).decode()

    def first(self):
        text = ("n,," + self.bare).encode()
        return framed(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(text)) + text)

    def final(self, challenge):
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", self.password, base64.b64decode(parts["s"]), int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = "c=biws,r=" + parts["r"]
        signed = hmac.digest(hashlib.sha256(key).digest(), f"{self.bare},{challenge},{without_proof}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signed))).decode()
        return framed(b"p", f"{without_proof},p={proof}".encode())


class Client:
    """One connection's life; `outcome` is `served`, an SQLSTATE, or why it was not answered."""

    def __init__(self, port, user, password=None, tls=None):
        self.port, self.user, self.password, self.tls = port, user, password, tls
        self.outcome, self.seconds, self.writer = "unanswered", None, None

    async def come(self):
        begun = time.monotonic()
        try:
            self.outcome = await asyncio.wait_for(self.greeted(), PATIENCE_S)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            self.outcome = f"unanswered: {type(error).__name__}"
        self.seconds = time.monotonic() - begun

    async def greeted(self):
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        if self.tls:
            self.writer.write(SSL_REQUEST)
            if await reader.readexactly(1) != b"S":
                return "no TLS"
            await self.writer.start_tls(self.tls, server_hostname="localhost")
        parameters = f"user\0{self.user}\0database\0archipel\0\0".encode()
        self.writer.write(struct.pack("!II", len(parameters) + 8, 196608) + parameters)
        scram = Scram(self.password) if self.password else None
        asked = False
        while True:
            kind, body = await message(reader)
            if kind == b"E":
                fields = dict((field[:1], field[1:]) for field in body.split(b"\0") if field)
                return fields[b"C"].decode()
            if kind == b"R":
                step = struct.unpack("!I", body[:4])[0]
                if step == 10:
                    self.writer.write(scram.first())
                elif step == 11:
                    self.writer.write(scram.final(body[4:].decode()))
            if kind == b"Z":
                if asked:
                    return "served"
                asked = True
                self.writer.write(framed(b"Q", b"SELECT 1\0"))

    def leave(self):
        if self.writer:
            self.writer.close()
