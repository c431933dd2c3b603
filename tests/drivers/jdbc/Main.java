import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

/** The JDBC driver as an application uses it. */
final class Main {
    private static final String SCHEMA = """
        DROP SCHEMA public CASCADE;
        CREATE SCHEMA public;
        CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
        CREATE TABLE owner (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name varchar(40) NOT NULL CONSTRAINT owner_name_once UNIQUE
        );
        COMMENT ON TABLE owner IS 'who owns';
        CREATE TABLE account (
            id serial PRIMARY KEY,
            owner_id bigint NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
            key uuid NOT NULL DEFAULT gen_random_uuid(),
            balance numeric(14, 2) NOT NULL DEFAULT 0,
            mood mood NOT NULL DEFAULT 'ok',
            tags text[] NOT NULL DEFAULT '{}',
            detail jsonb,
            opened timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX account_owner ON account (owner_id, opened DESC);
        CREATE VIEW rich AS SELECT * FROM account WHERE balance > 1000;
        CREATE TABLE item (id int PRIMARY KEY, label text);
        CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
        DECLARE after numeric;
        BEGIN
            UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
            IF NOT FOUND THEN RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002', HINT = 'open one'; END IF;
            RETURN after;
        END $$;
        CREATE FUNCTION doubled(a int, OUT twice int, OUT text text) LANGUAGE plpgsql AS $$
        BEGIN twice := a * 2; text := 'a' || a; END $$;
        CREATE FUNCTION items() RETURNS refcursor LANGUAGE plpgsql AS $$
        DECLARE c refcursor := 'of_items';
        BEGIN OPEN c FOR SELECT n FROM generate_series(1, 25) AS n; RETURN c; END $$;
        CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE owner SET name = p_name WHERE id = p_id;
            p_name := upper(p_name);
        END $$;
        CREATE PROCEDURE step_by_step(p_count int) LANGUAGE plpgsql AS $$
        BEGIN
            FOR n IN 1 .. p_count LOOP
                INSERT INTO item VALUES (n, 'stepped');
                COMMIT;
            END LOOP;
        END $$;
        """;

    private static Connection connect(String... parameters) throws SQLException {
        String more = parameters.length == 0 ? "" : "&" + String.join("&", parameters);
        return DriverManager.getConnection(Checks.URL + more);
    }

    private static Object one(Connection connection, String text, Object... arguments) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int at = 0; at < arguments.length; at++) {
                statement.setObject(at + 1, arguments[at]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getObject(1) : null;
            }
        }
    }

    private static int run(Connection connection, String text, Object... arguments) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int at = 0; at < arguments.length; at++) {
                statement.setObject(at + 1, arguments[at]);
            }
            return statement.executeUpdate();
        }
    }

    private static List<Object> column(ResultSet rows, String name) throws SQLException {
        List<Object> values = new ArrayList<>();
        while (rows.next()) {
            values.add(rows.getObject(name));
        }
        return values;
    }

    private static void usable(Connection connection) throws SQLException {
        Checks.equal(one(connection, "SELECT 40 + ?", 2), 42);
    }

    private static org.postgresql.util.ServerErrorMessage said(SQLException error) {
        return ((PSQLException) error).getServerErrorMessage();
    }

    private static void migrates() throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.execute(SCHEMA);
            Checks.equal(connection.getMetaData().getDatabaseMajorVersion(), 15);
            Checks.equal(connection.isValid(5), true);
            usable(connection);
        }
    }

    private static void empty() throws Exception {
        try (Connection connection = connect()) {
            run(connection, "TRUNCATE owner, account, item");
        }
    }

    private static Object[][] values() {
        return new Object[][] {
            {true, "bool"}, {-7, "int4"}, {Long.MIN_VALUE, "int8"}, {0.1, "float8"},
            {new BigDecimal("12345678901234567890.0123456789"), "numeric"},
            {"žluťoučký \n'\\", "text"}, {new byte[] {0, -1, 1}, "bytea"},
            {UUID.fromString("12345678-1234-5678-1234-567812345678"), "uuid"},
        };
    }

    private static void values(String... parameters) throws Exception {
        try (Connection connection = connect(parameters)) {
            // Beyond prepareThreshold the driver prepares by name and asks for binary results.
            for (Object[] value : values()) {
                try (PreparedStatement statement = connection.prepareStatement("SELECT ?::" + value[1])) {
                    for (int time = 0; time < 7; time++) {
                        statement.setObject(1, value[0]);
                        try (ResultSet rows = statement.executeQuery()) {
                            rows.next();
                            Checks.equal(rows.getObject(1), value[0]);
                        }
                    }
                }
            }
            LocalDateTime noon = LocalDateTime.of(2024, 2, 29, 12, 0, 1, 5000);
            OffsetDateTime there = noon.atOffset(ZoneOffset.ofHours(2));
            String text = "SELECT ?::date, ?::time, ?::timestamp, ?::timestamptz, ?::int[], ?::text[], ?::jsonb, ?::mood, ?";
            try (PreparedStatement statement = connection.prepareStatement(text)) {
                for (int time = 0; time < 7; time++) {
                    statement.setObject(1, LocalDate.of(1999, 12, 31));
                    statement.setObject(2, LocalTime.of(23, 59, 59));
                    statement.setObject(3, noon);
                    statement.setObject(4, there);
                    statement.setArray(5, connection.createArrayOf("int4", new Object[] {1, null, 3}));
                    statement.setArray(6, connection.createArrayOf("text", new Object[] {"a", "b,c", "\""}));
                    statement.setObject(7, "{\"a\": [1, null]}", Types.OTHER);
                    statement.setString(8, "happy");
                    statement.setObject(9, new PGInterval(1, 2, 3, 4, 5, 6.5));
                    try (ResultSet rows = statement.executeQuery()) {
                        rows.next();
                        Checks.equal(rows.getObject(1, LocalDate.class), LocalDate.of(1999, 12, 31));
                        Checks.equal(rows.getObject(2, LocalTime.class), LocalTime.of(23, 59, 59));
                        Checks.equal(rows.getObject(3, LocalDateTime.class), noon);
                        Checks.equal(rows.getObject(4, OffsetDateTime.class).toInstant(), there.toInstant());
                        Checks.equal(rows.getArray(5).getArray(), new Integer[] {1, null, 3});
                        Checks.equal(rows.getArray(6).getArray(), new String[] {"a", "b,c", "\""});
                        Checks.equal(((PGobject) rows.getObject(7)).getValue(), "{\"a\": [1, null]}");
                        Checks.equal(rows.getString(8), "happy");
                        Checks.equal(rows.getObject(9), new PGInterval(1, 2, 3, 4, 5, 6.5));
                    }
                }
            }
            try (PreparedStatement statement = connection.prepareStatement("SELECT ?::text IS NULL, ?::int IS NULL")) {
                statement.setNull(1, Types.VARCHAR);
                statement.setNull(2, Types.INTEGER);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    Checks.equal(rows.getBoolean(1) && rows.getBoolean(2), true);
                }
            }
        }
    }

    private static void work() throws Exception {
        try (Connection connection = connect()) {
            long owner;
            String insert = "INSERT INTO owner (name) VALUES (?)";
            try (PreparedStatement statement = connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
                statement.setString(1, "ann");
                Checks.equal(statement.executeUpdate(), 1);
                try (ResultSet keys = statement.getGeneratedKeys()) {
                    keys.next();
                    owner = keys.getLong("id");
                }
            }
            Object account = one(connection,
                "INSERT INTO account (owner_id, balance, detail, mood) VALUES (?, ?, ?::jsonb, ?::mood) RETURNING id",
                owner, new BigDecimal("10.50"), "{\"k\": 1}", "happy");
            Checks.equal(run(connection, "UPDATE account SET balance = balance * ? WHERE id = ?", 2, account), 1);
            Checks.equal(one(connection, "SELECT balance FROM account WHERE id = ?", account), new BigDecimal("21.00"));
            try (PreparedStatement statement = connection.prepareStatement("SELECT id FROM account WHERE id = ANY (?)")) {
                statement.setArray(1, connection.createArrayOf("int4", new Object[] {account, -1}));
                Checks.equal(column(statement.executeQuery(), "id"), List.of(account));
            }
            Checks.equal(run(connection, "DELETE FROM owner WHERE id = ?", owner), 1);
            Checks.equal(one(connection, "SELECT count(*) FROM account"), 0L);
        }
    }

    private static void transactions() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            run(connection, "INSERT INTO item VALUES (1, 'kept')");
            Savepoint savepoint = connection.setSavepoint("a \"name\"");
            Checks.refused("23505", () -> run(connection, "INSERT INTO item VALUES (?, 'again')", 1));
            Checks.refused("25P02", () -> usable(connection));
            connection.rollback(savepoint);
            connection.releaseSavepoint(savepoint);
            run(connection, "INSERT INTO item VALUES (2, 'kept')");
            connection.commit();
            Checks.equal(one(connection, "SHOW transaction_isolation"), "repeatable read");
            connection.rollback();
            connection.setReadOnly(true);
            Checks.refused("25006", () -> run(connection, "DELETE FROM item"));
            connection.rollback();
            connection.setReadOnly(false);
            Checks.refused("22012", () -> one(connection, "SELECT 1 / ?", 0));
            connection.rollback();
            Checks.equal(run(connection, "DELETE FROM item"), 2);
            connection.commit();
            run(connection, "INSERT INTO item VALUES (1, 'gone')");
            Checks.refused("42601", () -> one(connection, "SELEC ?", 1));
            connection.rollback();
            Checks.equal(one(connection, "SELECT count(*) FROM item"), 0L);
        }
        try (Connection connection = connect("autosave=always")) {
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO item VALUES (1, 'kept')");
            Checks.refused("23505", () -> run(connection, "INSERT INTO item VALUES (1, 'again')"));
            usable(connection);
            connection.rollback();
        }
    }

    private static void batches(String... parameters) throws Exception {
        try (Connection connection = connect(parameters)) {
            connection.setAutoCommit(false);
            try (PreparedStatement statement = connection.prepareStatement("INSERT INTO item (id, label) VALUES (?, ?)")) {
                for (int n = 0; n < 3000; n++) {
                    statement.setInt(1, n);
                    statement.setString(2, "l" + n);
                    statement.addBatch();
                }
                Checks.equal(statement.executeBatch().length, 3000);
                connection.commit();
                for (int n = 2998; n < 3002; n++) {
                    statement.setInt(1, n);
                    statement.setString(2, "again");
                    statement.addBatch();
                }
                SQLException error = Checks.refused("23505", statement::executeBatch);
                Checks.equal(error instanceof BatchUpdateException, true);
                connection.rollback();
            }
            Checks.equal(one(connection, "SELECT count(*) FROM item"), 3000L);
            try (Statement statement = connection.createStatement()) {
                statement.addBatch("UPDATE item SET label = 'x' WHERE id < 10");
                statement.addBatch("DELETE FROM item");
                Checks.equal(statement.executeBatch(), new int[] {10, 3000});
            }
            connection.commit();
        }
    }

    private static void copies() throws Exception {
        try (Connection connection = connect()) {
            CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
            StringBuilder lines = new StringBuilder();
            for (int n = 0; n < 3000; n++) {
                lines.append(n).append("\tlabel ").append(n).append('\n');
            }
            Checks.equal(copy.copyIn("COPY item FROM STDIN", new StringReader(lines.toString())), 3000L);
            StringWriter out = new StringWriter();
            Checks.equal(copy.copyOut("COPY (SELECT * FROM item WHERE id < 2 ORDER BY id) TO STDOUT CSV HEADER", out), 2L);
            Checks.equal(out.toString(), "id,label\n0,label 0\n1,label 1\n");
            Checks.refused("22P02", () -> copy.copyIn("COPY item FROM STDIN", new StringReader("x\ty\n")));
            var ended = copy.copyIn("COPY item FROM STDIN");
            ended.writeToCopy("9999\tx\n".getBytes(), 0, 7);
            ended.cancelCopy();
            usable(connection);
            Checks.equal(run(connection, "DELETE FROM item"), 3000);
        }
    }

    private static void largeObjects() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            LargeObjectManager manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
            long oid = manager.createLO(LargeObjectManager.READWRITE);
            byte[] content = new byte[300_000];
            for (int at = 0; at < content.length; at++) {
                content[at] = (byte) (at * 7);
            }
            try (LargeObject large = manager.open(oid, LargeObjectManager.READWRITE)) {
                large.write(content);
                Checks.equal(large.size(), 300_000);
                large.seek(1_000);
                Checks.equal(Arrays.equals(large.read(5_000), Arrays.copyOfRange(content, 1_000, 6_000)), true);
                large.seek64(6_000_000_000L, LargeObject.SEEK_SET);
                Checks.equal(large.tell64(), 6_000_000_000L);
                large.truncate(10);
                Checks.equal(large.size64(), 10L);
            }
            connection.commit();
            try (LargeObject large = manager.open(oid, LargeObjectManager.READ)) {
                Checks.equal(Arrays.equals(large.getInputStream().readAllBytes(), Arrays.copyOf(content, 10)), true);
            }
            // Not closed: what has failed closes nothing any more.
            LargeObject readOnly = manager.open(oid, LargeObjectManager.READ);
            Checks.refused("55000", () -> readOnly.write(new byte[] {1}));
            connection.rollback();
            manager.delete(oid);
            connection.commit();
            Checks.refused("42704", () -> manager.open(oid, LargeObjectManager.READ));
            connection.rollback();
            try (PreparedStatement insert = connection.prepareStatement("SELECT length(lo_get(?))")) {
                insert.setBlob(1, new ByteArrayInputStream(content), content.length);
                try (ResultSet rows = insert.executeQuery()) {
                    rows.next();
                    Checks.equal(rows.getInt(1), 300_000);
                }
            }
            connection.rollback();
        }
    }

    private static void binaryCopies() throws Exception {
        try (Connection connection = connect()) {
            CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
            run(connection, "INSERT INTO item SELECT n, nullif('l' || n, 'l7') FROM generate_series(1, 3000) AS n");
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            Checks.equal(copy.copyOut("COPY item TO STDOUT (FORMAT binary)", out), 3000L);
            run(connection, "DELETE FROM item");
            String into = "COPY item FROM STDIN (FORMAT binary)";
            Checks.equal(copy.copyIn(into, new ByteArrayInputStream(out.toByteArray())), 3000L);
            Checks.equal(one(connection, "SELECT sum(id) + count(label) FROM item"), 4504499L);
            byte[] cut = Arrays.copyOf(out.toByteArray(), 30);
            Checks.refused("22P04", () -> copy.copyIn(into, new ByteArrayInputStream(cut)));
            usable(connection);
        }
    }

    private static void fetches() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO item SELECT n, 'l' || n FROM generate_series(1, 1000) AS n");
            try (PreparedStatement statement = connection.prepareStatement("SELECT id FROM item WHERE id > ? ORDER BY id")) {
                // Beyond prepareThreshold the portal is one of a named statement.
                for (int time = 0; time < 7; time++) {
                    statement.setFetchSize(64);
                    statement.setInt(1, 0);
                    long sum = 0;
                    try (ResultSet rows = statement.executeQuery()) {
                        while (rows.next()) {
                            sum += rows.getInt(1);
                            if (rows.getRow() == 100) {
                                usable(connection);
                            }
                        }
                    }
                    Checks.equal(sum, 500500L);
                }
            }
            try (Statement statement = connection.createStatement()) {
                statement.setMaxRows(5);
                Checks.equal(column(statement.executeQuery("SELECT id FROM item ORDER BY id"), "id").size(), 5);
            }
            try (Statement statement =
                    connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                ResultSet rows = statement.executeQuery("SELECT id, label FROM item")) {
                rows.absolute(1);
                rows.updateString("label", "changed");
                rows.updateRow();
                rows.moveToInsertRow();
                rows.updateInt("id", 5000);
                rows.updateString("label", "inserted");
                rows.insertRow();
                rows.last();
            }
            Checks.equal(one(connection, "SELECT count(*) FROM item WHERE label IN ('changed', 'inserted')"), 2L);
            connection.rollback();
        }
    }

    private static void routines() throws Exception {
        try (Connection connection = connect()) {
            Object owner = one(connection, "INSERT INTO owner (name) VALUES ('bob') RETURNING id");
            int account = (int) one(connection, "INSERT INTO account (owner_id) VALUES (?) RETURNING id", owner);
            try (CallableStatement call = connection.prepareCall("{? = call deposit(?, ?)}")) {
                call.registerOutParameter(1, Types.NUMERIC);
                call.setInt(2, account);
                call.setBigDecimal(3, new BigDecimal("2.5"));
                call.execute();
                Checks.equal(call.getBigDecimal(1), new BigDecimal("2.50"));
                call.setInt(2, -1);
                SQLException error = Checks.refused("P0002", call::execute);
                Checks.equal(said(error).getMessage(), "no account -1");
                Checks.equal(said(error).getHint(), "open one");
                Checks.equal(said(error).getWhere(), "PL/pgSQL function deposit(integer,numeric) line 5 at RAISE");
            }
            try (CallableStatement call = connection.prepareCall("{call doubled(?, ?, ?)}")) {
                call.setInt(1, 21);
                call.registerOutParameter(2, Types.INTEGER);
                call.registerOutParameter(3, Types.VARCHAR);
                call.execute();
                Checks.equal(call.getInt(2), 42);
                Checks.equal(call.getString(3), "a21");
            }
            run(connection, "DELETE FROM owner");
        }
    }

    private static void procedures() throws Exception {
        try (Connection connection = connect()) {
            Object owner = one(connection, "INSERT INTO owner (name) VALUES ('bob') RETURNING id");
            try (CallableStatement call = connection.prepareCall("CALL rename(?, ?)")) {
                call.setObject(1, owner);
                call.setString(2, "bert");
                call.registerOutParameter(2, Types.VARCHAR);
                call.execute();
                Checks.equal(call.getString(2), "BERT");
            }
            try (PreparedStatement call = connection.prepareStatement("CALL step_by_step(?)")) {
                call.setInt(1, 3);
                call.execute();
            }
            Checks.equal(run(connection, "DELETE FROM item"), 3);
            connection.setAutoCommit(false);
            Checks.refused("2D000", () -> run(connection, "CALL step_by_step(?)", 3));
            connection.rollback();
            connection.setAutoCommit(true);
            Checks.equal(one(connection, "SELECT count(*) FROM item"), 0L);
            run(connection, "DELETE FROM owner");
        }
    }

    private static void refcursors() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            try (CallableStatement call = connection.prepareCall("{? = call items()}")) {
                call.registerOutParameter(1, Types.REF_CURSOR);
                call.setFetchSize(10);
                call.execute();
                try (ResultSet rows = (ResultSet) call.getObject(1)) {
                    Checks.equal(column(rows, "n").size(), 25);
                }
            }
            connection.commit();
        }
    }

    private static void describes() throws Exception {
        try (Connection connection = connect()) {
            String text = "SELECT id, balance, opened, mood, tags, count(*) OVER () AS n FROM account WHERE owner_id = ? AND balance > ?";
            try (PreparedStatement statement = connection.prepareStatement(text)) {
                ParameterMetaData parameters = statement.getParameterMetaData();
                Checks.equal(parameters.getParameterTypeName(1) + " " + parameters.getParameterTypeName(2), "int8 numeric");
                ResultSetMetaData columns = statement.getMetaData();
                List<String> got = new ArrayList<>();
                for (int at = 1; at <= columns.getColumnCount(); at++) {
                    got.add(columns.getColumnName(at) + " " + columns.getColumnTypeName(at) + " "
                        + columns.isNullable(at) + " " + columns.isAutoIncrement(at) + " " + columns.getTableName(at));
                }
                Checks.equal(got, List.of("id serial 0 true account", "balance numeric 0 false account",
                    "opened timestamptz 0 false account", "mood mood 0 false account", "tags _text 0 false account",
                    "n int8 2 false "));
                Checks.equal(columns.getPrecision(2) + "," + columns.getScale(2), "14,2");
            }
        }
    }

    private static void reflects() throws Exception {
        try (Connection connection = connect()) {
            DatabaseMetaData schema = connection.getMetaData();
            Checks.equal(column(schema.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"),
                List.of("account", "item", "owner"));
            Checks.equal(column(schema.getTables(null, "public", "%", new String[] {"VIEW"}), "TABLE_NAME"), List.of("rich"));
            Checks.equal(column(schema.getTables(null, "public", "owner", null), "REMARKS"), List.of("who owns"));
            Checks.equal(column(schema.getColumns(null, "public", "account", "%"), "TYPE_NAME"),
                List.of("serial", "int8", "uuid", "numeric", "mood", "_text", "jsonb", "timestamptz"));
            Checks.equal(column(schema.getColumns(null, "public", "owner", "%"), "IS_AUTOINCREMENT"), List.of("YES", "NO"));
            Checks.equal(column(schema.getColumns(null, "public", "owner", "name"), "COLUMN_SIZE"), List.of(40));
            Checks.equal(column(schema.getPrimaryKeys(null, "public", "account"), "PK_NAME"), List.of("account_pkey"));
            try (ResultSet keys = schema.getImportedKeys(null, "public", "account")) {
                keys.next();
                Checks.equal(keys.getString("FK_NAME") + " " + keys.getString("PKTABLE_NAME") + " "
                    + keys.getShort("DELETE_RULE"), "account_owner_id_fkey owner " + DatabaseMetaData.importedKeyCascade);
            }
            Checks.equal(column(schema.getExportedKeys(null, "public", "owner"), "FKTABLE_NAME"), List.of("account"));
            Checks.equal(column(schema.getIndexInfo(null, "public", "account", false, true), "INDEX_NAME"),
                List.of("account_pkey", "account_owner", "account_owner"));
            Checks.equal(column(schema.getFunctions(null, "public", "%"), "FUNCTION_NAME"),
                List.of("deposit", "doubled", "items"));
            Checks.equal(column(schema.getProcedures(null, "public", "%"), "PROCEDURE_NAME"),
                List.of("rename", "step_by_step"));
            Checks.equal(column(schema.getFunctionColumns(null, "public", "doubled", "%"), "COLUMN_NAME"),
                List.of("a", "twice", "text"));
            Checks.equal(column(schema.getSchemas(), "TABLE_SCHEM").contains("public"), true);
            Checks.equal(column(schema.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "jsonb", "mood")), true);
            Checks.equal(column(schema.getTablePrivileges(null, "public", "item"), "PRIVILEGE").contains("SELECT"), true);
            Checks.equal(column(schema.getBestRowIdentifier(null, "public", "item", 0, false), "COLUMN_NAME"), List.of("id"));
            Checks.equal(schema.getSQLKeywords().contains("analyse"), true);
            Checks.equal(schema.getMaxColumnNameLength(), 63);
        }
    }

    private static void prepares() throws Exception {
        try (Connection connection = connect(); Connection other = connect()) {
            run(connection, "INSERT INTO item VALUES (1, 'a')");
            try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM item WHERE id = ?")) {
                int columns = 0;
                for (int time = 0; time < 10; time++) {
                    statement.setInt(1, 1);
                    columns = statement.executeQuery().getMetaData().getColumnCount();
                }
                Checks.equal(columns, 2);
                Checks.equal(one(other, "SELECT count(*) FROM item"), 1L);
                run(other, "ALTER TABLE item ADD COLUMN more int");
                // The driver hears RevalidateCachedQuery and prepares anew, outside transactions.
                Checks.equal(statement.executeQuery().getMetaData().getColumnCount(), 3);
            }
        }
        // In one it needs savepoints of its own for that.
        try (Connection connection = connect("autosave=conservative"); Connection other = connect()) {
            connection.setAutoCommit(false);
            try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM item WHERE id = ?")) {
                for (int time = 0; time < 10; time++) {
                    statement.setInt(1, 1);
                    statement.executeQuery().close();
                }
                connection.commit();
                run(other, "ALTER TABLE item DROP COLUMN more");
                one(connection, "SELECT count(*) FROM item");
                Checks.equal(statement.executeQuery().getMetaData().getColumnCount(), 2);
                connection.commit();
            }
            run(other, "DELETE FROM item");
        }
    }

    private static void notifications() throws Exception {
        try (Connection listener = connect(); Connection sender = connect(); Statement statement = listener.createStatement()) {
            statement.execute("LISTEN news");
            one(sender, "SELECT pg_notify('news', ?)", "first");
            PGNotification[] got = listener.unwrap(PGConnection.class).getNotifications(10_000);
            Checks.equal(got.length, 1);
            Checks.equal(got[0].getName() + " " + got[0].getParameter(), "news first");
            Checks.equal(got[0].getPID(), sender.unwrap(PGConnection.class).getBackendPID());
            statement.execute("DO $$ BEGIN RAISE WARNING 'hello %', 1; END $$");
            Checks.equal(statement.getWarnings().getMessage(), "hello 1");
        }
    }

    private static void mistakes(String... parameters) throws Exception {
        try (Connection connection = connect(parameters)) {
            for (int time = 0; time < 7; time++) {
                SQLException error = Checks.refused("42601", () -> one(connection, "SELEC ?", 1));
                Checks.equal(said(error).getMessage(), "syntax error at or near \"SELEC\"");
                Checks.equal(said(error).getPosition(), 1);
                Checks.refused("42P01", () -> one(connection, "SELECT * FROM nowhere WHERE a = ?", 1));
                Checks.refused("42703", () -> one(connection, "SELECT lable FROM item"));
                Checks.refused("22012", () -> one(connection, "SELECT 1 / ?", 0));
                Checks.refused("42883", () -> one(connection, "SELECT nothing_like_that(?)", 0));
                usable(connection);
            }
        }
    }

    private static void violations() throws Exception {
        try (Connection connection = connect()) {
            run(connection, "INSERT INTO owner (name) VALUES ('cid')");
            SQLException error = Checks.refused("23505", () -> run(connection, "INSERT INTO owner (name) VALUES (?)", "cid"));
            Checks.equal(List.of(said(error).getSchema(), said(error).getTable(), said(error).getConstraint()),
                List.of("public", "owner", "owner_name_once"));
            Checks.equal(said(error).getDetail(), "Key (name)=(cid) already exists.");
            error = Checks.refused("23503", () -> run(connection, "INSERT INTO account (owner_id) VALUES (?)", -1));
            Checks.equal(said(error).getConstraint(), "account_owner_id_fkey");
            error = Checks.refused("23502", () -> run(connection, "INSERT INTO owner (name) VALUES (NULL)"));
            Checks.equal(said(error).getColumn(), "name");
            error = Checks.refused("22001", () -> run(connection, "INSERT INTO owner (name) VALUES (?)", "x".repeat(41)));
            Checks.equal(said(error).getMessage(), "value too long for type character varying(40)");
            run(connection, "DELETE FROM owner");
        }
    }

    private static void cancelling() throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            CompletableFuture<Void> cancel = CompletableFuture.runAsync(() -> {
                try {
                    TimeUnit.MILLISECONDS.sleep(300);
                    statement.cancel();
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            SQLException error = Checks.refused("57014", () -> statement.execute("SELECT pg_sleep(20)"));
            Checks.equal(said(error).getMessage(), "canceling statement due to user request");
            cancel.get(5, TimeUnit.SECONDS);
            usable(connection);
            statement.setQueryTimeout(1);
            Checks.refused("57014", () -> statement.execute("SELECT pg_sleep(20)"));
            usable(connection);
        }
        try (Connection connection = connect("options=-c%20statement_timeout=200")) {
            SQLException error = Checks.refused("57014", () -> one(connection, "SELECT pg_sleep(?)", 20));
            Checks.equal(said(error).getMessage(), "canceling statement due to statement timeout");
            usable(connection);
        }
    }

    private static void locks() throws Exception {
        try (Connection first = connect(); Connection second = connect()) {
            run(first, "INSERT INTO item VALUES (5, 'five')");
            first.setAutoCommit(false);
            run(first, "UPDATE item SET label = 'six' WHERE id = ?", 5);
            run(second, "SET lock_timeout = '200ms'");
            Checks.refused("55P03", () -> run(second, "UPDATE item SET label = 'seven' WHERE id = ?", 5));
            Checks.equal(one(second, "SELECT id FROM item WHERE id = ? FOR UPDATE SKIP LOCKED", 5), null);
            first.commit();
            Checks.equal(one(second, "DELETE FROM item WHERE id = ? RETURNING label", 5), "six");
        }
    }

    private static String ending(Connection connection, int id) {
        try {
            run(connection, "UPDATE item SET label = 'c' WHERE id = ?", id);
            connection.commit();
            return "done";
        } catch (SQLException error) {
            return error.getSQLState().equals("40P01") ? "40001" : error.getSQLState();
        }
    }

    private static void serializable() throws Exception {
        try (Connection first = connect(); Connection second = connect()) {
            run(first, "INSERT INTO item VALUES (1, 'a'), (2, 'b')");
            for (Connection connection : List.of(first, second)) {
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                connection.setAutoCommit(false);
                one(connection, "SELECT sum(id) FROM item");
            }
            var one = CompletableFuture.supplyAsync(() -> ending(first, 1));
            var two = CompletableFuture.supplyAsync(() -> ending(second, 2));
            List<String> got = Arrays.asList(one.get(20, TimeUnit.SECONDS), two.get(20, TimeUnit.SECONDS));
            Collections.sort(got);
            Checks.equal(got, List.of("40001", "done"));
            for (Connection connection : List.of(first, second)) {
                connection.rollback();
                connection.setAutoCommit(true);
                usable(connection);
            }
            run(first, "DELETE FROM item");
        }
    }

    private static void rowsCompared() throws Exception {
        try (Connection connection = connect()) {
            run(connection, "INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')");
            Checks.equal(one(connection, "SELECT sum(id) FROM item WHERE (id, label) > (?, ?)", 1, "a"), 5L);
            Checks.equal(one(connection, "SELECT sum(id) FROM item WHERE (id, label) IN ((?, ?), (?, ?))", 1, "a", 3, "x"), 1L);
            run(connection, "DELETE FROM item");
        }
    }

    private static void encrypted() throws Exception {
        String asked = "SELECT version FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()";
        try (Connection connection = connect("channelBinding=require")) {
            Checks.equal(one(connection, asked), "TLSv1.3");
        }
        Checks.refused("28P01", () -> connect("password=wrong").close());
        Checks.refused("28000", () -> connect("sslmode=disable").close());
        Checks.refused("08006", () -> DriverManager.getConnection(Checks.URL.replace("root.crt", "other.crt")).close());
    }

    public static void main(String[] arguments) {
        Checks checks = new Checks();
        // One that failed leaves nothing to the next.
        checks.before(Main::empty);
        checks.check("migrates with many statements at once", Main::migrates);
        checks.check("values come back as they went", () -> values());
        checks.check("values come back as they went, simple protocol", () -> values("preferQueryMode=simple"));
        checks.check("rows are written, read, changed and deleted", Main::work);
        checks.check("transactions and savepoints nest", Main::transactions);
        checks.check("batches run", () -> batches());
        checks.check("batches run, rewritten", () -> batches("reWriteBatchedInserts=true"));
        checks.check("copy goes both ways", Main::copies);
        checks.check("rows are copied in binary", Main::binaryCopies);
        checks.check("large objects are read and written", Main::largeObjects);
        checks.check("rows are fetched in steps", Main::fetches);
        checks.check("functions are called with OUT parameters", Main::routines);
        checks.check("procedures are called, and commit", Main::procedures);
        checks.check("a function's cursor is read", Main::refcursors);
        checks.check("parameters and columns are described", Main::describes);
        checks.check("the schema is reflected", Main::reflects);
        checks.check("statements are prepared anew when a table changed", Main::prepares);
        checks.check("notifications and warnings arrive", Main::notifications);
        checks.check("a syntax error leaves the connection usable", () -> mistakes());
        checks.check("a syntax error leaves the connection usable, simple protocol",
            () -> mistakes("preferQueryMode=simple"));
        checks.check("a violation names its constraint", Main::violations);
        checks.check("a running query is cancelled and times out", Main::cancelling);
        checks.check("waiting for a lock times out", Main::locks);
        checks.check("serializable transactions that cannot both be", Main::serializable);
        checks.check("row comparisons take parameters", Main::rowsCompared);
        if (Checks.SECURED) {
            checks.check("a connection is encrypted and bound to its server", Main::encrypted);
        }
        checks.main();
    }
}
