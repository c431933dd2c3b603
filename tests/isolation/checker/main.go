// Reads histories of transactions, one operation as JSON a line, and says whether some order of
// them, which no operation leaves its interval for, explains every answer. The search is
// porcupine's; here is only the model: registers and lists over all keys at once, one operation
// a whole transaction of reads, writes and appends.
//
//	{"client": 3, "call": 17, "return": 23, "do": [["r", 1, "4,7"], ["a", 1, "9"], ["w", 2, "5"]]}
//
// Exit status: 0 it is explained, 1 it is not, 2 the history cannot be read, 3 out of time.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type action struct {
	kind  string
	key   int
	value string
}

func (a *action) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&a.kind, &a.key, &a.value})
}

type operation struct {
	Client int      `json:"client"`
	Call   int64    `json:"call"`
	Return int64    `json:"return"`
	Do     []action `json:"do"`
}

// The values of all keys, in key order; a key that nobody wrote is empty.
type state []string

func (s state) at(key int) string {
	if key < len(s) {
		return s[key]
	}
	return ""
}

func (s state) with(key int, value string) state {
	length := len(s)
	if key >= length {
		length = key + 1
	}
	next := make(state, length)
	copy(next, s)
	next[key] = value
	return next
}

func step(before any, input any, _ any) (bool, any) {
	now := before.(state)
	for _, a := range input.(operation).Do {
		switch a.kind {
		case "r":
			if now.at(a.key) != a.value {
				return false, before
			}
		case "w":
			now = now.with(a.key, a.value)
		case "a":
			list := now.at(a.key)
			if list != "" {
				list += ","
			}
			now = now.with(a.key, list+a.value)
		}
	}
	return true, now
}

func equal(one any, other any) bool {
	a, b := one.(state), other.(state)
	length := len(a)
	if len(b) > length {
		length = len(b)
	}
	for key := 0; key < length; key++ {
		if a.at(key) != b.at(key) {
			return false
		}
	}
	return true
}

func main() {
	history, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	model := porcupine.Model{
		Init:  func() any { return state{} },
		Step:  step,
		Equal: equal,
		DescribeOperation: func(input any, _ any) string {
			var words []string
			for _, a := range input.(operation).Do {
				words = append(words, fmt.Sprintf("%s %d %s", a.kind, a.key, a.value))
			}
			return strings.Join(words, "; ")
		},
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, 60*time.Second)
	switch result {
	case porcupine.Ok:
		fmt.Printf("%d operations are explained\n", len(history))
	case porcupine.Unknown:
		fmt.Println("out of time")
		os.Exit(3)
	default:
		explain(model, history, info)
		os.Exit(1)
	}
}

// Prints the operations after the longest order that was found: one of them has no place.
func explain(model porcupine.Model, history []porcupine.Operation, info porcupine.LinearizationInfo) {
	longest := 0
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > longest {
				longest = len(order)
			}
		}
	}
	fmt.Printf("no order explains the %d operations; the longest explains %d. By their return, what follows:\n", len(history), longest)
	sort.Slice(history, func(i, j int) bool { return history[i].Return < history[j].Return })
	for index := longest - 4; index < longest+8; index++ {
		if index >= 0 && index < len(history) {
			op := history[index]
			fmt.Printf("client %d, %d to %d: %s\n", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, nil))
		}
	}
}

func read(file *os.File) ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, err
		}
		history = append(history, porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Call, Output: nil, Return: op.Return,
		})
	}
	return history, lines.Err()
}
