# ActiveRecord as an application uses it: migrations, models, and the schema it reads.

require 'active_record'
require 'checks'
require 'stringio'

class Owner < ActiveRecord::Base
  has_many :accounts, dependent: :delete_all
  validates :name, presence: true
end

class Account < ActiveRecord::Base
  belongs_to :owner
  enum mood: { sad: 'sad', ok: 'ok', happy: 'happy' }, _suffix: true
  attribute :lasts, :interval
end

class Item < ActiveRecord::Base
end

class First < ActiveRecord::Migration[6.1]
  def up
    execute "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"
    create_table :owners, comment: 'who owns' do |t|
      t.string :name, limit: 40, null: false
      t.timestamps
      t.index :name, unique: true
    end
    create_table :accounts do |t|
      t.references :owner, null: false, foreign_key: { on_delete: :cascade }
      t.uuid :key, null: false, default: 'gen_random_uuid()'
      t.decimal :balance, precision: 14, scale: 2, null: false, default: 0
      t.column :mood, :mood, null: false, default: 'ok'
      t.text :tags, array: true, null: false, default: []
      t.jsonb :detail
      t.binary :raw
      t.date :born
      t.float :share
      t.interval :lasts
      t.integer :lock_version, null: false, default: 0
      t.datetime :opened, precision: 6
    end
    add_check_constraint :accounts, 'balance >= 0', name: 'account_not_below'
    create_table(:items, id: :integer) { |t| t.text :label }
  end

  def down
    drop_table :items
    drop_table :accounts
    drop_table :owners
    execute 'DROP TYPE mood'
  end
end

class Second < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def up
    add_column :items, :note, :string, limit: 10
    rename_column :items, :note, :remark
    change_column :items, :remark, :text
    change_column_null :items, :label, false, ''
    add_index :items, 'lower(remark)', name: 'items_remark', where: 'remark IS NOT NULL', algorithm: :concurrently
  end

  def down
    remove_index :items, name: 'items_remark', algorithm: :concurrently
    change_column_null :items, :label, true
    change_column :items, :remark, :string, limit: 10
    rename_column :items, :remark, :note
    remove_column :items, :note
  end
end

PLACE = libpq_parameters.then do |named|
  named.except(:user, :dbname).merge(adapter: 'postgresql', username: named[:user], database: named[:dbname], pool: 4)
end
BASE = ActiveRecord::Base
ActiveRecord::Migration.verbose = false
ActiveSupport::Deprecation.silenced = true

# With empty tables.
def emptied
  BASE.connection.execute('TRUNCATE owners, accounts, items')
  yield
ensure
  BASE.clear_active_connections!
end

def usable
  equal(BASE.connection.select_value('SELECT 40 + 2'), 42)
end

check('connects and empties the schema') do
  BASE.establish_connection(PLACE)
  BASE.connection.execute('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  equal(BASE.connection.database_version / 10_000, 15)
end

check('migrates up, down and up again') do
  equal(BASE.connection.transaction { First.migrate(:up); :done }, :done)
  Second.migrate(:up)
  equal(BASE.connection.columns(:items).map { |column| [column.name, column.sql_type, column.null] },
        [['id', 'integer', false], ['label', 'text', false], ['remark', 'text', true]])
  Second.migrate(:down)
  First.migrate(:down)
  equal(BASE.connection.tables, [])
  First.migrate(:up)
  Second.migrate(:up)
  equal(BASE.connection.tables.sort, %w[accounts items owners])
end

check('migrations are kept apart by a lock') do
  context = Class.new(ActiveRecord::MigrationContext) do
    def migrations
      [First, Second].each_with_index.map do |migration, at|
        ActiveRecord::MigrationProxy.new(migration.name, at + 1, "#{migration.name}.rb", '').tap do |proxy|
          proxy.instance_variable_set(:@migration, migration.new(migration.name, at + 1))
        end
      end
    end
  end.new([], ActiveRecord::SchemaMigration)
  BASE.connection.execute('DROP TABLE items, accounts, owners; DROP TYPE mood')
  context.up
  equal(context.current_version, 2)
  context.down
  equal(BASE.connection.tables.sort, %w[ar_internal_metadata schema_migrations])
  context.up
  equal(context.needs_migration?, false)
end

check('the schema is dumped and loaded') do
  dumped = StringIO.new
  # A type of its own has no place in that file.
  ActiveRecord::SchemaDumper.ignore_tables = ['accounts']
  ActiveRecord::SchemaDumper.dump(BASE.connection, dumped)
  said = dumped.string
  ['create_table "owners", comment: "who owns", force: :cascade', 't.string "name", limit: 40, null: false',
   't.index ["name"], name: "index_owners_on_name", unique: true',
   't.index "lower(remark)", name: "items_remark", where: "(remark IS NOT NULL)"'].each do |line|
    raise "#{line} is not in #{said}" unless said.include?(line)
  end
end

check('keys, indexes and constraints are read') do
  connection = BASE.connection
  key = connection.foreign_keys(:accounts).first
  equal([key.to_table, key.column, key.on_delete], ['owners', 'owner_id', :cascade])
  equal(connection.check_constraints(:accounts).map(&:name), ['account_not_below'])
  equal(connection.indexes(:accounts).map(&:columns), [['owner_id']])
  equal(connection.primary_key(:accounts), 'id')
  equal(connection.default_sequence_name(:accounts, :id), 'public.accounts_id_seq')
  equal(connection.enum_types.to_h['mood'].to_s.tr('{} ', ''), 'sad,ok,happy') if connection.respond_to?(:enum_types)
  equal(connection.extensions.include?('plpgsql'), true)
  equal(connection.table_comment(:owners), 'who owns')
end

check('objects are saved, found, changed and deleted') do
  emptied do
    owner = Owner.create!(name: 'ann')
    noon = Time.utc(2024, 2, 29, 12, 0, 1, 5)
    sent = { balance: BigDecimal('10.50'), mood: 'happy', tags: ['a', 'b,c', '"'], detail: { 'k' => [1, nil] },
             raw: "\x00\xff".b, born: Date.new(1999, 12, 31), share: 0.1, lasts: 3.days + 5.minutes, opened: noon }
    account = owner.accounts.create!(sent)
    got = Account.find(account.id)
    sent.each { |name, value| equal([name, got[name]], [name, value]) }
    raise 'no key' unless account.reload.key.match?(/\A\h{8}-/)
    equal(Account.where("detail ->> 'k' IS NOT NULL").where(mood: %w[ok happy]).update_all('balance = balance * 2'), 1)
    equal(Owner.joins(:accounts).group(:name).having('sum(balance) > ?', 1).sum(:balance), { 'ann' => BigDecimal('21') })
    equal(Owner.includes(:accounts).map { |one| one.accounts.size }, [1])
    equal(Account.where('tags @> ARRAY[?]', ['a']).pluck(:id), [account.id])
    got.balance = 1
    account.reload.update!(share: 0.2)
    begin
      got.save!
      raise 'an old version is saved'
    rescue ActiveRecord::StaleObjectError
      nil
    end
    owner.destroy!
    equal(Account.count, 0)
  end
end

check('many rows are written and read in batches') do
  emptied do
    Item.insert_all!((1..2000).map { |id| { id: id, label: "l#{id}" } })
    Item.upsert_all([{ id: 1, label: 'changed' }, { id: 3000, label: 'new' }])
    equal(Item.find_each(batch_size: 300).sum(&:id), 2_004_000)
    equal(Item.find(1).label, 'changed')
    equal(Item.insert({ id: 1, label: 'again' }).length, 0)
  end
end

check('transactions and savepoints nest') do
  emptied do
    Item.transaction(isolation: :repeatable_read) do
      equal(BASE.connection.select_value('SHOW transaction_isolation'), 'repeatable read')
      Item.create!(id: 1, label: 'kept')
      begin
        Item.transaction(requires_new: true) { Item.create!(id: 1, label: 'again') }
        raise 'no error'
      rescue ActiveRecord::RecordNotUnique
        nil
      end
      Item.lock('FOR UPDATE SKIP LOCKED').first!.update!(label: 'changed')
    end
    equal(Item.pluck(:label), ['changed'])
    Item.transaction { Item.create!(id: 2, label: 'x'); raise ActiveRecord::Rollback }
    equal(Item.count, 1)
  end
end

check('errors are told by their kind') do
  emptied do
    raised([[ActiveRecord::NotNullViolation, -> { Item.create!(id: 1, label: nil) }],
            [ActiveRecord::InvalidForeignKey, -> { BASE.connection.execute('INSERT INTO accounts (owner_id) VALUES (-1)') }],
            [ActiveRecord::ValueTooLong, -> { Owner.create!(name: 'x' * 41) }],
            [ActiveRecord::RangeError, -> { BASE.connection.execute('SELECT 2147483647 + 1') }],
            [ActiveRecord::QueryCanceled, -> { BASE.connection.execute('SET statement_timeout = 200; SELECT pg_sleep(20)') }],
            [ActiveRecord::StatementInvalid, -> { BASE.connection.execute('SELEC') }]])
    BASE.connection.execute('RESET statement_timeout')
    refused('42P01') { BASE.connection.execute('SELECT * FROM nowhere') }
    usable
  end
end

check('a prepared statement outlives a change of its table') do
  emptied do
    Item.create!(id: 1, label: 'a')
    equal(Item.find(1).attributes.size, 3)
    BASE.connection.execute('ALTER TABLE items ADD COLUMN more int')
    # It is prepared anew when the server says that its result has changed.
    equal(Item.find(1).label, 'a')
    BASE.connection.execute('ALTER TABLE items DROP COLUMN more')
    equal(Item.find(1).label, 'a')
    equal(Item.where(id: 1).explain.include?('QUERY PLAN'), true)
  end
end

check('threads share a pool, and locks are held across') do
  emptied do
    got = (1..8).map { |n| Thread.new { BASE.connection_pool.with_connection { |c| c.select_value("SELECT #{n}") } } }
    equal(got.map(&:value), (1..8).to_a)
    connection = BASE.connection
    equal(connection.get_advisory_lock(7), true)
    equal(connection.release_advisory_lock(7), true)
    connection.reset!
    usable
  end
end

check('a connection is encrypted', secured: true) do
  equal(BASE.connection.select_value('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), true)
  BASE.establish_connection(PLACE.merge(password: 'wrong'))
  begin
    BASE.connection
    raise 'is let in'
  rescue ActiveRecord::ActiveRecordError => error
    raise error unless error.message.include?('password authentication failed')
  end
end

main
