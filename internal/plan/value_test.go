package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

var valueTests = []struct {
	name, result        string
	value, text, blocks string
	isError             bool
}{
	{name: "text", result: `{"content":[{"type":"text","text":"hello"}]}`, value: `"hello"`, text: "hello"},
	{name: "texts", result: `{"content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}`, value: `"a\nb"`, text: "a\nb"},
	{name: "JSON", result: `{"content":[{"type":"text","text":" {\"n\": 9007199254740993,\n \"b\": [1.0]} "}]}`, value: `{"n":9007199254740993,"b":[1.0]}`, text: " {\"n\": 9007199254740993,\n \"b\": [1.0]} "},
	{name: "number", result: `{"content":[{"type":"text","text":"375"}]}`, value: `375`, text: "375"},
	{name: "no JSON", result: `{"content":[{"type":"text","text":"007"}]}`, value: `"007"`, text: "007"},
	{name: "repeated names", result: `{"content":[{"type":"text","text":"{\"a\":1,\"a\":2}"}]}`, value: `{"a":1,"a":2}`, text: `{"a":1,"a":2}`},
	{name: "structured", result: `{"structuredContent": {"n": 9007199254740993, "a": "\u00e9"},"content":[{"type":"text","text":"x"}]}`, value: `{"n":9007199254740993,"a":"\u00e9"}`, text: "x"},
	{name: "structured list", result: `{"structuredContent":[1, 2]}`, value: `[1,2]`},
	{name: "structured null", result: `{"structuredContent":null,"content":[{"type":"text","text":"x"}]}`, value: `"x"`, text: "x"},
	{name: "blocks", result: `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"x"}, {"type":"new",  "text":"y"}]}`, value: `"x"`, text: "x", blocks: `{"type":"image","data":"aGk=","mimeType":"image/png"} {"type":"new",  "text":"y"}`},
	{name: "error", result: `{"isError":true,"content":[{"type":"text","text":"no"}],"_meta":{"a":[]}}`, value: `"no"`, text: "no", isError: true},
	{name: "nothing", result: `{}`, value: `""`},
	{name: "content of another kind", result: `{"content":"x"}`, value: `""`},
	{name: "odd blocks", result: `{"content":[1,{"type":"text"},{"type":1,"text":"z"},{}]}`, value: `""`},
}

func TestValueOf(t *testing.T) {
	for _, tt := range valueTests {
		t.Run(tt.name, func(t *testing.T) {
			value, text, blocks, isError, err := plan.ValueOf(json.RawMessage(tt.result))
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, b := range blocks {
				list = append(list, string(b))
			}
			if string(value) != tt.value || text != tt.text || strings.Join(list, " ") != tt.blocks || isError != tt.isError {
				t.Errorf("got %s, %q, %s, %v\nwant %s, %q, %s, %v", value, text, list, isError, tt.value, tt.text, tt.blocks, tt.isError)
			}
		})
	}
}

func TestValueOfErrors(t *testing.T) {
	for _, result := range []string{``, `null`, `[]`, `"x"`, `{`, `{"content":[`, `{"content":[{"type":"text"}`, `{"structuredContent":{]}`, `{"isError":tru}`, `{"x":}`, `{"content":[{},]}`} {
		if value, _, _, _, err := plan.ValueOf(json.RawMessage(result)); err == nil {
			t.Errorf("%s: got %s, want an error", result, value)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		value string
		limit int
		want  string
		cut   bool
	}{
		{`{"a":1}`, 7, `{"a":1}`, false},
		{`{"a":1}`, 6, `"{\"a\":1"`, true},
		{`"abc"`, 3, `"abc"`, false},
		{`"abcd"`, 3, `"abc"`, true},
		{`"\u00e9\n"`, 3, `"\u00e9\n"`, false},
		{`"aéé"`, 4, `"aé"`, true},
		{`[1]`, 0, `""`, true},
	}
	for _, tt := range tests {
		if got, cut := plan.Cut(json.RawMessage(tt.value), tt.limit); string(got) != tt.want || cut != tt.cut {
			t.Errorf("Cut(%s, %d): got %s, %v, want %s, %v", tt.value, tt.limit, got, cut, tt.want, tt.cut)
		}
	}
}

func FuzzValueOf(f *testing.F) {
	for _, tt := range valueTests {
		f.Add(tt.result, 5)
	}
	f.Fuzz(func(t *testing.T, result string, limit int) {
		value, text, blocks, _, err := plan.ValueOf(json.RawMessage(result))
		if err != nil {
			return
		}
		if !jsontext.Value(value).IsValid(jsontext.AllowDuplicateNames(true)) || strings.Contains(string(value), "\n") {
			t.Errorf("got value %s, want JSON in one line", value)
		}
		if !utf8.ValidString(text) {
			t.Errorf("got text %q, want UTF-8", text)
		}
		for _, b := range blocks {
			if !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("got block %s, want JSON", b)
			}
		}
		if limit < 0 {
			return
		}
		short, cut := plan.Cut(value, limit)
		var s string
		if cut && (json.Unmarshal(short, &s) != nil || len(s) > limit) || !cut && string(short) != string(value) {
			t.Errorf("Cut(%s, %d): got %s, %v", value, limit, short, cut)
		}
	})
}

func TestShown(t *testing.T) {
	long := strings.Repeat("no ", 10)
	for _, row := range []struct {
		name           string
		value, message string
		limit          int
		want, failure  string
		cut            bool
	}{
		{name: "fits", value: `{"a":1}`, limit: 7, want: `{"a":1}`},
		{name: "cut", value: `{"a":12}`, limit: 7, want: `"{\"a\":12"`, cut: true},
		{name: "whole", value: `{"a":12}`, want: `{"a":12}`},
		{name: "failure", message: "no", limit: 9, want: `"Error: no"`, failure: "no"},
		{name: "failure with its result cut", message: "no", limit: 8, want: `"Error: n"`, failure: "no", cut: true},
		{name: "failure cut", message: long, limit: 9, want: `"Error: no"`, failure: "no no no …", cut: true},
		{name: "failure whole", message: long, want: `"Error: ` + long + `"`, failure: long},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := plan.Outcome{Value: json.RawMessage(row.value)}
			if row.message != "" {
				o = plan.Outcome{Err: &plan.Error{Reason: reason.ToolError, Message: row.message}}
			}
			value, failure, cut := o.Shown(row.limit)
			if string(value) != row.want || cut != row.cut {
				t.Errorf("got %s, cut %v, want %s, %v", value, cut, row.want, row.cut)
			}
			if (failure != nil) != (row.message != "") || failure != nil && (failure.Message != row.failure || failure.Reason != reason.ToolError) {
				t.Errorf("got failure %+v, want %q", failure, row.failure)
			}
			if o.Err != nil && o.Err.Message != row.message {
				t.Errorf("got %q in the outcome, want it unchanged", o.Err.Message)
			}
		})
	}
}
