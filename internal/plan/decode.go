package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Limits of a plan. A plan that exceeds one is refused as a whole.
const (
	MaxText  = 1 << 20 // bytes of text or JSON that are read
	MaxSteps = 1000
	MaxDepth = 64 // levels of nesting, including those of the plan
)

// Errors of [Parse] and [ParseJSON], which wrap them with details.
var (
	ErrNoPlan  = errors.New("no plan found")
	ErrTooLong = errors.New("text is longer than 1 MiB")
	ErrBroken  = errors.New("plan cannot be read")
)

// ParseJSON reads a plan that a client gives as JSON: any form that Parse accepts, the plan object of a process_query
// result, the whole result, whose plan counts and not its steps, or a JSON string that contains one of these, because
// some clients encode objects as strings. A string may also be a model's text with the plan amid prose. Otherwise text
// around the JSON and repeated names are errors. The errors wrap ErrNoPlan, ErrTooLong or ErrBroken.
func ParseJSON(raw json.RawMessage) (Plan, error) {
	if len(raw) > MaxText {
		return Plan{}, ErrTooLong
	}
	if raw = bytes.TrimSpace(raw); bytes.HasPrefix(raw, []byte{'"'}) {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return Plan{}, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		raw = bytes.TrimSpace([]byte(text))
		if len(raw) > 0 && !bytes.ContainsRune([]byte(`{["`), rune(raw[0])) {
			return Parse(text)
		}
	}
	s, err := scan(new(jsontext.Decoder), raw)
	if err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if len(bytes.TrimSpace(raw[s.end:])) > 0 {
		return Plan{}, fmt.Errorf("%w: text after the JSON value", ErrBroken)
	}
	for name, value := range memberSeq(jsontext.Value(raw)) {
		if name == "plan" && value.Kind() == '{' { // the plan of a whole result
			raw = bytes.Clone(value)
			break
		}
	}
	p, ok, err := decode(raw, nil)
	switch {
	case err != nil:
		return Plan{}, err
	case !ok:
		return Plan{}, fmt.Errorf("%w: want an array of steps or an object with steps or tools", ErrNoPlan)
	}
	return p, nil
}

// decode reads raw, one JSON value, as a plan. It reports false if the value is not a plan: another type of value, or
// a list of values that are not steps. An error means that the plan is broken.
func decode(raw []byte, taken []string) (Plan, bool, error) {
	var list jsontext.Value
	var p Plan
	switch value := jsontext.Value(bytes.TrimSpace(raw)); value.Kind() {
	case '[':
		list, p.Sequential = value, true
	case '{':
		var ok bool
		if p, list, ok = members(value); !ok {
			return Plan{}, false, nil
		}
	default:
		return Plan{}, false, nil
	}
	steps, ok := objects(list)
	if !ok {
		return Plan{}, false, nil
	}
	if err := strict(raw); err != nil {
		return Plan{}, false, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if len(steps) > MaxSteps {
		return Plan{}, false, fmt.Errorf("%w: %d steps, want at most %d", ErrBroken, len(steps), MaxSteps)
	}
	p.Steps, p.Sequential = make([]Step, 0, len(steps)), p.Sequential && len(steps) > 0
	for _, step := range steps {
		p.Steps = append(p.Steps, decodeStep(step))
	}
	p.Unmet = decodeUnmet(raw)
	names := newIDs(taken)
	for i := range p.Steps {
		names.give(&p.Steps[i], i+1)
	}
	for i := range p.Steps {
		names.fill(&p.Steps[i], i+1)
	}
	return p, true, nil
}

// members returns a plan object without its steps, and their list. The steps of "tools" are sequential. The plan of a
// result may have "sequential" and "approval".
func members(object jsontext.Value) (p Plan, list jsontext.Value, ok bool) {
	var tools jsontext.Value
	for name, value := range memberSeq(object) {
		elements := value.Clone()
		switch value.Kind() {
		case '[':
		case 'n': // null: no steps, as written by some encoders
			elements = jsontext.Value("[]")
		default:
			elements = nil
		}
		switch name {
		case "steps":
			list = elements
		case "tools":
			tools = elements
		case "more":
			if p.More = value.Kind() == 't'; value.Kind() == '"' {
				switch p.MoreIf = strings.TrimSpace(unquote(value)); strings.ToLower(p.MoreIf) {
				case "null", "none", "no": // written by weak models
					p.MoreIf = ""
				}
				p.More = p.MoreIf != ""
			}
		case "sequential":
			p.Sequential = value.Kind() == 't'
		case "approval":
			p.Approval = text(value)
		}
	}
	if list == nil {
		list, p.Sequential = tools, true
	}
	return p, list, list != nil
}

// Limits of the unmet parts in a plan.
const (
	maxUnmet     = 20
	maxUnmetText = 500 // bytes of each part
)

// decodeUnmet returns what a plan object names as "unmet", texts of parts of the question that no tool serves, and as
// "missing", calls that lack required arguments. These have no text.
func decodeUnmet(raw []byte) (parts []Unmet) {
	lines := func(value jsontext.Value, limit int) (lines []string) {
		named, _ := labels(value)
		for _, text := range named[:min(len(named), limit)] {
			if text = texts.Line(text, maxUnmetText); text != "" {
				lines = append(lines, text)
			}
		}
		return lines
	}
	for name, value := range memberSeq(bytes.TrimSpace(raw)) {
		switch name {
		case "unmet":
			for _, text := range lines(value, maxUnmet) {
				parts = append(parts, Unmet{Text: text, Reason: UnmetNoTool})
			}
		case "missing":
			calls, _ := elements(value.Clone())
			for _, call := range calls[:min(len(calls), maxUnmet)] {
				part := Unmet{Reason: UnmetMissingArgument}
				for name, value := range memberSeq(call) {
					switch name {
					case "tool":
						part.Tool = texts.Line(text(value), maxUnmetText)
					case "names":
						part.Missing = lines(value, maxUnmet)
					}
				}
				if part.Tool != "" && len(part.Missing) > 0 {
					parts = append(parts, part)
				}
			}
		}
	}
	return parts
}

// objects returns the elements of a list if they look like steps: all are objects, and at least one has a tool. An
// empty list has no steps.
func objects(list jsontext.Value) ([]jsontext.Value, bool) {
	steps, ok := elements(list)
	if !ok || slices.ContainsFunc(steps, func(v jsontext.Value) bool { return v.Kind() != '{' }) {
		return nil, false
	}
	return steps, len(steps) == 0 || slices.ContainsFunc(steps, hasTool)
}

// hasTool reports whether an object looks like a step: it has a tool, or "pick" to compute without one. "name" alone is
// too common; together with arguments it names a tool, as in the tool calls that models are trained on.
func hasTool(object jsontext.Value) bool {
	named, arguments := false, false
	for name := range memberSeq(object) {
		switch name {
		case "tool", "pick":
			return true
		case "name":
			named = true
		case "arguments", "args", "parameters":
			arguments = true
		}
	}
	return named && arguments
}

// decodeStep reads one step. An error is kept in the step, so that the other steps can run.
func decodeStep(object jsontext.Value) Step {
	s := Step{Arguments: json.RawMessage("{}"), After: []string{}}
	invalid := func(reason, format string, a ...any) {
		if s.Invalid == nil {
			s.Invalid = &Error{Reason: reason, Message: fmt.Sprintf(format, a...)}
		}
	}
	given := false // arguments by their own name
	for name, value := range memberSeq(object) {
		switch name {
		case "id":
			if id, ok := label(value); ok && len(id) <= MaxID {
				s.ID = id
			}
		case "tool", "name":
			if value.Kind() == '"' && (name == "tool" || s.Tool == "") {
				s.Tool = unquote(value)
			}
		case "server":
			if value.Kind() == '"' {
				s.Server = unquote(value)
			}
		case "arguments", "args", "parameters":
			if given && name != "arguments" {
				continue
			}
			given = name == "arguments"
			arguments, err := decodeArguments(value)
			if err != nil {
				invalid(reason.InvalidArguments, "%s", err.Error())
				continue
			}
			s.Arguments = arguments
		case "after":
			after, ok := labels(value)
			if !ok {
				invalid(reason.MissingReference, "after: want a list of step ids")
				continue
			}
			s.After = after
		case "each":
			s.Each = text(value)
		case "when":
			s.When = text(value)
		case "pick":
			s.Pick = text(value)
		case "carries":
			carries, _ := labels(value)
			s.Carries = Servers(carries)
		}
	}
	switch {
	case s.Computes() && string(s.Arguments) != "{}":
		invalid(reason.UnknownTool, "step has arguments but names no tool")
	case s.Tool == "" && !s.Computes():
		invalid(reason.UnknownTool, noTool)
	}
	maybeStep := func(string) bool { return true } // which ids there are is not known yet
	if err := s.readExpressions(maybeStep); err != nil && s.Invalid == nil {
		s.Invalid = err
	}
	return s
}

const noTool = "step names no tool; only a step that computes its value by pick needs none"

// text reads a string. Other values count as missing, except numbers and objects, which are errors.
func text(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return ""
	case '"':
		return unquote(value)
	}
	return string(value)
}

// decodeArguments returns the arguments object in compact form. With strict schemas, models write it as a JSON string.
func decodeArguments(value jsontext.Value) (json.RawMessage, error) {
	value = value.Clone()
	switch value.Kind() {
	case 'n':
		return json.RawMessage("{}"), nil
	case '"':
		inner := jsontext.Value(bytes.TrimSpace([]byte(unquote(value))))
		if len(inner) == 0 {
			return json.RawMessage("{}"), nil
		}
		if inner.Kind() != '{' {
			return nil, errors.New("arguments: got string, want object")
		}
		s, err := scan(new(jsontext.Decoder), inner)
		if err == nil && s.end != len(inner) {
			err = errors.New("text after the JSON value")
		}
		if err == nil {
			err = strict(inner)
		}
		if err != nil {
			return nil, fmt.Errorf("arguments: string holds no JSON object: %w", err)
		}
		value = inner
	case '{':
	default:
		return nil, fmt.Errorf("arguments: got %s, want object", kindName(value.Kind()))
	}
	if err := value.Compact(); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return json.RawMessage(value), nil
}

// label reads a step id: a string, or a number, because models write numbers.
func label(value jsontext.Value) (string, bool) {
	switch value.Kind() {
	case '"':
		return unquote(value), true
	case '0':
		return string(value), true
	}
	return "", false
}

// labels reads a list of step ids; one alone and null are lists, too.
func labels(value jsontext.Value) ([]string, bool) {
	list := []jsontext.Value{value}
	switch value.Kind() {
	case 'n':
		return []string{}, true
	case '[':
		var ok bool
		if list, ok = elements(value.Clone()); !ok {
			return nil, false
		}
	}
	ids := make([]string, len(list))
	for i, element := range list {
		id, ok := label(element)
		if !ok {
			return nil, false
		}
		ids[i] = id
	}
	return ids, true
}

// strict fails if a name occurs twice in any object of a value.
func strict(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if err := d.SkipValue(); err != nil {
		return syntaxError(err)
	}
	return nil
}

// syntaxError returns the cause and the place of an error of jsontext in one short line.
func syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errUnfinished
	}
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return err
	}
	text := texts.Line(syntactic.Err.Error(), 200)
	if p := syntactic.JSONPointer; p != "" {
		text += " at " + quoteShort(string(p))
	}
	return errors.New(text)
}

// ids gives every step of a plan a unique id.
type ids struct {
	given map[string]bool // ids in the plan
	used  map[string]bool // ids that must not be made up
}

func newIDs(taken []string) ids {
	n := ids{given: make(map[string]bool), used: make(map[string]bool, len(taken))}
	for _, id := range taken {
		n.used[id] = true
	}
	return n
}

// give records the id of the step with a number, from 1. A repeated id belongs to the first step that has it; the
// later step becomes invalid and loses it.
func (n ids) give(s *Step, number int) {
	if s.ID == "" {
		return
	}
	if n.given[s.ID] {
		s.Invalid = &Error{
			Reason:  reason.DuplicateID,
			Message: fmt.Sprintf("step %d: id %s is used by an earlier step", number, quoteShort(s.ID)),
		}
		s.ID = ""
		return
	}
	n.given[s.ID], n.used[s.ID] = true, true
}

// fill gives a step without an id the id "s" and its number, or the next free one.
func (n ids) fill(s *Step, number int) {
	for i := number; s.ID == ""; i++ {
		if id := "s" + strconv.Itoa(i); !n.used[id] {
			n.used[id], s.ID = true, id
		}
	}
}

var (
	errUnfinished = errors.New("the text ends inside a JSON value")
	errTooDeep    = errors.New("nested deeper than 64 levels")
)

// newDecoder returns a decoder that allows repeated names. It uses the memory of value.
func newDecoder(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
}

// memberSeq yields the members of an object. It ends early if the value is not an object or is broken. A value is valid
// until the next one is yielded.
func memberSeq(object jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		d := newDecoder(object)
		if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
			return
		}
		for d.PeekKind() == '"' {
			t, err := d.ReadToken()
			if err != nil {
				return
			}
			name := t.String()
			value, err := d.ReadValue()
			if err != nil || !yield(name, value) {
				return
			}
		}
	}
}

// elements returns the elements of an array, false if the value is not an array or is broken.
func elements(array jsontext.Value) ([]jsontext.Value, bool) {
	d := newDecoder(array)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, false
	}
	var list []jsontext.Value
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		list = append(list, value.Clone())
	}
	return list, true
}

// unquote returns the text of a valid JSON string.
func unquote(value []byte) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// appendQuoted appends text as a JSON string; invalid UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return "nothing"
}

// quoteShort quotes untrusted text for a message.
func quoteShort(text string) string { return strconv.Quote(texts.Cut(text, 100)) }
