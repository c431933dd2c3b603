// Package main has what the programs in Go share: named checks, each bounded, and the count at the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
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

// Every driver's error that came from the server has its SQLSTATE.
type refusal interface {
	error
	SQLState() string
}

// refusedAs says what failed as it must, with this SQLSTATE.
func refusedAs[T refusal](sqlstate string, err error) T {
	if err == nil {
		panic(wrong("no error where PostgreSQL says " + sqlstate))
	}
	var said T
	if !errors.As(err, &said) || said.SQLState() != sqlstate {
		panic(wrong(describe(err) + " where PostgreSQL says " + sqlstate))
	}
	return said
}

func describe(err error) string {
	var said refusal
	if errors.As(err, &said) {
		return said.SQLState() + ": " + err.Error()
	}
	return err.Error()
}

// line is where in the checks it went wrong.
func line() string {
	for _, part := range strings.Split(string(debug.Stack()), "\n") {
		name := filepath.Base(strings.Fields(part + " .")[0])
		if strings.Contains(name, ".go:") && !strings.HasPrefix(name, "checks.go:") && strings.Contains(part, "/source/") {
			return name
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
