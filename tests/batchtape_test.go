package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// timeless returns the lines of results, sorted, without what is a time or follows from one.
func timeless(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"seconds", "started", "trace_id", "started_ms", "duration_ms", "timings", "approval"} {
				delete(v, name)
			}
			for name := range v {
				v[name] = strip(v[name])
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
		}
		return v
	}
	var all []string
	for line := range strings.Lines(string(raw)) {
		var v any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(strip(v))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

func sameResults(t *testing.T, recorded, replayed string) {
	t.Helper()
	a, b := timeless(t, recorded), timeless(t, replayed)
	if len(a) != len(b) {
		t.Fatalf("got %d lines of the replay, want %d", len(b), len(a))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("got replayed\n%s\nwant\n%s", b[i], a[i])
		}
	}
}

// A replay of the demo suite gives the same results, however many questions are under way, and also when it is resumed.
func TestBatchReplayDemo(t *testing.T) {
	t.Parallel()
	suite, err := filepath.Abs(filepath.Join("testdata", "batch", "demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tape, first, second := filepath.Join(dir, "tape"), filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	ended(t, batch(t, suite, "--out", first, "--demo", "--repeat", "2", "--record", tape, "--concurrency", "8"), 0)
	replay := []string{suite, "--out", second, "--demo", "--repeat", "2", "--replay", tape}
	ended(t, batch(t, append(replay, "--concurrency", "3")...), 0)
	sameResults(t, first, second)
	raw, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	half := raw[:bytes.LastIndexByte(raw[:len(raw)/2], '\n')+20] // the last line is torn
	if err := os.WriteFile(second, half, 0o600); err != nil {
		t.Fatal(err)
	}
	ended(t, batch(t, append(replay, "--resume")...), 0)
	sameResults(t, first, second)
}

// counter is a server whose only tool counts its calls, and tells the keys it was given.
func counter(t *testing.T, key string) (server *httptest.Server) {
	var calls atomic.Int64
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(raw, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := "{}"
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"counter","version":"1"},"instructions":"Count with care."}`
		case "tools/list":
			result = `{"tools":[{"name":"count","description":"Count the calls","inputSchema":{"type":"object","properties":{"x":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"call %d with %s and %s"}],"_meta":{"api_key":%q}}`,
				calls.Add(1), r.Header.Get("X-Custom"), r.URL.Query().Get("access"), key+"-meta")
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(server.Close)
	return server
}

// A replay needs neither models nor servers, gives each question its own answers though all are the same questions,
// and a recording has no secrets.
func TestBatchReplayModels(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t)
	var asked atomic.Int64
	model.Script(func(r llmtest.Request) (llmtest.Reply, bool) {
		switch n := asked.Add(1); {
		case r.Embeddings():
			return llmtest.Reply{}, true
		case strings.HasPrefix(r.System, "You judge"):
			return llmtest.JSON(map[string]any{"reason": fmt.Sprintf("Verdict %d.", n), "pass": n%2 == 0}), true
		case r.Model == "plan" && n%5 == 4:
			return llmtest.Reply{Status: http.StatusBadRequest}, true // the rules plan
		case r.Model == "plan":
			return llmtest.Reply{Text: fmt.Sprintf(`[{"tool":"count","arguments":{"x":%d}},{"tool":"count","arguments":{"x":%d}}]`, n%2, n%2)}, true
		default:
			return llmtest.Reply{Text: fmt.Sprintf("Answer %d.", n)}, true
		}
	})
	const key = "planted-9f8e7d6c"
	server := counter(t, key)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := file("settings.yaml", fmt.Sprintf("llm:\n  planner: {base_url: %[1]q, model: plan, api_key: %[2]s-llm}\n  synthesizer: {model: write}\n  embeddings: {model: embed, base_url: %[1]q}\n", model.BaseURL, key))
	servers := file("servers.yaml", fmt.Sprintf("mcpServers:\n  counter:\n    url: %q\n    headers: {X-Custom: %s-header}\n", server.URL+"/mcp?access="+key+"-url", key))
	var cases strings.Builder
	for i := range 12 {
		fmt.Fprintf(&cases, `{"id":"case %[1]d","query":"Count the calls with api_key=%[2]s-query, not with %[2]s-header","expect":{"judge":"It counts."}}`+"\n", i, key)
	}
	in, tape := file("cases.jsonl", cases.String()), filepath.Join(dir, "tape")
	args := func(out string, more ...string) []string {
		return append([]string{in, "--out", filepath.Join(dir, out), "--config", settings, "--config", servers, "--repeat", "2", "--judges", "3"}, more...)
	}
	ended(t, batch(t, args("a.jsonl", "--record", tape, "--concurrency", "6")...), 3)
	model.Close()
	server.Close()
	for _, concurrency := range []string{"1", "7"} {
		ended(t, batch(t, args(concurrency+".jsonl", "--replay", tape, "--concurrency", concurrency)...), 3)
		got, want := timeless(t, filepath.Join(dir, concurrency+".jsonl")), timeless(t, filepath.Join(dir, "a.jsonl"))
		for i := range want {
			// What looks like a secret is replaced in a replay.
			want[i] = strings.NewReplacer("with "+key+"-header and "+key+"-url", "with [redacted] and [redacted]").Replace(want[i])
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("concurrency %s: got\n%s\nwant\n%s", concurrency, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	raw, err := os.ReadFile(filepath.Join(tape, "exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(raw, []byte(key)); at >= 0 {
		t.Errorf("a secret is in the recording: %s", raw[max(0, at-200):min(len(raw), at+100)])
	}

	// Another question has no answer, and the others are replayed.
	in = file("other.jsonl", cases.String()+`{"id":"other","query":"Count all the calls, please"}`)
	ended(t, batch(t, args("other.jsonl.out", "--replay", tape)...), 3)
	raw, err = os.ReadFile(filepath.Join(dir, "other.jsonl.out"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		missing := strings.Contains(line, `"reason":"not_recorded"`) && strings.Contains(line, "not recorded: model plan ")
		if other := strings.Contains(line, `"case":"other"`); other != missing {
			t.Errorf("got %.1000s, want not_recorded %t", line, other)
		}
	}
}

// A replay on another day and elsewhere asks models the same as the recording, also about servers with instructions.
func TestBatchReplayLater(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t)
	const plan = `[{"tool":"calculate","arguments":{"expression":"6 * 7"}},{"tool":"count","arguments":{"x":1}}]`
	model.Script(func(r llmtest.Request) (llmtest.Reply, bool) {
		if !strings.Contains(r.Text, "Thursday, 2024-02-29 23:30 NZDT (UTC+13:00)") && !strings.Contains(r.Text, "42") {
			return llmtest.Reply{Text: "A prompt without the time of the recording: " + r.Text}, true
		}
		if strings.Contains(r.Text, "Count with care.") {
			return llmtest.Reply{Text: plan}, true
		}
		return llmtest.Reply{Text: "It is 42."}, true
	})
	server := counter(t, "unused-key")
	dir := t.TempDir()
	tape, in := filepath.Join(dir, "tape"), filepath.Join(dir, "cases.jsonl")
	if err := os.Mkdir(tape, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tape/exchanges.jsonl": `{"kind":"start","run":1,"at":"2024-02-29T23:30:00+13:00","zone":"NZDT"}` + "\n",
		"cases.jsonl":          `{"id":"a","query":"Count, and what is 6 * 7?","expect":{"tools":["calculate","count"],"answer_equals":"It is 42."}}` + "\n",
		"settings.yaml":        fmt.Sprintf("llm: {planner: {base_url: %q, model: m}}\n", model.BaseURL),
		"servers.yaml":         fmt.Sprintf("mcpServers: {counter: {url: %q}}\n", server.URL+"/mcp"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := func(out string, more ...string) []string {
		return append([]string{in, "--out", filepath.Join(dir, out), "--demo", "--config", filepath.Join(dir, "settings.yaml"),
			"--config", filepath.Join(dir, "servers.yaml")}, more...)
	}
	ended(t, batch(t, args("a.jsonl", "--record", tape)...), 0)
	model.Close()
	server.Close()
	ended(t, batch(t, args("b.jsonl", "--replay", tape)...), 0)
	sameResults(t, filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"))
}

func TestBatchTapeUsage(t *testing.T) {
	t.Parallel()
	in, dir := sums(t, 1), t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(full, "exchanges.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--record", dir, "--replay", dir}, "not both"},
		{[]string{"--record", dir, "--remote", "http://127.0.0.1:1"}, "cannot be used with --remote"},
		{[]string{"--demo", "--replay", filepath.Join(dir, "none")}, "make one with --record"},
		{[]string{"--demo", "--record", full}, "not a regular file"},
	} {
		got := ended(t, batch(t, append([]string{in, "--out", filepath.Join(dir, "r.jsonl")}, row.args...)...), 2)
		if !strings.Contains(got, row.want) {
			t.Errorf("%q: got %s, want %q", row.args, got, row.want)
		}
	}
}
