package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// MaxElements limits the elements of a loop's list. A longer list fails the step before any call.
const MaxElements = 1000

// Names that arguments and expressions may use besides step ids. They hide steps with the same id.
const (
	itemName  = "item"  // the element, in a loop
	indexName = "index" // its place in the list from 0, in a loop
	valueName = "value" // what the call returned, in Pick of a step that makes one
)

// Item is one element of the list of a loop.
type Item struct {
	Index int
	Value json.RawMessage
}

// loops reports whether the step calls its tool, or computes its value, once per element of a list.
func (s Step) loops() bool { return s.Each != "" }

// outside returns a function that reports whether a name in the step's arguments refers to another step.
func (s Step) outside(isStep func(string) bool) func(string) bool {
	if !s.loops() {
		return isStep
	}
	return func(id string) bool { return !isElement(id) && isStep(id) }
}

// inside returns a function that reports whether a name in the step's arguments is a reference.
func (s Step) inside(isStep func(string) bool) func(string) bool {
	if !s.loops() {
		return isStep
	}
	return func(id string) bool { return id == itemName || id == indexName || !isElement(id) && isStep(id) }
}

// isElement reports whether a name always means a loop's element or its index.
func isElement(id string) bool {
	name := id
	if i := strings.IndexAny(id, ".["); i >= 0 {
		name = id[:i]
	}
	return name == itemName || name == indexName
}

// list parses Each as a reference to a list. What could be an expression, too, is one, except in "${…}".
func (s Step) list(isStep func(string) bool) (reference, bool) {
	refs, whole := parseReferences(s.Each, isStep)
	if len(refs) != 1 || refs[0].written != s.Each || whole && slices.ContainsFunc(refs[0].path, computes) {
		return reference{}, false
	}
	return refs[0], true
}

// computes reports whether a part of a path has a sign of an expression that can return a list.
func computes(segment string) bool { return segment == "" || strings.ContainsAny(segment, "()[]|?:") }

// loopNeeds returns the steps that the list and the expressions refer to.
func (s Step) loopNeeds(isStep func(string) bool) (needs []string) {
	if r, ok := s.list(isStep); ok {
		needs = append(needs, r.step)
	}
	for _, f := range s.expressions(isStep) {
		needs = append(needs, f.names()...)
	}
	return slices.DeleteFunc(needs, func(name string) bool { return !isStep(name) })
}

// checkLoop finds errors in the step's list and expressions that do not depend on values.
func (s *Step) checkLoop(isStep func(string) bool) *Error {
	for _, f := range s.expressions(isStep) {
		if err := f.check(isStep); err != nil {
			return err
		}
	}
	return nil
}

// Scope resolves the references of a step. Its methods are safe for concurrent use.
type Scope struct {
	step   Step
	broken *Error // an invalid expression
	isStep func(id string) bool
	value  func(id string) (json.RawMessage, bool)

	mu      sync.Mutex
	decoded map[string]any // values of steps
}

// Scope returns the scope of a step. value returns what a finished step produced, and false if it has no value.
func (s Step) Scope(isStep func(id string) bool, value func(id string) (json.RawMessage, bool)) *Scope {
	broken := s.readExpressions(isStep)
	return &Scope{step: s, broken: broken, isStep: isStep, value: value, decoded: map[string]any{}}
}

// Step returns the step.
func (c *Scope) Step() Step { return c.step }

// Elements returns the elements of the list of a loop, at most MaxElements.
func (c *Scope) Elements(ctx context.Context) ([]Item, *Error) {
	list, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, inner := range inside(list, "") {
		if inner.Kind() == '[' {
			list = inner
		}
	}
	if list.Kind() != '[' {
		return nil, &Error{reason.InvalidArguments, fmt.Sprintf("each: %s is of type %s, want an array", quoteShort(c.step.Each), kindName(list.Kind()))}
	}
	d := newDecoder(list)
	broken := &Error{reason.MissingReference, "each: the list is no JSON"}
	if _, err := d.ReadToken(); err != nil {
		return nil, broken
	}
	items := []Item{}
	for d.PeekKind() != ']' {
		element, err := d.ReadValue()
		if err != nil {
			return nil, broken
		}
		if len(items) == MaxElements {
			return nil, &Error{reason.TooLarge, fmt.Sprintf("each: the list has more than %d elements; nothing was called", MaxElements)}
		}
		items = append(items, Item{len(items), json.RawMessage(element.Clone())})
	}
	return items, nil
}

// list returns the value of Each. That of a reference keeps its bytes.
func (c *Scope) list(ctx context.Context) (jsontext.Value, *Error) {
	if r, ok := c.step.list(c.isStep); ok {
		whole, ok := c.value(r.step)
		if !ok {
			return nil, missing(r, "the step has no value")
		}
		return r.find(whole)
	}
	if c.broken != nil {
		return nil, c.broken
	}
	v, err := c.eval(ctx, c.step.each, nil, nil)
	var list json.RawMessage
	if err == nil {
		list, err = expression.Encode(v)
	}
	if err != nil {
		return nil, &Error{reason.InvalidArguments, "each: " + err.Error() + "; nothing was called"}
	}
	return jsontext.Value(list), nil
}

// PerElement reports whether When is evaluated per element of a loop rather than once for the step.
func (c *Scope) PerElement() bool {
	return c.step.loops() && c.step.when != nil &&
		slices.ContainsFunc(c.step.when.Names(), func(name string) bool { return name == itemName || name == indexName })
}

// Wanted reports whether the step, or its call for an element, should run. Without When it returns true.
func (c *Scope) Wanted(ctx context.Context, item *Item) (bool, *Error) {
	if c.step.When == "" || c.broken != nil {
		return true, c.broken
	}
	return c.holds(ctx, "when", item)
}

// holds computes When as a condition. member is its name in errors.
func (c *Scope) holds(ctx context.Context, member string, item *Item) (bool, *Error) {
	v, err := c.eval(ctx, c.step.when, item, nil)
	if err != nil {
		return false, &Error{reason.InvalidArguments, member + ": " + err.Error()}
	}
	wanted, ok := v.(bool)
	if !ok {
		return false, &Error{reason.InvalidArguments, member + ": the value is neither true nor false"}
	}
	return wanted, nil
}

// Arguments returns the arguments of the step, or of its call for an element, with every reference replaced.
func (c *Scope) Arguments(item *Item) (json.RawMessage, *Error) {
	return Substitute(c.step.Arguments, c.step.inside(c.isStep), func(id string) (json.RawMessage, bool) {
		switch {
		case item != nil && id == itemName:
			return item.Value, true
		case item != nil && id == indexName:
			return strconv.AppendInt(nil, int64(item.Index), 10), true
		}
		return c.value(id)
	})
}

// Pick returns the step's value, computed from the value that its call returned; nil if it makes no call.
func (c *Scope) Pick(ctx context.Context, item *Item, returned json.RawMessage) (json.RawMessage, *Error) {
	if c.step.Pick == "" {
		return returned, nil
	}
	if c.broken != nil {
		return nil, c.broken
	}
	v, err := c.eval(ctx, c.step.pick, item, returned)
	var picked json.RawMessage
	if err == nil {
		picked, err = expression.Encode(v)
	}
	if err != nil {
		return nil, &Error{reason.InvalidArguments, "pick: " + err.Error()}
	}
	return picked, nil
}

// eval computes an expression with the values it refers to.
func (c *Scope) eval(ctx context.Context, e *expression.Expression, item *Item, returned json.RawMessage) (any, error) {
	values := map[string]any{}
	for _, name := range e.Names() {
		var err error
		switch {
		case item != nil && name == itemName:
			values[name], err = expression.Decode(item.Value)
		case item != nil && name == indexName:
			values[name] = item.Index
		case returned != nil && name == valueName:
			values[name], err = expression.Decode(returned)
		default:
			values[name], err = c.decode(name)
		}
		if err != nil {
			return nil, err
		}
	}
	return e.Eval(ctx, values)
}

// decode returns the value of a step, decoding it only once.
func (c *Scope) decode(id string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.decoded[id]; ok {
		return v, nil
	}
	raw, ok := c.value(id)
	if !ok {
		return nil, fmt.Errorf("step %s has no value", quoteShort(id))
	}
	v, err := expression.Decode(raw)
	if err == nil {
		c.decoded[id] = v
	}
	return v, err
}
