// pgx as an application uses it: its own interface, its pool, and database/sql over it.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const schema = `
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE place AS (street text, number int);
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
    IF NOT FOUND THEN RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0002'; END IF;
    RETURN after;
END $$;
CREATE PROCEDURE rename(p_id bigint, INOUT p_name text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner SET name = p_name WHERE id = p_id;
    p_name := upper(p_name);
END $$;
`

// Every way in which pgx can send a statement.
var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement,
	pgx.QueryExecModeCacheDescribe,
	pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

func connect(ctx context.Context) *pgx.Conn {
	connection, err := pgx.Connect(ctx, url)
	must(err)
	return connection
}

func connectAs(ctx context.Context, change func(*pgx.ConnConfig)) *pgx.Conn {
	config, err := pgx.ParseConfig(url)
	must(err)
	change(config)
	connection, err := pgx.ConnectConfig(ctx, config)
	must(err)
	return connection
}

func end(connection *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = connection.Close(ctx)
}

type querier interface {
	Exec(ctx context.Context, text string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, text string, arguments ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, arguments ...any) pgx.Row
}

func refused(sqlstate string, err error) *pgconn.PgError {
	return refusedAs[*pgconn.PgError](sqlstate, err)
}

func exec(ctx context.Context, on querier, text string, arguments ...any) string {
	tag, err := on.Exec(ctx, text, arguments...)
	must(err)
	return tag.String()
}

func failing(ctx context.Context, on querier, sqlstate, text string, arguments ...any) *pgconn.PgError {
	_, err := on.Exec(ctx, text, arguments...)
	return refused(sqlstate, err)
}

func one[T any](ctx context.Context, on querier, text string, arguments ...any) T {
	var value T
	must(on.QueryRow(ctx, text, arguments...).Scan(&value))
	return value
}

func all[T any](ctx context.Context, on querier, text string, arguments ...any) []T {
	rows, err := on.Query(ctx, text, arguments...)
	must(err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	must(err)
	return values
}

func usable(ctx context.Context, on querier) {
	equal(one[int](ctx, on, "SELECT 40 + $1::int", 2), 42)
}

func migrates(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	equal(exec(ctx, connection, schema), "CREATE PROCEDURE")
	equal(connection.PgConn().ParameterStatus("server_version")[:3], "15.")
}

func values(ctx context.Context) {
	for _, mode := range modes {
		connection := connectAs(ctx, func(config *pgx.ConnConfig) { config.DefaultQueryExecMode = mode })
		noon := time.Date(2024, 2, 29, 12, 0, 1, 5000, time.UTC)
		equal(one[bool](ctx, connection, "SELECT $1::bool", true), true)
		equal(one[int16](ctx, connection, "SELECT $1::smallint", int16(-7)), int16(-7))
		equal(one[int64](ctx, connection, "SELECT $1::bigint", int64(math.MinInt64)), int64(math.MinInt64))
		equal(one[float64](ctx, connection, "SELECT $1::float8", 0.1), 0.1)
		equal(one[string](ctx, connection, "SELECT $1::text", "žluťoučký \n'\\"), "žluťoučký \n'\\")
		equal(one[[]byte](ctx, connection, "SELECT $1::bytea", []byte{0, 255, 1}), []byte{0, 255, 1})
		equal(one[time.Time](ctx, connection, "SELECT $1::timestamptz", noon).UTC(), noon)
		equal(one[time.Time](ctx, connection, "SELECT $1::timestamp", noon), noon)
		equal(one[time.Time](ctx, connection, "SELECT $1::date", noon), time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
		number := pgtype.Numeric{Int: big.NewInt(1234567890123), Exp: -5, Valid: true}
		equal(one[string](ctx, connection, "SELECT ($1::numeric)::text", number), "12345678.90123")
		key := pgtype.UUID{Bytes: [16]byte{1, 2, 3, 15: 16}, Valid: true}
		equal(one[pgtype.UUID](ctx, connection, "SELECT $1::uuid", key), key)
		equal(one[[]int32](ctx, connection, "SELECT $1::int[]", []int32{1, 2, 3}), []int32{1, 2, 3})
		equal(one[[]string](ctx, connection, "SELECT $1::text[]", []string{"a", "b,c", `"`}), []string{"a", "b,c", `"`})
		equal(one[*string](ctx, connection, "SELECT $1::text", nil), (*string)(nil))
		equal(one[string](ctx, connection, "SELECT $1::mood", "happy"), "happy")
		interval := pgtype.Interval{Months: 1, Days: 2, Microseconds: 3, Valid: true}
		equal(one[pgtype.Interval](ctx, connection, "SELECT $1::interval", interval), interval)
		if mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol {
			detail := map[string]any{"a": []any{1.0, nil}}
			equal(one[map[string]any](ctx, connection, "SELECT $1::jsonb", detail), detail)
		}
		end(connection)
	}
}

func composites(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	types, err := connection.LoadType(ctx, "place")
	must(err)
	connection.TypeMap().RegisterType(types)
	enum, err := connection.LoadType(ctx, "mood")
	must(err)
	connection.TypeMap().RegisterType(enum)
	type place struct {
		Street string
		Number int
	}
	equal(one[place](ctx, connection, "SELECT $1::place", place{"Main", 5}), place{"Main", 5})
	equal(one[string](ctx, connection, "SELECT ($1::place).street", place{"Main", 5}), "Main")
	equal(one[[]string](ctx, connection, "SELECT enum_range(NULL::mood)::text[]"), []string{"sad", "ok", "happy"})
	for _, mode := range modes[:3] {
		var street string
		var number int
		must(connection.QueryRow(ctx, "SELECT ROW('Side', 6)::place", mode).Scan(pgtype.CompositeFields{&street, &number}))
		equal(street, "Side")
	}
}

func work(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	owner := one[int64](ctx, connection, "INSERT INTO owner (name) VALUES ($1) RETURNING id", "ann")
	id := one[int](ctx, connection,
		"INSERT INTO account (owner_id, balance, tags, detail, mood) VALUES ($1, $2, $3, $4, $5) RETURNING id",
		owner, "10.50", []string{"x"}, json.RawMessage(`{"k": 1}`), "happy")
	type account struct {
		ID      int
		Balance pgtype.Numeric
		Tags    []string
		Opened  time.Time
	}
	rows, err := connection.Query(ctx, "SELECT id, balance, tags, opened FROM account WHERE owner_id = @owner",
		pgx.NamedArgs{"owner": owner})
	must(err)
	got, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[account])
	must(err)
	equal(got.Balance, pgtype.Numeric{Int: big.NewInt(1050), Exp: -2, Valid: true})
	equal(got.Tags, []string{"x"})
	equal(exec(ctx, connection, "UPDATE account SET balance = balance * 2 WHERE id = ANY ($1)", []int{id, -1}), "UPDATE 1")
	equal(exec(ctx, connection, "DELETE FROM account"), "DELETE 1")
	equal(exec(ctx, connection, "DELETE FROM owner"), "DELETE 1")
	empty := connection.QueryRow(ctx, "SELECT id FROM account").Scan(&id)
	equal(errors.Is(empty, pgx.ErrNoRows), true)
}

func transactions(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	must(pgx.BeginFunc(ctx, connection, func(outer pgx.Tx) error {
		exec(ctx, outer, "INSERT INTO item VALUES (1, 'kept')")
		err := pgx.BeginFunc(ctx, outer, func(inner pgx.Tx) error {
			exec(ctx, inner, "INSERT INTO item VALUES (2, 'gone')")
			_, err := inner.Exec(ctx, "INSERT INTO item VALUES ($1, 'again')", 1)
			return err
		})
		refused("23505", err)
		exec(ctx, outer, "INSERT INTO item VALUES (3, 'kept')")
		return nil
	}))
	equal(all[int](ctx, connection, "SELECT id FROM item ORDER BY id"), []int{1, 3})
	options := pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}
	tx, err := connection.BeginTx(ctx, options)
	must(err)
	equal(one[string](ctx, tx, "SHOW transaction_isolation"), "serializable")
	failing(ctx, tx, "25006", "DELETE FROM item")
	failing(ctx, tx, "25P02", "SELECT 1")
	must(tx.Rollback(ctx))
	tx, err = connection.Begin(ctx)
	must(err)
	exec(ctx, tx, "DELETE FROM item")
	failing(ctx, tx, "22012", "SELECT 1 / $1::int", 0)
	equal(errors.Is(tx.Commit(ctx), pgx.ErrTxCommitRollback), true)
	equal(exec(ctx, connection, "DELETE FROM item"), "DELETE 2")
}

func batches(ctx context.Context) {
	for _, mode := range modes {
		connection := connectAs(ctx, func(config *pgx.ConnConfig) { config.DefaultQueryExecMode = mode })
		batch := &pgx.Batch{}
		for n := 0; n < 200; n++ {
			batch.Queue("INSERT INTO item VALUES ($1, $2)", n, fmt.Sprint("l", n))
		}
		sum := 0
		batch.Queue("SELECT sum(id)::int FROM item").QueryRow(func(row pgx.Row) error { return row.Scan(&sum) })
		must(connection.SendBatch(ctx, batch).Close())
		equal(sum, 19900)
		// One transaction of its own: what came before the failure is undone with it.
		failed := &pgx.Batch{}
		failed.Queue("INSERT INTO item VALUES ($1, 'x')", 1000)
		failed.Queue("SELECT 1 / $1::int", 0)
		failed.Queue("INSERT INTO item VALUES ($1, 'y')", 1001)
		refused("22012", connection.SendBatch(ctx, failed).Close())
		equal(one[int](ctx, connection, "SELECT count(*)::int FROM item"), 200)
		wrong := &pgx.Batch{}
		wrong.Queue("SELECT 1")
		wrong.Queue("SELEC 2")
		refused("42601", connection.SendBatch(ctx, wrong).Close())
		usable(ctx, connection)
		exec(ctx, connection, "DELETE FROM item")
		end(connection)
	}
}

func pipelines(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	pipeline := connection.PgConn().StartPipeline(ctx)
	pipeline.SendPrepare("double", "SELECT $1::int * 2", nil)
	pipeline.SendQueryPrepared("double", [][]byte{[]byte("21")}, nil, nil)
	pipeline.SendQueryParams("SELECT $1::int", [][]byte{[]byte("x")}, nil, nil, nil)
	pipeline.SendQueryParams("SELECT 1", nil, nil, nil, nil)
	must(pipeline.Sync())
	got, err := pipeline.GetResults()
	must(err)
	equal(len(got.(*pgconn.StatementDescription).ParamOIDs), 1)
	got, err = pipeline.GetResults()
	must(err)
	equal(got.(*pgconn.ResultReader).Read().Rows, [][][]byte{{[]byte("42")}})
	got, err = pipeline.GetResults()
	if err == nil {
		err = got.(*pgconn.ResultReader).Read().Err
	}
	refused("22P02", err)
	got, err = pipeline.GetResults()
	must(err)
	_, synced := got.(*pgconn.PipelineSync)
	equal(synced, true)
	must(pipeline.Close())
	usable(ctx, connection)
}

// flushed speaks the protocol itself: a failure is answered on a Flush, before any Sync.
func flushed(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	frontend := connection.PgConn().Frontend()
	until, _ := ctx.Deadline()
	must(connection.PgConn().Conn().SetDeadline(until))
	frontend.Send(&pgproto3.Parse{Query: "SELEC 1"})
	frontend.Send(&pgproto3.Describe{ObjectType: 'S'})
	frontend.Send(&pgproto3.Flush{})
	must(frontend.Flush())
	message, err := frontend.Receive()
	must(err)
	said, failed := message.(*pgproto3.ErrorResponse)
	equal(failed, true)
	equal(said.Code, "42601")
	frontend.Send(&pgproto3.Sync{})
	must(frontend.Flush())
	message, err = frontend.Receive()
	must(err)
	equal(message, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	must(connection.PgConn().Conn().SetDeadline(time.Time{}))
	usable(ctx, connection)
}

func copies(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	var lines bytes.Buffer
	for n := 0; n < 3000; n++ {
		fmt.Fprintf(&lines, "%d\tlabel %d\n", n, n)
	}
	tag, err := connection.PgConn().CopyFrom(ctx, &lines, "COPY item FROM STDIN")
	must(err)
	equal(tag.RowsAffected(), int64(3000))
	var out strings.Builder
	_, err = connection.PgConn().CopyTo(ctx, &out, "COPY (SELECT * FROM item WHERE id < 2 ORDER BY id) TO STDOUT")
	must(err)
	equal(out.String(), "0\tlabel 0\n1\tlabel 1\n")
	_, err = connection.PgConn().CopyFrom(ctx, strings.NewReader("x\ty\n"), "COPY item FROM STDIN")
	refused("22P02", err)
	_, err = connection.PgConn().CopyFrom(ctx, strings.NewReader("x\ty\n"), "COPY nowhere FROM STDIN")
	refused("42P01", err)
	usable(ctx, connection)
	equal(exec(ctx, connection, "DELETE FROM item"), "DELETE 3000")
}

func prepared(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	statement, err := connection.Prepare(ctx, "by id", "SELECT label, id FROM item WHERE id = $1")
	must(err)
	equal(statement.ParamOIDs, []uint32{23})
	equal(statement.Fields[0].DataTypeOID, uint32(25))
	equal(len(all[string](ctx, connection, "SELECT label FROM item WHERE id = $1", 1)), 0)
	_, err = connection.Prepare(ctx, "wrong", "SELEC $1")
	refused("42601", err)
	usable(ctx, connection)
	must(connection.Deallocate(ctx, "by id"))
	exec(ctx, connection, "INSERT INTO item VALUES (1, 'a')")
	text := "SELECT * FROM item WHERE id = $1"
	count := func() (int, error) {
		rows, err := connection.Query(ctx, text, 1)
		if err != nil {
			return 0, err
		}
		rows.Close()
		return len(rows.FieldDescriptions()), rows.Err()
	}
	columns, err := count()
	must(err)
	equal(columns, 2)
	other := connect(ctx)
	defer end(other)
	exec(ctx, other, "ALTER TABLE item ADD COLUMN more int")
	_, err = count()
	equal(refused("0A000", err).Routine, "RevalidateCachedQuery")
	// pgx forgets what failed so and prepares it anew.
	columns, err = count()
	must(err)
	equal(columns, 3)
	exec(ctx, other, "ALTER TABLE item DROP COLUMN more")
	exec(ctx, other, "DELETE FROM item")
}

func cursors(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	tx, err := connection.Begin(ctx)
	must(err)
	exec(ctx, tx, "DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, $1::int) AS n", 100)
	equal(all[int](ctx, tx, "FETCH 3 FROM c"), []int{1, 2, 3})
	equal(exec(ctx, tx, "MOVE 10 IN c"), "MOVE 10")
	equal(all[int](ctx, tx, "FETCH BACKWARD 2 FROM c"), []int{12, 11})
	equal(all[int](ctx, tx, "FETCH ABSOLUTE 50 FROM c"), []int{50})
	exec(ctx, tx, "CLOSE c")
	must(tx.Rollback(ctx))
	// Rows that are left unread do not harm what follows.
	rows, err := connection.Query(ctx, "SELECT n FROM generate_series(1, 100000) AS n")
	must(err)
	rows.Next()
	rows.Close()
	usable(ctx, connection)
}

func notifications(ctx context.Context) {
	listener := connect(ctx)
	defer end(listener)
	var notices []string
	sender := connectAs(ctx, func(config *pgx.ConnConfig) {
		config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
			notices = append(notices, notice.Severity+" "+notice.Message)
		}
	})
	defer end(sender)
	exec(ctx, listener, "LISTEN news")
	exec(ctx, sender, "SELECT pg_notify('news', $1)", "first")
	got, err := listener.WaitForNotification(ctx)
	must(err)
	equal(*got, pgconn.Notification{PID: sender.PgConn().PID(), Channel: "news", Payload: "first"})
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = listener.WaitForNotification(short)
	equal(pgconn.Timeout(err), true)
	usable(ctx, listener)
	exec(ctx, sender, "DO $$ BEGIN RAISE NOTICE 'hello %', 1; END $$")
	equal(notices, []string{"NOTICE hello 1"})
}

func routines(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	owner := one[int64](ctx, connection, "INSERT INTO owner (name) VALUES ('bob') RETURNING id")
	account := one[int](ctx, connection, "INSERT INTO account (owner_id) VALUES ($1) RETURNING id", owner)
	equal(one[string](ctx, connection, "SELECT deposit($1, $2)::text", account, 2.5), "2.50")
	equal(one[string](ctx, connection, "CALL rename($1, $2)", owner, "bert"), "BERT")
	said := failing(ctx, connection, "P0002", "SELECT deposit($1, 1)", -1)
	equal(said.Message, "no account -1")
	equal(said.Where, "PL/pgSQL function deposit(integer,numeric) line 5 at RAISE")
	exec(ctx, connection, "DELETE FROM account")
	exec(ctx, connection, "DELETE FROM owner")
}

func outParameters(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	exec(ctx, connection, `CREATE PROCEDURE split(p_text text, OUT p_first text, INOUT p_rest refcursor) LANGUAGE plpgsql
		AS $$ BEGIN p_first := left(p_text, 1); OPEN p_rest FOR SELECT substr(p_text, 2); END $$`)
	for _, mode := range modes {
		tx, err := connection.Begin(ctx)
		must(err)
		var first, rest string
		must(tx.QueryRow(ctx, "CALL split($1, NULL, $2)", mode, "abc", "c").Scan(&first, &rest))
		equal([]string{first, rest}, []string{"a", "c"})
		equal(all[string](ctx, tx, "FETCH ALL FROM c", mode), []string{"bc"})
		must(tx.Commit(ctx))
	}
	exec(ctx, connection, "DROP PROCEDURE split")
}

func mistakes(ctx context.Context) {
	for _, mode := range modes {
		connection := connectAs(ctx, func(config *pgx.ConnConfig) { config.DefaultQueryExecMode = mode })
		said := failing(ctx, connection, "42601", "SELEC $1::int", 1)
		equal(said.Message, `syntax error at or near "SELEC"`)
		equal(said.Position, int32(1))
		failing(ctx, connection, "42P01", "SELECT * FROM nowhere WHERE a = $1::int", 1)
		failing(ctx, connection, "42703", "SELECT lable FROM item")
		failing(ctx, connection, "22012", "SELECT 1 / $1::int", 0)
		usable(ctx, connection)
		end(connection)
	}
}

func violations(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	exec(ctx, connection, "INSERT INTO owner (name) VALUES ('cid')")
	said := failing(ctx, connection, "23505", "INSERT INTO owner (name) VALUES ($1)", "cid")
	equal([]string{said.SchemaName, said.TableName, said.ConstraintName}, []string{"public", "owner", "owner_name_once"})
	equal(said.Detail, "Key (name)=(cid) already exists.")
	said = failing(ctx, connection, "23503", "INSERT INTO account (owner_id) VALUES ($1)", -1)
	equal(said.ConstraintName, "account_owner_id_fkey")
	said = failing(ctx, connection, "23502", "INSERT INTO owner (name) VALUES ($1)", nil)
	equal(said.ColumnName, "name")
	exec(ctx, connection, "DELETE FROM owner")
}

func cancelling(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	timer := time.AfterFunc(300*time.Millisecond, func() { _ = connection.PgConn().CancelRequest(ctx) })
	defer timer.Stop()
	said := failing(ctx, connection, "57014", "SELECT pg_sleep($1)", 20)
	equal(said.Message, "canceling statement due to user request")
	usable(ctx, connection)
	limited := connectAs(ctx, func(config *pgx.ConnConfig) { config.RuntimeParams["statement_timeout"] = "200" })
	defer end(limited)
	said = failing(ctx, limited, "57014", "SELECT pg_sleep($1)", 20)
	equal(said.Message, "canceling statement due to statement timeout")
	usable(ctx, limited)
	// A context that ends closes the connection.
	exec(ctx, limited, "SET statement_timeout = 0")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := limited.Exec(short, "SELECT pg_sleep(20)")
	equal(errors.Is(err, context.DeadlineExceeded), true)
	equal(limited.IsClosed(), true)
}

func locks(ctx context.Context) {
	first, second := connect(ctx), connect(ctx)
	defer end(first)
	defer end(second)
	exec(ctx, first, "INSERT INTO item VALUES (5, 'five')")
	tx, err := first.Begin(ctx)
	must(err)
	exec(ctx, tx, "UPDATE item SET label = 'six' WHERE id = $1", 5)
	exec(ctx, second, "SET lock_timeout = '200ms'")
	failing(ctx, second, "55P03", "UPDATE item SET label = 'seven' WHERE id = $1", 5)
	failing(ctx, second, "55P03", "SELECT * FROM item WHERE id = $1 FOR UPDATE NOWAIT", 5)
	equal(len(all[string](ctx, second, "SELECT label FROM item WHERE id = $1 FOR UPDATE SKIP LOCKED", 5)), 0)
	must(tx.Commit(ctx))
	equal(one[string](ctx, second, "DELETE FROM item WHERE id = $1 RETURNING label", 5), "six")
}

func serializable(ctx context.Context) {
	first, second := connect(ctx), connect(ctx)
	defer end(first)
	defer end(second)
	exec(ctx, first, "INSERT INTO item VALUES (1, 'a'), (2, 'b')")
	begin := func(connection *pgx.Conn) pgx.Tx {
		tx, err := connection.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
		must(err)
		all[string](ctx, tx, "SELECT label FROM item")
		return tx
	}
	one, two := begin(first), begin(second)
	outcomes := make(chan string, 2)
	finish := func(tx pgx.Tx, id int) {
		_, err := tx.Exec(ctx, "UPDATE item SET label = 'c' WHERE id = $1", id)
		if err == nil {
			err = tx.Commit(ctx)
		} else {
			_ = tx.Rollback(ctx)
		}
		var said *pgconn.PgError
		switch {
		case err == nil:
			outcomes <- "done"
		case errors.As(err, &said):
			outcomes <- said.Code
		default:
			outcomes <- err.Error()
		}
	}
	go finish(one, 1)
	go finish(two, 2)
	got := []string{<-outcomes, <-outcomes}
	sort.Strings(got)
	if got[0] == "40P01" {
		got[0] = "40001"
	}
	equal(got, []string{"40001", "done"})
	usable(ctx, first)
	usable(ctx, second)
	exec(ctx, first, "DELETE FROM item")
}

func pools(ctx context.Context) {
	pool, err := pgxpool.New(ctx, url)
	must(err)
	defer pool.Close()
	must(pool.Ping(ctx))
	done := make(chan error, 40)
	for n := 0; n < 40; n++ {
		go func(n int) {
			var got int
			err := pool.QueryRow(ctx, "SELECT $1::int", n).Scan(&got)
			if err == nil && got != n {
				err = fmt.Errorf("%d where PostgreSQL has %d", got, n)
			}
			done <- err
		}(n)
	}
	for n := 0; n < 40; n++ {
		must(<-done)
	}
}

func standard(ctx context.Context) {
	database, err := sql.Open("pgx", url)
	must(err)
	defer database.Close()
	must(database.PingContext(ctx))
	tx, err := database.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	must(err)
	statement, err := tx.PrepareContext(ctx, "INSERT INTO item VALUES ($1, $2)")
	must(err)
	for n := 0; n < 10; n++ {
		_, err := statement.ExecContext(ctx, n, sql.NullString{})
		must(err)
	}
	var count int
	must(tx.QueryRowContext(ctx, "SELECT count(*) FROM item WHERE label IS NULL").Scan(&count))
	equal(count, 10)
	_, err = tx.ExecContext(ctx, "INSERT INTO item VALUES ($1, $2)", 1, "again")
	refused("23505", err)
	must(tx.Rollback())
	rows, err := database.QueryContext(ctx, "SELECT id, balance, opened FROM account")
	must(err)
	kinds, err := rows.ColumnTypes()
	must(err)
	equal(kinds[1].DatabaseTypeName(), "NUMERIC")
	precision, scale, known := kinds[1].DecimalSize()
	equal([]any{precision, scale, known}, []any{int64(14), int64(2), true})
	must(rows.Close())
}

func rowsCompared(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	exec(ctx, connection, "INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	after := all[int](ctx, connection, "SELECT id FROM item WHERE (id, label) > ($1, $2) ORDER BY id, label", 1, "a")
	equal(after, []int{2, 3})
	among := all[int](ctx, connection, "SELECT id FROM item WHERE (id, label) IN (($1, $2), ($3, $4))", 1, "a", 3, "x")
	equal(among, []int{1})
	exec(ctx, connection, "DELETE FROM item")
}

func main() {
	checks := []check{
		{"migrates with many statements at once", migrates},
		{"values come back as they went, in every mode", values},
		{"composites and enums are loaded", composites},
		{"rows are written, read, changed and deleted", work},
		{"transactions and savepoints nest", transactions},
		{"batches run in every mode", batches},
		{"a pipeline answers in order", pipelines},
		{"a failure is answered before its Sync", flushed},
		{"copy goes both ways", copies},
		{"rows are copied in binary", packed},
		{"statements are prepared, and anew when a table changed", prepared},
		{"SQL cursors are fetched and moved", cursors},
		{"notifications and notices arrive", notifications},
		{"functions and procedures are called", routines},
		{"procedures have OUT parameters and cursors", outParameters},
		{"a syntax error leaves the connection usable, in every mode", mistakes},
		{"a violation names its constraint", violations},
		{"a running query is cancelled and times out", cancelling},
		{"waiting for a lock times out", locks},
		{"serializable transactions that cannot both be", serializable},
		{"a pool serves many", pools},
		{"database/sql works over it", standard},
		{"row comparisons take parameters", rowsCompared},
	}
	if strings.Contains(url, "sslmode=verify-full") {
		checks = append(checks, check{"a connection is encrypted and its user known", encrypted})
	}
	runAll(checks)
}
