package expression

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Limits of an evaluation.
const (
	maxWork   = 2_000_000 // units: values visited, 8 bytes of text each count as one
	maxMemory = 1_000_000 // elements that ranges and lists of the virtual machine may have
	maxNested = 200       // lists and objects within each other

	textUnit = 8 // bytes
)

var (
	errWork   = errors.New("the expression does too much work on these values; ask the tool for less")
	errNested = fmt.Errorf("the expression makes or reads values nested deeper than %d levels", maxNested)
)

// meterName is the name of an evaluation's meter. Expressions cannot contain it.
const meterName = "\x00meter"

// meter counts the work of one evaluation.
type meter struct {
	ctx      context.Context // ends the evaluation
	left     int
	patterns map[string]*Pattern
}

func (m *meter) take(units int) error {
	if m.left -= units; units < 0 || m.left < 0 {
		return errWork
	}
	return m.ctx.Err()
}

// charge charges the size of a value: the number of values in it, and its text.
func (m *meter) charge(v any, depth int) error {
	if depth > maxNested {
		return errNested
	}
	switch v := v.(type) {
	case string:
		return m.take(1 + len(v)/textUnit)
	case []any:
		if err := m.take(1); err != nil {
			return err
		}
		for _, element := range v {
			if err := m.charge(element, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := m.take(1); err != nil {
			return err
		}
		for name, member := range v {
			if err := m.take(1 + len(name)/textUnit); err != nil {
				return err
			}
			if err := m.charge(member, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array: // []string, []int
		for i := range r.Len() {
			if err := m.charge(r.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map: // the groups of groupBy
		for it := r.MapRange(); it.Next(); {
			for _, part := range []reflect.Value{it.Key(), it.Value()} {
				if err := m.charge(part.Interface(), depth+1); err != nil {
					return err
				}
			}
		}
	}
	return m.take(1)
}

// function is a function that the rewriter inserts into expressions. Its first argument is the meter.
type function struct {
	name string
	call func(args ...any) (any, error)
}

// of returns a call of the function.
func (f function) of(arguments ...ast.Node) ast.Node {
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: f.name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: meterName}}, arguments...),
	}
}

const (
	charge = iota
	length
	product
	matches
	lines
)

var metered = []function{
	charge: {"\x00charge", func(args ...any) (any, error) {
		return args[1], args[0].(*meter).charge(args[1], 0)
	}},
	length: {"\x00length", func(args ...any) (any, error) {
		text, _ := args[1].(string)
		return args[1], args[0].(*meter).take(1 + len(text)/textUnit)
	}},
	product: {"\x00product", func(args ...any) (any, error) {
		m, name, values := args[0].(*meter), args[1].(string), args[2:]
		times := 1
		if name == "toJSON" { // it indents
			times = 8
		}
		for _, v := range slices.Repeat(values, times) {
			if err := m.charge(v, 0); err != nil {
				return nil, err
			}
		}
		if err := m.take(productUnits(name, values)); err != nil {
			return nil, err
		}
		return callBuiltin(name, values)
	}},
	matches: {"\x00matches", func(args ...any) (any, error) {
		text, isText := args[1].(string)
		source, isSource := args[2].(string)
		if !isText || !isSource {
			return nil, errors.New("matches: want a text and a pattern")
		}
		return args[0].(*meter).matches(text, source)
	}},
	lines: {"\x00lines", func(args ...any) (any, error) { return args[0].(*meter).lines(args[1]) }},
}

// productUnits returns the work of functions whose work or result grows with the product of their arguments.
func productUnits(name string, values []any) int {
	text := func(i int) string {
		if i < len(values) {
			if s, ok := values[i].(string); ok {
				return s
			}
		}
		return ""
	}
	list := func() int {
		if len(values) == 0 {
			return 0
		}
		if r := reflect.ValueOf(values[0]); r.Kind() == reflect.Slice {
			return r.Len()
		}
		return 0
	}
	switch name {
	case "split", "splitAfter":
		return strings.Count(text(0), text(1))
	case "fromJSON":
		return len(text(0))
	case "trim":
		return len(text(0)) * len(text(1)) / textUnit
	case "replace":
		return strings.Count(text(0), text(1)) * len(text(2)) / textUnit
	case "repeat":
		n := 1
		if len(values) == 2 {
			if r := reflect.ValueOf(values[1]); r.CanInt() {
				n = int(min(max(r.Int(), 0), maxWork*textUnit))
			} else if r.CanFloat() {
				n = int(min(max(r.Float(), 0), maxWork*textUnit))
			}
		}
		return n * min(len(text(0)), maxWork*textUnit) / textUnit
	case "join":
		return list() * len(text(1)) / textUnit
	case "uniq":
		return list() * list() / 2
	}
	return 0
}

// callBuiltin calls a function of the language.
func callBuiltin(name string, args []any) (result any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s: wrong arguments", name)
		}
	}()
	f := builtin.Builtins[builtin.Index[name]]
	if f.Safe != nil {
		result, _, err = f.Safe(args...)
		return result, err
	}
	return f.Func(args...)
}

// Lines is the name of the list of a text's lines.
const Lines = "lines"

// IsTextName reports whether servers give a text such a name where they declare an object with nothing else.
func IsTextName(name string) bool { return name == "content" || name == "result" }

// lines returns the member of that name or, of a text, its lines. An object with nothing but a text of a name as above
// is like that text.
func (m *meter) lines(v any) (any, error) {
	if object, ok := v.(map[string]any); ok {
		if member, ok := object[Lines]; ok || len(object) != 1 {
			return member, nil
		}
		for name, member := range object {
			if v = nil; IsTextName(name) {
				v = member
			}
		}
	}
	text, ok := v.(string)
	if !ok {
		return nil, errors.New("a value that is no text has no lines")
	}
	if err := m.charge(text, 0); err != nil {
		return nil, err
	}
	list := []any{}
	for line := range texts.Lines(text) {
		if err := m.take(1); err != nil {
			return nil, err
		}
		list = append(list, line)
	}
	return list, nil
}

// matches reports whether a text matches a regular expression. The work is at most the text times the pattern.
func (m *meter) matches(text, source string) (bool, error) {
	p := m.patterns[source]
	if p == nil {
		if err := m.take(1000 + len(source)); err != nil {
			return false, err
		}
		var err error
		if p, err = CompilePattern(source); err != nil {
			return false, fmt.Errorf("matches: %w", err)
		}
		if m.patterns == nil {
			m.patterns = map[string]*Pattern{}
		}
		m.patterns[source] = p
	}
	if err := m.take(1 + len(text)*p.Size/textUnit); err != nil {
		return false, err
	}
	return p.MatchString(text), nil
}
