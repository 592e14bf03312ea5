package server

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Only what people read is changed, by the fewest bytes; what could be read in two ways is refused.
func TestAttributed(t *testing.T) {
	for _, row := range []struct{ method, params, want string }{ // without want it is refused
		{"elicitation/create", `{ "message":"Enter\u0020it", "x":9007199254740993}`, `{ "message":"Server hr asks: Enter\u0020it", "x":9007199254740993}`},
		{"elicitation/create", `{"message":"","mode":"form"}`, `{"message":"Server hr asks: ","mode":"form"}`},
		{"Elicitation/Create", `{"message":"x"}`, `{"message":"Server hr asks: x"}`},
		{"elicitation/create", `{"requestedSchema":{}}`, `{"message":"Server hr asks: ","requestedSchema":{}}`},
		{"elicitation/create", `{"message":1}`, ""},
		{"elicitation/create", `{"message":"a","message":"b"}`, ""},
		{"elicitation/create", `{"message":"a","Message":"b"}`, ""},
		{"elicitation/create", `{"message":"a","mode":"form","mode":"url","url":"https://x.example"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"Log in","url":"https://login.example:8443/a?b#c"}`,
			`{"mode":"url","message":"Server hr asks you to open login.example: Log in","url":"https://login.example:8443/a?b#c"}`},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://bank.example@evil.example/"}`,
			`{"mode":"url","message":"Server hr asks you to open evil.example: m","url":"https://bank.example@evil.example/"}`},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://BÜCHER.example/"}`,
			`{"mode":"url","message":"Server hr asks you to open xn--bcher-kva.example: m","url":"https://BÜCHER.example/"}`},
		{"elicitation/create", `{"mode":"url","message":"m","url":"http://[2001:DB8::1]:80/"}`,
			`{"mode":"url","message":"Server hr asks you to open 2001:db8::1: m","url":"http://[2001:DB8::1]:80/"}`},
		{"elicitation/create", `{"mode":"url","message":"m"}`, ""},
		{"elicitation/create", `{"mode":"URL","message":"m","url":"javascript:alert(1)"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https:evil.example"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https:///evil.example"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://evil.example\\@bank.example/"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://evil.example/\\bank"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://ev\til.example/"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://a.example","url":"https://b.example"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"ftp://a.example"}`, ""},
		{"elicitation/create", `{"mode":"url","message":"m","url":"https://a: b.example/"}`, ""},
		{"sampling/createMessage", `{"includeContext":"allServers","messages":[]}`, `{"includeContext":"none","messages":[]}`},
		{"sampling/createMessage", `{"includeContext": {"a":1},"IncludeContext":"thisServer"}`, `{"includeContext": "none","IncludeContext":"none"}`},
		{"sampling/createMessage", `{"messages":[{"includeContext":"x"}]}`, `{"messages":[{"includeContext":"x"}]}`},
		{"roots/list", `{"message":"x"}`, `{"message":"x"}`},
		{"acme/ask", ``, ``},
	} {
		got, refused := ServerRequest{Server: "hr", Method: row.method, Params: []byte(row.params)}.Attributed()
		switch {
		case row.want == "" && row.params != "":
			if refused == nil || refused.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: got %s, %v, want it refused", row.params, got.Params, refused)
			}
		case refused != nil || string(got.Params) != row.want:
			t.Errorf("%s: got %s, %v, want %s", row.params, got.Params, refused, row.want)
		}
	}
}

// Requests in results and in errors are like others.
func TestAttributedReply(t *testing.T) {
	for _, row := range []struct{ result, err, want string }{ // without want it is refused
		{`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"x"}},"b":{"method":"roots/list"}},"requestState":"s"}`, "",
			`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Server hr asks: x"}},"b":{"method":"roots/list"}},"requestState":"s"}`},
		{`{"resultType":"complete","message":"x"}`, "", `{"resultType":"complete","message":"x"}`},
		{`{"resultType":"input_required","inputRequests":{},"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"x"}}}}`, "", ""},
		{`{"inputRequests":{"a":{"method":"roots/list","method":"elicitation/create","params":{"message":"x"}}}}`, "", ""},
		{`{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":[]}}}}`, "", ""},
		{"", `{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a.example/x","message":"Pay"},{"url":"https://b.example","message":"y"},{"x":1}]}}`,
			`{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a.example/x","message":"Server hr asks you to open a.example: Pay"},{"url":"https://b.example","message":"Server hr asks you to open b.example: y"},{"x":1}]}}`},
		{"", `{"code":-32042,"data":{"elicitations":[{"mode":"url","url":"nonsense","message":"Pay"}]}}`, ""},
		{"", `{"code":-32042.0,"data":{"elicitations":[{"mode":"url","url":"http://my_app.internal:8080/","message":"Pay"}]}}`,
			`{"code":-32042.0,"data":{"elicitations":[{"mode":"url","url":"http://my_app.internal:8080/","message":"Server hr asks you to open my_app.internal: Pay"}]}}`},
		{"", `{"code":-32000,"data":{"elicitations":[{"message":"x"}]}}`, `{"code":-32000,"data":{"elicitations":[{"message":"x"}]}}`},
	} {
		reply := link.Reply{Names: jsonrpc.AnyName}
		if row.result != "" {
			reply.Result = []byte(row.result)
		} else {
			reply.Err = []byte(row.err)
		}
		got, err := AttributedReply("hr", reply)
		if text := string(got.Result) + string(got.Err); (err != nil) != (row.want == "") || err == nil && text != row.want {
			t.Errorf("%s%s: got %s, %v, want %s", row.result, row.err, text, err, row.want)
		}
	}
}

// What a server may not ask, clients do not offer.
func TestConfigRequests(t *testing.T) {
	all := `{"elicitation":{"url":{}},"roots":{},"sampling":{},"tasks":{"requests":{"elicitation":{"create":{}},"sampling":{}}},"x":1}`
	for _, row := range []struct {
		requests  []string
		asks      string // of ping, elicitation/create, Sampling/createMessage, roots/list and acme/ask
		announced string
	}{
		{nil, "yyyyy", all},
		{[]string{}, "ynnnn", `{"tasks":{"requests":{}},"x":1}`},
		{[]string{RequestElicitation, RequestRoots}, "yynyn",
			`{"elicitation":{"url":{}},"roots":{},"tasks":{"requests":{"elicitation":{"create":{}}}},"x":1}`},
		{[]string{RequestElicitation, RequestSampling, RequestRoots}, "yynyn", all},
	} {
		c := Config{Requests: row.requests}
		var asks strings.Builder
		for _, method := range []string{"ping", "elicitation/create", "Sampling/createMessage", "roots/list", "acme/ask"} {
			if c.MayAsk(method) {
				asks.WriteByte('y')
			} else {
				asks.WriteByte('n')
			}
		}
		if got := string(c.Announced([]byte(all))); asks.String() != row.asks || got != row.announced {
			t.Errorf("%q: got %s and %s, want %s and %s", row.requests, asks.String(), got, row.asks, row.announced)
		}
	}
}
