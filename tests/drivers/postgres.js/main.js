// postgres.js as an application uses it: everything is prepared, and sent without waiting.

const postgres = require('postgres')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { assert, bare, check, checkSecured, equal, main, refused, sleep, trusted } = require('checks')

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
CREATE INDEX account_owner ON account (owner_id);
CREATE TABLE item (id int PRIMARY KEY, label text);
CREATE FUNCTION deposit(p_id int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE after numeric;
BEGIN
    UPDATE account SET balance = balance + p_amount WHERE id = p_id RETURNING balance INTO after;
    IF NOT FOUND THEN RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002', HINT = 'open one'; END IF;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
`

async function connected(body, options = {}) {
  const sql = postgres(bare(), { ssl: trusted(), max: 1, connect_timeout: 10, onnotice: () => {}, ...options })
  try {
    return await body(sql)
  } finally {
    // Not awaited: a connection in doubt may not answer to its end.
    sql.end({ timeout: 1 }).catch(() => {})
  }
}

/** The same, with empty tables. */
const emptied = (body, options) =>
  connected(async (sql) => {
    await sql`TRUNCATE owner, account, item`
    return body(sql)
  }, options)

async function usable(sql) {
  equal([...(await sql`SELECT 40 + ${2}::int AS n`)], [{ n: 42 }])
}

check('migrates with many statements at once', () =>
  connected(async (sql) => {
    await sql.unsafe(SCHEMA)
    await usable(sql)
  }))

check('values come back as they went', () =>
  connected(async (sql) => {
    const values = [
      [true, 'boolean'],
      [-7, 'smallint'],
      [2147483647, 'integer'],
      ['-9223372036854775808', 'bigint'],
      [0.1, 'double precision'],
      ['12345678901234567890.0123456789', 'numeric'],
      ["žluťoučký \n'\\", 'text'],
      [Buffer.from([0, 255, 1]), 'bytea'],
      ['23:59:59.999999', 'time'],
      [new Date('2024-02-29T01:02:03.004Z'), 'timestamptz'],
      ['12345678-1234-5678-1234-567812345678', 'uuid'],
      [[1, 2, 3], 'int[]'],
      [['a', 'b,c', '"'], 'text[]'],
      [null, 'text'],
      [{ a: [1, null] }, 'jsonb'],
      ['happy', 'mood'],
    ]
    for (const [sent, type] of values) {
      const [{ got }] = await sql.unsafe(`SELECT $1::${type} AS got`, [sent], { prepare: true })
      equal([type, got], [type, sent])
    }
    equal((await sql`SELECT ${sql.array([1, 2])}::int[] AS got`)[0].got, [1, 2])
    equal((await sql`SELECT ${sql.json({ k: 1 })} AS got`)[0].got, { k: 1 })
    // Arrays of types that are not built in are known from pg_type at the start.
    equal((await sql`SELECT ${['sad', 'ok']}::mood[] AS got`)[0].got, ['sad', 'ok'])
  }))

check('rows are written, read, changed and deleted', () =>
  emptied(async (sql) => {
    const [owner] = await sql`INSERT INTO owner ${sql({ name: 'ann' })} RETURNING *`
    const rows = [
      { owner_id: owner.id, balance: '10.50', tags: ['x', 'y'], detail: { k: 1 }, mood: 'happy' },
      { owner_id: owner.id, balance: '1', tags: [], detail: null, mood: 'sad' },
    ]
    const inserted = await sql`INSERT INTO account ${sql(rows)} RETURNING id, balance, tags, detail, mood`
    equal(inserted.map((row) => [row.balance, row.tags, row.detail, row.mood]),
      [['10.50', ['x', 'y'], { k: 1 }, 'happy'], ['1.00', [], null, 'sad']])
    equal(inserted.columns.map((column) => [column.name, column.type]).slice(0, 3), [['id', 23], ['balance', 1700], ['tags', 1009]])
    const ids = inserted.map((row) => row.id)
    const changed = await sql`UPDATE account SET ${sql({ balance: '5', mood: 'ok' })} WHERE id IN ${sql(ids)}`
    equal([changed.command, changed.count], ['UPDATE', 2])
    equal((await sql`SELECT id FROM account WHERE detail @> ${sql.json({ k: 1 })} AND ${sql('balance')} = 5`).length, 1)
    const where = sql`WHERE owner_id = ${owner.id}`
    equal((await sql`DELETE FROM account ${where}`).count, 2)
  }))

check('transactions and savepoints nest', () =>
  emptied(async (sql) => {
    await sql.begin('ISOLATION LEVEL REPEATABLE READ', async (tx) => {
      await tx`INSERT INTO item VALUES (1, 'kept')`
      await refused('23505', tx.savepoint((inner) => inner`INSERT INTO item VALUES (${1}, 'again')`))
      await tx.savepoint('named', (inner) => inner`INSERT INTO item VALUES (3, 'kept')`)
    })
    equal([...(await sql`SELECT id FROM item ORDER BY id`)], [{ id: 1 }, { id: 3 }])
    await refused('22012', sql.begin(async (tx) => {
      await tx`DELETE FROM item`
      await tx`SELECT 1 / ${0}::int`
    }))
    equal((await sql`SELECT count(*)::int AS n FROM item`)[0].n, 2)
    // An array of queries goes out as one pipeline.
    const both = await sql.begin((tx) => [tx`INSERT INTO item VALUES (4)`, tx`SELECT count(*)::int AS n FROM item`])
    equal(both[1][0].n, 3)
  }))

check('queries go out as one pipeline', () =>
  connected(async (sql) => {
    const asked = Array.from({ length: 200 }, (_, at) => sql`SELECT ${at}::int AS n`)
    equal((await Promise.all(asked)).map((rows) => rows[0].n), Array.from({ length: 200 }, (_, at) => at))
    const mixed = await Promise.allSettled([sql`SELECT 1 AS n`, sql`SELEC`, sql`SELECT 1 / ${0}::int`, sql`SELECT 2 AS n`])
    equal(mixed.map((one) => one.value?.[0].n ?? one.reason.code), [1, '42601', '22012', 2])
  }))

check('many rows are inserted at once', () =>
  emptied(async (sql) => {
    const rows = Array.from({ length: 5000 }, (_, id) => ({ id, label: `l${id}` }))
    equal((await sql`INSERT INTO item ${sql(rows)}`).count, 5000)
    const values = [[1, 'a'], [2, 'b']]
    const changed = await sql`
      UPDATE item SET label = v.label FROM (VALUES ${sql(values)}) AS v (id, label) WHERE item.id = v.id::int RETURNING item.id`
    equal(changed.length, 2)
  }))

check('copy goes both ways', () =>
  emptied(async (sql) => {
    const lines = Array.from({ length: 3000 }, (_, at) => `${at}\tlabel ${at}\n`)
    await pipeline(Readable.from(lines), await sql`COPY item FROM STDIN`.writable())
    const chunks = []
    for await (const chunk of await sql`COPY (SELECT * FROM item WHERE id < 2 ORDER BY id) TO STDOUT`.readable()) chunks.push(chunk)
    equal(Buffer.concat(chunks).toString(), '0\tlabel 0\n1\tlabel 1\n')
  }))

check('a cursor reads in steps', () =>
  emptied(async (sql) => {
    await sql`INSERT INTO item SELECT n, 'l' || n FROM generate_series(1, 1000) AS n`
    const sizes = []
    await sql`SELECT id FROM item WHERE id > ${0} ORDER BY id`.cursor(300, (rows) => { sizes.push(rows.length) })
    equal(sizes, [300, 300, 300, 100])
    let seen = 0
    for await (const rows of sql`SELECT id FROM item ORDER BY id`.cursor(64)) seen += rows.length
    equal(seen, 1000)
    await sql`SELECT id FROM item`.cursor(10, () => sql.CLOSE)
    await usable(sql)
    await refused('22012', sql`SELECT 1 / (15 - id) AS n FROM item ORDER BY id`.cursor(10, () => {}))
    let row
    await sql`SELECT id FROM item ORDER BY id`.forEach((one) => { row = one })
    equal(row, { id: 1000 })
    await usable(sql)
  }))

check('statements are described', () =>
  connected(async (sql) => {
    const { types, columns } = await sql`SELECT id, balance FROM account WHERE owner_id = ${1} AND mood = ${'ok'}`.describe()
    equal(types.slice(0, 1), [20])
    equal(columns.map((column) => [column.name, column.type]), [['id', 23], ['balance', 1700]])
    await refused('42601', sql`SELEC ${1}`.describe())
    await usable(sql)
  }))

check('notifications and notices arrive', () => {
  const notices = []
  return connected(
    async (sql) => {
      let hear
      const heard = new Promise((resolve) => { hear = resolve })
      const { unlisten } = await sql.listen('news', hear)
      await sql.notify('news', 'first')
      equal(await heard, 'first')
      await unlisten()
      await sql`DO $$ BEGIN RAISE NOTICE 'hello %', 1; END $$`
      equal(notices, ['hello 1'])
    },
    { onnotice: (notice) => notices.push(notice.message) })
})

check('functions and procedures are called', () =>
  emptied(async (sql) => {
    const [{ id: owner }] = await sql`INSERT INTO owner (name) VALUES ('bob') RETURNING id`
    const [{ id }] = await sql`INSERT INTO account (owner_id) VALUES (${owner}) RETURNING id`
    equal((await sql`SELECT deposit(${id}, ${2.5}) AS after`)[0].after, '2.50')
    equal((await sql`CALL rename(${owner}, ${'bert'})`)[0].p_name, 'BERT')
    const error = await refused('P0002', sql`SELECT deposit(${-1}, 1)`)
    equal([error.message, error.hint], ['no account -1', 'open one'])
  }))

check('a syntax error leaves the connection usable', () =>
  connected(async (sql) => {
    for (let time = 0; time < 3; time++) {
      const error = await refused('42601', sql`SELEC ${1}`)
      equal([error.message, error.position], ['syntax error at or near "SELEC"', '1'])
      await usable(sql)
      await refused('42P01', sql`SELECT * FROM nowhere WHERE a = ${1}`)
      await refused('42703', sql`SELECT lable FROM item`)
      await refused('42601', sql`SELEC 1`.simple())
      await usable(sql)
    }
    await refused('22P02', sql`SELECT ${'seven'}::int`)
    await usable(sql)
  }))

check('a violation names its constraint', () =>
  emptied(async (sql) => {
    await sql`INSERT INTO owner (name) VALUES ('cid')`
    const error = await refused('23505', sql`INSERT INTO owner (name) VALUES (${'cid'})`)
    equal([error.schema_name, error.table_name, error.constraint_name], ['public', 'owner', 'owner_name_once'])
    equal(error.detail, 'Key (name)=(cid) already exists.')
    const nothing = await refused('23502', sql`INSERT INTO owner (name) VALUES (${null})`)
    equal(nothing.column_name, 'name')
  }))

check('a running query is cancelled', () =>
  connected(async (sql) => {
    const running = sql`SELECT pg_sleep(${20})`
    setTimeout(() => running.cancel(), 300)
    await refused('57014', running)
    await usable(sql)
  }))

check('a statement times out', () =>
  connected(
    async (sql) => {
      const error = await refused('57014', sql`SELECT pg_sleep(20)`)
      equal(error.message, 'canceling statement due to statement timeout')
      await usable(sql)
    },
    { connection: { statement_timeout: 200, application_name: 'a test' } }))

check('waiting for a lock times out', () =>
  emptied((first) =>
    connected(
      async (second) => {
        await first`INSERT INTO item VALUES (5, 'five')`
        await first.begin(async (tx) => {
          await tx`UPDATE item SET label = 'six' WHERE id = ${5}`
          await refused('55P03', second`UPDATE item SET label = 'seven' WHERE id = ${5}`)
          await refused('55P03', second`SELECT * FROM item WHERE id = ${5} FOR UPDATE NOWAIT`)
        })
        equal([...(await second`DELETE FROM item WHERE id = ${5} RETURNING label`)], [{ label: 'six' }])
      },
      { connection: { lock_timeout: 200 } })))

check('serializable transactions that cannot both be', () =>
  emptied((first) =>
    connected(async (second) => {
      await first`INSERT INTO item VALUES (1, 'a'), (2, 'b')`
      let began = 0
      const run = (sql, id) =>
        sql.begin('ISOLATION LEVEL SERIALIZABLE', async (tx) => {
          await tx`SELECT * FROM item`
          began += 1
          while (began < 2) await sleep(5)
          await tx`UPDATE item SET label = 'c' WHERE id = ${id}`
        })
      const ended = await Promise.allSettled([run(first, 1), run(second, 2)])
      const said = ended.map((one) => one.reason?.code ?? 'done').sort()
      assert.ok(said[1] === 'done' && ['40001', '40P01'].includes(said[0]), String(said))
      await usable(first)
      await usable(second)
    })))

check('a changed table is read anew', () =>
  emptied((sql) =>
    connected(async (other) => {
      const ask = async () => Object.keys((await sql`SELECT * FROM item WHERE id = ${1}`)[0])
      await sql`INSERT INTO item VALUES (1, 'a')`
      equal(await ask(), ['id', 'label'])
      await other`ALTER TABLE item ADD COLUMN more int`
      // It hears RevalidateCachedQuery and prepares anew.
      equal(await ask(), ['id', 'label', 'more'])
      await other`ALTER TABLE item DROP COLUMN more`
      equal(await ask(), ['id', 'label'])
    })))

check('row comparisons take parameters', () =>
  emptied(async (sql) => {
    await sql`INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')`
    equal([...(await sql`SELECT id FROM item WHERE (id, label) > (${1}, ${'a'}) ORDER BY id, label`)], [{ id: 2 }, { id: 3 }])
    equal([...(await sql`SELECT id FROM item WHERE (id, label) IN ((${1}, ${'a'}), (${3}, ${'x'}))`)], [{ id: 1 }])
  }))

check('many connections serve many', () =>
  connected(
    async (sql) => {
      const asked = Array.from({ length: 60 }, (_, at) => sql`SELECT ${at}::int AS n, pg_sleep(0.01)`)
      equal((await Promise.all(asked)).map((rows) => rows[0].n), Array.from({ length: 60 }, (_, at) => at))
    },
    { max: 5 }))

checkSecured('a connection is encrypted and its user known', () =>
  connected(async (sql) => {
    equal([...(await sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)], [{ ssl: true }])
    const coming = (url, ssl) => postgres(url, { ssl, max: 1, connect_timeout: 10 })`SELECT 1`
    await refused('28P01', coming(bare('wrong'), trusted()))
    await refused('28000', coming(bare(), false))
  }))

main()
