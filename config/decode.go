package config

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/secret"
	"github.com/agenticnexus/agenticnexus/internal/size"
)

// decoder copies nodes into the configuration structs. A value that does not fit becomes a problem and leaves its field
// unchanged, so that all problems are found.
type decoder struct {
	env      func(string) (string, bool)
	client   bool     // the file is the JSON file of a desktop client
	shape    bool     // check only the shape of servers, as if all were disabled
	lenient  bool     // keep unset variables as written
	programs bool     // warn about commands that do not exist
	used     *Config  // the configuration to replace; nil = none
	keep     bool     // used has API keys, which stay if the files do not determine the keys
	unknown  []string // why the files do not determine them
	problems problems
	warnings []string
	places   map[string]place    // of every given value, by its path
	failed   map[string]bool     // paths with a problem
	servers  map[string]position // of every server name
}

func newDecoder(env func(string) (string, bool)) *decoder {
	return &decoder{env: env, places: map[string]place{}, failed: map[string]bool{}, servers: map[string]position{}}
}

// empty is the text of the place of a mapping without members.
const empty = "{}"

// place is the position of a given value, and its text before variables are expanded.
type place struct {
	at   position
	text string
}

// shown bounds, in characters, what a message quotes of a file.
const shown = 60

// quoted returns the text for a message.
func (p place) quoted() string {
	if r := []rune(p.text); len(r) > shown {
		return strconv.Quote(string(r[:shown]) + "…")
	}
	return strconv.Quote(p.text)
}

// fail records that the value at path is wrong.
func (d *decoder) fail(at position, path, format string, args ...any) {
	d.failed[path] = true
	if path != "" {
		format, args = "%s: "+format, append([]any{path}, args...)
	}
	d.problems.add(at, format, args...)
}

func (d *decoder) warn(at position, format string, args ...any) {
	var p problems
	p.add(at, format, args...)
	d.warnings = append(d.warnings, p.list[0].String())
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value copies n into v, which is at path. null changes nothing.
func (d *decoder) value(path string, n *node, v reflect.Value) {
	if n.kind == null {
		return
	}
	if _, again := d.places[path]; again && v.Kind() == reflect.Slice { // it replaces all items of the earlier file
		for given := range d.places {
			if strings.HasPrefix(given, path+"[") {
				delete(d.places, given)
			}
		}
	}
	d.places[path] = place{n.at, n.text}
	if n.kind == mapping && len(n.members) == 0 {
		d.places[path] = place{n.at, empty}
	}
	switch v.Interface().(type) {
	case string, secret.String:
		if s, _, ok := d.scalar(path, n, "text"); ok {
			v.SetString(s)
		}
		return
	case time.Duration:
		d.duration(path, n, v)
		return
	case size.Bytes:
		d.bytes(path, n, v)
		return
	case json.RawMessage:
		if raw, ok := d.json(path, n); ok {
			v.SetBytes(raw)
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		d.boolean(path, n, v)
	case reflect.Int:
		d.integer(path, n, v)
	case reflect.Float64:
		d.float(path, n, v)
	case reflect.Pointer:
		if d.unresolved(n) {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(path, n, v.Elem())
	case reflect.Struct:
		if d.want(path, n, mapping) {
			d.structure(path, n, v)
		}
	case reflect.Slice:
		if d.want(path, n, list) {
			d.list(path, n, v)
		}
	case reflect.Map:
		if d.want(path, n, mapping) {
			d.texts(path, n, v)
		}
	}
}

func (d *decoder) want(path string, n *node, k kind) bool {
	if n.kind != k {
		d.fail(n.at, path, "want %v, got %v", k, n.kind)
	}
	return n.kind == k
}

// scalar returns the text of a scalar with its variables expanded, and whether it has any.
func (d *decoder) scalar(path string, n *node, want string) (s string, expanded, ok bool) {
	switch n.kind {
	case number, boolean:
		return n.text, false, true
	case text:
	default:
		d.fail(n.at, path, "want %s, got %v", want, n.kind)
		return "", false, false
	}
	s, err := expand(n.text, d.env, d.client)
	if err != nil && d.lenient {
		return n.text, false, true
	}
	if err != nil {
		d.fail(n.at, path, "%v", err)
		return "", false, false
	}
	return s, s != n.text, true
}

// unresolved reports whether n needs a variable that is not set and need not be.
func (d *decoder) unresolved(n *node) bool {
	if !d.lenient || n.kind != text {
		return false
	}
	_, err := expand(n.text, d.env, d.client)
	return err != nil
}

// parse passes the text of a scalar to set, which returns false for a wrong form. want names the type in messages,
// and form says how to write it.
func (d *decoder) parse(path string, n *node, want, form string, set func(s string, expanded bool) bool) {
	if d.unresolved(n) {
		return
	}
	if s, expanded, ok := d.scalar(path, n, want); ok && !set(s, expanded) {
		d.fail(n.at, path, "want %s, got %s", form, place{n.at, n.text}.quoted())
	}
}

func (d *decoder) boolean(path string, n *node, v reflect.Value) {
	const want = "true or false"
	d.parse(path, n, want, want, func(s string, expanded bool) bool {
		b, err := strconv.ParseBool(strings.ToLower(s))
		if err != nil || !(n.kind == boolean || expanded) {
			return false
		}
		v.SetBool(b)
		return true
	})
}

func (d *decoder) integer(path string, n *node, v reflect.Value) {
	d.parse(path, n, "a whole number", "a whole number up to 2147483647", func(s string, expanded bool) bool {
		i, err := strconv.ParseInt(s, 10, 32)
		if err != nil || !(n.kind == number || expanded) {
			return false
		}
		v.SetInt(i)
		return true
	})
}

func (d *decoder) float(path string, n *node, v reflect.Value) {
	d.parse(path, n, "a number", "a number that is not below 0", func(s string, expanded bool) bool {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f <= math.MaxFloat32) || !(n.kind == number || expanded) {
			return false
		}
		v.SetFloat(f)
		return true
	})
}

func (d *decoder) duration(path string, n *node, v reflect.Value) {
	const form = "a duration with a unit (ms, s, m or h), such as 30s"
	d.parse(path, n, "a duration such as 30s", form, func(s string, _ bool) bool {
		t, err := time.ParseDuration(s)
		if err == nil {
			v.SetInt(int64(t))
		}
		return err == nil
	})
}

func (d *decoder) bytes(path string, n *node, v reflect.Value) {
	const form = "an amount of bytes with a unit (B, KiB, MiB or GiB), such as 4MiB"
	d.parse(path, n, "an amount of bytes such as 4MiB", form, func(s string, _ bool) bool {
		b, err := size.Parse(s)
		if err == nil {
			v.SetInt(int64(b))
		}
		return err == nil
	})
}

// structure copies the members of n into the fields with the same yaml tag. It ignores the keys in also.
func (d *decoder) structure(path string, n *node, v reflect.Value, also ...string) {
	valid := append(keys(v.Type()), also...)
	fields := make(map[string]reflect.Value, len(valid))
	for i := range v.NumField() {
		fields[v.Type().Field(i).Tag.Get("yaml")] = v.Field(i)
	}
	d.unique(path, n, func(m member) {
		if field, ok := fields[m.key]; ok && m.key != "-" {
			d.value(join(path, m.key), m.value, field)
		} else if !slices.Contains(also, m.key) {
			hint := "it has no keys yet"
			if len(valid) > 0 {
				hint = didYouMean(m.key, valid)
			}
			d.fail(m.at, path, "unknown key %s; %s", place{m.at, m.key}.quoted(), hint)
		}
	})
}

// unique calls use for every member, and reports repeated keys.
func (d *decoder) unique(path string, n *node, use func(member)) {
	seen := make(map[string]position, len(n.members))
	for _, m := range n.members {
		if first, ok := seen[m.key]; ok {
			d.fail(m.at, path, "key %s is already given at %v", place{m.at, m.key}.quoted(), first)
			continue
		}
		seen[m.key] = m.at
		use(m)
	}
}

// keys returns the yaml keys of a struct, in its order.
func keys(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if name := field.Tag.Get("yaml"); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// list replaces the slice v by the items of n.
func (d *decoder) list(path string, n *node, v reflect.Value) {
	items := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, value := range n.items {
		if value.kind == null {
			d.fail(value.at, item(path, i), "is empty")
			continue
		}
		d.value(item(path, i), value, items.Index(i))
	}
	v.Set(items)
}

// texts replaces the map v by the members of n.
func (d *decoder) texts(path string, n *node, v reflect.Value) {
	texts := reflect.MakeMapWithSize(v.Type(), len(n.members))
	d.unique(path, n, func(m member) {
		at := join(path, m.key)
		if m.value.kind == null {
			d.fail(m.at, at, `is empty; write "" for an empty text`)
			return
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(at, m.value, value)
		texts.SetMapIndex(reflect.ValueOf(m.key), value)
	})
	v.Set(texts)
}
