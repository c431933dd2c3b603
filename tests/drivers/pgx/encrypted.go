package main

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

// encrypted is of connections to a secured server, and of those that it does not take.
func encrypted(ctx context.Context) {
	connection := connect(ctx)
	defer end(connection)
	equal(one[string](ctx, connection, "SELECT version FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()"), "TLSv1.3")
	coming := func(from string, change func(*pgx.ConnConfig)) error {
		config, err := pgx.ParseConfig(from)
		must(err)
		change(config)
		_, err = pgx.ConnectConfig(ctx, config)
		return err
	}
	refused("28P01", coming(url, func(config *pgx.ConnConfig) { config.Password = "wrong" }))
	refused("28000", coming(strings.Replace(url, "verify-full", "disable", 1), func(*pgx.ConnConfig) {}))
	err := coming(strings.Replace(url, "root.crt", "other.crt", 1), func(*pgx.ConnConfig) {})
	var unknown x509.UnknownAuthorityError
	equal(errors.As(err, &unknown), true)
}
