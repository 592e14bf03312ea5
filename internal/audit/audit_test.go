package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// logbook is a logger whose records a test reads.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func config(path string) audit.Config {
	c := audit.Default()
	c.Path = path
	return c
}

// open opens a log that is closed at the end of the test.
func open(t *testing.T, c audit.Config, logs *logbook) *audit.Log {
	t.Helper()
	l := audit.New(c, redact.Text, logs.logger())
	if err := l.Open(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shut(l) })
	return l
}

func shut(l *audit.Log) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return l.Close(ctx)
}

// record records n calls.
func record(t testing.TB, l *audit.Log, n int, arguments string) {
	t.Helper()
	for range n {
		if err := l.Begin(); err != nil {
			t.Fatal(err)
		}
		l.End(call(), []byte(arguments))
	}
}

func call() audit.Record {
	return audit.Record{
		Subject: audit.Subject{Caller: "alice", Profile: "proxy", Surface: "/proxy/mcp", Server: "hr", Method: "tools/call",
			Tool: "get", Source: "client"},
		Verdict: audit.Verdict{Decision: "allow"}, Outcome: audit.OutcomeOK, Duration: 1.5,
	}
}

// write writes a log of n lines and returns its file.
func write(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, config(path), &logbook{})
	record(t, l, n, `{"id":7}`)
	if err := shut(l); err != nil {
		t.Fatal(err)
	}
	return path
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(string(content), "\n")[:bytes.Count(content, []byte("\n"))]
}

func place(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// until waits for something to become true.
func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func TestLog_Line(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, config(path), &logbook{})
	full := call()
	full.Tool, full.Rule, full.Consent = "a\nb\u202e\U000e0041é<", "flow", "user"
	full.Outcome, full.Reason, full.TraceID = audit.OutcomeError, "timeout", "abc"
	record(t, l, 1, `{"id":7}`)
	l.End(full, nil)
	if err := shut(l); err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, path)
	var first audit.Line
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"time":"%s","seq":1,"prev":"%s","caller":"alice","profile":"proxy","surface":"/proxy/mcp",`+
		`"server":"hr","method":"tools/call","tool":"get","source":"client","decision":"allow","outcome":"ok",`+
		`"duration_ms":1.5,"trace_id":"","arguments":"%s"}`+"\n", first.Time, strings.Repeat("0", 64), digest(`{"id":7}`))
	if lines[0] != want {
		t.Errorf("got  %swant %s", lines[0], want)
	}
	if at, err := time.Parse(time.RFC3339, first.Time); err != nil || time.Since(at) > time.Minute {
		t.Errorf("got time %s, %v", first.Time, err)
	}
	want = `"prev":"` + digest(strings.TrimSuffix(lines[0], "\n")) + `","caller":"alice","profile":"proxy",` +
		`"surface":"/proxy/mcp","server":"hr","method":"tools/call","tool":"a\nb\u202e\udb40\udc41\u00e9<",` +
		`"source":"client","decision":"allow","rule":"flow","consent":"user","outcome":"error","reason":"timeout",` +
		`"duration_ms":1.5,"trace_id":"abc"}` + "\n"
	if !strings.HasSuffix(lines[1], want) {
		t.Errorf("got %s, want %s at the end", lines[1], want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestLog_Arguments(t *testing.T) {
	large := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, tc := range map[string]struct{ mode, arguments, want string }{
		"none":              {"none", `{"a":1}`, ""},
		"no arguments":      {"hash", "", ""},
		"hash":              {"hash", `{"a": 9007199254740993}`, `"` + digest(`{"a": 9007199254740993}`) + `"`},
		"hash of many":      {"hash", large, `"` + digest(large) + `"`},
		"redacted":          {"redacted", `{"n": 9007199254740993, "password":"hunter2"}`, `{"n":9007199254740993,"password":"[redacted]"}`},
		"redacted, invalid": {"redacted", `{"password":"hunter2`, `"{\"password\":\"[redacted]\""`},
		"redacted, many":    {"redacted", large, `"{\"text\":\"` + strings.Repeat("x", 8<<10-9) + `\u2026"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			c := config(path)
			c.Arguments = tc.mode
			l := open(t, c, &logbook{})
			record(t, l, 1, tc.arguments)
			if err := shut(l); err != nil {
				t.Fatal(err)
			}
			_, got, found := strings.Cut(strings.TrimSuffix(linesOf(t, path)[0], "}\n"), `"arguments":`)
			if got != tc.want || found != (tc.want != "") {
				t.Errorf("got %.200s, want %.200s", got, tc.want)
			}
			if _, err := audit.Verify(path); err != nil {
				t.Error(err)
			}
		})
	}
}

// A second process cannot write the file; the log goes on after a restart.
func TestLog_Restart(t *testing.T) {
	path := write(t, 2)
	l := open(t, config(path), &logbook{})
	if err := audit.New(config(path), redact.Text, slog.Default()).Open(nil); !errors.Is(err, audit.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	record(t, l, 1, "{}")
	if err := shut(l); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify(path); err != nil || r.Lines != 3 || r.Last.Seq != 3 || r.Lost != 0 {
		t.Errorf("got %+v, %v, want 3 lines", r, err)
	}
}

func TestOpen_Unusable(t *testing.T) {
	dir := t.TempDir()
	place(t, filepath.Join(dir, "notes"), "these are my notes\n")
	place(t, filepath.Join(dir, "unfinished"), "these")
	for name, path := range map[string]string{
		"no folder": filepath.Join(dir, "none", "a"), "a folder": dir, "other content": filepath.Join(dir, "notes"),
		"other content without end": filepath.Join(dir, "unfinished"), "no standard output": audit.Stdout,
	} {
		err := audit.New(config(path), redact.Text, slog.Default()).Open(nil)
		if !errors.Is(err, audit.ErrUnusable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want ErrUnusable in one line", name, err)
		}
	}
	if got := linesOf(t, filepath.Join(dir, "notes")); len(got) != 1 {
		t.Errorf("got %q, want the content untouched", got)
	}
}

func TestVerify(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(lines []string) []string
		want   string // part of the error; empty = none
	}{
		"unchanged":         {func(l []string) []string { return l }, ""},
		"empty":             {func([]string) []string { return nil }, ""},
		"a changed byte":    {func(l []string) []string { l[1] = strings.Replace(l[1], "alice", "malic", 1); return l }, "line 3 (seq 3) does not follow line 2"},
		"a changed time":    {func(l []string) []string { l[0] = strings.Replace(l[0], `"time":"2`, `"time":"3`, 1); return l }, "line 2 (seq 2) does not follow line 1"},
		"a new member":      {func(l []string) []string { l[4] = strings.Replace(l[4], `{`, `{"x":1,`, 1); return l }, "line 5 is not a line"},
		"a carriage return": {func(l []string) []string { l[2] = strings.Replace(l[2], "\n", "\r\n", 1); return l }, "line 4 (seq 4) does not follow line 3"},
		"no first line":     {func(l []string) []string { return l[1:] }, "line 1 (seq 2) is not the first"},
		"no middle line":    {func(l []string) []string { return append(l[:2:2], l[3:]...) }, "line 3 (seq 4) does not follow line 2"},
		"a line twice":      {func(l []string) []string { return append(l[:2:2], l[1:]...) }, "line 3 (seq 2) does not follow line 2"},
		"an empty line":     {func(l []string) []string { return append(l[:2:2], append([]string{"\n"}, l[2:]...)...) }, "line 3 is not a line"},
		"swapped lines":     {func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, "line 3 (seq 4) does not follow line 2"},
		"cut off":           {func(l []string) []string { l[4] = l[4][:40]; return l }, "line 5 is cut off"},
		"no last end":       {func(l []string) []string { l[4] = l[4][:len(l[4])-1]; return l }, "line 5 is cut off"},
		"a long line":       {func(l []string) []string { l[2] = strings.Repeat(" ", 1<<20) + l[2]; return l }, "line 3 is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, 5)
			place(t, path, strings.Join(tc.change(linesOf(t, path)), ""))
			r, err := audit.Verify(path)
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) ||
				tc.want == "" && err != nil {
				t.Errorf("got %+v, %v, want %q", r, err, tc.want)
			}
		})
	}
}

// What a crash leaves of a line is kept in another file, and its number stays missing. A line without its end is whole.
func TestOpen_Torn(t *testing.T) {
	for name, tc := range map[string]struct {
		left  func(lines []string) string
		lines int
		lost  uint64
		torn  bool
	}{
		"a part":        {func(l []string) string { return l[0] + l[1] + l[2][:50] }, 3, 1, true},
		"a byte":        {func(l []string) string { return l[0] + l[1] + l[2][:1] }, 3, 1, true},
		"only a part":   {func(l []string) string { return l[0][:80] }, 1, 1, true},
		"no end":        {func(l []string) string { return l[0] + strings.TrimSuffix(l[1], "\n") }, 3, 0, false},
		"a whole line":  {func(l []string) string { return l[0] }, 2, 0, false},
		"an empty file": {func([]string) string { return "" }, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, 3)
			place(t, path, tc.left(linesOf(t, path)))
			logs := &logbook{}
			l := open(t, config(path), logs)
			record(t, l, 1, "{}")
			if err := shut(l); err != nil {
				t.Fatal(err)
			}
			r, err := audit.Verify(path)
			if err != nil || r.Lines != tc.lines || r.Lost != tc.lost {
				t.Fatalf("got %+v, %v, want %d lines, %d lost", r, err, tc.lines, tc.lost)
			}
			if _, err := os.Stat(path + ".torn"); (err == nil) != tc.torn || strings.Contains(logs.String(), "cut off") != tc.torn {
				t.Errorf("got %v, %s, want the part kept: %t", err, logs, tc.torn)
			}
		})
	}
}

func TestLog_FullDisk(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprintf("refuse=%t", refuse), func(t *testing.T) {
			c, logs := config("/dev/full"), &logbook{}
			if _, err := os.Stat(c.Path); err != nil {
				t.Skip(err)
			}
			if refuse {
				c.OnFailure = audit.FailureRefuse
			}
			l := open(t, c, logs)
			err := l.Begin()
			if refuse {
				if err == nil || !strings.Contains(err.Error(), "no space left") {
					t.Errorf("got %v, want the first call refused", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			l.End(call(), nil)
			until(t, "a warning", func() bool { return strings.Contains(logs.String(), "no space left") })
			if err := shut(l); !errors.Is(err, audit.ErrLost) || !strings.Contains(err.Error(), "1 of /dev/full") {
				t.Errorf("got %v, want the lost line named", err)
			}
		})
	}
}

// Many calls at once. The file, which is old, gets another name, and a new one continues it.
func TestLog_Rotation(t *testing.T) {
	path := write(t, 1)
	old := strings.Replace(linesOf(t, path)[0], `"time":"2`, `"time":"1`, 1)
	place(t, path, old)
	l := open(t, config(path), &logbook{})
	const callers, calls = 10, 300
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { record(t, l, calls, "{}") })
	}
	wg.Wait()
	if err := shut(l); err != nil {
		t.Fatal(err)
	}
	older := path + ".000000000001"
	if got := linesOf(t, older); len(got) != 1 || got[0] != old {
		t.Errorf("got %q in the older file, want the old line", got)
	}
	r, err := audit.Verify(path)
	if err != nil || r.Files != 2 || r.Lines != callers*calls+1 || r.Lost != 0 {
		t.Errorf("got %+v, %v, want %d lines", r, err, callers*calls+1)
	}
	if r, err := audit.Verify(older); err != nil || r.Files != 2 {
		t.Errorf("from the older file: got %+v, %v, want both", r, err)
	}
	place(t, older, strings.Replace(old, "alice", "malic", 1))
	if _, err := audit.Verify(path); err == nil || !strings.Contains(err.Error(), "line 1 (seq 2) does not follow the last line") {
		t.Errorf("with a changed older file: got %v", err)
	}
	if err := os.Remove(older); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(path); err == nil || !strings.Contains(err.Error(), "lines before it are missing") {
		t.Errorf("without the older file: got %v", err)
	}
	place(t, path, "")
	place(t, older, "")
	for n := range 2 {
		l := open(t, config(path), &logbook{})
		record(t, l, 1, "{}")
		if err := shut(l); err != nil {
			t.Fatal(err)
		}
		if r, err := audit.Verify(path); err != nil || r.Lines != n+1 {
			t.Errorf("after an empty older file: got %+v, %v", r, err)
		}
	}
}

// A file that is too large gets another name, between two lines, and each file is verified.
func TestLog_RotationBySize(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var content strings.Builder
	prev, n := strings.Repeat("0", 64), 0
	for pad := 200 << 10; pad > 1; pad = min(pad, 64<<20-content.Len()-300) { // up to a few bytes less than 64 MiB
		n++
		line := fmt.Sprintf(`{"time":"%s","seq":%d,"prev":"%s","caller":"%s"}`, time.Now().UTC().Format(time.RFC3339), n, prev,
			strings.Repeat("x", pad))
		prev = digest(line)
		content.WriteString(line + "\n")
	}
	place(t, path, content.String())
	l := open(t, config(path), &logbook{})
	l.End(call(), nil)
	until(t, "a file that is too large", func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 64<<20 })
	record(t, l, 2, "{}")
	if err := shut(l); err != nil {
		t.Fatal(err)
	}
	older := path + ".000000000001"
	if got := len(linesOf(t, older)); got != n+1 {
		t.Errorf("got %d lines in the older file, want %d", got, n+1)
	}
	if r, err := audit.Verify(path); err != nil || r.Files != 2 || r.Lines != n+3 || r.Lost != 0 {
		t.Errorf("got %+v, %v, want %d lines in two files", r, err, n+3)
	}
}

func BenchmarkLog(b *testing.B) {
	c := config(filepath.Join(b.TempDir(), "audit.jsonl"))
	l := audit.New(c, redact.Text, slog.New(slog.DiscardHandler))
	for b.Loop() {
		record(b, l, 1, `{"id":7}`)
	}
	_ = shut(l)
}
