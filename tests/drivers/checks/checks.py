"""What the programs in Python share: named checks, each bounded, and the count at the end.

A check that gets no answer fails and is left behind in its thread; the next ones go on with
connections of their own.
"""

import asyncio
import inspect
import os
import sys
import threading
import traceback
from urllib.parse import parse_qsl, urlencode, urlsplit

LIMIT_S = 30
URL = os.environ["DATABASE_URL"]
# Whether the server is one that takes only encrypted connections with passwords.
SECURED = "sslmode=verify-full" in URL

_checks = []


def check(function=None, *, limit_s=LIMIT_S, secured=False):
    """Registers a check; its name says what must hold. Some can only hold on a secured server."""
    if function is None:
        return lambda function: check(function, limit_s=limit_s, secured=secured)
    function.limit_s = limit_s
    if SECURED or not secured:
        _checks.append(function)
    return function


def url_with(password=None, **parameters):
    """The URL with another password or other parameters; None takes one away."""
    parts = urlsplit(URL)
    asked = dict(parse_qsl(parts.query)) | parameters
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    place = parts.netloc if password is None else f"{parts.username}:{password}@{parts.hostname}:{parts.port}"
    return parts._replace(netloc=place, query=query).geturl()


def other_root():
    """The file of a root that did not sign the server's certificate, beside the one that did."""
    return os.path.join(os.path.dirname(dict(parse_qsl(urlsplit(URL).query))["sslrootcert"]), "other.crt")


def equal(got, expected):
    assert got == expected, f"{got!r} where PostgreSQL has {expected!r}"


class refused:
    """The block must fail with this SQLSTATE: `with refused("23505") as error: ...`.

    `error.value` is the driver's exception afterwards.
    """

    def __init__(self, sqlstate):
        self.sqlstate = sqlstate
        self.value = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert value is not None, f"no error where PostgreSQL says {self.sqlstate}"
        got = sqlstate(value)
        if got is None:
            return False
        self.value = value
        assert got == self.sqlstate, f"{got} {value} where PostgreSQL says {self.sqlstate}"
        return True


def sqlstate(error):
    """The SQLSTATE of an error or of what caused it, if it came from the server."""
    while error is not None:
        found = getattr(error, "sqlstate", None)
        if found is None and getattr(error, "orig", None) is not None:
            found = sqlstate(error.orig)
        if found is not None:
            return found
        error = error.__cause__
    return None


def _line(error):
    state = sqlstate(error)
    text = " | ".join(line.strip() for line in str(error).splitlines() if line.strip()) or "no answer in time"
    ours = []
    # What was awaited when the time was up is told by the cause.
    cause = error
    while cause is not None and not ours:
        where = traceback.extract_tb(cause.__traceback__)
        ours = [frame for frame in where if frame.filename == os.path.abspath(sys.argv[0])]
        cause = cause.__cause__ or cause.__context__
    at = f" (line {ours[-1].lineno}: {ours[-1].line})" if ours else ""
    return f"{state or type(error).__name__}: {text}{at}"


def _bounded(function):
    """Runs a check in a thread of its own; its error, or None."""
    outcome = [TimeoutError(f"no answer within {function.limit_s} s")]

    def body():
        try:
            if inspect.iscoroutinefunction(function):
                asyncio.run(asyncio.wait_for(function(), function.limit_s - 2))
            else:
                function()
            outcome[0] = None
        except BaseException as error:
            outcome[0] = error

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(function.limit_s)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident)
        stack = traceback.extract_stack(frame) if frame else []
        ours = [f for f in stack if f.filename == os.path.abspath(sys.argv[0])]
        if ours:
            outcome[0] = TimeoutError(f"no answer within {function.limit_s} s (line {ours[-1].lineno}: {ours[-1].line})")
    return outcome[0]


def main(cleanup=None):
    """Runs the checks in order; never returns."""
    failed = 0
    for function in _checks:
        name = function.__name__.replace("_", " ")
        error = _bounded(function)
        if error is None:
            print(f"ok      {name}", flush=True)
        else:
            failed += 1
            print(f"FAILED  {name}: {_line(error)}", flush=True)
    print(f"{len(_checks) - failed} passed, {failed} failed", flush=True)
    if cleanup is not None:
        cleanup()
    # Threads that got no answer must not keep the process.
    os._exit(1 if failed else 0)
