<?php
// PDO and the functions pg_* of PHP as an application uses them.

declare(strict_types=1);

const LIMIT_S = 30;
$url = getenv('DATABASE_URL');
$parts = parse_url($url);
parse_str($parts['query'] ?? '', $parameters);
// Whether the server is one that takes only encrypted connections with passwords.
$secured = ($parameters['sslmode'] ?? '') === 'verify-full';

const SCHEMA = <<<'SQL'
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE item (id int PRIMARY KEY, label text CONSTRAINT item_label_once UNIQUE);
CREATE TABLE account (
    id serial PRIMARY KEY,
    balance numeric(14, 2) NOT NULL DEFAULT 0,
    mood mood NOT NULL DEFAULT 'ok',
    open boolean,
    raw bytea,
    opened timestamptz
);
CREATE PROCEDURE split(p_text text, OUT p_first text, INOUT p_rest refcursor) LANGUAGE plpgsql
AS $$ BEGIN p_first := left(p_text, 1); OPEN p_rest FOR SELECT substr(p_text, 2) AS rest; END $$;
SQL;

/** The parameters as libpq names them. */
function place(array $more = []): array
{
    global $parts, $parameters;
    $named = ['host' => $parts['host'], 'port' => $parts['port'], 'dbname' => ltrim($parts['path'], '/')];
    $named += ['user' => $parts['user'], 'password' => $parts['pass'] ?? ''];
    return array_filter($more + $named + $parameters, fn ($value) => $value !== '');
}

function conninfo(array $more = []): string
{
    return implode(' ', array_map(fn ($name, $value) => "$name=$value", array_keys(place($more)), place($more)));
}

function pdo(array $options = [], array $more = []): PDO
{
    $pdo = new PDO('pgsql:' . str_replace(' ', ';', conninfo($more)), null, null, $options);
    $pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    $pdo->setAttribute(PDO::ATTR_DEFAULT_FETCH_MODE, PDO::FETCH_NUM);
    $pdo->exec('SET statement_timeout = ' . LIMIT_S * 1000);
    return $pdo;
}

function run(PDO $pdo, string $query, array $arguments = []): PDOStatement
{
    $statement = $pdo->prepare($query);
    $statement->execute($arguments);
    return $statement;
}

function one(PDO $pdo, string $query, array $arguments = []): mixed
{
    return run($pdo, $query, $arguments)->fetchColumn();
}

function equal(mixed $got, mixed $expected): void
{
    if ($got !== $expected) {
        throw new Exception(json_encode($got) . ' where PostgreSQL has ' . json_encode($expected));
    }
}

/** The body must fail with this SQLSTATE. */
function refused(string $sqlstate, callable $body): PDOException
{
    try {
        $body();
    } catch (PDOException $error) {
        equal($error->errorInfo[0], $sqlstate);
        return $error;
    }
    throw new Exception("no error where PostgreSQL says $sqlstate");
}

$checks = [];

$checks['migrates with many statements at once'] = function () {
    $pdo = pdo();
    $pdo->exec(SCHEMA);
    equal(substr($pdo->getAttribute(PDO::ATTR_SERVER_VERSION), 0, 3), '15.');
    equal(one($pdo, 'SELECT 40 + ?::int', [2]), 42);
};

$checks['values come back as they went, prepared and emulated'] = function () {
    foreach ([false, true] as $emulated) {
        $pdo = pdo([PDO::ATTR_EMULATE_PREPARES => $emulated]);
        $insert = $pdo->prepare('INSERT INTO account (balance, mood, open, raw, opened) VALUES (?, ?, ?, ?, ?) RETURNING id');
        $insert->bindValue(1, '10.50');
        $insert->bindValue(2, 'happy');
        $insert->bindValue(3, true, PDO::PARAM_BOOL);
        $insert->bindValue(4, "\x00\xff", PDO::PARAM_LOB);
        $insert->bindValue(5, '2024-02-29 12:00:01.000005+00');
        $insert->execute();
        $id = $insert->fetchColumn();
        equal($pdo->lastInsertId(), (string) $id);
        $row = run($pdo, 'SELECT balance, mood, open, raw, opened, NULL FROM account WHERE id = :id', ['id' => $id])->fetch();
        $row[3] = stream_get_contents($row[3]);
        equal($row, ['10.50', 'happy', true, "\x00\xff", '2024-02-29 12:00:01.000005+00', null]);
        equal(one($pdo, 'SELECT ?::text', ["žluťoučký \n'\\"]), "žluťoučký \n'\\");
        equal(run($pdo, 'DELETE FROM account')->rowCount(), 1);
    }
};

$checks['columns are described'] = function () {
    $statement = run(pdo(), 'SELECT a.id, balance, label FROM account AS a, item');
    $kinds = array_map(fn ($at) => $statement->getColumnMeta($at), [0, 1, 2]);
    equal(array_column($kinds, 'native_type'), ['int4', 'numeric', 'text']);
    equal(array_column($kinds, 'table'), ['account', 'account', 'item']);
};

$checks['transactions and savepoints nest'] = function () {
    $pdo = pdo();
    $pdo->beginTransaction();
    $pdo->exec('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
    $pdo->exec("INSERT INTO item VALUES (1, 'kept'); SAVEPOINT one");
    $error = refused('23505', fn () => run($pdo, 'INSERT INTO item VALUES (?, ?)', [2, 'kept']));
    equal(str_contains($error->getMessage(), 'item_label_once'), true);
    refused('25P02', fn () => $pdo->query('SELECT 1'));
    $pdo->exec('ROLLBACK TO one');
    equal($pdo->inTransaction(), true);
    $pdo->commit();
    $pdo->beginTransaction();
    equal($pdo->exec('DELETE FROM item'), 1);
    $pdo->rollBack();
    equal($pdo->exec('DELETE FROM item'), 1);
};

$checks['a cursor reads in steps'] = function () {
    $pdo = pdo();
    $pdo->beginTransaction();
    $statement = $pdo->prepare('SELECT n FROM generate_series(1, 100) AS n', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $statement->execute();
    equal($statement->fetch()[0], 1);
    equal($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 50)[0], 50);
    equal($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR)[0], 49);
    equal($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST)[0], 100);
    $pdo->rollBack();
};

$checks['copy goes both ways'] = function () {
    $pdo = pdo();
    equal($pdo->pgsqlCopyFromArray('item', array_map(fn ($n) => "$n\tlabel $n", range(1, 3000))), true);
    equal(array_slice($pdo->pgsqlCopyToArray('item'), 0, 2), ["1\tlabel 1\n", "2\tlabel 2\n"]);
    refused('22P02', fn () => $pdo->pgsqlCopyFromArray('item', ["x\ty"]));
    equal($pdo->exec('DELETE FROM item'), 3000);
};

$checks['procedures have OUT parameters and cursors'] = function () {
    $pdo = pdo();
    $pdo->beginTransaction();
    equal(run($pdo, 'CALL split(?, NULL, ?)', ['abc', 'c'])->fetch(), ['a', 'c']);
    equal($pdo->query('FETCH ALL FROM c')->fetchAll(), [['bc']]);
    $pdo->commit();
};

$checks['notifications arrive'] = function () {
    [$listener, $sender] = [pdo(), pdo()];
    $listener->exec('LISTEN news');
    run($sender, 'SELECT pg_notify(?, ?)', ['news', 'first']);
    $got = $listener->pgsqlGetNotify(PDO::FETCH_ASSOC, 10_000);
    equal([$got['message'], $got['payload'], $got['pid']], ['news', 'first', $sender->pgsqlGetPid()]);
};

$checks['errors tell their SQLSTATE'] = function () {
    $pdo = pdo();
    foreach (['42601' => 'SELEC 1', '42P01' => 'SELECT * FROM nowhere', '22012' => 'SELECT 1 / 0', '22P02' => "SELECT 'x'::int"] as $state => $query) {
        refused((string) $state, fn () => run($pdo, $query));
    }
    $pdo->exec('SET statement_timeout = 200');
    refused('57014', fn () => $pdo->query('SELECT pg_sleep(20)'));
    equal(one($pdo, 'SELECT 1'), 1);
};

$checks['a persistent connection is as it was'] = function () {
    $first = pdo([PDO::ATTR_PERSISTENT => true]);
    $first->exec('DISCARD ALL');
    $pid = one($first, 'SELECT pg_backend_pid()');
    unset($first);
    equal(one(pdo([PDO::ATTR_PERSISTENT => true]), 'SELECT pg_backend_pid()'), $pid);
};

$checks['the functions pg_* work too'] = function () {
    $connection = pg_connect(conninfo(), PGSQL_CONNECT_FORCE_NEW);
    pg_prepare($connection, 'double', 'SELECT $1::int * 2');
    equal(pg_fetch_result(pg_execute($connection, 'double', [21]), 0, 0), '42');
    pg_insert($connection, 'item', ['id' => 7, 'label' => "it's"]);
    equal(pg_select($connection, 'item', ['id' => 7]), [['id' => '7', 'label' => "it's"]]);
    equal(pg_update($connection, 'item', ['label' => 'x'], ['id' => 7]), true);
    equal(array_keys(pg_meta_data($connection, 'item')), ['id', 'label']);
    pg_send_query($connection, 'SELECT pg_sleep(20)');
    usleep(200_000);
    equal(pg_cancel_query($connection), true);
    pg_send_query($connection, 'SELEC');
    equal(pg_result_error_field(pg_get_result($connection), PGSQL_DIAG_SQLSTATE), '42601');
    equal(pg_delete($connection, 'item', ['id' => 7]), true);
    $binary = pg_query_params($connection, 'SELECT $1::bytea', [pg_escape_bytea($connection, "\x00\xff")]);
    equal(pg_unescape_bytea(pg_fetch_result($binary, 0, 0)), "\x00\xff");
    pg_close($connection);
};

if ($secured) {
    $checks['a connection is encrypted and bound to its server'] = function () {
        equal(one(pdo([], ['channel_binding' => 'require']), 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), true);
        foreach (['password authentication failed' => ['password' => 'wrong'], 'no pg_hba.conf entry' => ['sslmode' => 'disable']] as $said => $more) {
            try {
                pdo([], $more);
                throw new Exception('is let in');
            } catch (PDOException $error) {
                equal(str_contains($error->getMessage(), $said), true);
            }
        }
    };
}

$failed = 0;
foreach ($checks as $name => $body) {
    try {
        $body();
        echo "ok      $name\n";
    } catch (Throwable $error) {
        $failed++;
        $lines = array_map(fn ($frame) => $frame['line'] ?? 0, $error->getTrace());
        echo "FAILED  $name: ", preg_replace('/\s*\n\s*/', ' | ', $error->getMessage()), ' (line ', implode(' < ', $lines), ")\n";
    }
}
echo count($checks) - $failed, " passed, $failed failed\n";
exit($failed ? 1 : 0);
