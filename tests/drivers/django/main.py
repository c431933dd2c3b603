"""Django with Wagtail: its migrations first, then the ORM, its cursors and Wagtail's pages."""

import datetime
import decimal
import functools
import io
import os
import threading
import time
import uuid

import django
from django.core.management import call_command

import checks
from checks import equal, main, refused

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

from django.db import DataError, IntegrityError, OperationalError, ProgrammingError, connection, connections, models, transaction
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, Subquery, Sum, Value, Window
from django.db.models.functions import Coalesce, Concat, Rank, TruncMonth
from django.contrib.postgres.aggregates import ArrayAgg, StringAgg
from shop.models import Account, Item, Label, Owner


def check(function=None, **options):
    """A check whose thread's connection goes with it."""
    if function is None:
        return functools.partial(check, **options)

    @functools.wraps(function)
    def body():
        try:
            function()
        finally:
            connections.close_all()

    return checks.check(body, **options)


def emptied():
    for model in (Account, Owner, Label, Item):
        model.objects.all().delete()


@check
def empties_the_schema():
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE")
        cursor.execute("CREATE SCHEMA public")
    equal(connection.pg_version // 10000, 15)


@check(limit_s=300)
def migrates_itself_and_the_shop():
    for application in ("contenttypes", "auth", "sessions", "shop"):
        call_command("migrate", application, verbosity=0)


@check(limit_s=300)
def migrates_wagtail():
    call_command("migrate", verbosity=0)


@check(limit_s=60)
def finds_nothing_left_to_migrate():
    call_command("migrate", check_unapplied=True, verbosity=0)
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)


@check(limit_s=60)
def migrates_back_and_forth():
    for target in ("0001", "zero", "0002"):
        call_command("migrate", "shop", target, verbosity=0)
    equal(Item.objects.count(), 0)


@check
def shows_the_sql_of_a_migration():
    out = io.StringIO()
    call_command("sqlmigrate", "shop", "0001", stdout=out, no_color=True)
    assert 'CREATE TABLE "shop_owner"' in out.getvalue()


@check
def the_schema_is_inspected():
    out = io.StringIO()
    call_command("inspectdb", "shop_account", "shop_owner", "shop_item", stdout=out)
    text = out.getvalue()
    for line in (
        "class ShopAccount(models.Model):",
        "id = models.BigAutoField(primary_key=True)",
        "balance = models.DecimalField(max_digits=14, decimal_places=2)",
        "detail = models.JSONField(blank=True, null=True)",
        "key = models.UUIDField()",
        "lasts = models.DurationField(blank=True, null=True)",
        "owner = models.ForeignKey('ShopOwner', models.DO_NOTHING)",
        "parent = models.ForeignKey('self', models.DO_NOTHING, blank=True, null=True)",
        "name = models.CharField(unique=True, max_length=40, db_comment='as they call themselves')",
    ):
        assert line in text, f"{line} is not in what inspectdb says:\n{text}"


@check
def constraints_are_introspected():
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, Account._meta.db_table)
        sequences = connection.introspection.get_sequences(cursor, Account._meta.db_table)
        tables = connection.introspection.table_names(cursor)
    equal(found["account_owner_opened"]["columns"], ["owner_id", "opened"])
    equal(found["account_owner_opened"]["orders"], ["ASC", "DESC"])
    equal(found["account_not_below"]["check"], True)
    equal(found["account_note_once"]["unique"], True)
    equal(sequences, [{"name": "shop_account_id_seq", "table": "shop_account", "column": "id"}])
    assert "shop_account_labels" in tables


@check
def objects_are_saved_found_changed_and_deleted():
    emptied()
    ann = Owner.objects.create(name="ann")
    account = ann.accounts.create(
        balance="10.50", mood=Account.Mood.HAPPY, tags=["x", "y,z"], detail={"k": [1, None], "deep": {"er": "v"}},
        lasts=datetime.timedelta(days=3, seconds=5), picture=b"\x00\xff", note="Žluťoučký",
    )
    assert account.opened is not None
    account.labels.add(*[Label.objects.create(text=text) for text in ("one", "two")])
    got = Account.objects.select_related("owner").prefetch_related("labels").get(pk=account.pk)
    equal((got.balance, got.doubled, got.tags, got.mood), (decimal.Decimal("10.50"), decimal.Decimal("21.00"), ["x", "y,z"], "happy"))
    equal((got.detail, got.lasts, bytes(got.picture), got.note), (account.detail, account.lasts, b"\x00\xff", "Žluťoučký"))
    equal((got.key, got.owner.name, len(got.labels.all())), (account.key, "ann", 2))
    assert got.opened.tzinfo is not None
    found = Account.objects.filter
    equal(found(tags__contains=["x"]).count(), 1)
    equal(found(tags__overlap=["q", "x"]).count(), 1)
    equal(found(tags__len=2, tags__0="x").count(), 1)
    equal(found(detail__deep__er="v").count(), 1)
    equal(found(detail__k__0=1, detail__has_key="deep").count(), 1)
    equal(found(detail__contains={"k": [1]}).count(), 1)
    # How letters beyond ASCII fold is the locale's affair.
    equal(found(note__exact="Žluťoučký").count(), 1)
    equal(found(note__icontains="LU", note__iregex="^.LU").count(), 1)
    equal(found(opened__date__gte=datetime.date(2000, 1, 1), opened__year__gte=2000).count(), 1)
    equal(found(lasts__gt=datetime.timedelta(days=2)).count(), 1)
    equal(Account.objects.update(balance=F("balance") + 1, note=Concat(F("note"), Value("!"))), 1)
    got.refresh_from_db()
    equal((got.balance, got.note), (decimal.Decimal("11.50"), "Žluťoučký!"))
    equal(Owner.objects.get_or_create(name="ann")[1], False)
    equal(Owner.objects.update_or_create(name="bob", defaults={})[1], True)
    equal(ann.delete()[1]["shop.Account"], 1)


@check
def queries_of_many_shapes_run():
    emptied()
    Item.objects.bulk_create(Item(id=n, label="abc"[n % 3], parent_id=n // 2 or None) for n in range(1, 31))
    equal(list(Item.objects.values("label").annotate(n=Count("id"), s=Sum("id")).order_by("label").values_list("n", "s")), [(10, 165), (10, 145), (10, 155)])
    ranked = Item.objects.annotate(rank=Window(Rank(), partition_by=F("label"), order_by=F("id").desc()))
    equal([item.id for item in ranked.filter(rank=1).order_by("id")], [28, 29, 30])
    newest = Item.objects.filter(label=OuterRef("label")).order_by("-id")
    got = Item.objects.annotate(newest=Subquery(newest.values("id")[:1]), leaf=~Exists(Item.objects.filter(parent=OuterRef("pk"))))
    equal(list(got.filter(id__lt=3).order_by("id").values_list("newest", "leaf")), [(28, False), (29, False)])
    equal(Item.objects.aggregate(all=ArrayAgg("id", filter=Q(id__lt=4), ordering="-id"), text=StringAgg("label", ",", filter=Q(id__lt=4), ordering="id")),
          {"all": [3, 2, 1], "text": "b,c,a"})
    equal(list(Item.objects.filter(id__in=[1, 2]).union(Item.objects.filter(id=30)).order_by("id").values_list("id", flat=True)), [1, 2, 30])
    equal(list(Item.objects.order_by("label", "-id").distinct("label").values_list("id", flat=True)), [30, 28, 29])
    equal(Item.objects.filter(parent__parent__label="b").exclude(label="a").count(), Item.objects.exclude(label="a").filter(parent__parent__label="b").count())
    equal(Item.objects.aggregate(n=Coalesce(Sum("id", filter=Q(label="zzz")), 0)), {"n": 0})
    equal(list(Item.objects.raw("SELECT * FROM shop_item WHERE id > %s ORDER BY id", [28]))[1].id, 30)
    months = Account.objects.annotate(month=TruncMonth("opened")).values("month").annotate(n=Count("pk"))
    equal(list(months), [])
    plan = Item.objects.filter(id=1).explain()
    assert plan
    equal(list(Owner.objects.prefetch_related(Prefetch("accounts", queryset=Account.objects.order_by("pk")))), [])
    equal(list(Item.objects.in_bulk([1, 2])), [1, 2])


@check
def many_rows_are_written_at_once():
    emptied()
    items = [Item(id=n, label=f"l{n}") for n in range(5000)]
    Item.objects.bulk_create(items, batch_size=1000)
    for item in items[:500]:
        item.label = "new"
    equal(Item.objects.bulk_update(items[:500], ["label"]), 500)
    Item.objects.bulk_create([Item(id=n, label="upsert") for n in range(10)], update_conflicts=True, unique_fields=["id"], update_fields=["label"])
    Item.objects.bulk_create([Item(id=n) for n in range(10)], ignore_conflicts=True)
    equal(Item.objects.filter(label="upsert").count(), 10)
    owners = Owner.objects.bulk_create([Owner(name=f"n{n}") for n in range(300)])
    equal(len({owner.pk for owner in owners}), 300)
    equal(Item.objects.all().delete()[0], 5000)


@check
def an_iterator_reads_from_a_server_side_cursor():
    emptied()
    Item.objects.bulk_create(Item(id=n, label="x") for n in range(3000))
    equal(sum(item.id for item in Item.objects.iterator(chunk_size=100)), 3000 * 2999 // 2)
    with transaction.atomic():
        rows = Item.objects.order_by("id").values_list("id", flat=True).iterator(chunk_size=50)
        equal(next(rows), 0)
        # Others run beside it.
        equal(Item.objects.filter(id__lt=10).count(), 10)
        equal(sum(1 for _ in rows), 2999)
    rows = Item.objects.order_by("id").iterator(chunk_size=10)
    next(rows)
    rows.close()
    equal(Item.objects.count(), 3000)


@check
def transactions_and_savepoints_nest():
    emptied()
    done = []
    with transaction.atomic():
        Item.objects.create(id=1)
        try:
            with transaction.atomic():
                Item.objects.create(id=2)
                Item.objects.create(id=1)
        except IntegrityError as error:
            equal(checks.sqlstate(error), "23505")
        point = transaction.savepoint()
        Item.objects.create(id=3)
        transaction.savepoint_rollback(point)
        transaction.on_commit(lambda: done.append("committed"))
    equal((list(Item.objects.values_list("id", flat=True)), done), ([1], ["committed"]))
    with refused("22012"):
        with transaction.atomic(), connection.cursor() as cursor:
            Item.objects.create(id=4)
            cursor.execute("SELECT 1 / %s", [0])
    equal(Item.objects.count(), 1)


@check
def foreign_keys_are_checked_at_commit():
    emptied()
    with refused("23503") as error:
        with transaction.atomic():
            account = Account.objects.create(owner_id=-1)
            equal(Account.objects.filter(pk=account.pk).count(), 1)
    assert isinstance(error.value, IntegrityError)
    with refused("23503"):
        with transaction.atomic():
            Account.objects.create(owner_id=-1)
            connection.check_constraints()
    with transaction.atomic():
        Account.objects.create(owner_id=-5)
        Owner.objects.create(id=-5, name="late")
    equal(Account.objects.get().owner.name, "late")


@check
def errors_are_told_by_their_kind():
    emptied()
    Owner.objects.create(name="ann")
    for kind, state, body in (
        (IntegrityError, "23505", lambda: Owner.objects.create(name="ann")),
        (IntegrityError, "23514", lambda: Owner.objects.get().accounts.create(balance=-1)),
        (IntegrityError, "23502", lambda: Owner.objects.create(name=None)),
        (DataError, "22001", lambda: Owner.objects.create(name="x" * 41)),
        (ProgrammingError, "42601", lambda: connection.cursor().execute("SELEC 1")),
        (ProgrammingError, "42P01", lambda: connection.cursor().execute("SELECT * FROM nowhere")),
    ):
        with refused(state) as error:
            body()
        assert isinstance(error.value, kind), type(error.value)
        equal(Owner.objects.count(), 1)
    equal(connection.is_usable(), True)


@check
def rows_are_locked():
    emptied()
    Item.objects.create(id=1)
    held, free = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            Item.objects.select_for_update(of=("self",)).get(id=1)
            held.set()
            free.wait(20)
        connections.close_all()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait(10)
    try:
        with refused("55P03") as error:
            with transaction.atomic():
                Item.objects.select_for_update(nowait=True).get(id=1)
        assert isinstance(error.value, OperationalError)
        with transaction.atomic():
            equal(list(Item.objects.select_for_update(skip_locked=True)), [])
        with refused("55P03"):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
                Item.objects.filter(id=1).update(label="x")
    finally:
        free.set()
    thread.join(10)
    with refused("57014"):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '200ms'")
            cursor.execute("SELECT pg_sleep(20)")
    equal(Item.objects.filter(id=1).update(label="y"), 1)


@check
def routines_are_called():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION twice(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a * 2; END $$;"
            "CREATE OR REPLACE PROCEDURE put(p_id int) LANGUAGE plpgsql AS $$"
            " BEGIN INSERT INTO shop_item (id) VALUES (p_id) ON CONFLICT DO NOTHING; END $$"
        )
        cursor.callproc("twice", [21])
        equal(cursor.fetchone(), (42,))
        cursor.execute("CALL put(%s)", [9])
    equal(Item.objects.filter(id=9).count(), 1)
    equal(Item.objects.filter(id=9).values_list(models.Func(F("id"), function="twice", output_field=models.IntegerField()), flat=True)[0], 18)


@check(limit_s=60)
def data_is_dumped_flushed_and_loaded():
    emptied()
    owner = Owner.objects.create(name="ann")
    account = owner.accounts.create(detail={"a": 1}, tags=["t"], balance=3)
    account.labels.add(Label.objects.create(text="one"))
    path = f"/tmp/django-shop-{uuid.uuid4()}.json"
    try:
        call_command("dumpdata", "shop", output=path, verbosity=0)
        emptied()
        call_command("loaddata", path, verbosity=0)
    finally:
        if os.path.exists(path):
            os.remove(path)
    equal((Account.objects.get().labels.count(), Account.objects.get().pk), (1, account.pk))
    # Sequences are behind what was loaded, until they are told.
    out = io.StringIO()
    call_command("sqlsequencereset", "shop", stdout=out, no_color=True)
    with connection.cursor() as cursor:
        cursor.execute(out.getvalue())
    assert Owner.objects.create(name="bob").pk > owner.pk
    out = io.StringIO()
    call_command("sqlflush", stdout=out, no_color=True)
    assert "TRUNCATE" in out.getvalue()


@check
def users_sessions_and_permissions_work():
    from django.contrib.auth.models import Permission, User
    from django.contrib.sessions.backends.db import SessionStore

    User.objects.filter(username="ann").delete()
    user = User.objects.create_user("ann", "ann@example.org", "secret")
    user.user_permissions.add(Permission.objects.get(codename="add_owner"))
    equal(User.objects.get(pk=user.pk).has_perm("shop.add_owner"), True)
    session = SessionStore()
    session["k"] = "v"
    session.save()
    equal(SessionStore(session.session_key)["k"], "v")


@check(limit_s=60)
def wagtail_keeps_pages():
    from wagtail.models import Page, PageLogEntry, Site

    root = Page.objects.get(depth=1)
    equal(Site.objects.count(), 1)
    title = f"page {time.time_ns()}"
    page = root.add_child(instance=Page(title=title, slug=title.replace(" ", "-")))
    child = page.add_child(instance=Page(title=title + " below", slug="below"))
    revision = child.save_revision()
    revision.publish()
    equal([p.title for p in page.get_children()], [title + " below"])
    equal([p.pk for p in child.get_ancestors(inclusive=True)], [root.pk, page.pk, child.pk])
    child.move(root, pos="last-child")
    equal(Page.objects.get(pk=child.pk).depth, 2)
    copy = page.copy(update_attrs={"title": "a copy", "slug": page.slug + "-copy"})
    equal(Page.objects.child_of(root).filter(pk=copy.pk).exists(), True)
    assert PageLogEntry.objects.count() > 0
    for one in (page, child, copy):
        Page.objects.get(pk=one.pk).delete()


@check(limit_s=60)
def wagtail_finds_its_references():
    call_command("rebuild_references_index", verbosity=0)
    call_command("fixtree", verbosity=0, stdout=io.StringIO())


@check(secured=True)
def connections_are_encrypted():
    with connection.cursor() as cursor:
        cursor.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        equal(cursor.fetchone(), (True,))


main()
