"""Settings for Django's own tests: both databases that they want, and a runner that prints verdicts."""

import os

from django.db.backends.postgresql.features import DatabaseFeatures
from django.test.runner import DiscoverRunner

from python_suite_verdicts import VerdictResult

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "USER": os.environ["PGUSER"],
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "TEST": {"NAME": f"django_{alias}"},
    }
    for alias in ("default", "other")
}
SECRET_KEY = "tests"
USE_TZ = False
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# All tables are made at once, so that one type, collation or constraint that is missing would leave no test;
# this is what Django takes where a database has no collations beside C, and no unique constraints that wait.
if "WITHOUT_ICU" in os.environ:
    DatabaseFeatures.test_collations = {"deterministic": "C", "non_default": None, "swedish_ci": None, "virtual": "C"}
if "WITHOUT_DEFERRABLE_UNIQUE" in os.environ:
    DatabaseFeatures.supports_deferrable_unique_constraints = False


class VerdictRunner(DiscoverRunner):
    """Django's runner, whose result prints a line for each test."""

    def get_resultclass(self):
        return VerdictResult


TEST_RUNNER = "suite_settings.VerdictRunner"
