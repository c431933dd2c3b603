// Knex as an application uses it: its builder, its migrations, its pool.

const knex = require('knex')
const { assert, bare, check, checkSecured, equal, main, refused, sleep, trusted } = require('checks')

const migrations = {
  first: {
    async up(db) {
      await db.schema.createTable('owner', (table) => {
        table.bigIncrements('id')
        table.string('name', 40).notNullable().unique({ indexName: 'owner_name_once' })
        table.timestamps(true, true)
      })
      await db.schema.createTable('account', (table) => {
        table.increments('id')
        table.bigInteger('owner_id').notNullable().references('owner.id').onDelete('CASCADE').index()
        table.uuid('key').notNullable().defaultTo(db.fn.uuid())
        table.decimal('balance', 14, 2).notNullable().defaultTo(0)
        table.enum('mood', ['sad', 'ok', 'happy'], { useNative: true, enumName: 'mood' }).defaultTo('ok')
        table.specificType('tags', 'text[]').notNullable().defaultTo('{}')
        table.jsonb('detail').comment('whatever there is')
        table.check('?? >= 0', ['balance'], 'account_not_below')
      })
    },
    async down(db) {
      await db.schema.dropTable('account').dropTable('owner')
      await db.raw('DROP TYPE mood')
    },
  },
  second: {
    async up(db) {
      await db.schema.alterTable('account', (table) => {
        table.string('note', 10).index()
        table.string('number').nullable()
        table.setNullable('owner_id')
      })
      await db.schema.alterTable('account', (table) => {
        table.text('note').alter()
        table.renameColumn('number', 'code')
      })
      await db.schema.createViewOrReplace('rich', (view) => {
        view.columns(['id'])
        view.as(db('account').select('id').where('balance', '>', 1000))
      })
    },
    async down(db) {
      await db.schema.dropView('rich')
      await db.schema.alterTable('account', (table) => {
        table.dropColumns('note', 'code')
        table.dropNullable('owner_id')
      })
    },
  },
}

const migrationSource = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
}

async function connected(body, options = {}) {
  const connection = { connectionString: bare(), ssl: trusted() }
  const db = knex({ client: 'pg', connection, migrations: { migrationSource }, pool: { min: 0, max: 4 }, ...options })
  try {
    return await body(db)
  } finally {
    // Not awaited: a connection in doubt may not answer to its end.
    db.destroy().catch(() => {})
  }
}

/** The same, with empty tables. */
const emptied = (body) =>
  connected(async (db) => {
    await db.raw('TRUNCATE owner, account')
    return body(db)
  })

check('migrates up, down and up again', () =>
  connected(async (db) => {
    await db.raw('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    equal((await db.migrate.latest())[1], ['first', 'second'])
    equal(await db.migrate.currentVersion(), 'second')
    equal((await db.migrate.rollback(undefined, true))[1], ['second', 'first'])
    equal(await db.schema.hasTable('account'), false)
    await db.migrate.up()
    await db.migrate.up()
    equal((await db.migrate.list())[1], [])
    equal(await db.schema.hasColumn('account', 'code'), true)
  }))

check('columns are told', () =>
  connected(async (db) => {
    const columns = await db('account').columnInfo()
    equal(columns.balance, { type: 'numeric', maxLength: null, nullable: false, defaultValue: "'0'::numeric" })
    equal(columns.note.type, 'text')
    equal((await db('owner').columnInfo('name')).maxLength, 40)
  }))

check('rows are written, read, changed and deleted', () =>
  emptied(async (db) => {
    const [{ id }] = await db('owner').insert({ name: 'ann' }).returning('id')
    const [account] = await db('account')
      .insert({ owner_id: id, balance: '10.50', tags: ['x', 'y'], detail: { k: 1 }, mood: 'happy' })
      .returning('*')
    equal([account.balance, account.tags, account.detail, account.mood], ['10.50', ['x', 'y'], { k: 1 }, 'happy'])
    equal(await db('account').where({ id: account.id }).increment('balance', 2), 1)
    equal(await db('account').whereJsonPath('detail', '$.k', '=', 1).whereIn('mood', ['ok', 'happy']).pluck('balance'), ['12.50'])
    const joined = await db('account as a').join('owner as o', 'o.id', 'a.owner_id').select('o.name').count('* as n').groupBy('o.name')
    equal(joined, [{ name: 'ann', n: '1' }])
    const ranked = await db.with('numbers', db.select(db.raw('generate_series(1, 3) as n'))).from('numbers')
      .select('n').rank('r', (over) => over.orderBy('n', 'desc')).orderBy('n')
    equal(ranked, [{ n: 1, r: '3' }, { n: 2, r: '2' }, { n: 3, r: '1' }])
    equal(await db('owner').where('name', 'ilike', 'A%').del(), 1)
  }))

check('rows are merged on conflict', () =>
  emptied(async (db) => {
    await db('owner').insert({ name: 'ann' })
    await db('owner').insert([{ name: 'ann' }, { name: 'bob' }]).onConflict('name').ignore()
    const merged = await db('owner').insert({ name: 'bob' }).onConflict('name').merge({ name: 'bert' }).returning('name')
    equal(merged, [{ name: 'bert' }])
    equal(await db('owner').orderBy('name').pluck('name'), ['ann', 'bert'])
    await db.batchInsert('owner', Array.from({ length: 1000 }, (_, at) => ({ name: `n${at}` })), 100)
    equal((await db('owner').count())[0].count, '1002')
  }))

check('transactions and savepoints nest', () =>
  emptied(async (db) => {
    await db.transaction(
      async (outer) => {
        equal((await outer.raw('SHOW transaction_isolation')).rows[0].transaction_isolation, 'serializable')
        await outer('owner').insert({ name: 'kept' })
        await refused('23505', outer.transaction((inner) => inner('owner').insert({ name: 'kept' })))
        equal((await outer('owner').where({ name: 'kept' }).forUpdate().skipLocked()).length, 1)
      },
      { isolationLevel: 'serializable' })
    equal(await db('owner').pluck('name'), ['kept'])
    await refused('25006', db.transaction((reading) => reading('owner').del(), { readOnly: true }))
  }))

check('rows are streamed', () =>
  connected(async (db) => {
    let sum = 0
    const stream = db.select(db.raw('generate_series(1, 5000) as n')).stream({ highWaterMark: 100 })
    for await (const row of stream) sum += row.n
    equal(sum, 12502500)
  }))

check('errors tell their SQLSTATE', () =>
  emptied(async (db) => {
    await refused('42P01', db('nowhere'))
    await refused('23514', db('account').insert({ balance: -1 }))
    const dangling = await refused('23503', db('account').insert({ owner_id: -1 }))
    equal(dangling.constraint, 'account_owner_id_foreign')
    await refused('22P02', db('account').where({ id: 'seven' }))
  }))

check('a running query is cancelled when its time is up', () =>
  connected(async (db) => {
    const begin = Date.now()
    await assert.rejects(db.raw('SELECT pg_sleep(20)').timeout(300, { cancel: true }), /Defined query timeout/)
    await sleep(100)
    equal((await db.raw("SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(20)%' AND state = 'active'")).rows, [{ n: 0 }])
    assert.ok(Date.now() - begin < 10_000)
  }))

check('a pool serves many', () =>
  connected(async (db) => {
    const asked = Array.from({ length: 40 }, (_, at) => db.first(db.raw('?::int as n', [at])))
    equal((await Promise.all(asked)).map((row) => row.n), Array.from({ length: 40 }, (_, at) => at))
  }))

checkSecured('a connection is encrypted', () =>
  connected(async (db) => {
    equal((await db.raw('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).rows, [{ ssl: true }])
  }))

main()
