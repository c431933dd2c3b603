import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffGeneratorFactory;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.Table;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.JSONB;
import org.jooq.Meta;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.conf.Settings;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;

/** HikariCP, Flyway, Liquibase and jOOQ as an application uses them. */
final class Main {
    private static final Map<String, String> FLYWAY = Map.of(
        "V1__tables.sql", """
            CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
            CREATE TABLE owner (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                name varchar(40) NOT NULL CONSTRAINT owner_name_once UNIQUE
            );
            CREATE TABLE account (
                id serial PRIMARY KEY,
                owner_id bigint NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
                key uuid NOT NULL DEFAULT gen_random_uuid(),
                balance numeric(14, 2) NOT NULL DEFAULT 0 CONSTRAINT account_not_below CHECK (balance >= 0),
                mood mood NOT NULL DEFAULT 'ok',
                tags text[] NOT NULL DEFAULT '{}',
                detail jsonb,
                opened timestamptz NOT NULL DEFAULT now()
            );
            """,
        "V2__routines.sql", """
            CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
            BEGIN
                UPDATE account SET balance = balance + p_amount WHERE id = p_id;
                RETURN (SELECT balance FROM account WHERE id = p_id);
            END $$;
            INSERT INTO owner (name) VALUES ('${first}');
            """,
        "V3__index.sql", "CREATE INDEX CONCURRENTLY account_owner ON account (owner_id);",
        "R__view.sql", "CREATE OR REPLACE VIEW rich AS SELECT id, owner_id FROM account WHERE balance > 1000;");

    private static final String LIQUIBASE = """
        <databaseChangeLog xmlns="http://www.liquibase.org/xml/ns/dbchangelog"
            xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
            xsi:schemaLocation="http://www.liquibase.org/xml/ns/dbchangelog
                http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd">
          <changeSet id="1" author="a">
            <createTable tableName="person" remarks="who there is">
              <column name="id" type="bigint" autoIncrement="true"><constraints primaryKey="true"/></column>
              <column name="name" type="varchar(40)"><constraints nullable="false" unique="true"/></column>
              <column name="born" type="date"/>
            </createTable>
            <createTable tableName="pet">
              <column name="id" type="uuid" defaultValueComputed="gen_random_uuid()"><constraints primaryKey="true"/></column>
              <column name="person_id" type="bigint">
                <constraints nullable="false" foreignKeyName="pet_person" references="person(id)"/>
              </column>
              <column name="weight" type="decimal(8, 3)" defaultValueNumeric="0"/>
            </createTable>
            <createIndex tableName="pet" indexName="pet_person_id"><column name="person_id"/></createIndex>
          </changeSet>
          <changeSet id="2" author="a">
            <preConditions onFail="MARK_RAN"><tableExists tableName="person"/></preConditions>
            <addColumn tableName="person"><column name="mail" type="varchar(100)"/></addColumn>
            <renameColumn tableName="person" oldColumnName="born" newColumnName="birthday"/>
            <addNotNullConstraint tableName="person" columnName="mail" defaultNullValue="?"/>
            <createSequence sequenceName="numbers" startValue="100" incrementBy="10"/>
            <createView viewName="grown">SELECT id FROM person WHERE birthday &lt; DATE '2006-01-01'</createView>
          </changeSet>
          <changeSet id="3" author="a">
            <insert tableName="person"><column name="name" value="ann"/><column name="mail" value="a@b"/></insert>
            <rollback>DELETE FROM person WHERE name = 'ann'</rollback>
          </changeSet>
        </databaseChangeLog>
        """;

    private static HikariDataSource pool;

    private static HikariDataSource open(int size) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(Checks.URL);
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(5000);
        return new HikariDataSource(config);
    }

    private static Object one(String text) throws SQLException {
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement();
            var rows = statement.executeQuery(text)) {
            return rows.next() ? rows.getObject(1) : null;
        }
    }

    private static void empties() throws Exception {
        pool = open(4);
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
            statement.execute("DROP SCHEMA IF EXISTS other CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
        }
    }

    private static void pools() throws Exception {
        try (HikariDataSource small = open(2)) {
            int process;
            try (Connection connection = small.getConnection()) {
                connection.setAutoCommit(false);
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                connection.setReadOnly(true);
                connection.createStatement().execute("SELECT 1");
                process = connection.unwrap(org.postgresql.PGConnection.class).getBackendPID();
            }
            // What was set is not the next one's; what was begun is rolled back.
            try (Connection connection = small.getConnection()) {
                Checks.equal(connection.getAutoCommit() && !connection.isReadOnly(), true);
                Checks.equal(connection.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
            }
            Checks.equal(one("SELECT pg_terminate_backend(" + process + ")"), true);
            // For half a second after its last use a connection passes for alive.
            TimeUnit.MILLISECONDS.sleep(700);
            var asked = IntStream.range(0, 20).mapToObj(n -> CompletableFuture.supplyAsync(() -> {
                try (Connection connection = small.getConnection(); var rows = connection.createStatement().executeQuery("SELECT " + n)) {
                    rows.next();
                    return rows.getInt(1);
                } catch (SQLException error) {
                    throw new IllegalStateException(error);
                }
            })).toList();
            for (int n = 0; n < 20; n++) {
                Checks.equal(asked.get(n).get(10, TimeUnit.SECONDS), n);
            }
        }
    }

    private static Flyway flyway(String... only) throws Exception {
        Path folder = Files.createTempDirectory("flyway");
        for (String name : only.length == 0 ? FLYWAY.keySet() : List.of(only)) {
            Files.writeString(folder.resolve(name), FLYWAY.get(name));
        }
        return Flyway.configure().dataSource(pool).locations("filesystem:" + folder).cleanDisabled(false)
            .placeholders(Map.of("first", "ann"))
            // A transaction that holds the lock would stand in the way of CREATE INDEX CONCURRENTLY.
            .configuration(Map.of("flyway.postgresql.transactional.lock", "false")).load();
    }

    private static void migrates() throws Exception {
        Checks.equal(flyway("V1__tables.sql").migrate().migrationsExecuted, 1);
        Flyway flyway = flyway();
        Checks.equal(flyway.info().pending().length, 3);
        Checks.equal(flyway.migrate().migrationsExecuted, 3);
        Checks.equal(flyway.migrate().migrationsExecuted, 0);
        flyway.validate();
        Checks.equal(flyway.info().current().getVersion() == null || flyway.info().applied().length == 4, true);
        Checks.equal(one("SELECT name FROM owner"), "ann");
    }

    private static void cleans() throws Exception {
        Flyway other = Flyway.configure().dataSource(pool).schemas("other").locations("filesystem:" + Files.createTempDirectory("none"))
            .createSchemas(true).cleanDisabled(false).load();
        other.migrate();
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TYPE other.kind AS ENUM ('a'); CREATE DOMAIN other.few AS int CHECK (VALUE < 9);"
                + " CREATE TABLE other.a (id serial PRIMARY KEY, k other.kind, f other.few); CREATE VIEW other.v AS SELECT * FROM other.a;"
                + " CREATE SEQUENCE other.s; CREATE FUNCTION other.f() RETURNS int LANGUAGE sql AS 'SELECT 1';"
                + " CREATE PROCEDURE other.p() LANGUAGE plpgsql AS 'BEGIN END'");
        }
        other.clean();
        Checks.equal(one("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('other')"), 0L);
    }

    private static void failsWhole() throws Exception {
        Path folder = Files.createTempDirectory("flyway");
        Files.writeString(folder.resolve("V1__half.sql"), "CREATE TABLE half (a int); SELECT * FROM nowhere;");
        Flyway flyway = Flyway.configure().dataSource(pool).table("other_history").baselineOnMigrate(true).baselineVersion("0")
            .locations("filesystem:" + folder).load();
        try {
            flyway.migrate();
            throw new AssertionError("it migrates");
        } catch (FlywayException error) {
            Checks.equal(Checks.saidByServer(error).getSQLState(), "42P01");
        }
        Checks.equal(one("SELECT to_regclass('half')"), null);
    }

    private static void changes() throws Exception {
        Path folder = Files.createTempDirectory("liquibase");
        Files.writeString(folder.resolve("log.xml"), LIQUIBASE);
        try (Connection connection = pool.getConnection()) {
            Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            Liquibase liquibase = new Liquibase("log.xml", new DirectoryResourceAccessor(folder), database);
            liquibase.update(new Contexts());
            Checks.equal(liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 0);
            Checks.equal(one("SELECT mail FROM person"), "a@b");
            Checks.equal(one("SELECT nextval('numbers')"), 100L);
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(
                database.getDefaultSchema(), database, new SnapshotControl(database, Table.class, Column.class, Index.class, ForeignKey.class));
            Table person = (Table) snapshot.get(new Table(null, "public", "person"));
            Checks.equal(person.getColumns().stream().map(Column::getName).toList(), List.of("id", "name", "birthday", "mail"));
            Checks.equal(person.getRemarks(), "who there is");
            Table pet = (Table) snapshot.get(new Table(null, "public", "pet"));
            Checks.equal(pet.getOutgoingForeignKeys().get(0).getName(), "pet_person");
            liquibase.rollback(3, "");
            Checks.equal(one("SELECT to_regclass('person')"), null);
            liquibase.update(new Contexts());
            Checks.equal(one("SELECT count(*) FROM databasechangelog"), 3L);
            Checks.equal(one("SELECT locked FROM databasechangeloglock"), false);
        }
    }

    private static DSLContext jooq() {
        return DSL.using(pool, SQLDialect.POSTGRES, new Settings().withRenderSchema(false));
    }

    private static void asks() throws Exception {
        DSLContext jooq = jooq();
        var owner = DSL.table("owner");
        var account = DSL.table("account");
        Field<Long> id = DSL.field("id", SQLDataType.BIGINT);
        Field<String> name = DSL.field("name", SQLDataType.VARCHAR);
        Field<BigDecimal> balance = DSL.field("balance", SQLDataType.NUMERIC);
        Field<String[]> tags = DSL.field("tags", SQLDataType.CLOB.array());
        Field<JSONB> detail = DSL.field("detail", SQLDataType.JSONB);
        Field<OffsetDateTime> opened = DSL.field("opened", SQLDataType.TIMESTAMPWITHTIMEZONE);
        Field<UUID> key = DSL.field("key", SQLDataType.UUID);
        Field<Long> ownerId = DSL.field("owner_id", SQLDataType.BIGINT);
        Long bob = jooq.insertInto(owner, name).values("bob").returningResult(id).fetchOne(id);
        OffsetDateTime noon = OffsetDateTime.of(2024, 2, 29, 12, 0, 1, 5000, ZoneOffset.UTC);
        UUID one = UUID.fromString("12345678-1234-5678-1234-567812345678");
        Record got = jooq.insertInto(account, ownerId, balance, tags, detail, opened, key)
            .values(bob, new BigDecimal("10.50"), new String[] {"a", "b,c"}, JSONB.valueOf("{\"k\": [1, null]}"), noon, one)
            .returningResult(balance, tags, detail, opened, key).fetchOne();
        Checks.equal(got.get(balance), new BigDecimal("10.50"));
        Checks.equal(got.get(tags), new String[] {"a", "b,c"});
        Checks.equal(got.get(detail), JSONB.valueOf("{\"k\": [1, null]}"));
        Checks.equal(got.get(opened).toInstant(), noon.toInstant());
        Checks.equal(got.get(key), one);
        Checks.equal(jooq.insertInto(owner, name).values("bob").onConflict(name).doUpdate().set(name, "bert").returningResult(name).fetchOne(name), "bert");
        var nested = DSL.multiset(DSL.select(balance).from(account).where(DSL.field("account.owner_id", Long.class).eq(DSL.field("owner.id", Long.class)))).as("of");
        Checks.equal(jooq.select(name, nested).from(owner).where(name.eq("bert")).fetchOne().get(nested).size(), 1);
        Checks.equal(jooq.select(DSL.sum(balance)).from(account).groupBy(ownerId).having(DSL.count().gt(0)).fetchOne().value1(), new BigDecimal("10.50"));
        Checks.equal(jooq.fetchCount(DSL.selectFrom(account).where(tags.contains(new String[] {"a"}))), 1);
        Checks.equal(jooq.mergeInto(owner).using(DSL.selectOne()).on(name.eq("bert")).whenMatchedThenUpdate().set(name, "ben").execute(), 1);
        Checks.equal(jooq.selectFrom(DSL.generateSeries(1, 100)).orderBy(1).limit(5).offset(10).fetch().size(), 5);
        try (var rows = jooq.resultQuery("SELECT n FROM generate_series(1, 1000) AS n").fetchSize(50).fetchLazy()) {
            Checks.equal(rows.stream().count(), 1000L);
        }
        Checks.equal(jooq.fetchValue("SELECT deposit(id, 1) FROM account"), new BigDecimal("11.50"));
    }

    private static void inBatches() {
        DSLContext jooq = jooq();
        Field<String> name = DSL.field("name", SQLDataType.VARCHAR);
        var batch = jooq.batch(jooq.insertInto(DSL.table("owner"), name).values((String) null));
        for (int n = 0; n < 500; n++) {
            batch.bind("n" + n);
        }
        Checks.equal(batch.execute().length, 500);
        Checks.equal(jooq.deleteFrom(DSL.table("owner")).where(name.like("n%")).execute(), 500);
    }

    private static void nests() throws Exception {
        Field<String> name = DSL.field("name", SQLDataType.VARCHAR);
        jooq().transaction(outer -> {
            outer.dsl().insertInto(DSL.table("owner"), name).values("kept").execute();
            try {
                outer.dsl().transaction(inner -> inner.dsl().insertInto(DSL.table("owner"), name).values("kept").execute());
                throw new AssertionError("no error");
            } catch (DataAccessException error) {
                Checks.equal(error.sqlState(), "23505");
            }
        });
        Checks.equal(jooq().deleteFrom(DSL.table("owner")).where(name.eq("kept")).execute(), 1);
    }

    private static void reflects() {
        Meta meta = jooq().meta().filterSchemas(schema -> schema.getName().equals("public"));
        List<String> names = new ArrayList<>(meta.getTables().stream().map(table -> table.getName()).filter(name -> !name.contains("history")).toList());
        Checks.equal(names.containsAll(List.of("account", "owner", "rich", "person", "pet")), true);
        var account = meta.getTables("account").get(0);
        Checks.equal(account.field("balance").getDataType().precision() + "," + account.field("balance").getDataType().scale(), "14,2");
        Checks.equal(account.getReferences().size(), 1);
        Checks.equal(meta.getSequences("numbers").size(), 1);
        Checks.equal(meta.ddl().queries().length > 5, true);
    }

    private static void encrypted() throws Exception {
        Checks.equal(one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), true);
    }

    public static void main(String[] arguments) {
        // Their own account of what goes wrong is long, and told again by the checks.
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.OFF);
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        System.setProperty("liquibase.analytics.enabled", "false");
        System.setProperty("liquibase.showSummary", "off");
        Checks checks = new Checks();
        checks.check("HikariCP empties the schema", Main::empties);
        checks.check("HikariCP hands out clean and living connections", Main::pools);
        checks.check("Flyway migrates", Main::migrates);
        checks.check("Flyway cleans a schema", Main::cleans);
        checks.check("Flyway leaves nothing of a migration that fails", Main::failsWhole);
        checks.check("Liquibase changes, rolls back, and reads what there is", Main::changes);
        checks.check("jOOQ writes and reads", Main::asks);
        checks.check("jOOQ runs batches", Main::inBatches);
        checks.check("jOOQ nests transactions", Main::nests);
        checks.check("jOOQ reads the schema", Main::reflects);
        if (Checks.SECURED) {
            checks.check("a connection is encrypted", Main::encrypted);
        }
        checks.main();
    }
}
