package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// TOML is edited line by line. The parser tells where texts and lists of several lines end, and checks in the end that
// nothing else has changed.

// errTOML says that an edit of lines would change something else.
var errTOML = errors.New("the entry cannot be changed in its current form; write it as a table [mcp_servers.NAME]")

// tomlTables is a parsed file.
func tomlTables(text []byte) (all map[string]any, order toml.MetaData, err error) {
	order, err = toml.Decode(string(text), &all)
	if wrong := (toml.ParseError{}); errors.As(err, &wrong) {
		line, column := wrong.Position.Line, wrong.Position.Col
		return nil, order, &jsonc.Error{Line: line, Column: max(column, 1), Message: "invalid TOML: " + wrong.Message}
	}
	return all, order, err
}

func tomlServers(text []byte, servers string) (Servers, error) {
	all, order, err := tomlTables(text)
	if err != nil {
		return nil, err
	}
	tables, _ := all[servers].(map[string]any)
	var found Servers
	for _, key := range order.Keys() {
		if len(key) < 2 || key[0] != servers || found.Get(key[1]) != nil {
			continue
		}
		raw, err := json.Marshal(tables[key[1]])
		if err != nil {
			return nil, err
		}
		found = append(found, jsonc.Member{Name: key[1], Value: json.RawMessage(raw)})
	}
	return found, nil
}

// lines returns the lines of a text with their ends; the last one gets one, too.
func lines(text []byte) []string {
	all := slices.Collect(strings.Lines(string(text)))
	if last := len(all) - 1; last >= 0 && !strings.HasSuffix(all[last], "\n") {
		all[last] += newline(text)
	}
	return all
}

func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func join(all []string) []byte { return []byte(strings.Join(all, "")) }

// block is a range of lines: a table of a server, or one below it.
type block struct {
	from, to int    // without the blank lines and comments at its end
	below    string // name of the table below that of the server; "" = that of the server itself
}

var (
	tomlHead = pattern.New(`^[ \t]*\[`)
	tomlName = `(?:"%[1]s"|'%[1]s'|%[1]s)`
)

// whole reports whether no text and no list goes on after these lines.
func whole(all []string) bool {
	_, _, err := tomlTables(join(all))
	return err == nil
}

// blocks returns the tables of a server.
func blocks(all []string, servers, name string) (found []block) {
	head := regexp.MustCompile(`^[ \t]*\[[ \t]*` + fmt.Sprintf(tomlName, regexp.QuoteMeta(servers)) + `[ \t]*\.[ \t]*` +
		fmt.Sprintf(tomlName, regexp.QuoteMeta(name)) + `[ \t]*(?:\.[ \t]*([^\]]*))?\][ \t]*(?:#.*)?\r?\n$`)
	for i := 0; i < len(all); i++ {
		m := head.FindStringSubmatch(all[i])
		if m == nil || !whole(all[:i]) {
			continue
		}
		b := block{from: i, to: i + 1, below: strings.Trim(m[1], " \t\"'")}
		for j := i + 1; j < len(all) && !(tomlHead().MatchString(all[j]) && whole(all[:j])); j++ {
			if line := strings.TrimSpace(all[j]); line != "" && line[0] != '#' {
				b.to = j + 1
			}
		}
		found = append(found, b)
		i = b.to - 1
	}
	return found
}

// cut takes a block out, with a blank line before it.
func cut(all []string, b block) []string {
	if b.from > 0 && strings.TrimSpace(all[b.from-1]) == "" {
		b.from--
	}
	return slices.Delete(all, b.from, b.to)
}

// appendBlock adds a table at the end, after a blank line.
func appendBlock(all, table []string, newline string) []string {
	if last := len(all) - 1; last >= 0 && strings.TrimSpace(all[last]) != "" {
		all = append(all, newline)
	}
	return append(all, table...)
}

func tomlRemove(text []byte, servers, name string) ([]byte, error) {
	before, _, err := tomlTables(text)
	if err != nil {
		return nil, err
	}
	tables, _ := before[servers].(map[string]any)
	if tables[name] == nil {
		return text, nil
	}
	all := lines(text)
	for _, b := range slices.Backward(blocks(all, servers, name)) {
		all = cut(all, b)
	}
	return checked(join(all), before, servers, name, nil)
}

func tomlMove(to, from []byte, servers, name string) ([]byte, error) {
	source, _, err := tomlTables(from)
	if err != nil {
		return nil, err
	}
	before, _, err := tomlTables(to)
	if err != nil {
		return nil, err
	}
	all, other := lines(to), lines(from)
	for _, b := range blocks(other, servers, name) {
		all = appendBlock(all, other[b.from:b.to], newline(to))
	}
	tables, _ := source[servers].(map[string]any)
	return checked(join(all), before, servers, name, tables[name])
}

// tomlPut is Put for TOML.
func tomlPut(text []byte, servers, name string, fields jsonc.Object, stale []string) ([]byte, error) {
	before, _, err := tomlTables(text)
	if err != nil {
		return nil, err
	}
	tables, _ := before[servers].(map[string]any)
	old, _ := tables[name].(map[string]any)
	want := maps.Clone(old)
	if want == nil {
		want = map[string]any{}
	}
	for _, f := range fields {
		want[f.Name] = decoded(f.Value)
		if headers, ok := old[f.Name].(map[string]any); ok { // others of them stay
			headers = maps.Clone(headers)
			maps.Copy(headers, want[f.Name].(map[string]any))
			want[f.Name] = headers
		}
	}
	for _, key := range stale {
		delete(want, key)
	}
	if reflect.DeepEqual(old, want) {
		return text, nil
	}
	all, end := lines(text), newline(text)
	if old == nil {
		table := []string{"[" + servers + "." + name + "]" + end}
		for _, f := range fields {
			table = append(table, tomlLine(f.Name, want[f.Name])+end)
		}
		return checked(join(appendBlock(all, table, end)), before, servers, name, want)
	}
	for _, b := range slices.Backward(blocks(all, servers, name)) {
		if b.below != "" {
			if !reflect.DeepEqual(old[b.below], want[b.below]) {
				all = cut(all, b)
			}
			continue
		}
		table := slices.Clone(all[b.from:b.to])
		for _, key := range slices.Sorted(maps.Keys(old)) {
			if !reflect.DeepEqual(old[key], want[key]) {
				assigned := regexp.MustCompile(`^[ \t]*` + fmt.Sprintf(tomlName, regexp.QuoteMeta(key)) + `[ \t]*=`)
				if i := slices.IndexFunc(table, assigned.MatchString); i >= 0 {
					end := i + 1
					for end < len(table) && !whole(table[i:end]) {
						end++
					}
					table = slices.Delete(table, i, end)
				}
			}
		}
		for _, f := range fields {
			if !reflect.DeepEqual(old[f.Name], want[f.Name]) {
				table = append(table, tomlLine(f.Name, want[f.Name])+end)
			}
		}
		all = slices.Replace(all, b.from, b.to, table...)
	}
	return checked(join(all), before, servers, name, want)
}

// decoded returns a value as a parser would.
func decoded(v any) (out any) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil
	}
	return out
}

// tomlLine returns an assignment of a text, a list of texts or a table of texts.
func tomlLine(key string, value any) string { return key + " = " + tomlValue(value) }

func tomlValue(value any) string {
	switch v := value.(type) {
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = tomlValue(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := key
			if !tomlBare().MatchString(name) {
				name = tomlValue(name)
			}
			items = append(items, tomlLine(name, v[key]))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out) // the escapes of JSON are valid in TOML
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\x7f", `\u007f`)
}

var tomlBare = pattern.New(`^[A-Za-z0-9_-]+$`)

// checked returns text if it differs from before by the entry alone; nil means that there is none.
func checked(text []byte, before map[string]any, servers, name string, entry any) ([]byte, error) {
	want := maps.Clone(before)
	if want == nil {
		want = map[string]any{}
	}
	tables, _ := want[servers].(map[string]any)
	tables = maps.Clone(tables)
	if tables == nil {
		tables = map[string]any{}
	}
	want[servers] = tables
	if entry == nil {
		delete(tables, name)
	} else {
		tables[name] = entry
	}
	after, _, err := tomlTables(text)
	if after[servers] == nil && len(tables) == 0 {
		delete(want, servers)
	}
	if err != nil || !reflect.DeepEqual(after, want) && len(after)+len(want) > 0 {
		return nil, errTOML
	}
	return text, nil
}
