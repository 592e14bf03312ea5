package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

func TestParse(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tc := range []struct {
		name, in string
		code     int // 0 = fine
		want     string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, `1 ping   `},
		{"spaces", " {\n\"jsonrpc\" : \"2.0\" , \"id\" : \"a\" , \"method\" : \"ping\" , \"params\" : { } } ", 0, `"a" ping { }  `},
		{"big integer", `{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"a":9007199254740993}}`, 0, `9007199254740993 m {"a":9007199254740993}  `},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0, ` notifications/initialized   `},
		{"null params", `{"jsonrpc":"2.0","method":"m","params":null}`, 0, ` m   `},
		{"result", `{"jsonrpc":"2.0","id":-7,"result":null}`, 0, `-7   null `},
		{"error", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, 0, `    {"code":1,"message":"x"}`},
		{"escaped names", `{"json\u0072pc":"2.0","id":1,"method":"a\/b"}`, 0, `1 a/b   `},
		{"depth 512", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + deep(510) + `}}`, 0, `1 m {"a":` + deep(510) + `}  `},

		{"depth 513", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + deep(511) + `}}`, jsonrpc.CodeParse, "deep"},
		{"empty", ``, jsonrpc.CodeParse, ""},
		{"cut", `{"jsonrpc":"2.0","id":1`, jsonrpc.CodeParse, ""},
		{"trailing", `{"jsonrpc":"2.0","id":1,"method":"m"} x`, jsonrpc.CodeParse, "after"},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"m",}`, jsonrpc.CodeParse, ""},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", jsonrpc.CodeInvalidRequest, "UTF-8"},
		{"invalid UTF-8 that is no JSON", "\xff\xfe", jsonrpc.CodeParse, ""},
		{"invalid UTF-8 in what is no object", "[\"\xff\"]", jsonrpc.CodeInvalidRequest, "UTF-8"},
		{"control character", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}", jsonrpc.CodeParse, "control"},
		{"bad escape", `{"jsonrpc":"2.0","id":1,"method":"\x"}`, jsonrpc.CodeParse, "escape"},
		{"leading zero", `{"jsonrpc":"2.0","id":01,"method":"m"}`, jsonrpc.CodeParse, ""},

		{"string", `"x"`, jsonrpc.CodeInvalidRequest, "object"},
		{"array", `[]`, jsonrpc.CodeInvalidRequest, "object"},
		{"empty object", `{}`, jsonrpc.CodeInvalidRequest, "jsonrpc"},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"m"}`, jsonrpc.CodeInvalidRequest, "jsonrpc"},
		{"no version", `{"id":1,"method":"m"}`, jsonrpc.CodeInvalidRequest, "jsonrpc"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, jsonrpc.CodeInvalidRequest, "id"},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"m"}`, jsonrpc.CodeInvalidRequest, "id"},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, jsonrpc.CodeInvalidRequest, "id"},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, jsonrpc.CodeInvalidRequest, "id"},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1024) + `","method":"m"}`, jsonrpc.CodeInvalidRequest, "1,024 bytes"},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`, jsonrpc.CodeInvalidRequest, "id"},
		{"duplicate escaped method", `{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}`, jsonrpc.CodeInvalidRequest, "method"},
		{"case variant", `{"jsonrpc":"2.0","id":1,"Method":"m"}`, jsonrpc.CodeInvalidRequest, "method"},
		{"case variant beyond ASCII", `{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}`, jsonrpc.CodeInvalidRequest, "params"},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, jsonrpc.CodeInvalidRequest, "params"},
		{"number method", `{"jsonrpc":"2.0","id":1,"method":7}`, jsonrpc.CodeInvalidRequest, "method"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, jsonrpc.CodeInvalidRequest, "method"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, jsonrpc.CodeInvalidRequest, "method"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, jsonrpc.CodeInvalidRequest, "both"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, jsonrpc.CodeInvalidRequest, "id"},
		{"string error", `{"jsonrpc":"2.0","id":1,"error":"x"}`, jsonrpc.CodeInvalidRequest, "error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := jsonrpc.Parse([]byte(tc.in))
			if tc.code != 0 {
				if err == nil || err.Code != tc.code || !strings.Contains(err.Message, tc.want) {
					t.Fatalf("Parse(%s) = %+v; want code %d naming %q", tc.in, err, tc.code, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatalf("Parse(%s): %v", tc.in, err)
			}
			if got := fmt.Sprintf("%s %s %s %s %s", m.ID, m.Method, m.Params, m.Result, m.Err); got != tc.want {
				t.Errorf("Parse(%s): got %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestInvalidRequestKeepsID(t *testing.T) {
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"1.0","id":"x","method":"m"}`))
	if err == nil || m.ID != `"x"` {
		t.Errorf("got id %q, error %v; want id \"x\" and an error", m.ID, err)
	}
}

func TestIDs(t *testing.T) {
	same := []struct {
		a, b jsonrpc.ID
		want bool
	}{
		{`1`, `1`, true}, {`1`, `"1"`, false}, {`"a"`, `"\u0061"`, true}, {`"a"`, `"b"`, false},
		{jsonrpc.StringID("é\n"), `"\u00e9\u000a"`, true}, {jsonrpc.IntID(-3), `-3`, true},
	}
	for _, tc := range same {
		if got := tc.a.Key() == tc.b.Key(); got != tc.want {
			t.Errorf("%s and %s: equal = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
	if got, want := jsonrpc.ID(`"a\nb"`).Text(), `a\nb`; got != want {
		t.Errorf("Text: got %q, want %q", got, want)
	}
}

func TestBatch(t *testing.T) {
	items, err := jsonrpc.Batch([]byte(` [ {"a":[1,"]"]} , 2 ,"x,y"] `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(bytes.Join(items, []byte("|"))), `{"a":[1,"]"]}|2|"x,y"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for in, code := range map[string]int{`[]`: jsonrpc.CodeInvalidRequest, `[1`: jsonrpc.CodeParse,
		`[` + strings.Repeat("1,", jsonrpc.MaxBatch) + `1]`: jsonrpc.CodeInvalidRequest} {
		if _, err := jsonrpc.Batch([]byte(in)); err == nil || err.Code != code {
			t.Errorf("Batch(%.10s…) = %v, want code %d", in, err, code)
		}
	}
}

func TestSplice(t *testing.T) {
	in := []byte(`{ "a" : 1 , "b\"" : {"c" : [1, 2.50, 9007199254740993]} , "d":"x\\"}`)
	for _, tc := range []struct {
		name string
		got  []byte
		want string
	}{
		{"replace", jsonrpc.Set(in, "d", []byte(`true`)), `{ "a" : 1 , "b\"" : {"c" : [1, 2.50, 9007199254740993]} , "d":true}`},
		{"replace escaped", jsonrpc.Set(in, `b"`, []byte(`0`)), `{ "a" : 1 , "b\"" : 0 , "d":"x\\"}`},
		{"add", jsonrpc.Set(in, "e", []byte(`{}`)), `{"e":{}, "a" : 1 , "b\"" : {"c" : [1, 2.50, 9007199254740993]} , "d":"x\\"}`},
		{"add to empty", jsonrpc.Set([]byte(`{ }`), "e", []byte(`1`)), `{"e":1 }`},
		{"add to nil", jsonrpc.Set(nil, "e", []byte(`1`)), `{"e":1}`},
		{"remove", jsonrpc.Remove(in, "a"), `{"b\"":{"c" : [1, 2.50, 9007199254740993]},"d":"x\\"}`},
		{"remove nothing", jsonrpc.Remove(in, "z"), string(in)},
		{"get", jsonrpc.Get(in, `b"`, "c"), `[1, 2.50, 9007199254740993]`},
		{"get nothing", jsonrpc.Get(in, "a", "b"), ``},
	} {
		if string(tc.got) != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, tc.got, tc.want)
		}
	}
	if _, ambiguous := jsonrpc.Find([]byte(`{"name":1,"Name":2}`), "name"); !ambiguous {
		t.Error("a case variant is not reported as ambiguous")
	}
	if _, ambiguous := jsonrpc.Find([]byte(`{"name":1,"name":2}`), "name"); !ambiguous {
		t.Error("a duplicate is not reported as ambiguous")
	}
}

func TestEncode(t *testing.T) {
	for _, tc := range []struct {
		got  []byte
		want string
	}{
		{jsonrpc.Request("7", "tools/list", nil), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`},
		{jsonrpc.Notification("n", []byte(`{"a":1}`)), `{"jsonrpc":"2.0","method":"n","params":{"a":1}}`},
		{jsonrpc.Result(`"x"`, []byte(`{}`)), `{"jsonrpc":"2.0","id":"x","result":{}}`},
		{jsonrpc.ErrorResponse("", &jsonrpc.Error{Code: -32700, Message: "bad \"\n"}), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad \"\n"}}`},
		{jsonrpc.SingleLine([]byte("{\n \"a\":\r\n1}")), `{  "a":  1}`},
	} {
		if string(tc.got) != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

// FuzzParse checks Parse against encoding/json: what it accepts is JSON with the same members, and what
// it refuses as unparsable is no JSON within the bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e3,"\u00e9\\"]},"_meta":{"progressToken":"t"}}}`,
		`{"jsonrpc":"2.0","id":"s","result":{"content":[{"type":"text","text":"a\"b"}]}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`,
		`[{"jsonrpc":"2.0","method":"a"}]`, `{"a":"\\\\\"","b":{}}`, "{\"\x00\":1}", `{"ID":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := jsonrpc.Parse(in)
		valid := json.Valid(in)
		if err != nil && err.Code == jsonrpc.CodeParse {
			if valid && jsonrpc.Valid(in) == nil {
				t.Fatalf("refused as unparsable: %q: %v", in, err)
			}
			return
		}
		if !valid {
			t.Fatalf("accepted though it is no JSON: %q", in)
		}
		if err == nil && !utf8.Valid(in) {
			t.Fatalf("accepted though it is not UTF-8: %q", in)
		}
		if err != nil {
			return
		}
		var want struct{ Params, Result, Error json.RawMessage }
		if e := json.Unmarshal(m.Raw, &want); e != nil {
			t.Fatal(e)
		}
		if m.Params != nil && !bytes.Equal(m.Params, want.Params) || !bytes.Equal(m.Err, want.Error) {
			t.Fatalf("params %s and error %s, want %s and %s", m.Params, m.Err, want.Params, want.Error)
		}
		jsonrpc.Members(m.Params, func(name []byte, v jsonrpc.Span) bool {
			if !json.Valid(v.Of(m.Params)) {
				t.Fatalf("member %q of %s is cut wrong: %s", name, m.Params, v.Of(m.Params))
			}
			return true
		})
		if out := jsonrpc.Set(m.Params, "x", []byte(`1`)); !json.Valid(out) || string(jsonrpc.Get(out, "x")) != "1" {
			t.Fatalf("Set(%s) = %s", m.Params, out)
		}
		if out := jsonrpc.Remove(m.Params, "name"); m.Params != nil && !json.Valid(out) {
			t.Fatalf("Remove(%s) = %s", m.Params, out)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := func(line string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(line, 1<<20/len(line)) + `"}]}}`
	}
	numbers := strings.Repeat(`{"id":12345,"name":"x","tags":["a","b"],"price":1.5},`, 1<<20/53)
	for name, in := range map[string]string{
		"call":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":"t"}}}`,
		"words":   text(`lorem ipsum dolor sit amet consectetur\n`),
		"quotes":  text(`<a href=\"x\">y</a>`),
		"chinese": text(`汉字文本，`),
		"objects": `{"jsonrpc":"2.0","id":1,"result":{"rows":[` + strings.TrimSuffix(numbers, ",") + `]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
