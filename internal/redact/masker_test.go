package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestMasker(t *testing.T) {
	const secret, pem = "s3<c&\"r/t +é", "-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END X-----"
	m := redact.NewMasker([]string{secret, "acme7", "abc", "redacted", pem, "long-secret", "long-secret-more"})
	quoted, _ := json.Marshal(secret)
	for _, form := range []string{secret, string(quoted), url.QueryEscape(secret), strings.ToLower(url.PathEscape(secret)), url.UserPassword("u", secret).String()} {
		if got := m.Known("a " + form + " b"); strings.Contains(got, "s3") || !strings.HasPrefix(got, "a ") || !strings.HasSuffix(got, " b") {
			t.Errorf("%s: got %s, want it masked", form, got)
		}
	}
	for _, before := range []string{"", "u", "us", "use"} {
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secret + before))
		if got := m.Known(encoded); !strings.Contains(got, redact.Mark) || len(got)-len(redact.Mark) > len(encoded)-12 {
			t.Errorf("%s: got %s, want it masked", encoded, got)
		}
	}
	for in, want := range map[string]string{
		"acme7 xacme7 acme77 (acme7)": "[redacted] xacme7 acme77 ([redacted])", "abc redacted": "abc redacted",
		"long-secret-more, long-secret": "[redacted], [redacted]", "line MIIEvQIBADANBgkqhkiG9w0": "line [redacted]", "": "",
	} {
		if got := m.Known(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	within, _ := json.Marshal(`bad {"x":` + string(quoted) + `}`)
	plain, _ := json.Marshal(`bad {"x":"s3<c&\"r/t +é"}`) // <, > and & escaped in the outer text alone
	for in, want := range map[string]string{
		`{"n": 1.50, "long-secret": ["a long-secret", "token"]}`: `{"n": 1.50, "[redacted]": ["a [redacted]", "token"]}`,
		`["a\/b","s3\u003Cc&\u0022r\/t +\u00e9"]`:                `["a\/b","[redacted]"]`,
		`[ "a\u0041", 1.0]`: `[ "a\u0041", 1.0]`,
		string(within):      `"bad {\"x\":\"[redacted]\"}"`, string(plain): `"bad {\"x\":\"[redacted]\"}"`,
	} {
		if got := string(m.KnownJSON([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got, want := m.Known(string(within)), `"bad {\"x\":\"[redacted]\"}"`; got != want {
		t.Errorf("%s as a text: got %s, want %s", within, got, want)
	}
	m.Set([]string{"second-secret"})
	if got, want := m.Known("long-secret second-secret"), "[redacted] [redacted]"; got != want {
		t.Errorf("after one change: got %s, want %s", got, want)
	}
	m.Set(nil)
	if got, want := m.Known("long-secret second-secret"), "long-secret [redacted]"; got != want {
		t.Errorf("after two changes: got %s, want %s", got, want)
	}
	for _, tokens := range [][]string{{"token-one"}, {"token-two"}, {"token-two"}} { // learned twice is no change
		m.Learn("hr", tokens...)
	}
	m.Learn("web", "token-web", strings.Repeat("x", 100_000))
	if got, want := m.Known("token-one token-two token-web second-secret"), "[redacted] [redacted] [redacted] [redacted]"; got != want {
		t.Errorf("learned: got %s, want %s", got, want)
	}
	if m.Learn("hr", "token-three"); m.Known("token-one token-two") != "token-one [redacted]" {
		t.Errorf("after two renewals: got %s, want the last two tokens known", m.Known("token-one token-two"))
	}
	if long := strings.Repeat("x", 100_000); m.Known(long) != long {
		t.Error("a token of 100,000 bytes was learned")
	}
	var none *redact.Masker
	none.Learn("hr", "token-one")
	if got, want := none.Prompt("password: string, ghp_0123456789abcdefghij"), "password: string, "+redact.Mark; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
