package tape

import (
	"encoding/json"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestClean(t *testing.T) {
	tape := &Tape{secrets: redact.NewMasker([]string{"planted-one", "planted-one-more", "abc"})}
	for in, want := range map[string]string{
		`{"a":"x planted-one y","planted-one":1}`:                    `{"a":"x [redacted] y","[redacted]":1}`,
		`["planted-one-more",1.50,9007199254740993,null,true]`:       `["[redacted]",1.50,9007199254740993,null,true]`,
		`{"api_key":"abc","Authorization":["a]b","c"],"token":7}`:    `{"api_key":"[redacted]","Authorization":"[redacted]","token":"[redacted]"}`,
		`{"properties":{"token":{"type":"string"}}}`:                 `{"properties":{"token":{"type":"string"}}}`,
		`{"text":"{\"api_key\":\"abc\"} and Bearer xyz"}`:            `{"text":"{\"api_key\":\"[redacted]\"} and Bearer [redacted]"}`,
		`"plant\u0065d-one"`:                                         `"[redacted]"`,
		`{"abc":"abc"}`:                                              `{"abc":"abc"}`,
		`{"u":"https://me:hunter2@example.com/?api_key=abc","e":[]}`: `{"u":"https://[redacted]@example.com/?api_key=[redacted]","e":[]}`,
	} {
		got, err := tape.clean(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add(`{"token":["a]b"],"x":"password=1"}`)
	tape := &Tape{secrets: redact.NewMasker([]string{"planted-one"})}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		got, err := tape.clean(json.RawMessage(text))
		if err != nil || !json.Valid(got) {
			t.Errorf("%s: got %s, %v, want JSON", text, got, err)
		}
		again, err := tape.clean(json.RawMessage(got))
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: got %s, then %s, %v, want the same", text, got, again, err)
		}
	})
}
