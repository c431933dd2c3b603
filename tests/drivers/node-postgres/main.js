// node-postgres (pg, pg-cursor, pg-copy-streams) as an application uses it.

const { once } = require('node:events')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const pg = require('pg')
const Cursor = require('pg-cursor')
const copy = require('pg-copy-streams')
const { URL, assert, bare, check, checkSecured, equal, main, refused, sleep, trusted } = require('checks')

const SCHEMA = `
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE owner (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CONSTRAINT owner_name_once UNIQUE
);
CREATE TABLE account (
    id serial PRIMARY KEY,
    owner_id bigint NOT NULL REFERENCES owner (id),
    key uuid NOT NULL DEFAULT gen_random_uuid(),
    balance numeric(14, 2) NOT NULL DEFAULT 0,
    mood mood NOT NULL DEFAULT 'ok',
    tags text[] NOT NULL DEFAULT '{}',
    detail jsonb,
    opened timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX account_owner ON account (owner_id) WHERE balance > 0;
CREATE TABLE item (id int PRIMARY KEY, label text);
CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE after numeric;
BEGIN
    UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
    IF NOT FOUND THEN RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002', DETAIL = 'gone'; END IF;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
`

async function connected(body, options = {}) {
  const client = new pg.Client({ connectionString: URL, connectionTimeoutMillis: 10_000, ...options })
  client.on('error', () => {})
  await client.connect()
  try {
    return await body(client)
  } finally {
    // Not awaited: a connection in doubt may not answer to its end.
    client.end().catch(() => {})
  }
}

async function value(client, text, values) {
  const { rows } = await client.query({ text, values, rowMode: 'array' })
  return rows[0]?.[0]
}

async function usable(client) {
  equal(await value(client, 'SELECT 40 + $1::int', [2]), 42)
}

check('migrates with many statements at once', () =>
  connected(async (client) => {
    const results = await client.query(SCHEMA)
    equal(results.map((result) => result.command).slice(-3), ['CREATE', 'CREATE', 'CREATE'])
  }))

check('values come back as they went', () =>
  connected(async (client) => {
    const values = [
      [true, 'boolean'],
      [-7, 'smallint'],
      [2 ** 31 - 1, 'integer'],
      ['-9223372036854775808', 'bigint'],
      [0.1, 'double precision'],
      ['12345678901234567890.0123456789', 'numeric'],
      ["žluťoučký \n'\\", 'text'],
      [Buffer.from([0, 255, 1]), 'bytea'],
      ['23:59:59.999999', 'time'],
      [new Date('2024-02-29T01:02:03.004Z'), 'timestamptz'],
      ['12345678-1234-5678-1234-567812345678', 'uuid'],
      [[1, null, 3], 'int[]'],
      [['a', 'b,c', '"'], 'text[]'],
      [[[1, 2], [3, 4]], 'int[]'],
      [null, 'text'],
      [{ a: [1, null] }, 'jsonb'],
      ['happy', 'mood'],
    ]
    for (const [sent, type] of values) equal([type, await value(client, `SELECT $1::${type}`, [sent])], [type, sent])
    const interval = await value(client, "SELECT interval '1 year 2 days 03:04:05.006'")
    equal({ ...interval }, { years: 1, days: 2, hours: 3, minutes: 4, seconds: 5, milliseconds: 6 })
    const bytes = await client.query({ text: "SELECT 258::int, 'x'::text", rowMode: 'array', binary: true })
    equal(bytes.rows, [[258, 'x']])
  }))

check('rows are written, read, changed and deleted', () =>
  connected(async (client) => {
    const owner = await value(client, 'INSERT INTO owner (name) VALUES ($1) RETURNING id', ['ann'])
    const inserted = await client.query(
      'INSERT INTO account (owner_id, balance, tags, detail, mood) VALUES ($1, $2, $3, $4, $5) RETURNING *',
      [owner, '10.50', ['x', 'y'], { k: 1 }, 'happy'])
    equal(inserted.fields.map((field) => [field.name, field.dataTypeID]).slice(0, 4),
      [['id', 23], ['owner_id', 20], ['key', 2950], ['balance', 1700]])
    const row = inserted.rows[0]
    equal([row.owner_id, row.balance, row.tags, row.detail, row.mood], [owner, '10.50', ['x', 'y'], { k: 1 }, 'happy'])
    assert.ok(row.opened instanceof Date)
    const updated = await client.query('UPDATE account SET balance = balance * $1 WHERE id = ANY ($2)', [2, [row.id]])
    equal([updated.command, updated.rowCount], ['UPDATE', 1])
    equal(await value(client, "SELECT detail ->> 'k' FROM account WHERE detail @> $1", [{ k: 1 }]), '1')
    equal((await client.query('DELETE FROM account')).rowCount, 1)
    equal((await client.query('DELETE FROM owner')).rowCount, 1)
  }))

check('transactions and savepoints nest', () =>
  connected(async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query("INSERT INTO item VALUES (1, 'kept')")
    await client.query('SAVEPOINT one')
    await refused('23505', client.query('INSERT INTO item VALUES ($1, $2)', [1, 'again']))
    await refused('25P02', client.query('SELECT 1'))
    await client.query('ROLLBACK TO one')
    await client.query("INSERT INTO item VALUES (2, 'kept')")
    await client.query('RELEASE one')
    await client.query('COMMIT')
    equal((await client.query('SELECT id FROM item ORDER BY id')).rows, [{ id: 1 }, { id: 2 }])
    await client.query('BEGIN')
    await client.query('DELETE FROM item')
    await refused('22012', client.query('SELECT 1 / $1::int', [0]))
    const ended = await client.query('COMMIT')
    equal(ended.command, 'ROLLBACK')
    equal(await value(client, 'SELECT count(*) FROM item'), '2')
    await client.query('TRUNCATE item')
  }))

check('several statements of one message give several results', () =>
  connected(async (client) => {
    const results = await client.query("INSERT INTO item VALUES (1, 'a'); SELECT * FROM item; DELETE FROM item")
    equal(results.map((result) => [result.command, result.rowCount]), [['INSERT', 1], ['SELECT', 1], ['DELETE', 1]])
    await refused('22012', client.query('INSERT INTO item VALUES (1); SELECT 1 / 0'))
    equal(await value(client, 'SELECT count(*) FROM item'), '0')
  }))

check('many rows are inserted at once', () =>
  connected(async (client) => {
    const ids = Array.from({ length: 5000 }, (_, at) => at)
    const labels = ids.map((id) => `l${id}`)
    const done = await client.query('INSERT INTO item SELECT * FROM unnest($1::int[], $2::text[])', [ids, labels])
    equal(done.rowCount, 5000)
    const places = ids.slice(0, 1000).map((_, at) => `($${2 * at + 1}, $${2 * at + 2})`).join(', ')
    const values = ids.slice(0, 1000).flatMap((id) => [id + 10_000, `m${id}`])
    equal((await client.query(`INSERT INTO item (id, label) VALUES ${places}`, values)).rowCount, 1000)
    equal(await value(client, 'SELECT count(*) FROM item'), '6000')
    await client.query('TRUNCATE item')
  }))

check('copy goes both ways', () =>
  connected(async (client) => {
    const lines = Array.from({ length: 3000 }, (_, at) => `${at}\tlabel ${at}\n`)
    await pipeline(Readable.from(lines), client.query(copy.from('COPY item FROM STDIN')))
    const out = client.query(copy.to('COPY (SELECT * FROM item WHERE id < 3 ORDER BY id) TO STDOUT WITH (FORMAT csv)'))
    const chunks = []
    for await (const chunk of out) chunks.push(chunk)
    equal(Buffer.concat(chunks).toString(), '0,label 0\n1,label 1\n2,label 2\n')
    await refused('22P02', pipeline(Readable.from(['x\ty\n']), client.query(copy.from('COPY item FROM STDIN'))))
    await usable(client)
    await client.query('TRUNCATE item')
  }))

check('named statements are prepared once', () =>
  connected(async (client) => {
    for (let at = 0; at < 5; at++) {
      const { rows } = await client.query({ name: 'double', text: 'SELECT $1::int * 2 AS n', values: [at] })
      equal(rows, [{ n: at * 2 }])
    }
    equal(await value(client, "SELECT count(*) FROM pg_prepared_statements WHERE name = 'double'"), '1')
    await refused('42601', client.query({ name: 'wrong', text: 'SELEC $1', values: [1] }))
    await usable(client)
    const all = { name: 'all', text: 'SELECT * FROM item WHERE id > $1', values: [0] }
    equal((await client.query(all)).rows, [])
    await connected((other) => other.query('ALTER TABLE item ADD COLUMN more int'))
    const error = await refused('0A000', client.query(all))
    equal([error.message, error.routine], ['cached plan must not change result type', 'RevalidateCachedQuery'])
    await connected((other) => other.query('ALTER TABLE item DROP COLUMN more'))
    equal((await client.query(all)).rows, [])
  }))

check('queries queue up and answer in order', () =>
  connected(async (client) => {
    const asked = Array.from({ length: 100 }, (_, at) => value(client, 'SELECT $1::int', [at]))
    equal(await Promise.all(asked), Array.from({ length: 100 }, (_, at) => at))
    const mixed = await Promise.allSettled([value(client, 'SELECT 1'), client.query('SELEC'), value(client, 'SELECT 2')])
    equal(mixed.map((one) => one.value ?? one.reason.code), [1, '42601', 2])
  }))

check('a cursor reads in steps', () =>
  connected(async (client) => {
    await client.query("INSERT INTO item SELECT n, 'l' || n FROM generate_series(1, 1000) AS n")
    const cursor = client.query(new Cursor('SELECT id FROM item WHERE id > $1 ORDER BY id', [0]))
    equal((await cursor.read(3)).map((row) => row.id), [1, 2, 3])
    equal((await cursor.read(500)).length, 500)
    equal((await cursor.read(5000)).length, 497)
    equal(await cursor.read(1), [])
    await cursor.close()
    const left = client.query(new Cursor('SELECT id FROM item'))
    equal((await left.read(1)).length, 1)
    await left.close()
    await usable(client)
    const wrong = client.query(new Cursor('SELECT 1 / (5 - n) FROM generate_series(1, 10) AS n'))
    await refused('22012', wrong.read(100))
    await wrong.close()
    await usable(client)
    const changing = client.query(new Cursor('DELETE FROM item RETURNING id'))
    equal((await changing.read(2000)).length, 1000)
    await changing.close()
    equal(await value(client, 'SELECT count(*) FROM item'), '0')
  }))

check('an SQL cursor is fetched and moved', () =>
  connected(async (client) => {
    await client.query('BEGIN')
    await client.query('DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, 100) AS n')
    equal((await client.query({ text: 'FETCH 2 FROM c', values: [], name: 'fetch' })).rows, [{ n: 1 }, { n: 2 }])
    equal((await client.query('MOVE 10 IN c')).rowCount, 10)
    equal((await client.query('FETCH BACKWARD 1 FROM c')).rows, [{ n: 11 }])
    equal((await client.query({ text: 'FETCH LAST FROM c', values: [] })).rows, [{ n: 100 }])
    await client.query('CLOSE c')
    await refused('34000', client.query('FETCH c'))
    await client.query('ROLLBACK')
  }))

check('notifications and notices arrive', () =>
  connected((listener) =>
    connected(async (sender) => {
      await listener.query('LISTEN news')
      const heard = once(listener, 'notification')
      await sender.query("SELECT pg_notify('news', $1)", ['first'])
      const [message] = await heard
      equal([message.channel, message.payload, message.processId], ['news', 'first', sender.processID])
      const notices = []
      sender.on('notice', (notice) => notices.push([notice.severity, notice.code, notice.message]))
      await sender.query("DO $$ BEGIN RAISE NOTICE 'hello %', 1; END $$")
      equal(notices, [['NOTICE', '00000', 'hello 1']])
    })))

check('functions and procedures are called', () =>
  connected(async (client) => {
    const owner = await value(client, "INSERT INTO owner (name) VALUES ('bob') RETURNING id")
    const account = await value(client, 'INSERT INTO account (owner_id) VALUES ($1) RETURNING id', [owner])
    equal(await value(client, 'SELECT deposit($1, $2)', [account, '2.5']), '2.50')
    equal((await client.query('CALL rename($1, $2)', [owner, 'bert'])).rows, [{ p_name: 'BERT' }])
    const error = await refused('P0002', client.query('SELECT deposit($1, 1)', [-1]))
    equal([error.message, error.detail], ['no account -1', 'gone'])
    equal(error.where, 'PL/pgSQL function deposit(integer,numeric) line 5 at RAISE')
    await client.query('DELETE FROM account; DELETE FROM owner')
  }))

check('a syntax error leaves the connection usable', () =>
  connected(async (client) => {
    for (const values of [undefined, [1]]) {
      const error = await refused('42601', client.query(values ? 'SELEC $1' : 'SELEC 1', values))
      equal([error.severity, error.position, error.message], ['ERROR', '1', 'syntax error at or near "SELEC"'])
      await usable(client)
      await refused('42P01', client.query('SELECT * FROM nowhere', values && []))
      await refused('42703', client.query('SELECT lable FROM item', values && []))
    }
    await refused('08P01', client.query('SELECT $1::int', [1, 2]))
    await refused('22P02', client.query('SELECT $1::int', ['seven']))
    await usable(client)
  }))

check('a violation names its constraint', () =>
  connected(async (client) => {
    await client.query("INSERT INTO owner (name) VALUES ('cid')")
    const error = await refused('23505', client.query('INSERT INTO owner (name) VALUES ($1)', ['cid']))
    equal([error.schema, error.table, error.constraint], ['public', 'owner', 'owner_name_once'])
    equal(error.detail, 'Key (name)=(cid) already exists.')
    const nothing = await refused('23502', client.query('INSERT INTO owner (name) VALUES (NULL)'))
    equal([nothing.table, nothing.column], ['owner', 'name'])
    const dangling = await refused('23503', client.query('INSERT INTO account (owner_id) VALUES (-1)'))
    equal(dangling.constraint, 'account_owner_id_fkey')
    await client.query('DELETE FROM owner')
  }))

check('a running query is cancelled', () =>
  connected((client) =>
    connected(async (other) => {
      const running = refused('57014', client.query('SELECT pg_sleep($1)', [20]))
      await sleep(300)
      equal(await value(other, 'SELECT pg_cancel_backend($1)', [client.processID]), true)
      equal((await running).message, 'canceling statement due to user request')
      await usable(client)
      const text = 'SELECT pg_sleep(20)'
      const asked = new pg.Query(text)
      const failed = once(asked, 'error').then(([error]) => error)
      client.query(asked)
      await sleep(300)
      new pg.Client(URL).cancel(client, asked)
      equal((await failed).code, '57014')
      await usable(client)
    })))

check('a statement times out', () =>
  connected(
    async (client) => {
      const error = await refused('57014', client.query('SELECT pg_sleep(20)'))
      equal(error.message, 'canceling statement due to statement timeout')
      await usable(client)
    },
    { statement_timeout: 200, application_name: 'a test', idle_in_transaction_session_timeout: 60_000 }))

check('waiting for a lock times out', () =>
  connected((first) =>
    connected(
      async (second) => {
        await first.query("INSERT INTO item VALUES (5, 'five')")
        await first.query('BEGIN')
        await first.query("UPDATE item SET label = 'six' WHERE id = $1", [5])
        await refused('55P03', second.query("UPDATE item SET label = 'seven' WHERE id = $1", [5]))
        equal((await second.query('SELECT id FROM item WHERE id = $1 FOR UPDATE SKIP LOCKED', [5])).rows, [])
        await first.query('COMMIT')
        equal((await second.query('DELETE FROM item WHERE id = $1 RETURNING label', [5])).rows, [{ label: 'six' }])
      },
      { lock_timeout: 200 })))

check('serializable transactions that cannot both be', () =>
  connected((first) =>
    connected(async (second) => {
      await first.query("INSERT INTO item VALUES (1, 'a'), (2, 'b')")
      for (const client of [first, second]) {
        await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
        await client.query('SELECT * FROM item')
      }
      const run = async (client, id) => {
        await client.query("UPDATE item SET label = 'c' WHERE id = $1", [id])
        await client.query('COMMIT')
      }
      const ended = await Promise.allSettled([run(first, 1), run(second, 2)])
      const said = ended.map((one) => one.reason?.code ?? 'done').sort()
      assert.ok(said[1] === 'done' && ['40001', '40P01'].includes(said[0]), String(said))
      for (const client of [first, second]) {
        await client.query('ROLLBACK')
        await usable(client)
      }
      await first.query('DELETE FROM item')
    })))

check('a pool serves many', async () => {
  const pool = new pg.Pool({ connectionString: URL, max: 4, connectionTimeoutMillis: 10_000 })
  const asked = Array.from({ length: 40 }, (_, at) => pool.query('SELECT $1::int AS n', [at]))
  equal((await Promise.all(asked)).map((one) => one.rows[0].n), Array.from({ length: 40 }, (_, at) => at))
  await pool.end()
})

check('a terminated connection says so', () =>
  connected(async (other) => {
    const victim = new pg.Client(URL)
    await victim.connect()
    const said = once(victim, 'error')
    await other.query('SELECT pg_terminate_backend($1)', [victim.processID])
    // The end of its socket is told after that.
    victim.on('error', () => {})
    equal((await said)[0].code, '57P01')
    await usable(other)
  }))

check('row comparisons take parameters', () =>
  connected(async (client) => {
    await client.query("INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    const after = await client.query('SELECT id FROM item WHERE (id, label) > ($1, $2) ORDER BY id, label', [1, 'a'])
    equal(after.rows, [{ id: 2 }, { id: 3 }])
    const among = await client.query('SELECT id FROM item WHERE (id, label) IN (($1, $2), ($3, $4))', [1, 'a', 3, 'x'])
    equal(among.rows, [{ id: 1 }])
    await client.query('DELETE FROM item')
  }))

check('rows are copied in binary', () =>
  connected(async (client) => {
    await client.query("INSERT INTO item SELECT n, nullif('l' || n, 'l7') FROM generate_series(1, 3000) AS n")
    const chunks = []
    for await (const chunk of client.query(copy.to('COPY item TO STDOUT WITH (FORMAT binary)'))) chunks.push(chunk)
    await client.query('TRUNCATE item')
    await pipeline(Readable.from(chunks), client.query(copy.from('COPY item FROM STDIN WITH (FORMAT binary)')))
    const { rows } = await client.query('SELECT sum(id)::int AS sum, count(label)::int AS labels FROM item')
    equal(rows, [{ sum: 4501500, labels: 2999 }])
    const cut = client.query(copy.from('COPY item FROM STDIN WITH (FORMAT binary)'))
    await refused('22P04', pipeline(Readable.from([Buffer.concat(chunks).subarray(0, 30)]), cut))
    await usable(client)
    await client.query('TRUNCATE item')
  }))

check('procedures have OUT parameters and cursors', () =>
  connected(async (client) => {
    await client.query(`CREATE PROCEDURE split(p_text text, OUT p_first text, INOUT p_rest refcursor) LANGUAGE plpgsql
      AS $$ BEGIN p_first := left(p_text, 1); OPEN p_rest FOR SELECT substr(p_text, 2) AS rest; END $$`)
    await client.query('BEGIN')
    equal((await client.query('CALL split($1, NULL, $2)', ['abc', 'c'])).rows, [{ p_first: 'a', p_rest: 'c' }])
    equal((await client.query('FETCH ALL FROM c')).rows, [{ rest: 'bc' }])
    await client.query('COMMIT')
    await client.query('DROP PROCEDURE split')
  }))

checkSecured('a connection is encrypted and bound to its server', () =>
  connected(
    async (client) => {
      const asked = 'SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
      equal((await client.query(asked)).rows, [{ ssl: true, version: 'TLSv1.3' }])
      equal(client.connection.stream.authorized, true)
    },
    { enableChannelBinding: true }))

checkSecured('whoever is not known stays outside', async () => {
  const coming = (url, ssl) => new pg.Client({ connectionString: url, ssl, connectionTimeoutMillis: 10_000 }).connect()
  await refused('28P01', coming(bare('wrong'), trusted()))
  await refused('28000', coming(bare(), false))
  await assert.rejects(coming(bare(), trusted('other.crt')), /unable to verify|self.signed/)
})

main()
