package oauth

import (
	"maps"
	"net/http"
	"testing"
)

func TestChallenge(t *testing.T) {
	for _, row := range []struct {
		headers []string
		want    map[string]string
	}{
		{nil, map[string]string{}},
		{[]string{"Bearer"}, map[string]string{}},
		{[]string{`Bearer scope="read write", resource_metadata="https://a.example/m?x=1,2"`},
			map[string]string{"scope": "read write", "resource_metadata": "https://a.example/m?x=1,2"}},
		{[]string{`bearer ERROR=insufficient_scope,scope = "a \"b\" \\"`}, map[string]string{"error": "insufficient_scope", "scope": `a "b" \`}},
		{[]string{`Negotiate abc==, Basic realm="x, Bearer scope=y", Bearer scope=z`}, map[string]string{"scope": "z"}},
		{[]string{`Basic scope="other"`, `Bearer scope=""`, `Bearer scope="first"`, `Bearer scope="second"`}, map[string]string{"scope": "first"}},
		{[]string{`DPoP resource_metadata="https://a.example/m"`}, map[string]string{"resource_metadata": "https://a.example/m"}},
		{[]string{`Bearer scope="unterminated`, `="`, `,,= ,`}, map[string]string{}},
	} {
		resp := &http.Response{Header: http.Header{"Www-Authenticate": row.headers}}
		if got := challengeOf(resp); !maps.Equal(got, row.want) {
			t.Errorf("%q: got %q, want %q", row.headers, got, row.want)
		}
	}
}
