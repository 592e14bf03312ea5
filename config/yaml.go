package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of one file. For some indicators the YAML parser takes quadratic time and a stack frame each; at the bound the
// worst known file takes about a second.
const (
	maxFile       = 1 << 20 // bytes
	maxIndicators = 20_000  // lines, brackets, dashes and the like
)

// shown bounds, in characters, what a message quotes of a file.
const shown = 60

// Error is a mistake in the configuration. Its text never contains a secret: it quotes values as written in the file,
// before variables are expanded, and does not quote secrets. Commands exit with 2 on it.
type Error struct {
	File    string // "" = no file
	Line    int    // from 1; 0 = the file as a whole
	Column  int    // from 1, in characters
	Message string // one line

	unset bool // an environment variable is not set
}

// Error returns "file:line:column: message" without unknown parts.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

func mistake(file string, at *token.Token, format string, args ...any) *Error {
	e := &Error{File: file, Message: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
	if at != nil && at.Position != nil {
		e.Line, e.Column = at.Position.Line, at.Position.Column
	}
	return e
}

// document is a configuration file.
type document struct {
	name    string
	root    *ast.MappingNode
	json    bool
	written map[ast.Node]string // texts before their variables were expanded
	hollow  map[ast.Node]bool   // mappings all of whose members have no value
}

// parse reads a file. JSON is read as YAML; it may have comments and trailing commas, like the files of some desktop
// clients. An empty file is an empty mapping.
func parse(name string, data []byte, isJSON bool) (_ *document, err error) {
	d := &document{name: name, json: isJSON, root: ast.Mapping(&token.Token{}, false),
		written: map[ast.Node]string{}, hollow: map[ast.Node]bool{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = lineEnd().ReplaceAll(data, []byte("\n")) // the parser does not count other lines right
	switch {
	case len(data) > maxFile:
		return nil, mistake(name, nil, "larger than %d bytes", maxFile)
	case !utf8.Valid(data):
		return nil, mistake(name, nil, "not UTF-8 text")
	case countIndicators(data) > maxIndicators:
		return nil, mistake(name, nil, "more than %d lines, brackets, commas and the like", maxIndicators)
	case isJSON:
		if data, err = plainJSON(name, data); err != nil {
			return nil, err
		}
	}
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // the decoder refuses them where they matter
	if err != nil {
		at, message := (*token.Token)(nil), err.Error()
		if known := yaml.Error(nil); errors.As(err, &known) {
			at, message = known.GetToken(), known.GetMessage()
		}
		if at != nil && tabNear(data, at.Position.Line) { // the parser's message about tabs is not helpful
			message = "a tab in the indentation; use spaces"
		}
		form := "YAML"
		if isJSON {
			form = "JSON"
		}
		return nil, mistake(name, at, "invalid %s: %s", form, message)
	}
	documents := slices.DeleteFunc(parsed.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(documents) > 1 {
		return nil, mistake(name, documents[1].Body.GetToken(), "a second YAML document; put everything into one")
	}
	if len(documents) == 0 || documents[0].Body.Type() == ast.NullType || documents[0].Body.Type() == ast.CommentType {
		return d, nil
	}
	root, err := d.resolve(documents[0].Body)
	if err != nil {
		return nil, err
	}
	mapping, ok := root.(*ast.MappingNode)
	if !ok {
		return nil, mistake(name, root.GetToken(), "want a mapping of keys to values, got %s", kindOf(root))
	}
	d.root = mapping
	return d, nil
}

func countIndicators(data []byte) int {
	n := bytes.Count(data, []byte("- "))
	for _, c := range data {
		if strings.IndexByte("\n\r\t[{,&*!?<#", c) >= 0 {
			n++
		}
	}
	return n
}

// tabNear reports whether the indentation of a line or of a neighbour has a tab.
func tabNear(data []byte, line int) bool {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		indentation := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if n >= line-1 && n <= line+1 && bytes.IndexByte(indentation, '\t') >= 0 {
			return true
		}
	}
	return false
}

// plainJSON returns JSON without comments, trailing commas and tabs. Offsets stay the same.
func plainJSON(name string, data []byte) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	plain, err := jsonc.Standardize(data)
	if wrong := (*jsonc.Error)(nil); errors.As(err, &wrong) {
		return nil, &Error{File: name, Line: wrong.Line, Column: wrong.Column, Message: wrong.Message}
	}
	return bytes.ReplaceAll(plain, []byte("\t"), []byte(" ")), nil
}

// resolve gives mappings one form, texts their values, and all scalars tokens without neighbours. It refuses anchors,
// aliases, merge keys and tags.
func (d *document) resolve(from ast.Node) (n ast.Node, err error) {
	switch v := from.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		return nil, mistake(d.name, from.GetToken(), "anchors, aliases and tags are not supported; write the value itself")
	case *ast.StringNode:
		return textNode(v.Token, v.Value), nil
	case *ast.LiteralNode:
		return textNode(v.Value.Token, v.Value.Value), nil
	case *ast.IntegerNode:
		v.Token = detached(v.Token, v.Token.Value)
	case *ast.FloatNode:
		v.Token = detached(v.Token, v.Token.Value)
	case *ast.BoolNode:
		v.Token = detached(v.Token, v.Token.Value)
	case *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
	case *ast.SequenceNode:
		for i, item := range v.Values {
			if v.Values[i], err = d.resolve(wholeItem(item)); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		return d.resolve(ast.Mapping(v.Start, false, v))
	case *ast.MappingNode:
		for i, m := range v.Values {
			if v.Values[i], err = d.member(m); err != nil {
				return nil, err
			}
		}
	default:
		return nil, mistake(d.name, from.GetToken(), "%s is not allowed here", from.Type().YAMLName())
	}
	return from, nil
}

// wholeItem mends an item of a list: within braces, the parser takes a:b in brackets for a key and its value.
func wholeItem(item ast.Node) ast.Node {
	mapping, ok := item.(*ast.MappingNode)
	if !ok || mapping.IsFlowStyle || len(mapping.Values) != 1 {
		return item
	}
	m := mapping.Values[0]
	for _, n := range []ast.Node{m.Key, m.Value} {
		switch n.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		default:
			return item
		}
	}
	key, colon, value := m.Key.GetToken(), m.Start.Position, m.Value.GetToken()
	text := strings.TrimSpace(key.Origin + ":" + value.Origin)
	if strings.ContainsAny(text[:1], `"'`) || value.Position.Line != colon.Line ||
		value.Position.Column != colon.Column+1 {
		return item
	}
	return textNode(key, text)
}

func (d *document) member(m *ast.MappingValueNode) (*ast.MappingValueNode, error) {
	value, err := d.resolve(m.Value)
	if err != nil {
		return nil, err
	}
	var key ast.Node = m.Key
	if explicit, ok := key.(*ast.MappingKeyNode); ok && explicit.Value != nil {
		key = explicit.Value
	}
	text, err := d.resolve(key)
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"a list", "a mapping"}, kindOf(text)) || key.Type() == ast.LiteralType {
		return nil, mistake(d.name, m.Key.GetToken(), "a key must be plain text")
	}
	return ast.MappingValue(m.Start, textNode(text.GetToken(), written(text)), value), nil
}

// textNode returns a text whose token has no neighbours.
func textNode(at *token.Token, text string) *ast.StringNode {
	quoted, _ := json.Marshal(text) // texts always marshal
	n := ast.String(detached(at, string(quoted)))
	n.Token.Type, n.Value = token.DoubleQuoteType, text
	return n
}

// detached returns a copy of a token with another origin and without neighbours: the decoder walks through all of them
// for each value.
func detached(t *token.Token, origin string) *token.Token {
	c := *t
	c.Origin, c.Prev, c.Next = origin, nil, nil
	return &c
}

func keyOf(m *ast.MappingValueNode) string { return m.Key.(*ast.StringNode).Value }

// written returns the text of a scalar.
func written(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.GetToken().Value
}

// kindOf names the kind of a value for messages.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.StringNode:
		return "text"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	}
	return "a number"
}

// quoted returns the text of a scalar as written in the file, or the kind of another value, for a message.
func (d *document) quoted(n ast.Node) string {
	if kind := kindOf(n); kind == "a list" || kind == "a mapping" {
		return kind
	}
	if text, ok := d.written[n]; ok {
		return quote(text)
	}
	return quote(written(n))
}

func quote(text string) string {
	if r := []rune(text); len(r) > shown {
		return strconv.Quote(string(r[:shown]) + "…")
	}
	return strconv.Quote(text)
}

// value returns the value of a key of a mapping; nil if it has none. n may be nil or another value.
func value(n ast.Node, key string) ast.Node {
	if m := member(n, key); m != nil && m.Value.Type() != ast.NullType {
		return m.Value
	}
	return nil
}

// member returns a member of a mapping, also one without a value; nil if it has none.
func member(n ast.Node, key string) *ast.MappingValueNode {
	mapping, _ := n.(*ast.MappingNode)
	if mapping == nil {
		return nil
	}
	i := slices.IndexFunc(mapping.Values, func(m *ast.MappingValueNode) bool { return keyOf(m) == key })
	if i < 0 {
		return nil
	}
	return mapping.Values[i]
}

// find returns the value at a path such as auth.api_keys[0].name, or else the innermost one around it, and the token to
// report. Keys may contain dots.
func (d *document) find(path string) (n ast.Node, at *token.Token, found bool) {
	n = d.root
	for path != "" {
		next := ast.Node(nil)
		switch v := n.(type) {
		case *ast.MappingNode:
			for _, m := range v.Values {
				rest, ok := strings.CutPrefix(path, keyOf(m))
				if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
					next, at, path = m.Value, m.Value.GetToken(), strings.TrimPrefix(rest, ".")
					if kindOf(next) == "a mapping" {
						at = m.Key.GetToken()
					}
					break
				}
			}
		case *ast.SequenceNode:
			index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
			if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(v.Values) {
				next, path = v.Values[i], strings.TrimPrefix(rest, ".")
				if at = next.GetToken(); kindOf(next) == "a mapping" && len(next.(*ast.MappingNode).Values) > 0 {
					at = next.(*ast.MappingNode).Values[0].Key.GetToken()
				}
			}
		}
		if next == nil || next.Type() == ast.NullType {
			return n, at, false
		}
		n = next
	}
	return n, at, true
}

// expand leaves out members without a value and replaces the variables in the texts, once. Texts whose variables are
// not set stay as written, which is a mistake unless the value is lenient; other mistakes come first.
func (d *document) expand(path string, n ast.Node, env func(string) (string, bool), lenient bool) (missing error) {
	inside := func(path string, n ast.Node) error {
		err := d.expand(path, n, env, lenient)
		if wrong := (*Error)(nil); errors.As(err, &wrong) && wrong.unset {
			missing, err = cmp.Or(missing, err), nil
		}
		return err
	}
	switch v := n.(type) {
	case *ast.StringNode:
		text, err := expand(v.Value, env, d.json)
		if err != nil && !lenient {
			wrong := mistake(d.name, v.Token, "%s: %v", path, err)
			wrong.unset = errors.As(err, new(*unset))
			return wrong
		}
		if err == nil && text != v.Value {
			d.written[v] = v.Value
			*v = *textNode(v.Token, text)
		}
	case *ast.SequenceNode:
		for i, item := range v.Values {
			if err := inside(at(path, i), item); err != nil {
				return err
			}
		}
	case *ast.MappingNode:
		if n := len(v.Values); !strings.HasSuffix(path, ".extra") { // null changes nothing; there it is a value
			v.Values = slices.DeleteFunc(v.Values, func(m *ast.MappingValueNode) bool { return m.Value.Type() == ast.NullType })
			d.hollow[v] = n > 0 && len(v.Values) == 0
		}
		for _, m := range v.Values {
			if err := inside(join(path, keyOf(m)), m.Value); err != nil {
				return err
			}
		}
	}
	return missing
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// decode copies a value into to, strictly. It keeps the settings that the value does not have.
func (d *document) decode(path string, n ast.Node, to any, also ...string) error {
	if yaml.NodeToValue(n, to, decoding()...) == nil {
		return nil
	}
	return d.fault(path, n, reflect.TypeOf(to).Elem(), also)
}

// fault returns the innermost mistake in a value that cannot be decoded. also has further keys of the outermost
// mapping.
func (d *document) fault(path string, n ast.Node, t reflect.Type, also []string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fails := func(n ast.Node, t reflect.Type) bool {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return yaml.NodeToValue(n, reflect.New(t).Interface(), decoding()...) != nil
	}
	prefix := ""
	if path != "" {
		prefix = path + ": "
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		seen := map[string]*token.Token{}
		for _, m := range v.Values {
			key := keyOf(m)
			var of reflect.Type
			if first := seen[key]; first != nil {
				return mistake(d.name, m.Key.GetToken(), "%skey %s is already given in line %d", prefix, quote(key), first.Position.Line)
			}
			seen[key] = m.Key.GetToken()
			switch t.Kind() {
			case reflect.Map:
				of = t.Elem()
			case reflect.Struct:
				field, ok := fieldOf(t, key)
				if !ok {
					return mistake(d.name, m.Key.GetToken(), "%sunknown key %s; %s", prefix, quote(key),
						didYouMean(key, append(keys(t), also...)))
				}
				of = field.Type
			default:
				continue
			}
			if fails(m.Value, of) {
				return d.fault(join(path, key), m.Value, of, nil)
			}
		}
	case *ast.SequenceNode:
		for i, item := range v.Values {
			if t.Kind() == reflect.Slice && fails(item, t.Elem()) {
				return d.fault(at(path, i), item, t.Elem(), nil)
			}
		}
	}
	want, got := wanted(t), d.quoted(n)
	if want == "a list" || want == "a mapping" {
		got = kindOf(n) // a text may be a secret
	}
	return mistake(d.name, n.GetToken(), "%swant %s, got %s", prefix, want, got)
}

// keys returns the yaml keys of a struct, in its order.
func keys(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		if name := field.Tag.Get("yaml"); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	return t.FieldByNameFunc(func(name string) bool {
		field, _ := t.FieldByName(name)
		return key != "-" && field.Tag.Get("yaml") == key
	})
}

// wanted describes the values of a type.
func wanted(t reflect.Type) string {
	switch reflect.Zero(t).Interface().(type) {
	case time.Duration:
		return "a duration with a unit (ms, s, m or h), such as 30s"
	case limit.Bytes:
		return "an amount of bytes with a unit (B, KiB, MiB or GiB), such as 4MiB"
	case json.RawMessage:
		return "a JSON value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number up to 2147483647"
	case reflect.Float64:
		return "a number that is not below 0"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	}
	return "text"
}

var errForm = errors.New("another form is wanted")

// decoding returns the options of the decoder: it is strict, and reads all scalars from their text as written.
func decoding() []yaml.DecodeOption {
	return []yaml.DecodeOption{
		yaml.Strict(),
		scalar(func(s string) (string, error) { return s, nil }),
		scalar(func(s string) (redact.Secret, error) { return redact.Secret(s), nil }),
		scalar(func(s string) (json.RawMessage, error) { return json.RawMessage(s), nil }), // see rawMembers
		scalar(time.ParseDuration),
		scalar(limit.ParseBytes),
		scalar(func(s string) (bool, error) {
			if s = strings.ToLower(s); s != "true" && s != "false" {
				return false, errForm
			}
			return s == "true", nil
		}),
		scalar(func(s string) (int, error) {
			n, err := strconv.ParseInt(s, 10, 32)
			return int(n), err
		}),
		scalar(func(s string) (float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if !(f >= 0 && f <= math.MaxFloat32) {
				return 0, errForm
			}
			return f, err
		}),
	}
}

func scalar[T any](parse func(string) (T, error)) yaml.DecodeOption {
	return yaml.CustomUnmarshaler(func(to *T, b []byte) error {
		var v any
		if err := yaml.Unmarshal(b, &v); err != nil {
			return err
		}
		text, ok := v.(string)
		switch v.(type) {
		case nil, []any, map[string]any:
			return errForm
		}
		if !ok {
			text = strings.TrimSpace(string(b))
		}
		parsed, err := parse(text)
		if err == nil {
			*to = parsed
		}
		return err
	})
}

// rawMembers replaces the members of the mapping at a path by their JSON as text.
func (d *document) rawMembers(path string) error {
	n, _, found := d.find(path)
	mapping, ok := n.(*ast.MappingNode)
	if !found || !ok {
		return nil
	}
	for _, m := range mapping.Values {
		var v any
		err := yaml.NodeToValue(m.Value, &v)
		raw, unfit := json.Marshal(v)
		if err = errors.Join(err, unfit); err != nil {
			return mistake(d.name, m.Value.GetToken(), "%s: cannot be written as JSON", join(path, keyOf(m)))
		}
		m.Value = textNode(m.Value.GetToken(), string(raw))
	}
	return nil
}

// didYouMean names the valid key that is most like key, or all valid keys.
func didYouMean(key string, valid []string) string {
	if best := texts.Similar(key, valid, 1); len(best) > 0 {
		return fmt.Sprintf("did you mean %q?", best[0])
	}
	return "valid keys are " + orList(valid, "and")
}

// orList writes "a, b or c".
func orList(words []string, or string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + or + " " + words[last]
}
