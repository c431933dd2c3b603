"""A site with Wagtail and an application of its own, on the database that DATABASE_URL names."""

import os
from urllib.parse import parse_qsl, urlsplit

_parts = urlsplit(os.environ["DATABASE_URL"])

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _parts.hostname,
        "PORT": _parts.port,
        "USER": _parts.username,
        "PASSWORD": _parts.password,
        "NAME": _parts.path.strip("/"),
        "OPTIONS": dict(parse_qsl(_parts.query)),
    }
}
# Without wagtail.search, whose index is a table of tsvector.
INSTALLED_APPS = [
    "shop",
    "wagtail.contrib.forms",
    "wagtail.contrib.redirects",
    "wagtail.contrib.settings",
    "wagtail.embeds",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]
SECRET_KEY = "of no use to anybody"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
STATIC_URL = "/static/"
ROOT_URLCONF = "settings"
urlpatterns = []
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
WAGTAIL_SITE_NAME = "a test"
WAGTAILADMIN_BASE_URL = "http://127.0.0.1"
WAGTAIL_I18N_ENABLED = False
