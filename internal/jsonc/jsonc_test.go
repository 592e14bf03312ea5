package jsonc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/jsonc"
)

// Each row sets m.new, or the path given, to {"a":1} and removes it again.
var rows = []struct {
	name, before, after string
	removed             string // after the removal; "" = as before
}{
	{"nothing", "", "{\n  \"m\": {\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}\n", "{\n  \"m\": {}\n}\n"},
	{"empty", "{}", "{\n  \"m\": {\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}", "{\n  \"m\": {}\n}"},
	{"no servers yet", "{\n\t\"x\": 1\n}\n", "{\n\t\"x\": 1,\n\t\"m\": {\n\t\t\"new\": {\n\t\t\t\"a\": 1\n\t\t}\n\t}\n}\n", "{\n\t\"x\": 1,\n\t\"m\": {}\n}\n"},
	{"no server yet", "{\n    \"m\": {}\n}\n", "{\n    \"m\": {\n        \"new\": {\n            \"a\": 1\n        }\n    }\n}\n", ""},
	{"a server", "{\n  \"m\": {\n    \"x\": {}\n  }\n}\n", "{\n  \"m\": {\n    \"x\": {},\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}\n", ""},
	{"trailing comma", "{\n  \"m\": {\n    \"x\": 1,\n  },\n}\n", "{\n  \"m\": {\n    \"x\": 1,\n    \"new\": {\n      \"a\": 1\n    },\n  },\n}\n", ""},
	{"comments", "// top\n{\n  \"m\": { // here\n    \"x\": 1 // one\n    // \"y\": 2\n  } /* m */\n}\n// end",
		"// top\n{\n  \"m\": { // here\n    \"x\": 1, // one\n    // \"y\": 2\n    \"new\": {\n      \"a\": 1\n    }\n  } /* m */\n}\n// end", ""},
	{"only a comment", "{\n  \"m\": {\n    // none\n  }\n}", "{\n  \"m\": {\n    // none\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}", ""},
	{"one line", `{"m":{"x":1}}`, `{"m":{"x":1,"new":{"a":1}}}`, ""},
	{"one line with spaces", `{"m": {"x": 1}}`, `{"m": {"x": 1, "new": {"a":1}}}`, ""},
	{"one line, empty", `{"m": {}}`, `{"m": {"new": {"a":1}}}`, ""},
	{"carriage returns", "{\r\n  \"m\": {\r\n    \"x\": 1\r\n  }\r\n}\r\n",
		"{\r\n  \"m\": {\r\n    \"x\": 1,\r\n    \"new\": {\r\n      \"a\": 1\r\n    }\r\n  }\r\n}\r\n", ""},
	{"byte order mark", "\ufeff{\n  \"m\": {\n    \"x\": 1\n  }\n}", "\ufeff{\n  \"m\": {\n    \"x\": 1,\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}", ""},
	{"brace in the line", "{\n  \"m\": {\"x\": 1}\n}", "{\n  \"m\": {\"x\": 1,\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}", "{\n  \"m\": {\"x\": 1\n  }\n}"},
}

func TestSetAndRemove(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			value := jsonc.Object{{Name: "a", Value: 1}}
			got, err := jsonc.Set([]byte(c.before), value, "m", "new")
			if err != nil || string(got) != c.after {
				t.Fatalf("Set: got\n%s, %v\nwant\n%s", got, err, c.after)
			}
			if again, err := jsonc.Set(got, value, "m", "new"); err != nil || !bytes.Equal(again, got) {
				t.Errorf("a second Set: got\n%s, %v", again, err)
			}
			removed := c.removed
			if removed == "" {
				removed = c.before
			}
			got, err = jsonc.Remove(got, "m", "new")
			if err != nil || string(got) != removed {
				t.Errorf("Remove: got\n%s, %v\nwant\n%s", got, err, removed)
			}
		})
	}
}

func TestSet_Replaces(t *testing.T) {
	const before = "{\n  \"m\": {\"x\": {\"command\": \"a&b\", /* c */ \"on\": true}}, // end\n}"
	got, err := jsonc.Set([]byte(before), "<é>", "m", "x", "command")
	if want := strings.Replace(before, "a&b", "<é>", 1); err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{`{"m": {"a": 1, "new": 2, "c": 3}}`, `{"m": {"a": 1, "c": 3}}`},
		{`{"m": {"new": 2, "c": 3}}`, `{"m": {"c": 3}}`},
		{"{\"m\": {\n  \"new\": 2,\n  \"c\": 3\n}}", "{\"m\": {\n  \"c\": 3\n}}"},
		{"{\"m\": { // x\n  \"new\": 2, \"c\": 3\n}}", "{\"m\": { // x\n  \"c\": 3\n}}"},
		{"{\"m\": { // x\n  \"new\": 2, // y\n  \"c\": 3\n}}", "{\"m\": { // x // y\n  \"c\": 3\n}}"},
		{"{\"m\": {\n  \"new\": 2,\n}}", "{\"m\": {}}"},
		{`{"m": 1, "new": 2}`, ""},
		{`{}`, ""},
		{``, ""},
	} {
		want := c.after
		path := []string{"m", "new"}
		if want == "" {
			want, path = c.before, []string{"other", "new"}
		}
		if got, err := jsonc.Remove([]byte(c.before), path...); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", c.before, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		want         string
	}{
		{"{\n  \"é\" 1\n}", 2, 7, "invalid JSON"},
		{`{"m": {}`, 1, 9, "invalid JSON"},
		{"[1]", 1, 1, "the file is not an object"},
		{"{\n \"m\": null}", 2, 7, "m is not an object"},
		{"{\"m\": {\"new\": 1,\n\"new\": 2}}", 2, 1, `"new" is there twice`},
	} {
		for name, edit := range map[string]func() ([]byte, error){
			"Set":    func() ([]byte, error) { return jsonc.Set([]byte(c.text), 1, "m", "new") },
			"Remove": func() ([]byte, error) { return jsonc.Remove([]byte(c.text), "m", "new") },
		} {
			_, err := edit()
			wrong := (*jsonc.Error)(nil)
			if !errors.As(err, &wrong) || wrong.Line != c.line || wrong.Column != c.column || !strings.Contains(wrong.Message, c.want) {
				t.Errorf("%s of %q: got %+v, want %d:%d %s", name, c.text, wrong, c.line, c.column, c.want)
			}
		}
	}
}

func TestMembers(t *testing.T) {
	got, err := jsonc.Members([]byte(`{"m": {"b": {"x": [1, /* two */ 2,]}, "a": "y"}}`), "m")
	text, _ := json.Marshal(got)
	if err != nil || string(text) != `{"b":{"x":[1,2]},"a":"y"}` {
		t.Errorf("got %s, %v, want the members in their order", text, err)
	}
	if got, err := jsonc.Members([]byte(`{"b": 1, "a": 2}`)); err != nil || len(got) != 2 || got[0].Name != "b" {
		t.Errorf("without a path: got %v, %v, want those of the file", got, err)
	}
	if _, err := jsonc.Members([]byte(`[]`)); err == nil || !strings.Contains(err.Error(), "the file is not an object") {
		t.Errorf("of a list: got %v", err)
	}
	if got, err := jsonc.Members(nil, "m"); err != nil || got != nil {
		t.Errorf("of nothing: got %v, %v", got, err)
	}
}

func TestAt(t *testing.T) {
	_, mistake := jsonc.Members([]byte("[]"))
	for want, err := range map[string]error{"f.json:1:1: the file is not an object": mistake, "f.json: other": errors.New("other")} {
		if got := jsonc.At("f.json", err); got == nil || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if got := jsonc.At("f.json", nil); got != nil {
		t.Errorf("of no error: got %v", got)
	}
}

// What Set adds, Remove takes out, and neither touches anything else.
func FuzzSet(f *testing.F) {
	for _, c := range rows {
		f.Add([]byte(c.before), "new")
	}
	f.Add([]byte("{\"m\":{\"a\":1 , /* x */ \"new\": 2 // y\n , }}"), "new")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		before, err := jsonc.Members(text, "m")
		if err != nil || !utf8.ValidString(name) || !json.Valid([]byte(`"`+name+`"`)) || strings.ContainsAny(name, `\`) {
			return
		}
		set, err := jsonc.Set(text, jsonc.Object{{Name: "a", Value: 1}}, "m", name)
		if err != nil {
			return // there twice
		}
		var had bool
		var others jsonc.Object
		for _, m := range before {
			if m.Name == name {
				had = true
			} else {
				others = append(others, m)
			}
		}
		after, err := jsonc.Members(set, "m")
		if err != nil || len(after) != len(others)+1 {
			t.Fatalf("Set of %q: got %q with %v, %v", text, set, after, err)
		}
		removed, err := jsonc.Remove(set, "m", name)
		if err != nil {
			t.Fatalf("Remove of %q: %v", set, err)
		}
		left, err := jsonc.Members(removed, "m")
		a, _ := json.Marshal(left)
		b, _ := json.Marshal(others)
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("Remove of %q: got %s, %v, want %s", set, a, err, b)
		}
		if had || len(before) == 0 {
			return
		}
		blank := func(text []byte) string { return strings.Join(strings.Fields(string(text)), "") }
		if blank(removed) != blank(text) {
			t.Fatalf("got %q\nafter   %q\nfrom    %q", removed, set, text)
		}
	})
}
