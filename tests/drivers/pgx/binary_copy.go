package main

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// packed is a row with a column of each kind that COPY takes in binary.
func packed(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	rows := [][]any{}
	for n := 0; n < 3000; n++ {
		rows = append(rows, []any{n, fmt.Sprint("label ", n)})
	}
	rows[7][1] = nil
	count, err := connection.CopyFrom(ctx, pgx.Identifier{"item"}, []string{"id", "label"}, pgx.CopyFromRows(rows))
	must(err)
	equal(count, int64(3000))
	equal(one[int](ctx, connection, "SELECT count(label)::int FROM item"), 2999)
	_, err = connection.CopyFrom(ctx, pgx.Identifier{"item"}, []string{"id"}, pgx.CopyFromRows([][]any{{7000}, {1}}))
	refused("23505", err)
	var out bytes.Buffer
	_, err = connection.PgConn().CopyTo(ctx, &out, "COPY item TO STDOUT (FORMAT binary)")
	must(err)
	exec(ctx, connection, "DELETE FROM item")
	tag, err := connection.PgConn().CopyFrom(ctx, &out, "COPY item FROM STDIN (FORMAT binary)")
	must(err)
	equal(tag.RowsAffected(), int64(3000))
	exec(ctx, connection, "DELETE FROM item")
	noon := time.Date(2024, 2, 29, 12, 0, 1, 5000, time.UTC)
	columns := []string{"owner_id", "balance", "mood", "tags", "detail", "opened"}
	owner := one[int64](ctx, connection, "INSERT INTO owner (name) VALUES ('eve') RETURNING id")
	_, err = connection.CopyFrom(ctx, pgx.Identifier{"account"}, columns, pgx.CopyFromRows([][]any{
		{owner, pgtype.Numeric{Int: big.NewInt(1050), Exp: -2, Valid: true}, "happy", []string{"x", "y"}, map[string]any{"k": 1}, noon},
	}))
	must(err)
	equal(one[string](ctx, connection, "SELECT concat_ws(' ', balance, mood, tags, detail, opened) FROM account"),
		`10.50 happy {x,y} {"k": 1} 2024-02-29 12:00:01.000005+00`)
	exec(ctx, connection, "DELETE FROM account")
	exec(ctx, connection, "DELETE FROM owner")
}
