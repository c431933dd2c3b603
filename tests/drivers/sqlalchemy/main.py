"""SQLAlchemy's Core and ORM over psycopg and over asyncpg, its reflection, and Alembic's migrations."""

import asyncio
import datetime
import decimal
import enum
import threading
import uuid
from typing import Optional

import asyncpg
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

from checks import URL, check, equal, main, refused

PSYCOPG_URL = URL.replace("postgresql://", "postgresql+psycopg://")
engine = sa.create_engine(PSYCOPG_URL)


def asyncpg_engine(**arguments):
    # The dialect does not read what the URL says of TLS; the driver does.
    return create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(URL), **arguments)


class Base(DeclarativeBase):
    pass


class Mood(enum.Enum):
    sad = 1
    ok = 2
    happy = 3


class Owner(Base):
    __tablename__ = "owner"
    __table_args__ = (sa.UniqueConstraint("name", name="owner_name_once"), {"comment": "who owns"})
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), comment="as they call themselves")
    accounts: Mapped[list["Account"]] = relationship(back_populates="owner", cascade="all, delete-orphan")


class Account(Base):
    __tablename__ = "account"
    __table_args__ = (
        sa.CheckConstraint("balance >= 0", name="account_not_below"),
        sa.Index("account_rich", "owner_id", sa.text("opened DESC"), postgresql_where=sa.text("balance > 1000")),
        sa.Index("account_lower", sa.text("lower(note)")),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int] = mapped_column(sa.ForeignKey("owner.id", ondelete="CASCADE"))
    key: Mapped[uuid.UUID] = mapped_column(server_default=sa.func.gen_random_uuid())
    balance: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(14, 2), default=0)
    mood: Mapped[Mood] = mapped_column(default=Mood.ok)
    tags: Mapped[list[str]] = mapped_column(pg.ARRAY(sa.Text), default=list)
    detail: Mapped[Optional[dict]] = mapped_column(pg.JSONB)
    opened: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    note: Mapped[Optional[str]]
    doubled: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(14, 2), sa.Computed("balance * 2", persisted=True))
    version: Mapped[int] = mapped_column()
    owner: Mapped[Owner] = relationship(back_populates="accounts")
    __mapper_args__ = {"version_id_col": version}


class Item(Base):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    label: Mapped[Optional[str]]
    parent_id: Mapped[Optional[int]] = mapped_column(sa.ForeignKey("item.id"))


ROUTINES = """
CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE after numeric;
BEGIN
    UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
"""


def emptied(session):
    """What a failed check left behind is nothing to this one."""
    session.execute(sa.text("TRUNCATE owner, account, item"))
    session.commit()
    return session


@check
def creates_all_tables():
    with engine.connect() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
        connection.commit()
        Base.metadata.create_all(connection)
        connection.commit()
        connection.exec_driver_sql(ROUTINES)
        connection.commit()
        # What is there is not made again.
        Base.metadata.create_all(connection)
    equal(engine.dialect.server_version_info[0], 15)
    equal(engine.dialect.default_schema_name, "public")


@check
def drops_and_makes_again():
    Base.metadata.drop_all(engine)
    equal(sa.inspect(engine).get_table_names(), [])
    equal(sa.inspect(engine).get_enums(), [])
    Base.metadata.create_all(engine)
    equal(sorted(sa.inspect(engine).get_table_names()), ["account", "item", "owner"])


@check
def the_inspector_sees_columns():
    columns = {column["name"]: column for column in sa.inspect(engine).get_columns("account")}
    kinds = {name: str(column["type"]) for name, column in columns.items()}
    equal(kinds, {
        "id": "INTEGER", "owner_id": "BIGINT", "key": "UUID", "balance": "NUMERIC(14, 2)", "mood": "VARCHAR(5)",
        "tags": "ARRAY", "detail": "JSONB", "opened": "TIMESTAMP", "note": "VARCHAR",
        "doubled": "NUMERIC(14, 2)", "version": "INTEGER",
    })
    equal(columns["mood"]["type"].enums, ["sad", "ok", "happy"])
    equal(columns["opened"]["type"].timezone, True)
    equal(columns["key"]["default"], "gen_random_uuid()")
    equal(columns["id"]["default"], "nextval('account_id_seq'::regclass)")
    equal(columns["doubled"]["computed"], {"sqltext": "(balance * (2)::numeric)", "persisted": True})
    owner = {column["name"]: column for column in sa.inspect(engine).get_columns("owner")}
    equal(owner["id"]["identity"]["always"], True)
    equal(owner["name"]["comment"], "as they call themselves")


@check
def the_inspector_sees_constraints_and_indexes():
    inspector = sa.inspect(engine)
    equal(inspector.get_pk_constraint("account")["name"], "account_pkey")
    keys = inspector.get_foreign_keys("account")
    equal([(key["name"], key["referred_table"], key["options"]) for key in keys],
          [("account_owner_id_fkey", "owner", {"ondelete": "CASCADE"})])
    equal([u["name"] for u in inspector.get_unique_constraints("owner")], ["owner_name_once"])
    equal(inspector.get_table_comment("owner")["text"], "who owns")
    checks = inspector.get_check_constraints("account")
    equal([(c["name"], c["sqltext"]) for c in checks], [("account_not_below", "balance >= 0::numeric")])
    indexes = {index["name"]: index for index in inspector.get_indexes("account")}
    equal(sorted(indexes), ["account_lower", "account_rich"])
    equal(indexes["account_rich"]["dialect_options"]["postgresql_where"], "(balance > (1000)::numeric)")
    equal(indexes["account_rich"]["column_sorting"], {"opened": ("desc",)})
    equal(indexes["account_lower"]["expressions"], ["lower(note::text)"])
    equal([e["name"] for e in inspector.get_enums()], ["mood"])
    equal(sorted(inspector.get_sequence_names()), ["account_id_seq", "owner_id_seq"])
    equal(sorted(key[1] for key in inspector.get_multi_columns()), ["account", "item", "owner"])
    assert "public" in inspector.get_schema_names()
    assert inspector.has_table("item") and not inspector.has_table("nothing")


@check
def tables_are_reflected_and_used():
    metadata = sa.MetaData()
    metadata.reflect(engine)
    equal(sorted(metadata.tables), ["account", "item", "owner"])
    item = metadata.tables["item"]
    with engine.begin() as connection:
        connection.execute(item.insert(), [{"id": 1, "label": "a"}])
        equal(connection.execute(sa.select(item.c.label)).scalar(), "a")
        connection.execute(item.delete())


@check
def the_orm_writes_and_reads():
    with emptied(Session(engine)) as session:
        ann = Owner(name="ann", accounts=[
            Account(balance=decimal.Decimal("10.50"), mood=Mood.happy, tags=["x", "y"], detail={"k": [1, None]}),
            Account(balance=2000, note="Big"),
        ])
        session.add_all([ann, Owner(name="bob")])
        session.commit()
        session.expire_all()
        got = session.scalars(sa.select(Owner).options(selectinload(Owner.accounts)).order_by(Owner.name)).all()
        equal([(owner.name, len(owner.accounts)) for owner in got], [("ann", 2), ("bob", 0)])
        account = session.scalars(sa.select(Account).where(Account.tags.contains(["x"]))).one()
        equal((account.balance, account.doubled, account.mood), (decimal.Decimal("10.50"), decimal.Decimal("21.00"), Mood.happy))
        assert isinstance(account.key, uuid.UUID) and account.opened.tzinfo is not None
        equal(session.scalar(sa.select(Account.id).where(Account.detail["k"][0].as_integer() == 1)), account.id)
        account.balance += 1
        account.tags = account.tags + ["z"]
        session.commit()
        equal((account.version, account.doubled), (2, decimal.Decimal("23.00")))
        totals = session.execute(
            sa.select(Owner.name, sa.func.coalesce(sa.func.sum(Account.balance), 0))
            .outerjoin(Account).group_by(Owner.id).order_by(Owner.name)
        ).all()
        equal(totals, [("ann", decimal.Decimal("2011.50")), ("bob", 0)])
        session.delete(ann)
        session.commit()
        equal(session.scalar(sa.select(sa.func.count()).select_from(Account)), 0)


@check
def a_row_that_changed_meanwhile_is_noticed():
    from sqlalchemy.orm.exc import StaleDataError

    with emptied(Session(engine)) as first, Session(engine) as second:
        first.add(Owner(name="ann", accounts=[Account(id=1)]))
        first.commit()
        one, two = first.get(Account, 1), second.get(Account, 1)
        one.balance = 5
        first.commit()
        two.balance = 6
        try:
            second.commit()
            raise AssertionError("the older version is written")
        except StaleDataError:
            second.rollback()


@check
def many_rows_are_inserted_at_once():
    with emptied(Session(engine)) as session:
        session.add_all([Owner(name=f"n{n}") for n in range(2500)])
        session.commit()
        ids = session.execute(
            sa.insert(Owner).returning(Owner.id, sort_by_parameter_order=True),
            [{"name": f"m{n}"} for n in range(2500)],
        ).scalars().all()
        equal(ids, sorted(ids))
        equal(len(ids), 2500)
        rows = [{"id": n, "label": f"l{n}"} for n in range(500)]
        session.execute(sa.insert(Item), rows)
        session.execute(sa.update(Item), [{"id": n, "label": "new"} for n in range(10)])
        equal(session.scalar(sa.select(sa.func.count()).where(Item.label == "new")), 10)
        upsert = pg.insert(Item).values(rows[:20])
        upsert = upsert.on_conflict_do_update(index_elements=[Item.id], set_={"label": upsert.excluded.label})
        equal(len(session.execute(upsert.returning(Item.id)).all()), 20)
        skipped = pg.insert(Item).values(id=1, label="x").on_conflict_do_nothing().returning(Item.id)
        equal(session.execute(skipped).all(), [])
        equal(session.execute(sa.delete(Item).where(Item.id < 100)).rowcount, 100)
        session.rollback()


@check
def queries_of_many_shapes_run():
    with emptied(Session(engine)) as session:
        session.execute(sa.insert(Item), [
            {"id": n, "label": "abc"[n % 3], "parent_id": n // 2 if n > 1 else None} for n in range(1, 31)])
        tree = sa.select(Item.id, sa.literal(0).label("depth")).where(Item.parent_id.is_(None)).cte("tree", recursive=True)
        tree = tree.union_all(sa.select(Item.id, tree.c.depth + 1).join(tree, Item.parent_id == tree.c.id))
        equal(session.execute(sa.select(sa.func.count(), sa.func.max(tree.c.depth))).one(), (30, 4))
        ranked = sa.select(Item.id, Item.label, sa.func.row_number().over(partition_by=Item.label, order_by=Item.id.desc()).label("n"))
        ranked = ranked.subquery()
        equal(session.execute(sa.select(ranked.c.id).where(ranked.c.n == 1).order_by(ranked.c.id)).scalars().all(), [28, 29, 30])
        equal(session.scalars(sa.select(Item.id).where(Item.id.in_([1, 2, 99])).order_by(Item.id)).all(), [1, 2])
        equal(session.scalars(sa.select(Item.id).where(Item.id.in_([]))).all(), [])
        equal(session.scalars(sa.select(Item.id).where(sa.tuple_(Item.id, Item.label).in_([(1, "b"), (2, "x")]))).all(), [1])
        equal(session.scalars(sa.select(Item.id).where(sa.tuple_(Item.id, Item.label) > (29, "z")).order_by(Item.id)).all(), [30])
        equal(session.scalars(sa.select(Item.id).order_by(Item.id).limit(2).offset(3)).all(), [4, 5])
        equal(session.scalar(sa.select(sa.func.string_agg(Item.label, pg.aggregate_order_by(",", Item.id.desc()))).where(Item.id < 4)), "a,c,b")
        last = sa.select(Item.id).where(Item.label == "a").order_by(Item.id.desc()).limit(1).scalar_subquery()
        equal(session.scalar(sa.select(last)), 30)
        lateral = sa.select(sa.func.generate_series(1, Item.id).column_valued("g")).lateral()
        equal(session.scalar(sa.select(sa.func.count()).select_from(Item).join(lateral, sa.true()).where(Item.id < 4)), 6)
        values = sa.values(sa.column("a", sa.Integer), sa.column("b", sa.String), name="v").data([(1, "x"), (2, "y")])
        equal(session.execute(sa.select(values).order_by(values.c.a.desc())).all(), [(2, "y"), (1, "x")])
        equal(session.scalar(sa.select(sa.extract("year", sa.cast("2024-02-29", sa.Date)))), 2024)
        equal(session.scalar(sa.select(sa.exists().where(Item.id == 5))), True)
        equal(session.scalars(sa.select(Item.id).where(Item.label.regexp_match("^a")).where(Item.id < 4)).all(), [3])
        locked = session.scalars(sa.select(Item.id).where(Item.id == 1).with_for_update(skip_locked=True)).all()
        equal(locked, [1])
        session.rollback()


@check
def savepoints_nest():
    with emptied(Session(engine)) as session:
        session.add(Item(id=1))
        with refused("23505"):
            with session.begin_nested():
                session.execute(sa.insert(Item).values(id=1))
        with session.begin_nested():
            session.add(Item(id=2))
        session.commit()
        equal(session.scalars(sa.select(Item.id).order_by(Item.id)).all(), [1, 2])


@check
def isolation_levels_are_set():
    serial = engine.execution_options(isolation_level="SERIALIZABLE")
    with serial.connect() as connection:
        equal(connection.get_isolation_level(), "SERIALIZABLE")
        equal(connection.scalar(sa.text("SHOW transaction_isolation")), "serializable")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("SELECT 1"))
    with engine.connect().execution_options(postgresql_readonly=True) as connection:
        with refused("25006"):
            connection.execute(sa.delete(Item))


@check
def rows_are_streamed_from_a_server_side_cursor():
    with emptied(Session(engine)) as session:
        session.execute(sa.insert(Item), [{"id": n, "label": f"l{n}"} for n in range(2000)])
        session.commit()
        seen = 0
        for part in session.scalars(sa.select(Item).order_by(Item.id), execution_options={"yield_per": 100}).partitions():
            seen += len(part)
        equal(seen, 2000)
    with engine.connect() as connection:
        result = connection.execution_options(stream_results=True, max_row_buffer=50).execute(sa.select(Item.id))
        equal(sum(1 for _ in result), 2000)


@check
def functions_and_procedures_are_called():
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP FUNCTION IF EXISTS deposit(int, numeric)")
        connection.exec_driver_sql("DROP PROCEDURE IF EXISTS rename(bigint, text)")
        connection.exec_driver_sql(ROUTINES)
    with emptied(Session(engine)) as session:
        ann = Owner(name="ann", accounts=[Account()])
        session.add(ann)
        session.flush()
        equal(session.scalar(sa.select(sa.func.deposit(ann.accounts[0].id, decimal.Decimal("2.5")))), decimal.Decimal("2.50"))
        equal(session.scalar(sa.text("CALL rename(:id, :name)"), {"id": ann.id, "name": "bert"}), "BERT")
        session.rollback()


@check
def a_syntax_error_leaves_the_connection_usable():
    with engine.connect() as connection:
        for text, state in [("SELEC 1", "42601"), ("SELECT * FROM nowhere", "42P01"), ("SELECT 1 / 0", "22012")]:
            with refused(state):
                connection.execute(sa.text(text))
            connection.rollback()
            equal(connection.scalar(sa.text("SELECT 42")), 42)


@check
def violations_are_integrity_errors():
    with emptied(Session(engine)) as session:
        session.add(Owner(name="ann"))
        session.commit()
        session.add(Owner(name="ann"))
        with refused("23505") as error:
            session.commit()
        assert isinstance(error.value, sa.exc.IntegrityError)
        equal(error.value.orig.diag.constraint_name, "owner_name_once")
        session.rollback()
        session.add(Account(owner_id=-1))
        with refused("23503"):
            session.flush()
        session.rollback()


@check
def a_statement_times_out():
    limited = sa.create_engine(PSYCOPG_URL, connect_args={"options": "-c statement_timeout=200"})
    with limited.connect() as connection:
        with refused("57014"):
            connection.execute(sa.text("SELECT pg_sleep(20)"))
        connection.rollback()
        equal(connection.scalar(sa.text("SELECT 42")), 42)
    limited.dispose()


@check
def waiting_for_a_lock_times_out():
    with emptied(Session(engine)) as first, Session(engine) as second:
        first.add(Item(id=1))
        first.commit()
        first.execute(sa.update(Item).values(label="x"))
        with refused("55P03"):
            second.execute(sa.select(Item).with_for_update(nowait=True))
        second.rollback()
        second.execute(sa.text("SET LOCAL lock_timeout = '200ms'"))
        with refused("55P03"):
            second.execute(sa.update(Item).values(label="y"))
        second.rollback()


@check
def a_pool_finds_its_connections_again():
    pooled = sa.create_engine(PSYCOPG_URL, pool_size=3, pool_pre_ping=True)
    results = []

    def ask(n):
        with pooled.connect() as connection:
            results.append(connection.scalar(sa.select(sa.literal(n))))

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    equal(sorted(results), list(range(20)))
    with pooled.connect() as connection:
        pid = connection.scalar(sa.text("SELECT pg_backend_pid()"))
    with engine.connect() as other:
        other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    for _ in range(4):
        with pooled.connect() as connection:
            equal(connection.scalar(sa.text("SELECT 42")), 42)
    pooled.dispose()


@check
def alembic_migrates_and_finds_nothing_to_do():
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        differences = [d for d in compare_metadata(context, Base.metadata)]
        equal(differences, [])
        operations = Operations(context)
        operations.create_table(
            "passing",
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("name", sa.String(20), nullable=False, server_default="x"),
            sa.Column("old", sa.Integer),
        )
        operations.add_column("passing", sa.Column("mood", pg.ENUM(name="mood", create_type=False), server_default="ok"))
        operations.alter_column("passing", "old", new_column_name="new", type_=sa.BigInteger)
        operations.alter_column("passing", "name", server_default=None, nullable=True, type_=sa.Text)
        operations.create_index("passing_new", "passing", ["new"], unique=True)
        operations.create_foreign_key("passing_item", "passing", "item", ["new"], ["id"])
        operations.create_check_constraint("passing_positive", "passing", "id > 0")
        operations.execute("INSERT INTO passing (id, name) VALUES (1, 'y')")
        operations.drop_constraint("passing_item", "passing", type_="foreignkey")
        operations.drop_column("passing", "mood")
        operations.rename_table("passing", "passed")
        equal([c["name"] for c in sa.inspect(connection).get_columns("passed")], ["id", "name", "new"])
        operations.drop_table("passed")


@check
async def asyncpg_serves_it_too():
    other = asyncpg_engine()
    async with other.connect() as connection:
        equal(sorted(await connection.run_sync(lambda c: sa.inspect(c).get_table_names())), ["account", "item", "owner"])
        equal(await connection.run_sync(lambda c: sa.inspect(c).get_columns("item")[1]["name"]), "label")
    sessions = async_sessionmaker(other, expire_on_commit=False)
    async with sessions() as session:
        await session.execute(sa.text("TRUNCATE owner, account, item"))
        session.add(Owner(name="ann", accounts=[Account(balance=5, mood=Mood.sad, tags=["t"], detail={"a": 1})]))
        await session.commit()
        account = (await session.scalars(sa.select(Account).options(selectinload(Account.owner)))).one()
        equal((account.balance, account.mood, account.detail, account.owner.name), (5, Mood.sad, {"a": 1}, "ann"))
        await session.execute(sa.insert(Item), [{"id": n, "label": f"l{n}"} for n in range(500)])
        result = await session.stream_scalars(sa.select(Item.id).order_by(Item.id), execution_options={"yield_per": 50})
        equal(sum([n async for n in result]), 124750)
        with refused("22012"):
            await session.execute(sa.select(1 / sa.cast(0, sa.Integer)))
        await session.rollback()
        got = await session.scalars(sa.select(Item.id).where(sa.tuple_(Item.id, Item.label) > (498, "z")))
        equal(got.all(), [])
        with refused("42P01"):
            await session.execute(sa.text("SELECT * FROM nowhere"))
        await session.rollback()
        equal(await session.scalar(sa.text("SELECT 42")), 42)
    await other.dispose()


@check
async def asyncpg_pipelines_gather():
    other = asyncpg_engine(pool_size=5)

    async def ask(n):
        async with other.connect() as connection:
            return await connection.scalar(sa.select(sa.literal(n) * 2))

    equal(await asyncio.gather(*(ask(n) for n in range(20))), [n * 2 for n in range(20)])
    await other.dispose()


@check(secured=True)
async def connections_are_encrypted():
    encrypted = sa.text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    with engine.connect() as connection:
        equal(connection.scalar(encrypted), True)
    other = asyncpg_engine()
    async with other.connect() as connection:
        equal(await connection.scalar(encrypted), True)
    await other.dispose()


main()
