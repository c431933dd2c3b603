// lib/pq over database/sql, and GORM over pgx, as an application uses them.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
)

const schema = `
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE item (id int PRIMARY KEY, label text CONSTRAINT item_label_once UNIQUE);
CREATE TABLE packed (
    id serial PRIMARY KEY,
    balance numeric(14, 2),
    mood mood NOT NULL DEFAULT 'ok',
    tags text[],
    numbers bigint[],
    detail jsonb,
    raw bytea,
    opened timestamptz
);
CREATE PROCEDURE split(p_text text, OUT p_first text, INOUT p_rest refcursor) LANGUAGE plpgsql
AS $$ BEGIN p_first := left(p_text, 1); OPEN p_rest FOR SELECT substr(p_text, 2); END $$;
`

var noon = time.Date(2024, 2, 29, 12, 0, 1, 5000, time.UTC)

func refused(sqlstate string, err error) *pq.Error {
	return refusedAs[*pq.Error](sqlstate, err)
}

func open(parameters string) *sql.DB {
	database, err := sql.Open("postgres", with(parameters))
	must(err)
	return database
}

// with adds parameters (`&name=value`) to the URL.
func with(parameters string) string {
	if !strings.Contains(url, "?") {
		parameters = "?sslmode=disable" + parameters
	}
	return url + parameters
}

type querier interface {
	QueryRowContext(ctx context.Context, text string, arguments ...any) *sql.Row
	ExecContext(ctx context.Context, text string, arguments ...any) (sql.Result, error)
}

func one[T any](ctx context.Context, on querier, text string, arguments ...any) T {
	var value T
	must(on.QueryRowContext(ctx, text, arguments...).Scan(&value))
	return value
}

func exec(ctx context.Context, on querier, text string, arguments ...any) int64 {
	done, err := on.ExecContext(ctx, text, arguments...)
	must(err)
	count, err := done.RowsAffected()
	must(err)
	return count
}

func failing(ctx context.Context, on querier, sqlstate, text string, arguments ...any) *pq.Error {
	_, err := on.ExecContext(ctx, text, arguments...)
	return refused(sqlstate, err)
}

func usable(ctx context.Context, on querier) {
	equal(one[int](ctx, on, "SELECT 40 + $1::int", 2), 42)
}

func migrates(ctx context.Context) {
	database := open("")
	defer database.Close()
	must(database.PingContext(ctx))
	exec(ctx, database, schema)
	usable(ctx, database)
}

func values(ctx context.Context) {
	for _, parameters := range []string{"", "&binary_parameters=yes"} {
		database := open(parameters)
		insert := `INSERT INTO packed (balance, mood, tags, numbers, detail, raw, opened)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`
		id := one[int](ctx, database, insert, "10.50", "happy", pq.Array([]string{"a", "b,c", `"`}),
			pq.Array([]int64{1, -2}), `{"k": [1, null]}`, []byte{0, 255, 1}, noon)
		var balance, mood, detail string
		var tags []string
		var numbers []int64
		var raw []byte
		var opened time.Time
		row := database.QueryRowContext(ctx, "SELECT balance, mood, tags, numbers, detail, raw, opened FROM packed WHERE id = $1", id)
		must(row.Scan(&balance, &mood, pq.Array(&tags), pq.Array(&numbers), &detail, &raw, &opened))
		equal([]string{balance, mood, detail}, []string{"10.50", "happy", `{"k": [1, null]}`})
		equal(tags, []string{"a", "b,c", `"`})
		equal(numbers, []int64{1, -2})
		equal(raw, []byte{0, 255, 1})
		equal(opened.UTC(), noon)
		equal(one[float64](ctx, database, "SELECT $1::float8", 0.1), 0.1)
		equal(one[bool](ctx, database, "SELECT $1::bool", true), true)
		equal(one[string](ctx, database, "SELECT $1::text", "žluťoučký \n'\\"), "žluťoučký \n'\\")
		equal(one[sql.NullInt64](ctx, database, "SELECT $1::int", nil), sql.NullInt64{})
		equal(exec(ctx, database, "DELETE FROM packed WHERE id = ANY ($1)", pq.Array([]int{id})), int64(1))
		database.Close()
	}
}

func transactions(ctx context.Context) {
	database := open("")
	defer database.Close()
	tx, err := database.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	must(err)
	equal(one[string](ctx, tx, "SHOW transaction_isolation"), "repeatable read")
	exec(ctx, tx, "INSERT INTO item VALUES (1, 'kept')")
	exec(ctx, tx, "SAVEPOINT one")
	said := failing(ctx, tx, "23505", "INSERT INTO item VALUES ($1, $2)", 2, "kept")
	equal([]string{said.Table, said.Constraint, said.Detail}, []string{"item", "item_label_once", "Key (label)=(kept) already exists."})
	failing(ctx, tx, "25P02", "SELECT 1")
	exec(ctx, tx, "ROLLBACK TO one")
	must(tx.Commit())
	tx, err = database.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
	must(err)
	failing(ctx, tx, "25006", "DELETE FROM item")
	must(tx.Rollback())
	equal(exec(ctx, database, "DELETE FROM item"), int64(1))
}

// copies is the driver's own way into COPY.
func copies(ctx context.Context) {
	database := open("")
	defer database.Close()
	tx, err := database.BeginTx(ctx, nil)
	must(err)
	statement, err := tx.PrepareContext(ctx, pq.CopyIn("packed", "balance", "tags", "raw", "opened"))
	must(err)
	for n := 0; n < 2000; n++ {
		_, err = statement.ExecContext(ctx, fmt.Sprint(n, ".5"), pq.Array([]string{"a\tb", `\`}), []byte{0, 10}, noon)
		must(err)
	}
	_, err = statement.ExecContext(ctx)
	must(err)
	must(statement.Close())
	equal(one[string](ctx, tx, "SELECT concat(count(*), ' ', sum(balance), ' ', min(tags)) FROM packed"),
		`2000 2000000.00 {"a	b","\\"}`)
	must(tx.Rollback())
	tx, err = database.BeginTx(ctx, nil)
	must(err)
	statement, err = tx.PrepareContext(ctx, pq.CopyIn("item", "id", "label"))
	must(err)
	_, err = statement.ExecContext(ctx, "seven", "x")
	must(err)
	_, err = statement.ExecContext(ctx)
	refused("22P02", err)
	_ = tx.Rollback()
	usable(ctx, database)
}

func prepared(ctx context.Context) {
	database := open("")
	defer database.Close()
	statement, err := database.PrepareContext(ctx, "INSERT INTO item VALUES ($1, $2) RETURNING id")
	must(err)
	for n := 0; n < 100; n++ {
		var id int
		must(statement.QueryRowContext(ctx, n, fmt.Sprint("l", n)).Scan(&id))
		equal(id, n)
	}
	must(statement.Close())
	_, err = database.PrepareContext(ctx, "SELEC $1")
	equal(refused("42601", err).Position, "1")
	rows, err := database.QueryContext(ctx, "SELECT id, label FROM item WHERE id >= $1 ORDER BY id", 98)
	must(err)
	kinds, err := rows.ColumnTypes()
	must(err)
	equal(kinds[0].DatabaseTypeName()+" "+kinds[1].DatabaseTypeName(), "INT4 TEXT")
	count := 0
	for rows.Next() {
		count++
	}
	must(rows.Err())
	equal(count, 2)
	// Several statements of one message have several results.
	rows, err = database.QueryContext(ctx, "SELECT 1; SELECT 2, 3")
	must(err)
	for rows.Next() {
		count++
	}
	equal(rows.NextResultSet(), true)
	columns, err := rows.Columns()
	must(err)
	equal(len(columns), 2)
	must(rows.Close())
	exec(ctx, database, "DELETE FROM item")
}

func procedures(ctx context.Context) {
	database := open("")
	defer database.Close()
	tx, err := database.BeginTx(ctx, nil)
	must(err)
	var first, rest string
	must(tx.QueryRowContext(ctx, "CALL split($1, NULL, $2)", "abc", "c").Scan(&first, &rest))
	equal([]string{first, rest}, []string{"a", "c"})
	equal(one[string](ctx, tx, "FETCH ALL FROM c"), "bc")
	must(tx.Commit())
}

func cancelling(ctx context.Context) {
	database := open("")
	defer database.Close()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := database.ExecContext(short, "SELECT pg_sleep(20)")
	if !errors.Is(err, context.DeadlineExceeded) {
		refused("57014", err)
	}
	equal(time.Since(begin) < 10*time.Second, true)
	usable(ctx, database)
	limited := open("&statement_timeout=200")
	defer limited.Close()
	failing(ctx, limited, "57014", "SELECT pg_sleep($1)", 20)
	usable(ctx, limited)
}

func notifications(ctx context.Context) {
	listener := pq.NewListener(with(""), time.Second, time.Minute, nil)
	defer listener.Close()
	must(listener.Listen("news"))
	database := open("")
	defer database.Close()
	exec(ctx, database, "SELECT pg_notify('news', $1)", "first")
	select {
	case got := <-listener.Notify:
		equal(got.Channel+" "+got.Extra, "news first")
	case <-time.After(10 * time.Second):
		panic(wrong("no notification"))
	}
	must(listener.Ping())
	equal(errors.Is(listener.Listen("news"), pq.ErrChannelAlreadyOpen), true)
	must(listener.UnlistenAll())
}

func pools(ctx context.Context) {
	database := open("")
	defer database.Close()
	database.SetMaxOpenConns(4)
	done := make(chan error, 40)
	for n := 0; n < 40; n++ {
		go func(n int) {
			var got int
			err := database.QueryRowContext(ctx, "SELECT $1::int", n).Scan(&got)
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

// encrypted is of connections to a secured server, and of those that it does not take.
func encrypted(ctx context.Context) {
	database := open("")
	defer database.Close()
	equal(one[bool](ctx, database, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), true)
	coming := func(from string) error {
		database, err := sql.Open("postgres", from)
		must(err)
		defer database.Close()
		return database.PingContext(ctx)
	}
	refused("28P01", coming(strings.Replace(url, "secret@", "wrong@", 1)))
	refused("28000", coming(strings.Replace(url, "verify-full", "disable", 1)))
	err := coming(strings.Replace(url, "root.crt", "other.crt", 1))
	equal(err != nil && strings.Contains(err.Error(), "unknown authority"), true)
}

func main() {
	checks := []check{
		{"migrates with many statements at once", migrates},
		{"values come back as they went, as text and as binary parameters", values},
		{"transactions and savepoints nest", transactions},
		{"rows are copied", copies},
		{"statements are prepared, and columns described", prepared},
		{"procedures have OUT parameters and cursors", procedures},
		{"a running query is cancelled and times out", cancelling},
		{"notifications arrive", notifications},
		{"a pool serves many", pools},
	}
	if strings.Contains(url, "sslmode=verify-full") {
		checks = append(checks, check{"a connection is encrypted and its user known", encrypted})
	}
	runAll(append(checks, ofGORM...))
}
