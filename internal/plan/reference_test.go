package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

var values = map[string]string{
	"s1":     `{"path":[{"field":"v\u00e9","n":9007199254740993,"nothing":null}],"a b":1,"0":"zero","__proto__":{"x":1},"constructor":2,"t":"say \"hi\"","o":{"b":1.0,"a":[1e3]},"":"empty","items":[[1,2],[3,4]]}`,
	"s2":     `"text"`,
	"s3":     `[10,20,30]`,
	"s1.sub": `{"path":"longer"}`,
	"failed": `" error: no such city"`, "log": `"Error: ` + strings.Repeat("x", 1000) + `"`, "list": `["Error: x"]`,
	"file": `"one\r\ntwo\n\n3"`, "wrapped": `{"content":"one\n{\"a\":1}\n"}`, "inner": `{"result":"{\"lines\":[7],\"items\":[{\"name\":\"x\"}]}"}`, "own": `{"content":"a","more":"b"}`,
	"big": `"` + strings.Repeat("x", 1<<20) + `"`,
}

func isStep(id string) bool { return values[id] != "" || id == "pending" }

func value(id string) (json.RawMessage, bool) { return json.RawMessage(values[id]), values[id] != "" }

var substituteTests = []struct {
	name, arguments, want string
	err                   string
	refs                  string
}{
	{name: "none", arguments: `{"a": "b", "n":1.0}`, want: `{"a": "b", "n":1.0}`},
	{name: "whole value", arguments: `{"a":"$s2"}`, want: `{"a":"text"}`, refs: "s2"},
	{name: "path", arguments: `{"a":"$s1.path.0.n"}`, want: `{"a":9007199254740993}`, refs: "s1"},
	{name: "index in brackets", arguments: `{"a":"$s1.path[0].n","b":"$s3[2]","c":"$s1.items[1][0]","d":"$s3[0].x[0]"}`, err: `"x" is not in $s3.0, which is of type number`, refs: "s1 s3"},
	{name: "indices in brackets", arguments: `{"b":"$s3[2]","c":"$s1.items[1][0]"}`, want: `{"b":30,"c":3}`, refs: "s3 s1"},
	{name: "kept as written", arguments: `{ "z":1e2 , "a":[ "$s3.1", 9007199254740993 ] ,"s":"\u00e9\/" }`, want: `{ "z":1e2 , "a":[ 20, 9007199254740993 ] ,"s":"\u00e9\/" }`, refs: "s3"},
	{name: "value kept as written", arguments: `{"a":"$s1.o","s":"$s1.path.0.field"}`, want: `{"a":{"b":1.0,"a":[1e3]},"s":"v\u00e9"}`, refs: "s1"},
	{name: "null", arguments: `{"a":"$s1.path.0.nothing"}`, want: `{"a":null}`, refs: "s1"},
	{name: "text", arguments: `{"a":"x ${s2} y ${s3.0}${s1.o}"}`, want: `{"a":"x text y 10{\"b\":1.0,\"a\":[1e3]}"}`, refs: "s2 s3 s1"},
	{name: "text with quotes", arguments: `{"a":"<${s1.t}>"}`, want: `{"a":"<say \"hi\">"}`, refs: "s1"},
	{name: "braces alone are text", arguments: `{"a":"${s3.0}"}`, want: `{"a":"10"}`, refs: "s3"},
	{name: "no step", arguments: `{"a":"$2500","b":"${HOME}","c":"$","d":"${","e":"$$s1","f":"${x.${y}","g":"$s9.a"}`, want: `{"a":"$2500","b":"${HOME}","c":"$","d":"${","e":"$$s1","f":"${x.${y}","g":"$s9.a"}`},
	{name: "not a whole string", arguments: `{"a":"costs $s2","b":"$s2 each","c":" $s2"}`, want: `{"a":"costs $s2","b":"$s2 each","c":" $s2"}`},
	{name: "text after what is no step", arguments: `{"a":"${x} ${s2} ${y"}`, want: `{"a":"${x} text ${y"}`, refs: "s2"},
	{name: "unclosed before closed", arguments: `{"a":"${x ${s2}"}`, want: `{"a":"${x text"}`, refs: "s2"},
	{name: "names stay", arguments: `{"$s2":"$s2","${s2}":{"$s1":1}}`, want: `{"$s2":"text","${s2}":{"$s1":1}}`, refs: "s2"},
	{name: "keys with spaces", arguments: `{"a":"$s1.a b"}`, want: `{"a":1}`, refs: "s1"},
	{name: "numeric key of an object", arguments: `{"a":"$s1.0"}`, want: `{"a":"zero"}`, refs: "s1"},
	{name: "empty key", arguments: `{"a":"$s1."}`, want: `{"a":"empty"}`, refs: "s1"},
	{name: "plain keys", arguments: `{"a":"$s1.__proto__.x","b":"$s1.constructor"}`, want: `{"a":1,"b":2}`, refs: "s1"},
	{name: "keys that are not there", arguments: `{"a":"$s2.__proto__"}`, err: `reference "$s2.__proto__": "__proto__" is not in $s2, which is of type string`, refs: "s2"},
	{name: "longest id", arguments: `{"a":"$s1.sub.path"}`, want: `{"a":"longer"}`, refs: "s1.sub"},
	{name: "escaped reference", arguments: `{"a":"\u0024s2"}`, want: `{"a":"text"}`, refs: "s2"},
	{name: "missing", arguments: `{"a":"$s1.path.1"}`, err: `reference "$s1.path.1": "1" is not in $s1.path, which is of type array`, refs: "s1"},
	{name: "missing in text", arguments: `{"a":"x ${s1.nope} y"}`, err: `reference "${s1.nope}": "nope" is not in $s1, which is of type object`, refs: "s1"},
	{name: "no index", arguments: `{"a":"$s3.-1"}`, err: `"-1" is not in`, refs: "s3"},
	{name: "beyond", arguments: `{"a":"$s3.99999999999999999999"}`, err: `is not in`, refs: "s3"},
	{name: "text of an error", arguments: `{"a":"$failed"}`, err: `the result of the step is the text of an error: " error: no such city"`, refs: "failed"},
	{name: "text of an error in text", arguments: `{"a":"in ${failed}"}`, err: `the text of an error`, refs: "failed"},
	{name: "an error that is data", arguments: `{"a":"$list.0"}`, want: `{"a":"Error: x"}`, refs: "list"},
	{name: "a long text that begins like an error", arguments: `{"a":"$log"}`, want: `{"a":"Error: ` + strings.Repeat("x", 1000) + `"}`, refs: "log"},
	{name: "no value", arguments: `{"a":"$pending"}`, err: `reference "$pending": the step has no value`, refs: "pending"},
	{name: "what is put in is not searched", arguments: `{"a":"${s2}$s2"}`, want: `{"a":"text$s2"}`, refs: "s2"},
	{name: "lines of a text", arguments: `{"a":"$file.lines","b":"${file.lines.1}","c":"$s1.path.0.field.lines"}`, want: `{"a":["one","two","","3"],"b":"two","c":["vé"]}`, refs: "file s1"},
	{name: "a lone text of an object", arguments: `{"a":"$wrapped.lines.0","b":"$wrapped.content.lines.1","c":"<${wrapped}>","d":"$wrapped"}`, want: `{"a":"one","b":"{\"a\":1}","c":"<one\n{\"a\":1}\n>","d":{"content":"one\n{\"a\":1}\n"}}`, refs: "wrapped"},
	{name: "lines of lines", arguments: `{"a":"$file.lines.0.lines.0.lines.0.lines.0"}`, err: `"lines" is not in $file, which is of type string`, refs: "file"},
	{name: "JSON in a text", arguments: `{"a":"$inner.items.0.name","b":"$inner.result.items[0]","c":"$inner.lines"}`, want: `{"a":"x","b":{"name":"x"},"c":[7]}`, refs: "inner"},
	{name: "not the only member", arguments: `{"a":"$own.lines"}`, err: `"lines" is not in $own, which is of type object`, refs: "own"},
	{name: "lines of a number", arguments: `{"a":"$s3.0.lines"}`, err: `"lines" is not in $s3.0, which is of type number`, refs: "s3"},
	{name: "repeated", arguments: `["$s2","$s3","$s2"]`, want: `["text",[10,20,30],"text"]`, refs: "s2 s3"},
	{name: "too large", arguments: `{"a":["` + strings.Repeat(`$big","`, 100) + `"]}`, err: "64 MiB", refs: "big"},
	{name: "too large text", arguments: `{"a":"` + strings.Repeat(`${big}`, 100) + `"}`, err: "64 MiB", refs: "big"},
	{name: "too much to search", arguments: `{"a":["` + strings.Repeat(`$big.x","`, 1) + strings.Repeat(`$s1.0","`, 10) + `"]}`, err: "is not in", refs: "big s1"},
}

func TestSubstitute(t *testing.T) {
	for _, tt := range substituteTests {
		t.Run(tt.name, func(t *testing.T) {
			refs := plan.References(json.RawMessage(tt.arguments), isStep)
			if got := strings.Join(refs, " "); got != tt.refs {
				t.Errorf("got references %q, want %q", got, tt.refs)
			}
			got, err := plan.Substitute(json.RawMessage(tt.arguments), isStep, value)
			if tt.err != "" {
				why := reason.MissingReference
				if strings.Contains(tt.err, "MiB") {
					why = reason.InvalidArguments
				}
				if err == nil || !strings.Contains(err.Message, tt.err) || err.Reason != why {
					t.Errorf("got %.200s, %v, want error %s with reason %s", got, err, tt.err, why)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// A thousand references into a large value are an error, not minutes of searching.
func TestSubstituteSearchBound(t *testing.T) {
	large := json.RawMessage(`{"v":1,"pad":"` + strings.Repeat("x", 8<<20) + `"}`)
	arguments := `["` + strings.Repeat(`$x.v","`, 1000) + `"]`
	_, err := plan.Substitute(json.RawMessage(arguments), func(id string) bool { return id == "x" },
		func(string) (json.RawMessage, bool) { return large, true })
	if err == nil || !strings.Contains(err.Message, "too much") {
		t.Errorf("got %v, want an error about too much data", err)
	}
}

func TestReferencesTime(t *testing.T) {
	for _, unit := range []string{"$", "${", "${s2", "${s1.}", "$s1.", "${}", "[0", ".[", "}"} {
		for _, end := range []string{"", "}"} {
			text := strings.Repeat(unit, timedText/len(unit)) + end
			for _, arguments := range []string{`{"a":"` + text + `"}`, `{"a":"$s1.` + text + `"}`} {
				start := time.Now()
				plan.References(json.RawMessage(arguments), isStep)
				plan.Substitute(json.RawMessage(arguments), isStep, value)
				if d := time.Since(start); d > maxTime {
					t.Errorf("much of %q took %v", unit, d)
				}
			}
		}
	}
}

func TestNeeds(t *testing.T) {
	s := plan.Step{Arguments: json.RawMessage(`{"a":"$s3","b":"${s1.x}","c":"$2500"}`), After: []string{"s1", "s2", "nowhere"}}
	if got, want := s.Needs(isStep), []string{"s3", "s1", "s2", "nowhere"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzSubstitute(f *testing.F) {
	for _, tt := range substituteTests {
		if len(tt.arguments) < 1000 {
			f.Add(tt.arguments)
		}
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		raw := json.RawMessage(arguments)
		refs := plan.References(raw, isStep)
		for _, id := range refs {
			if !isStep(id) {
				t.Errorf("got a reference to %q, which is no step", id)
			}
		}
		if !jsontext.Value(raw).IsValid() || slices.Contains(refs, "big") {
			return
		}
		got, err := plan.Substitute(raw, isStep, value)
		switch {
		case err != nil:
		case len(refs) == 0 && string(got) != arguments:
			t.Errorf("got %s, want %s", got, arguments)
		case !jsontext.Value(got).IsValid(jsontext.AllowDuplicateNames(true)):
			t.Errorf("got %s from %s, want JSON", got, arguments)
		}
	})
}
