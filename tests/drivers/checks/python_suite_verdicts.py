"""What tests/drivers/suite prints of the tests of a Python suite: as a plugin of pytest, and as a class
for unittest's runners. The lines go to the file ARCHIPEL_VERDICTS."""

import os
import re
import unittest

# A suite may run more than once.
LINES = open(os.environ["ARCHIPEL_VERDICTS"], "a", buffering=1)
# What differs from run to run, or is of one server alone: addresses, and the version in SQLAlchemy's names.
CHANGING = re.compile(r"(?<=0x)[0-9a-f]{6,}|_postgresql\+psycopg_[0-9_]+")


def say(verdict, name, message=None):
    """One line for a test; of a failure with the end of its message."""
    line = f"{verdict} {re.sub(' +', ' ', name.replace('|', '/'))}"
    if message:
        line += " | " + " ".join(message.split()).replace(" | ", " / ")[:300]
    print(CHANGING.sub("", line).replace("\n", " "), file=LINES)


_verdicts = {}


def pytest_runtest_logreport(report):
    """A test counts as passed if its setup and its end went well too, and its subtests."""
    name = report.nodeid.removeprefix("tests/").removeprefix("test/")
    before = _verdicts.get(name, ("", None))
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash else str(report.longrepr or "")[-300:]
        if before[0] != "fail":
            _verdicts[name] = ("fail", message)
    elif report.skipped:
        # So is an expected failure.
        if not hasattr(report, "context") and before[0] != "fail":
            _verdicts[name] = ("skip", None)
    elif report.when == "call" and not before[0]:
        _verdicts[name] = ("ok", None)
    if report.when == "teardown" and name in _verdicts:
        verdict, message = _verdicts.pop(name)
        say(verdict, name, message)


def pytest_sessionfinish():
    """Those whose end never came."""
    for name, (verdict, message) in _verdicts.items():
        say("fail", name, message or f"{verdict}, but did not end")


class VerdictResult(unittest.TextTestResult):
    """The result of a runner of unittest."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._subtests_failed = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self._subtests_failed:
            say("ok", test.id())

    def _failed(self, test, error):
        lines = self._exc_info_to_string(error, test).strip().splitlines()
        # The last line that is not indented is the error's own, the lines before it are the stack.
        message = next((line for line in reversed(lines) if re.match(r"\S+(Error|Exception)\b", line)), lines[-1])
        say("fail", test.id(), message)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            if test.id() not in self._subtests_failed:
                self._failed(test, err)
            self._subtests_failed.add(test.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        say("skip", test.id())

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        say("skip", test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        say("fail", test.id(), "passes against expectation")
