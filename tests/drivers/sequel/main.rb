# Sequel over ruby-pg, and ruby-pg itself, as an application uses them.

require 'sequel'
require 'checks'

Sequel.extension :migration, :pg_array_ops, :pg_json_ops

def open_database(**more)
  named = libpq_parameters
  driver = named.except(:host, :port, :user, :password, :dbname)
  place = { adapter: 'postgres', database: named[:dbname], driver_options: driver, max_connections: 4 }
  Sequel.connect(place.merge(named.slice(:host, :port, :user, :password)).merge(more)).tap do |db|
    db.extension :pg_array, :pg_json, :pg_interval, :pg_row, :pg_enum
  end
end

FIRST = Sequel.migration do
  up do
    extension :pg_enum
    create_enum :mood, %w[sad ok happy]
    create_table :owner do
      primary_key :id, type: :Bignum
      String :name, size: 40, null: false
      unique :name, name: :owner_name_once
    end
    create_table :account do
      primary_key :id
      foreign_key :owner_id, :owner, null: false, type: :Bignum, on_delete: :cascade, index: true
      uuid :key, null: false, default: Sequel.function(:gen_random_uuid)
      BigDecimal :balance, size: [14, 2], null: false, default: 0
      mood :mood, null: false, default: 'ok'
      column :tags, 'text[]', null: false, default: Sequel.lit("'{}'")
      jsonb :detail
      File :raw
      Float :share
      Date :born
      interval :lasts
      column :opened, :timestamptz
      constraint(:account_not_below) { balance >= 0 }
    end
    create_table(:item) { Integer :id, primary_key: true; String :label, text: true }
  end
  down do
    extension :pg_enum
    drop_table :item, :account, :owner
    drop_enum :mood
  end
end
SECOND = Sequel.migration do
  change do
    alter_table :item do
      add_column :note, String, size: 10
      add_index :note, unique: true, where: Sequel.lit('note IS NOT NULL'), concurrently: true
    end
    rename_column :item, :note, :remark
  end
  no_transaction
end

DB = open_database

# With empty tables.
def emptied
  DB[:owner].truncate(cascade: true)
  DB[:item].truncate
  yield
end

check('migrates up, down and up again') do
  DB.run('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  equal(DB.server_version / 10_000, 15)
  [[FIRST, :up], [SECOND, :up], [SECOND, :down], [FIRST, :down]].each { |migration, way| migration.apply(DB, way) }
  equal(DB.tables, [])
  [FIRST, SECOND].each { |migration| migration.apply(DB, :up) }
  equal(DB.tables.sort, %i[account item owner])
end

check('the schema is read') do
  DB.extension :pg_enum
  columns = DB.schema(:account).to_h
  equal(columns[:balance].values_at(:db_type, :allow_null, :type), ['numeric(14,2)', false, :decimal])
  equal(columns[:mood].values_at(:enum_values, :default), [%w[sad ok happy], "'ok'::mood"])
  equal(columns[:id][:primary_key], true)
  equal(DB.indexes(:account).values.map { |index| index[:columns] }, [[:owner_id]])
  key = DB.foreign_key_list(:account).first
  equal(key.values_at(:columns, :key, :on_delete), [[:owner_id], [:id], :cascade])
  equal(DB.check_constraints(:account).keys, [:account_not_below])
  equal([DB.primary_key(:owner), DB.primary_key_sequence(:owner)], ['id', '"public"."owner_id_seq"'])
  equal(DB.views, [])
end

check('rows are written, read, changed and deleted') do
  emptied do
    owner = DB[:owner].insert(name: 'ann')
    noon = Time.utc(2024, 2, 29, 12, 0, 1, 5)
    sent = { balance: BigDecimal('10.50'), mood: 'happy', tags: ['a', 'b,c', '"'], detail: { 'k' => [1, nil] },
             raw: "\x00\xff".b, share: 0.1, born: Date.new(1999, 12, 31), opened: noon }
    values = sent.merge(owner_id: owner, tags: Sequel.pg_array(sent[:tags], :text), detail: Sequel.pg_jsonb(sent[:detail]),
                        raw: Sequel.blob(sent[:raw]))
    got = DB[:account].returning.insert(values).first
    sent.each { |name, value| equal([name, got[name].respond_to?(:to_hash) ? got[name].to_hash : got[name]], [name, value]) }
    equal(DB[:account].where(Sequel.pg_jsonb_op(:detail).contains('k' => [1])).update(balance: Sequel[:balance] * 2), 1)
    equal(DB[:account].join(:owner, id: :owner_id).select_group(:name).select_append { sum(balance).as(all) }.first,
          { name: 'ann', all: BigDecimal('21') })
    equal(DB[:account].where(Sequel.pg_array_op(:tags).contains(Sequel.pg_array(['a'], :text))).count, 1)
    equal(DB.from(Sequel.function(:generate_series, 1, 3).as(:t, [:n])).select { [n, rank.function.over(order: n.desc).as(r)] }
      .order(:n).map(:r), [3, 2, 1])
    equal(DB[:owner].where(id: owner).delete, 1)
  end
end

check('rows are merged on conflict, and many inserted at once') do
  emptied do
    DB[:item].import(%i[id label], (1..2000).map { |id| [id, "l#{id}"] }, slice: 500)
    DB[:item].insert_conflict(target: :id, update: { label: Sequel[:excluded][:label] }).insert(id: 1, label: 'changed')
    equal(DB[:item].where(id: 1).get(:label), 'changed')
    equal(DB[:item].insert_conflict.insert(id: 1, label: 'again'), nil)
    equal(DB[:item].order(:id).paged_each(rows_per_fetch: 100).sum { |row| row[:id] }, 2_001_000)
    equal(DB[:item].use_cursor(rows_per_fetch: 50, hold: true).map { |row| row[:id] }.size, 2000)
    DB.create_or_replace_view(:few, DB[:item].where { id < 3 })
    equal(DB[:few].count, 2)
    DB.drop_view(:few)
  end
end

check('copy goes both ways') do
  emptied do
    DB.copy_into(:item, columns: %i[id label], data: (1..3000).map { |id| "#{id}\tlabel #{id}\n" })
    binary = DB.copy_table(DB[:item].select(:id, :label).order(:id), format: :binary)
    DB[:item].truncate
    DB.copy_into(:item, columns: %i[id label], format: :binary, data: binary)
    equal(DB.copy_table(DB[:item].select(:id, :label).where { id < 3 }.order(:id), format: :csv), "1,label 1\n2,label 2\n")
    refused('22P02') { DB.copy_into(:item, data: ["x\ty\n"]) }
    equal(DB[:item].count, 3000)
  end
end

check('statements are prepared') do
  emptied do
    DB[:item].insert(id: 1, label: 'a')
    by_id = DB[:item].where(id: :$id).prepare(:first, :by_id)
    3.times { equal(by_id.call(id: 1)[:label], 'a') }
    DB.synchronize do |connection|
      connection.prepare('double', 'SELECT $1::int * 2')
      equal(connection.exec_prepared('double', [21], 1).getvalue(0, 0), [42].pack('N'))
      equal(connection.describe_prepared('double').paramtype(0), 23)
      equal(connection.exec_params('SELECT $1::bytea', [{ value: "\x00\xff".b, format: 1 }], 1).getvalue(0, 0), "\x00\xff".b)
    end
  end
end

check('a pipeline answers in order') do
  DB.synchronize do |connection|
    connection.enter_pipeline_mode
    3.times { |n| connection.send_query_params('SELECT $1::int', [n]) }
    connection.pipeline_sync
    got = 3.times.map { connection.get_result.getvalue(0, 0).tap { connection.get_result } }
    equal(got, %w[0 1 2])
    equal(connection.get_result.result_status, PG::PGRES_PIPELINE_SYNC)
    connection.exit_pipeline_mode
  end
end

check('transactions and savepoints nest') do
  emptied do
    DB.transaction(isolation: :repeatable) do
      equal(DB.get(Sequel.function(:current_setting, 'transaction_isolation')), 'repeatable read')
      DB[:item].insert(id: 1)
      begin
        DB.transaction(savepoint: true) { DB[:item].insert(id: 1) }
        raise 'no error'
      rescue Sequel::UniqueConstraintViolation => error
        equal(sqlstate(error), '23505')
      end
      equal(DB[:item].for_update.skip_locked.map(:id), [1])
    end
    DB.transaction(rollback: :always, read_only: true) { refused('25006') { DB[:item].delete } }
    equal(DB[:item].count, 1)
  end
end

check('errors are told by their kind') do
  emptied do
    raised([[Sequel::NotNullConstraintViolation, -> { DB[:owner].insert(name: nil) }],
            [Sequel::ForeignKeyConstraintViolation, -> { DB[:account].insert(owner_id: -1) }],
            [Sequel::CheckConstraintViolation, -> { DB[:account].insert(owner_id: DB[:owner].insert(name: 'x'), balance: -1) }],
            [Sequel::DatabaseLockTimeout, lambda {
              DB[:item].insert(id: 1)
              DB.transaction do
                DB[:item].where(id: 1).for_update.first
                Thread.new { DB[:item].where(id: 1).for_update.nowait.first }.tap { |t| t.report_on_exception = false }.value
              end
            }]])
    refused('42P01') { DB[:nowhere].all }
  end
end

check('notifications arrive') do
  heard = Thread.new do
    got = nil
    DB.listen('news', timeout: 10) { |channel, _, payload| got = [channel, payload] }
    got
  end
  until heard.stop? && DB[:pg_stat_activity].where(Sequel.like(:query, 'LISTEN%')).any?
    sleep 0.05
  end
  DB.notify('news', payload: 'first')
  equal(heard.value, %w[news first])
end

check('a running query is cancelled') do
  DB.synchronize do |connection|
    connection.send_query('SELECT pg_sleep(20)')
    sleep 0.2
    equal(connection.cancel, nil)
    refused('57014') { connection.get_last_result }
    equal(connection.exec('SELECT 1').getvalue(0, 0), '1')
  end
end

check('a connection is encrypted and bound to its server', secured: true) do
  other = open_database(driver_options: libpq_parameters.slice(:sslmode, :sslrootcert).merge(channel_binding: 'require'))
  equal(other.get(Sequel.lit('(SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())')), true)
  begin
    open_database(password: 'wrong')
    raise 'is let in'
  rescue Sequel::DatabaseConnectionError => error
    raise error unless error.message.include?('password authentication failed')
  end
end

main
