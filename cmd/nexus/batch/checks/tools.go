package checks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// called returns the steps that reached a tool, in the order in which they started.
func called(steps []results.Step) []results.Step {
	reached := slices.DeleteFunc(slices.Clone(steps), func(s results.Step) bool { return !s.Called() })
	slices.SortStableFunc(reached, func(a, b results.Step) int { return cmp.Compare(a.Started, b.Started) })
	return reached
}

// named reports whether a name, in any form, refers to the step's tool.
func named(s results.Step, name string) bool {
	bare := strings.TrimPrefix(s.Tool, s.Server+".")
	if name == s.Tool || name == bare {
		return true
	}
	for _, separator := range [...]string{"__", ":", "."} {
		if name == s.Server+separator+bare {
			return true
		}
	}
	return false
}

func tools(wanted *cases.Tools, steps []results.Step) string {
	reached := called(steps)
	if wanted.How == cases.ToolsSequence {
		next := 0
		for _, s := range reached {
			if next < len(wanted.Names) && named(s, wanted.Names[next]) {
				next++
			}
		}
		if next < len(wanted.Names) {
			return fmt.Sprintf("%s was not called in its turn; called: %s", wanted.Names[next], list(reached))
		}
		return ""
	}
	for _, name := range wanted.Names {
		if !slices.ContainsFunc(reached, func(s results.Step) bool { return named(s, name) }) {
			return fmt.Sprintf("%s was not called; called: %s", name, list(reached))
		}
	}
	if wanted.How == cases.ToolsIncludes {
		return ""
	}
	for _, s := range reached {
		if !slices.ContainsFunc(wanted.Names, func(name string) bool { return named(s, name) }) {
			return s.Tool + " was called"
		}
	}
	return ""
}

func notTools(unwanted []string, steps []results.Step) string {
	for _, s := range called(steps) {
		if slices.ContainsFunc(unwanted, func(name string) bool { return named(s, name) }) {
			return s.Tool + " was called"
		}
	}
	return ""
}

// list names tools in the order of their calls.
func list(steps []results.Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Tool)
	}
	if len(names) == 0 {
		return "none"
	}
	return shown(strings.Join(names, ", "))
}

// arguments checks that each tool has a call with all expected values.
func arguments(wanted []cases.Arguments, steps []results.Step) string {
	for _, w := range wanted {
		var reason string
		found := false
		for _, s := range called(steps) {
			if !named(s, w.Tool) {
				continue
			}
			if reason = differs(s.Arguments, w.Values); reason == "" {
				found = true
				break
			}
		}
		switch {
		case found:
		case reason == "":
			return w.Tool + " was not called; called: " + list(called(steps))
		default:
			return w.Tool + ": " + reason
		}
	}
	return ""
}

// differs returns the first path, in sorted order, at which arguments differ from the expected values.
func differs(raw json.RawMessage, wanted map[string]json.RawMessage) string {
	arguments := decode(raw)
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		got, found := at(arguments, path)
		if !found { // as references write it
			got, found = at(arguments, strings.NewReplacer("[", ".", "]", "").Replace(path))
		}
		if !found {
			return fmt.Sprintf("%s is missing", path)
		}
		if !equal(got, decode(wanted[path])) {
			text, _ := json.Marshal(got)
			return fmt.Sprintf("%s is %s, not %s", path, shown(string(text)), shown(string(wanted[path])))
		}
	}
	return ""
}

// decode keeps the digits of numbers.
func decode(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// at follows a path of member names and indexes. A member whose name is the whole path counts, too.
func at(v any, path string) (found any, ok bool) {
	if path == "" {
		return v, true
	}
	if object, is := v.(map[string]any); is {
		if member, has := object[path]; has {
			return member, true
		}
	}
	name, rest, _ := strings.Cut(path, ".")
	switch v := v.(type) {
	case map[string]any:
		if member, has := v[name]; has {
			return at(member, rest)
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return at(v[i], rest)
		}
	}
	return nil, false
}

// equal compares JSON values; numbers by their value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, is := b.(json.Number)
		return is && equalNumbers(a, b)
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, has := b[name]
			if !has || !equal(value, other) {
				return false
			}
		}
		return true
	}
	return a == b
}

// maxDigits bounds the numbers that are compared by value.
const maxDigits = 400

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	if len(a) > maxDigits || len(b) > maxDigits {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	if errX != nil || errY != nil || x != y {
		return false
	}
	exactX, okX := new(big.Rat).SetString(string(a))
	exactY, okY := new(big.Rat).SetString(string(b))
	return okX && okY && exactX.Cmp(exactY) == 0
}
