import java.net.URI;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What the programs in Java share: named checks, each bounded, and the count at the end. */
final class Checks {
    private static final long LIMIT_S = 30;

    /** `DATABASE_URL` as JDBC wants it. */
    static final String URL = jdbc(System.getenv("DATABASE_URL"));

    /** Whether the server is one that takes only encrypted connections with passwords. */
    static final boolean SECURED = URL.contains("sslmode=verify-full");

    interface Body {
        void run() throws Exception;
    }

    private record Check(String name, Body body) {}

    private final List<Check> checks = new ArrayList<>();
    private Body before = () -> {};

    /** Registers a check; its name says what must hold. */
    void check(String name, Body body) {
        checks.add(new Check(name, body));
    }

    static void equal(Object got, Object expected) {
        if (!Objects.deepEquals(got, expected)) {
            throw new AssertionError(got + " where PostgreSQL has " + expected);
        }
    }

    /** The body must fail with this SQLSTATE. */
    static SQLException refused(String sqlstate, Body body) throws Exception {
        try {
            body.run();
        } catch (Exception error) {
            SQLException said = saidByServer(error);
            if (said == null || !sqlstate.equals(said.getSQLState())) {
                throw new AssertionError(line(error) + " where PostgreSQL says " + sqlstate, error);
            }
            return said;
        }
        throw new AssertionError("no error where PostgreSQL says " + sqlstate);
    }

    static SQLException saidByServer(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException said) {
                return said;
            }
        }
        return null;
    }

    /** What is done before each check; that it cannot be done yet is no failure. */
    void before(Body body) {
        before = body;
    }

    /** Runs the checks in order and ends the process. */
    void main() {
        int failed = 0;
        for (Check check : checks) {
            bounded(before);
            Throwable error = bounded(check.body());
            if (error == null) {
                System.out.println("ok      " + check.name());
            } else {
                failed += 1;
                System.out.println("FAILED  " + check.name() + ": " + line(error));
            }
        }
        System.out.println((checks.size() - failed) + " passed, " + failed + " failed");
        // Threads that got no answer must not keep the process.
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    private static Throwable bounded(Body body) {
        FutureTask<Void> task = new FutureTask<>(() -> {
            body.run();
            return null;
        });
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        try {
            task.get(LIMIT_S, TimeUnit.SECONDS);
            return null;
        } catch (ExecutionException error) {
            return error.getCause();
        } catch (TimeoutException error) {
            AssertionError late = new AssertionError("no answer within " + LIMIT_S + " s");
            late.setStackTrace(thread.getStackTrace());
            return late;
        } catch (InterruptedException error) {
            return error;
        }
    }

    private static String line(Throwable error) {
        SQLException said = error instanceof AssertionError ? null : saidByServer(error);
        String text = said == null ? error.toString() : said.getSQLState() + ": " + said.getMessage();
        text = text.replaceAll("\\s*\\n\\s*", " | ");
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            for (StackTraceElement frame : cause.getStackTrace()) {
                if ("Main.java".equals(frame.getFileName())) {
                    return text + " (Main.java:" + frame.getLineNumber() + ")";
                }
            }
        }
        return text;
    }

    private static String jdbc(String url) {
        URI parts = URI.create(url);
        String[] user = parts.getUserInfo().split(":");
        String password = user.length > 1 ? "&password=" + user[1] : "";
        String query = parts.getQuery() == null ? "" : "&" + parts.getQuery();
        return "jdbc:postgresql://" + parts.getHost() + ":" + parts.getPort() + parts.getPath() + "?user=" + user[0]
            + password + query;
    }
}
