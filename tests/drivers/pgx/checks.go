package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How long a check may take; one that gets no answer fails, and the next ones go on.
const limit = 30 * time.Second

var url = os.Getenv("DATABASE_URL")

type check struct {
	name string
	body func(ctx context.Context)
}

// What a failed expectation panics with.
type wrong string

func equal(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		panic(wrong(fmt.Sprintf("%#v where PostgreSQL has %#v", got, expected)))
	}
}

func must(err error) {
	if err != nil {
		panic(wrong(describe(err)))
	}
}

// refused says what failed as it must, with this SQLSTATE.
func refused(sqlstate string, err error) *pgconn.PgError {
	if err == nil {
		panic(wrong("no error where PostgreSQL says " + sqlstate))
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) || said.Code != sqlstate {
		panic(wrong(describe(err) + " where PostgreSQL says " + sqlstate))
	}
	return said
}

func describe(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		text := said.Code + ": " + said.Message
		if said.Detail != "" {
			text += " | " + said.Detail
		}
		return text
	}
	return err.Error()
}

// line is where in the checks it went wrong.
func line() string {
	for _, part := range strings.Split(string(debug.Stack()), "\n") {
		if at := strings.Index(part, "/main.go:"); at >= 0 {
			return strings.Fields(part[at+1:])[0]
		}
	}
	return ""
}

func run(one check) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan string, 1)
	go func() {
		defer func() {
			if said := recover(); said != nil {
				done <- fmt.Sprintf("%v (%s)", said, line())
			}
		}()
		one.body(ctx)
		done <- ""
	}()
	select {
	case said := <-done:
		return said
	case <-time.After(limit + 5*time.Second):
		return fmt.Sprintf("no answer within %s", limit)
	}
}

func runAll(checks []check) {
	failed := 0
	for _, one := range checks {
		if said := run(one); said == "" {
			fmt.Printf("ok      %s\n", one.name)
		} else {
			failed++
			fmt.Printf("FAILED  %s: %s\n", one.name, strings.ReplaceAll(said, "\n", " | "))
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(checks)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
