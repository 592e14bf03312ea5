package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// whole has every kind of token, and members that end in each of them.
const whole = `{"jsonrpc":"2.0","id":"\u0061","method":"m","params":{"a":[-12.50e+3,1E5,2e-7,0,-0,{},[],""],"b":true,"c":false,"d":null}}`

func TestParse_RefusesEveryPrefix(t *testing.T) {
	if _, err := jsonrpc.Parse([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		in := []byte(whole)[:n:n]
		if _, err := jsonrpc.Parse(in); err == nil || err.Code != jsonrpc.CodeParse {
			t.Errorf("Parse(%s): got %v, want code %d", in, err, jsonrpc.CodeParse)
		}
	}
}

func TestValid_AgreesWithEncodingJSON(t *testing.T) {
	for _, in := range []string{
		`0`, `-0`, `-`, `01`, `-01`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1e-`, `1e5`, `1E5`, `1e+5`, `1e-5`, `1e5.5`, `1.e5`, `+1`, `1+`, `/`, `1:`, `9`, `-9`,
		`t`, `tru`, `true`, `truE`, `nul`, `null`, `fals`, `false`, `falsey`,
		`"`, `"a`, `"\`, `"\"`, `"\"" `, `"\u12"`, `"\u123g"`, `"\u00fF"`, `"\ud834\udd1e"`, `"\q"`, "\"\x1f\"", "\"\x20\"", "\"12345678\x1f\"", "\"1234567\x1f\"", "\"\x7f\"",
		`{`, `}`, `{}`, `{ }`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a" : 1 , "b":2}`, `{,}`, `{1:2}`, `{"a";1}`, `{"a":1]`,
		`[`, `]`, `[]`, `[ ]`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, "[1\t,\r\n2 ]", ` `, "\v1", `1 1`,
	} {
		if got, want := jsonrpc.Valid([]byte(in)[:len(in):len(in)]) == nil, json.Valid([]byte(in)); got != want {
			t.Errorf("Valid(%q): got %v, want %v", in, got, want)
		}
	}
}

// Strings are scanned several bytes at a time: each byte counts wherever it stands.
func TestValid_EveryByteAtEveryPlace(t *testing.T) {
	for size := range 20 {
		for place := range size {
			for c := range 256 {
				in := []byte(`"` + strings.Repeat("x", size) + `"`)
				in[1+place] = byte(c)
				want := json.Valid(in) && utf8.Valid(in)
				if got := jsonrpc.Valid(in) == nil; got != want {
					t.Errorf("Valid(%q): got %v, want %v", in, got, want)
				}
			}
		}
	}
}

func TestErrorCodes(t *testing.T) {
	for code, want := range map[int]string{
		jsonrpc.CodeParse:              "-32700",
		jsonrpc.CodeInvalidRequest:     "-32600",
		jsonrpc.CodeMethodNotFound:     "-32601",
		jsonrpc.CodeInvalidParams:      "-32602",
		jsonrpc.CodeInternal:           "-32603",
		jsonrpc.CodeServer:             "-32000",
		jsonrpc.CodeHeaderMismatch:     "-32020",
		jsonrpc.CodeUnsupportedVersion: "-32022",
	} {
		want = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%s,"message":"x"}}`, want)
		if got := jsonrpc.ErrorResponse("1", &jsonrpc.Error{Code: code, Message: "x"}); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if jsonrpc.LevelTrace >= slog.LevelDebug {
		t.Error("whole messages are logged at the level of debug messages")
	}
}

func TestSingleLine(t *testing.T) {
	for in, want := range map[string]string{"\n{}": " {}", "\r{}": " {}", "{\n}": "{ }", "{\r}": "{ }", "{}\r\n": "{}  "} {
		raw := []byte(in)
		if got := jsonrpc.SingleLine(raw); string(got) != want || string(raw) != in {
			t.Errorf("SingleLine(%q): got %q and changed its input to %q, want %q", in, got, raw, want)
		}
	}
	raw := []byte(`{"a":1}`)
	if got := jsonrpc.SingleLine(raw); &got[0] != &raw[0] {
		t.Error("SingleLine copies a message of one line")
	}
}

func TestStrings(t *testing.T) {
	for raw, want := range map[string]string{``: "", `"`: "", `""`: "", `"a"`: "a", `"a\u0062"`: "ab", `123`: "", `{"a":"b"}`: ""} {
		if got := jsonrpc.Text([]byte(raw)); got != want {
			t.Errorf("Text(%s): got %q, want %q", raw, got, want)
		}
	}
	for id, want := range map[jsonrpc.ID][2]string{
		``: {"", ""}, `7`: {"7", "7"}, `-71`: {"-71", "-71"}, `"7"`: {"7", `"7"`}, `""`: {"", `""`}, `"\u0061\u0062"`: {"ab", `"ab"`},
	} {
		if text, key := id.Text(), id.Key(); text != want[0] || key != want[1] {
			t.Errorf("%s: got text %q and key %q, want %q", id, text, key, want)
		}
	}
	for raw, want := range map[string]bool{``: false, `0`: true, `-9`: true, `19`: true, `-`: false, `1.0`: false, `1e1`: false, `true`: false, `""`: true} {
		if got := jsonrpc.ValidID([]byte(raw)); got != want {
			t.Errorf("ValidID(%s): got %v, want %v", raw, got, want)
		}
	}
	long := make([]byte, jsonrpc.MaxID)
	for i := range long {
		long[i] = '1'
	}
	if !jsonrpc.ValidID(long) || jsonrpc.ValidID(append(long, '1')) {
		t.Errorf("ids are not bounded at %d bytes", jsonrpc.MaxID)
	}
}
