// TypeORM as an application uses it: entities, synchronize, migrations, repositories.

const { DataSource, EntitySchema, In, LessThan, OptimisticLockVersionMismatchError, Table, TableColumn, TableForeignKey, TableIndex } = require('typeorm')
const { assert, bare, check, checkSecured, equal, main, refused, trusted } = require('checks')

const Owner = new EntitySchema({
  name: 'Owner',
  tableName: 'owner',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'identity' },
    name: { type: 'varchar', length: 40, comment: 'as they call themselves' },
  },
  uniques: [{ name: 'owner_name_once', columns: ['name'] }],
  relations: { accounts: { type: 'one-to-many', target: 'Account', inverseSide: 'owner', cascade: true } },
})

const Account = new EntitySchema({
  name: 'Account',
  tableName: 'account',
  columns: {
    id: { type: 'int', primary: true, generated: 'increment' },
    key: { type: 'uuid', generated: 'uuid' },
    balance: { type: 'numeric', precision: 14, scale: 2, default: 0 },
    mood: { type: 'enum', enum: ['sad', 'ok', 'happy'], default: 'ok' },
    tags: { type: 'text', array: true, default: '{}' },
    detail: { type: 'jsonb', nullable: true },
    opened: { type: 'timestamptz', createDate: true },
    changed: { type: 'timestamptz', updateDate: true },
    gone: { type: 'timestamptz', deleteDate: true },
    version: { type: 'int', version: true },
    doubled: { type: 'numeric', generatedType: 'STORED', asExpression: 'balance * 2', insert: false, update: false, nullable: true },
  },
  indices: [{ name: 'account_owner', columns: ['owner', 'opened'] }],
  checks: [{ name: 'account_not_below', expression: '"balance" >= 0' }],
  relations: {
    owner: { type: 'many-to-one', target: 'Owner', inverseSide: 'accounts', nullable: false, onDelete: 'CASCADE', joinColumn: { name: 'owner_id' } },
    labels: { type: 'many-to-many', target: 'Label', joinTable: true },
  },
})

const Label = new EntitySchema({
  name: 'Label',
  tableName: 'label',
  columns: {
    id: { type: 'uuid', primary: true, generated: 'uuid' },
    text: { type: 'text', unique: true },
  },
})

const Item = new EntitySchema({
  name: 'Item',
  tableName: 'item',
  columns: { id: { type: 'int', primary: true }, label: { type: 'text', nullable: true } },
})

class Begin1700000000001 {
  name = 'Begin1700000000001'
  async up(runner) {
    await runner.createTable(new Table({
      name: 'passing',
      columns: [
        { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
        { name: 'name', type: 'varchar', length: '20', default: "'x'" },
        { name: 'item_id', type: 'int', isNullable: true },
      ],
    }), true)
    await runner.createIndex('passing', new TableIndex({ name: 'passing_name', columnNames: ['name'], isUnique: true }))
    await runner.createForeignKey('passing', new TableForeignKey({
      name: 'passing_item', columnNames: ['item_id'], referencedTableName: 'item', referencedColumnNames: ['id'], onDelete: 'SET NULL',
    }))
  }
  async down(runner) {
    await runner.dropTable('passing')
  }
}

class Change1700000000002 {
  name = 'Change1700000000002'
  async up(runner) {
    await runner.addColumn('passing', new TableColumn({ name: 'more', type: 'enum', enum: ['a', 'b'], isNullable: true }))
    await runner.renameColumn('passing', 'name', 'title')
    await runner.changeColumn('passing', 'title', new TableColumn({ name: 'title', type: 'varchar', length: '40', isNullable: true }))
    await runner.query("INSERT INTO passing (title, more) VALUES ($1, $2)", ['y', 'b'])
  }
  async down(runner) {
    await runner.dropColumn('passing', 'more')
    await runner.renameColumn('passing', 'title', 'name')
  }
}

const entities = [Owner, Account, Label, Item]

async function connected(body, options = {}) {
  const place = { type: 'postgres', url: bare(), ssl: trusted() }
  const source = new DataSource({ ...place, entities, uuidExtension: 'pgcrypto', installExtensions: false, ...options })
  await source.initialize()
  try {
    return await body(source)
  } finally {
    // Not awaited: a connection in doubt may not answer to its end.
    source.destroy().catch(() => {})
  }
}

/** The same, with empty tables. */
const emptied = (body, options) =>
  connected(async (source) => {
    await source.query('TRUNCATE owner, account, label, item, account_labels_label')
    return body(source)
  }, options)

check('synchronizes an empty schema', () =>
  connected(async (source) => {
    await source.query('DROP SCHEMA public CASCADE')
    await source.query('CREATE SCHEMA public')
    await source.synchronize()
    const tables = await source.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    equal(tables.map((row) => row.tablename).filter((name) => name !== 'typeorm_metadata'),
      ['account', 'account_labels_label', 'item', 'label', 'owner'])
  }))

check('finds nothing to synchronize', () =>
  connected(async (source) => {
    const plan = await source.driver.createSchemaBuilder().log()
    equal(plan.upQueries.map((query) => query.query), [])
  }))

check('synchronizes what has changed', async () => {
  const changed = new EntitySchema({
    name: 'Item',
    tableName: 'item',
    columns: {
      id: { type: 'bigint', primary: true },
      label: { type: 'varchar', length: 60, default: 'none' },
      more: { type: 'enum', enum: ['a', 'b'], enumName: 'item_more', nullable: true },
    },
    indices: [{ name: 'item_label', columns: ['label'], where: 'more IS NOT NULL' }],
  })
  await connected((source) => source.synchronize(), { entities: [Owner, Account, Label, changed] })
  await connected(async (source) => {
    const columns = await source.query(
      "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'item' ORDER BY 1")
    equal(columns.map((row) => [row.column_name, row.data_type]),
      [['id', 'bigint'], ['label', 'character varying'], ['more', 'USER-DEFINED']])
    await source.synchronize()
  })
})

check('migrates up and down', () =>
  connected(
    async (source) => {
      equal((await source.runMigrations()).map((one) => one.name), ['Begin1700000000001', 'Change1700000000002'])
      equal(await source.showMigrations(), false)
      const runner = source.createQueryRunner()
      const table = await runner.getTable('passing')
      equal(table.columns.map((column) => [column.name, column.type, column.length]),
        [['id', 'integer', ''], ['item_id', 'integer', ''], ['more', 'enum', ''], ['title', 'character varying', '40']])
      equal(table.foreignKeys.map((key) => [key.name, key.onDelete]), [['passing_item', 'SET NULL']])
      await runner.release()
      await source.undoLastMigration()
      await source.undoLastMigration()
      equal(await source.query("SELECT to_regclass('passing') AS is"), [{ is: null }])
    },
    { migrations: [Begin1700000000001, Change1700000000002] }))

check('entities are saved, found, changed and removed', () =>
  emptied(async (source) => {
    const owners = source.getRepository('Owner')
    const accounts = source.getRepository('Account')
    const labels = await source.getRepository('Label').save([{ text: 'one' }, { text: 'two' }])
    const ann = await owners.save({
      name: 'ann',
      accounts: [{ balance: '10.50', mood: 'happy', tags: ['x', 'y'], detail: { k: 1 }, labels }, { balance: '1' }],
    })
    const found = await owners.findOne({ where: { name: 'ann' }, relations: { accounts: { labels: true } }, order: { accounts: { id: 'ASC' } } })
    equal(found.accounts.map((account) => [account.balance, account.mood, account.tags, account.detail, account.doubled, account.labels.length]),
      [['10.50', 'happy', ['x', 'y'], { k: 1 }, '21.00', 2], ['1.00', 'ok', [], null, '2.00', 0]])
    assert.ok(found.accounts[0].opened instanceof Date)
    const first = found.accounts[0]
    first.mood = 'sad'
    await accounts.save(first)
    equal((await accounts.findOneBy({ id: first.id })).version, 2)
    equal((await accounts.update({ balance: LessThan(5) }, { detail: { k: 2 } })).affected, 1)
    await accounts.increment({ id: first.id }, 'balance', 5)
    equal((await accounts.findOneBy({ id: first.id })).balance, '15.50')
    await accounts.softDelete(first.id)
    equal(await accounts.countBy({ id: In([first.id]) }), 0)
    equal(await accounts.count({ withDeleted: true }), 2)
    await owners.delete(ann.id)
    equal(await accounts.count({ withDeleted: true }), 0)
  }))

check('queries are built', () =>
  emptied(async (source) => {
    const items = source.getRepository('Item')
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, label: 'abc'[id % 3] }))
    equal((await items.insert(rows)).identifiers.length, 500)
    const [page, count] = await items.findAndCount({ where: { label: 'a' }, order: { id: 'DESC' }, skip: 2, take: 3 })
    equal([page.map((item) => item.id), count], [[492, 489, 486], 167])
    const grouped = await items.createQueryBuilder('item').select('item.label', 'label').addSelect('COUNT(*)::int', 'n')
      .groupBy('item.label').having('COUNT(*) > :least', { least: 166 }).orderBy('n', 'DESC').addOrderBy('label').getRawMany()
    equal(grouped, [{ label: 'a', n: 167 }, { label: 'b', n: 167 }])
    const done = await items.createQueryBuilder().insert().values([{ id: 1, label: 'new' }, { id: 999, label: 'new' }])
      .orUpdate(['label'], ['id']).returning('id').execute()
    equal(done.raw, [{ id: 1 }, { id: 999 }])
    await items.upsert([{ id: 2, label: 'newer' }], ['id'])
    equal((await items.findOneBy({ id: 2 })).label, 'newer')
    const among = items.createQueryBuilder('item').where(`item.id IN ${items.createQueryBuilder().subQuery().select('i.id').from('Item', 'i').where('i.label = :label').getQuery()}`)
    equal(await among.setParameter('label', 'new').getCount(), 2)
    equal((await source.query('SELECT id FROM item WHERE (id, label) > ($1, $2) ORDER BY id, label', [998, 'a'])), [{ id: 999 }])
  }))

check('transactions and savepoints nest', () =>
  emptied(async (source) => {
    await source.transaction('SERIALIZABLE', async (manager) => {
      await manager.insert('Item', { id: 1 })
      await refused('23505', manager.transaction((inner) => inner.insert('Item', { id: 1 })))
      await manager.transaction((inner) => inner.insert('Item', { id: 2 }))
    })
    equal((await source.getRepository('Item').find({ order: { id: 'ASC' } })).map((item) => item.id), [1, 2])
    await refused('22012', source.transaction(async (manager) => {
      await manager.delete('Item', 1)
      await manager.query('SELECT 1 / $1::int', [0])
    }))
    equal(await source.getRepository('Item').count(), 2)
  }))

check('locks are taken, and versions compared', () =>
  emptied(async (source) => {
    await source.getRepository('Item').insert({ id: 1 })
    await source.transaction(async (manager) => {
      await manager.findOne('Item', { where: { id: 1 }, lock: { mode: 'pessimistic_write' } })
      await refused('55P03', source.transaction((other) =>
        other.findOne('Item', { where: { id: 1 }, lock: { mode: 'pessimistic_write', onLocked: 'nowait' } })))
      const skipped = await source.transaction((other) =>
        other.findOne('Item', { where: { id: 1 }, lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' } }))
      equal(skipped, null)
    })
    const owner = await source.getRepository('Owner').save({ name: 'ann' })
    const account = await source.getRepository('Account').save({ owner })
    await assert.rejects(
      source.getRepository('Account').findOne({ where: { id: account.id }, lock: { mode: 'optimistic', version: 7 } }),
      OptimisticLockVersionMismatchError)
  }))

check('rows are streamed', () =>
  emptied(async (source) => {
    await source.query("INSERT INTO item SELECT n, 'l' FROM generate_series(1, 300) AS n")
    const runner = source.createQueryRunner()
    equal((await runner.query('SELECT id FROM item ORDER BY id', [], true)).records.length, 300)
    await runner.release()
  }))

check('errors leave the connection usable', () =>
  emptied(
    async (source) => {
      await refused('42601', source.query('SELEC $1', [1]))
      await refused('42P01', source.query('SELECT * FROM nowhere'))
      await source.getRepository('Owner').insert({ name: 'ann' })
      const error = await refused('23505', source.getRepository('Owner').insert({ name: 'ann' }))
      equal([error.constraint, error.detail], ['owner_name_once', 'Key (name)=(ann) already exists.'])
      const below = await refused('23514', source.getRepository('Account').save({ balance: -1, owner: { id: (await source.getRepository('Owner').findOneBy({ name: 'ann' })).id } }))
      equal(below.constraint, 'account_not_below')
      await refused('57014', source.query('SELECT pg_sleep(20)'))
      equal(await source.query('SELECT 42 AS n'), [{ n: 42 }])
    },
    { extra: { statement_timeout: 200, max: 1 } }))

checkSecured('a connection is encrypted', () =>
  connected(async (source) => {
    equal(await source.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), [{ ssl: true }])
  }))

main()
