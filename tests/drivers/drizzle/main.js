// Drizzle over node-postgres as an application uses it: its queries, relations and migrations.

const { mkdtempSync, mkdirSync, writeFileSync } = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const pg = require('pg')
const { drizzle } = require('drizzle-orm/node-postgres')
const { migrate } = require('drizzle-orm/node-postgres/migrator')
const {
  bigint, bigserial, boolean, check: constraint, customType, doublePrecision, index, integer, interval, jsonb, numeric, pgEnum,
  pgTable, serial, text, timestamp, uuid, varchar, date,
} = require('drizzle-orm/pg-core')
const { relations, eq, gt, inArray, sql, count, sum, desc, arrayContains, exists } = require('drizzle-orm')
const { assert, bare, check, checkSecured, equal, main, refused, trusted } = require('checks')

const mood = pgEnum('mood', ['sad', 'ok', 'happy'])
const bytea = customType({ dataType: () => 'bytea' })
const owner = pgTable('owner', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  name: varchar('name', { length: 40 }).notNull().unique('owner_name_once'),
})
const account = pgTable(
  'account',
  {
    id: serial('id').primaryKey(),
    ownerId: bigint('owner_id', { mode: 'number' }).notNull().references(() => owner.id, { onDelete: 'cascade' }),
    key: uuid('key').notNull().defaultRandom(),
    balance: numeric('balance', { precision: 14, scale: 2 }).notNull().default('0'),
    mood: mood('mood').notNull().default('ok'),
    tags: text('tags').array().notNull().default([]),
    detail: jsonb('detail'),
    raw: bytea('raw'),
    share: doublePrecision('share'),
    open: boolean('open').notNull().default(true),
    born: date('born'),
    lasts: interval('lasts'),
    opened: timestamp('opened', { withTimezone: true, precision: 3 }).notNull().defaultNow(),
  },
  (table) => [index('account_owner').on(table.ownerId), constraint('account_not_below', sql`${table.balance} >= 0`)])
const item = pgTable('item', { id: integer('id').primaryKey(), label: text('label') })
const schema = {
  owner, account, item,
  ofOwner: relations(owner, ({ many }) => ({ accounts: many(account) })),
  ofAccount: relations(account, ({ one }) => ({ owner: one(owner, { fields: [account.ownerId], references: [owner.id] }) })),
}

const FIRST = `
CREATE TYPE "public"."mood" AS ENUM('sad', 'ok', 'happy');
--> statement-breakpoint
CREATE TABLE "owner" ("id" bigserial PRIMARY KEY NOT NULL, "name" varchar(40) NOT NULL, CONSTRAINT "owner_name_once" UNIQUE("name"));
--> statement-breakpoint
CREATE TABLE "account" (
  "id" serial PRIMARY KEY NOT NULL,
  "owner_id" bigint NOT NULL,
  "key" uuid DEFAULT gen_random_uuid() NOT NULL,
  "balance" numeric(14, 2) DEFAULT '0' NOT NULL,
  "mood" "mood" DEFAULT 'ok' NOT NULL,
  "tags" text[] DEFAULT '{}' NOT NULL,
  "detail" jsonb,
  "raw" bytea,
  "share" double precision,
  "open" boolean DEFAULT true NOT NULL,
  "born" date,
  "lasts" interval,
  CONSTRAINT "account_not_below" CHECK ("account"."balance" >= 0)
);
--> statement-breakpoint
CREATE TABLE "item" ("id" integer PRIMARY KEY NOT NULL, "label" text);
`
const SECOND = `
ALTER TABLE "account" ADD COLUMN "opened" timestamp (3) with time zone DEFAULT now() NOT NULL;
--> statement-breakpoint
ALTER TABLE "account" ADD CONSTRAINT "account_owner_id_owner_id_fk" FOREIGN KEY ("owner_id") REFERENCES "public"."owner"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
CREATE INDEX "account_owner" ON "account" USING btree ("owner_id");
`

function migrationsFolder() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'drizzle-'))
  mkdirSync(path.join(folder, 'meta'))
  const entries = [FIRST, SECOND].map((text, at) => {
    writeFileSync(path.join(folder, `${at}.sql`), text)
    return { idx: at, version: '7', when: 1700000000000 + at, tag: String(at), breakpoints: true }
  })
  writeFileSync(path.join(folder, 'meta', '_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }))
  return folder
}

async function connected(body) {
  const pool = new pg.Pool({ connectionString: bare(), ssl: trusted(), max: 4 })
  pool.on('error', () => {})
  try {
    return await body(drizzle(pool, { schema }))
  } finally {
    // Not awaited: a connection in doubt may not answer to its end.
    pool.end().catch(() => {})
  }
}

/** The same, with empty tables. */
const emptied = (body) =>
  connected(async (db) => {
    await db.execute(sql`TRUNCATE owner, account, item`)
    return body(db)
  })

/** The error of the driver below. */
const unwrapped = (work) => Promise.resolve(work).catch((error) => { throw error.cause ?? error })

check('migrates, and only once', () =>
  connected(async (db) => {
    await db.execute(sql`DROP SCHEMA IF EXISTS drizzle CASCADE`)
    await db.execute(sql`DROP SCHEMA public CASCADE`)
    await db.execute(sql`CREATE SCHEMA public`)
    const folder = migrationsFolder()
    await migrate(db, { migrationsFolder: folder })
    await migrate(db, { migrationsFolder: folder })
    equal((await db.execute(sql`SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations`)).rows, [{ n: 2 }])
    equal(await db.$count(account), 0)
  }))

check('rows are written, read, changed and deleted', () =>
  emptied(async (db) => {
    const [{ id }] = await db.insert(owner).values({ name: 'ann' }).returning({ id: owner.id })
    const sent = {
      ownerId: id, balance: '10.50', mood: 'happy', tags: ['a', 'b,c', '"'], detail: { k: [1, null] }, raw: Buffer.from([0, 255]),
      share: 0.1, born: '1999-12-31', lasts: '1 day 02:03:04', opened: new Date('2024-02-29T12:00:01.005Z'),
    }
    const [got] = await db.insert(account).values(sent).returning()
    for (const [name, value] of Object.entries(sent)) equal([name, got[name]], [name, value])
    const found = await db.query.owner.findMany({ with: { accounts: { columns: { balance: true, tags: true } } } })
    equal([found.length, found[0].name, found[0].accounts[0].tags], [1, 'ann', ['a', 'b,c', '"']])
    const changed = await db.update(account).set({ balance: sql`${account.balance} * 2` }).where(arrayContains(account.tags, ['a'])).returning()
    equal(changed[0].balance, '21.00')
    const joined = await db.select({ name: owner.name, n: count(), all: sum(account.balance) }).from(owner)
      .leftJoin(account, eq(account.ownerId, owner.id)).groupBy(owner.name).having(gt(count(), 0)).orderBy(desc(owner.name))
    equal(joined, [{ name: 'ann', n: 1, all: '21.00' }])
    const those = db.$with('those').as(db.select({ id: account.ownerId }).from(account))
    equal(await db.with(those).select({ name: owner.name }).from(owner).where(inArray(owner.id, db.select({ id: those.id }).from(those))), [{ name: 'ann' }])
    equal((await db.select().from(owner).where(exists(db.select().from(account).where(eq(account.ownerId, owner.id))))).length, 1)
    equal((await db.delete(owner).where(eq(owner.id, id))).rowCount, 1)
    equal(await db.$count(account), 0)
  }))

check('rows are merged on conflict', () =>
  emptied(async (db) => {
    await db.insert(item).values(Array.from({ length: 1000 }, (_, id) => ({ id, label: `l${id}` })))
    const [merged] = await db.insert(item).values({ id: 7, label: 'x' })
      .onConflictDoUpdate({ target: item.id, set: { label: sql`excluded.label || ${item.label}` } }).returning()
    equal(merged, { id: 7, label: 'xl7' })
    equal(await db.insert(item).values({ id: 7 }).onConflictDoNothing().returning(), [])
  }))

check('statements are prepared', () =>
  emptied(async (db) => {
    await db.insert(item).values([{ id: 1, label: 'a' }, { id: 2, label: 'b' }])
    const byId = db.select().from(item).where(eq(item.id, sql.placeholder('id'))).prepare('by_id')
    for (const id of [1, 2, 1]) equal((await byId.execute({ id }))[0].id, id)
  }))

check('transactions and savepoints nest', () =>
  emptied(async (db) => {
    await db.transaction(
      async (outer) => {
        equal((await outer.execute(sql`SHOW transaction_isolation`)).rows, [{ transaction_isolation: 'repeatable read' }])
        await outer.insert(item).values({ id: 1 })
        await refused('23505', unwrapped(outer.transaction((inner) => inner.insert(item).values({ id: 1 }))))
        equal((await outer.select().from(item).for('update', { skipLocked: true })).length, 1)
      },
      { isolationLevel: 'repeatable read', accessMode: 'read write' })
    await assert.rejects(db.transaction(async (tx) => { await tx.insert(item).values({ id: 2 }); tx.rollback() }))
    equal(await db.$count(item), 1)
  }))

check('errors tell their SQLSTATE', () =>
  emptied(async (db) => {
    await refused('42P01', unwrapped(db.execute(sql`SELECT * FROM nowhere`)))
    equal((await refused('23503', unwrapped(db.insert(account).values({ ownerId: -1 })))).constraint, 'account_owner_id_owner_id_fk')
    const [{ id }] = await db.insert(owner).values({ name: 'ann' }).returning()
    equal((await refused('23514', unwrapped(db.insert(account).values({ ownerId: id, balance: '-1' })))).constraint, 'account_not_below')
  }))

checkSecured('a connection is encrypted', () =>
  connected(async (db) => {
    equal((await db.execute(sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)).rows, [{ ssl: true }])
  }))

main()
