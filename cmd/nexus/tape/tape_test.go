package tape_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// echo is a server that answers with the arguments.
type echo struct{}

func (echo) Call(_ context.Context, r *downstream.Request) (link.Reply, error) {
	return link.Reply{Result: []byte(`{"for":` + string(jsonrpc.Get(r.Params, "arguments")) + `}`)}, nil
}

// call makes a request and returns its result or error.
func call(t *testing.T, tp *tape.Tape, scope, arguments string) string {
	t.Helper()
	r := &downstream.Request{Server: "s", Method: "tools/call", Params: []byte(`{"name":"tool","arguments":` + arguments + `}`)}
	reply, err := tp.Calls(echo{}).Call(tape.In(t.Context(), scope), r)
	if err != nil {
		return err.Error()
	}
	return string(reply.Result)
}

// record records calls of a scope and returns the folder.
func record(t *testing.T, scope string, arguments ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tape")
	tp, err := tape.Record(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arguments {
		call(t, tp, scope, a)
	}
	if err := tp.Close(); err != nil {
		t.Fatal(err)
	}
	return folder
}

func replay(t *testing.T, folder string) *tape.Tape {
	t.Helper()
	tp, err := tape.Replay(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tp.Close() })
	return tp
}

// Equal requests get their answers in order, also where they differ in secrets.
func TestOrder(t *testing.T) {
	folder := record(t, "a", `{"password":"alpha"}`, `{"password":"beta"}`, `{"x":1}`)
	raw, err := os.ReadFile(filepath.Join(folder, "exchanges.jsonl"))
	if err != nil || strings.Contains(string(raw), "alpha") {
		t.Errorf("got %s, %v, want no password", raw, err)
	}
	for _, scope := range []string{"a", "not recorded"} {
		tp := replay(t, folder)
		for _, a := range []string{`{"x":1}`, `{"password":"beta"}`, `{"password":"other"}`} {
			want := `{"for":` + strings.NewReplacer("beta", "[redacted]", "other", "[redacted]").Replace(a) + `}`
			if got := call(t, tp, scope, a); got != want {
				t.Errorf("%s: got %s, want %s", scope, got, want)
			}
		}
		if got := call(t, tp, scope, `{"password":"alpha"}`); !strings.Contains(got, "was answered 2 times, and this is one more") {
			t.Errorf("once more: got %s, want that there were two", got)
		}
		if err := tp.Done(tape.In(t.Context(), scope)); err == nil || !strings.Contains(err.Error(), "not recorded: call s {") {
			t.Errorf("got %v, want what was not recorded", err)
		}
	}
}

// What cannot be replayed is told with its file, its line and what to do.
func TestDamagedRecordings(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(record(t, "a", `{"x":1}`), "exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ text, want string }{
		{"", "has no recording; make one with --record"},
		{"{}\n", "has no recording; make one with --record"},
		{string(whole) + "{\"kind\":\n", "exchanges.jsonl:3: is damaged: "},
		{string(whole) + "\x00\x00\n", "; remove the line"},
		{string(whole) + `{"kind":"tools","to":"s","answer":{"tools":7}}` + "\n", "exchanges.jsonl:3: the tools of s are damaged"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "exchanges.jsonl"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Replay(folder, nil); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", row.text, err, row.want)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "exchanges.jsonl"), append(whole, `{"kind":"ca`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, replay(t, folder), "a", `{"x":1}`); got != `{"for":{"x":1}}` {
		t.Errorf("with a torn last line: got %s, want the answer", got)
	}
}

// Only the user who records may read a recording.
func TestRecordingIsPrivate(t *testing.T) {
	info, err := os.Stat(filepath.Join(record(t, "a"), "exchanges.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want the mode 0600", info.Mode(), err)
	}
}

func TestSecrets(t *testing.T) {
	var cfg config.Config
	model := llm.Config{BaseURL: "https://u:in-the-url@host/v1?key=in-the-query", APIKey: redact.Secret("the-api-key"),
		Headers: map[string]redact.Secret{"X-Gateway": redact.Secret("Basic the-gateway-key")}}
	cfg.LLM = &config.LLM{Planner: model}
	own := model
	own.Headers = map[string]redact.Secret{"X-Gateway": redact.Secret("of-the-synthesizer")}
	cfg.LLM.Synthesizer = &own
	got := strings.Join(cfg.Secrets(), "\n")
	for _, want := range []string{"in-the-url", "in-the-query", "the-api-key", "the-gateway-key", "of-the-synthesizer"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s among them", got, want)
		}
	}
}
