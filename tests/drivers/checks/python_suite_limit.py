"""A limit for each test of a Python suite, as a plugin of pytest: one that waits for what a server never
says fails, instead of keeping all that come after it from being run."""

import signal

import pytest

# No test of the suites takes a tenth of it where it passes.
LIMIT_S = 120
# What is being waited for may take the exception for its own failure, and wait again.
AGAIN_S = 5


class OverLimit(Exception):
    """What the test at hand fails with."""


def _stop(_number, _frame):
    raise OverLimit(f"takes longer than {LIMIT_S} seconds")


def _limited():
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S, AGAIN_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# One test is its beginning, itself and its end, each of which pytest reports.
pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_limited)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_limited)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_limited)
