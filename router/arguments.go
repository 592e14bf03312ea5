package router

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// arguments are the raw arguments of a call of a router tool. The getters name the argument in errors.
type arguments map[string]json.RawMessage

// parameters are the names of the arguments of each router tool.
type parameters map[string][]string

// add reads the names from a tool's input schema.
func (p parameters) add(tool string, schema []byte) {
	jsonrpc.Members(jsonrpc.Get(schema, "properties"), func(name []byte, _ jsonrpc.Span) bool {
		p[tool] = append(p[tool], string(name))
		return true
	})
}

// read returns the arguments of a call of a router tool.
func (p parameters) read(tool string, params []byte) (arguments, error) {
	raw := jsonrpc.Get(params, "arguments")
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	var a arguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, refuse("Invalid arguments: arguments must be an object")
	}
	return a, p.check(tool, raw)
}

// check refuses unknown arguments: with dry_run misspelt, the call would otherwise run.
func (p parameters) check(tool string, args []byte) (err error) {
	jsonrpc.Members(args, func(name []byte, _ jsonrpc.Span) bool {
		if !slices.Contains(p[tool], string(name)) {
			err = refuse("Invalid argument: %s has no argument %s; it has %s", tool, printable(string(name), maxShownName),
				strings.Join(p[tool], ", "))
		}
		return err == nil
	})
	return err
}

func (a arguments) given(name string) bool {
	raw, ok := a[name]
	return ok && string(raw) != "null"
}

// read decodes an argument. A missing argument yields the zero value. want names the expected type in the error.
func read[T any](a arguments, name, want string) (value T, err error) {
	if a.given(name) && json.Unmarshal(a[name], &value) != nil {
		return *new(T), refuse("Invalid argument: %s must be %s", name, want)
	}
	return value, nil
}

func (a arguments) text(name string) (string, error) { return read[string](a, name, "a string") }

func (a arguments) flag(name string) (bool, error) { return read[bool](a, name, "true or false") }

func (a arguments) texts(name string) ([]string, error) {
	return read[[]string](a, name, "an array of strings")
}

// count reads an integer of at least least; 0 if it is missing. JSON Schema also counts 2.0 as an integer.
func (a arguments) count(name string, least int) (int, error) {
	if !a.given(name) {
		return 0, nil
	}
	var n float64
	if json.Unmarshal(a[name], &n) != nil || n != math.Trunc(n) || n < float64(least) || n > math.MaxInt32 {
		return 0, refuse("Invalid argument: %s must be a whole number of at least %d", name, least)
	}
	return int(n), nil
}

func (a arguments) seconds(name string) (time.Duration, error) {
	if !a.given(name) {
		return 0, nil
	}
	var s float64
	if json.Unmarshal(a[name], &s) != nil || !(s > 0) || s > 1e6 {
		return 0, refuse("Invalid argument: %s must be a positive number of seconds", name)
	}
	return max(1, time.Duration(s*float64(time.Second))), nil // 0 would mean that none is given
}

// conversation reads an argument that is either text or an array of messages.
func (a arguments) conversation(name string) ([]llm.Message, error) {
	if !a.given(name) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(a[name], &text) == nil && text == "" {
		return nil, nil
	}
	if text != "" {
		return []llm.Message{{Role: llm.RoleUser, Content: text}}, nil
	}
	var turns []llm.Message
	if json.Unmarshal(a[name], &turns) != nil {
		return nil, refuse("Invalid argument: %s must be a string or an array of {role, content}", name)
	}
	for i, t := range turns {
		if t.Role == "" || t.Content == "" {
			return nil, refuse("Invalid argument: %s[%d] needs role and content", name, i)
		}
	}
	return turns, nil
}
