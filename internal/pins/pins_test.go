package pins_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// open opens a Store that is closed with the test.
func open(t testing.TB, folder, mode string, approved func(string)) (*pins.Store, *mcptest.Log) {
	t.Helper()
	l := &mcptest.Log{}
	s := pins.Open(pins.Options{Folder: folder, Mode: mode, Logger: slog.New(slog.NewTextHandler(l, nil)), Approved: approved})
	s.Start()
	t.Cleanup(s.Close)
	return s, l
}

func tool(name, rest string) pins.Tool {
	return pins.Tool{Name: name, Raw: json.RawMessage(fmt.Sprintf(`{"name":%q,%s}`, name, rest))}
}

const object = `"inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"m":{}}}`

func TestCheck_ListedTwice(t *testing.T) {
	for _, row := range [][]string{{`"description":"b",`, `"description":"a",`}, {`"description":"a",`, `"description":"b",`}} {
		s, _ := open(t, t.TempDir(), pins.Enforce, nil)
		s.Check("hr", []pins.Tool{tool("x", `"description":"a",`+object)}, true)
		s.Check("hr", []pins.Tool{tool("x", row[0]+object), tool("x", row[1]+object)}, true)
		if s.Refusal("hr", "x", "") == "" {
			t.Errorf("%q: got no refusal, want one", row)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, row := range []struct {
		name, before, after string
		changed             bool
	}{
		{"equal", `"description":"a",` + object, `"description":"a",` + object, false},
		{"order and space", `"description":"a",` + object, `"inputSchema": {"properties":{"m":{},"n":{"type":"integer"}}, "type":"object"},"description":"\u0061"`, false},
		{"member that does not count", `"description":"a",` + object, `"_meta":{"x":1},"description":"a",` + object, false},
		{"description", `"description":"a",` + object, `"description":"b",` + object, true},
		{"title", object, `"title":"t",` + object, true},
		{"schema", object, `"inputSchema":{"type":"object"}`, true},
		{"output schema", object, object + `,"outputSchema":{"type":"object"}`, true},
		{"annotations", object + `,"annotations":{"readOnlyHint":false}`, object + `,"annotations":{"readOnlyHint":true}`, true},
		{"case of a member", object, object + `,"Description":"a"`, true},
		{"repeated member", `"description":"a",` + object, `"description":"a",` + object + `,"description":"b"`, true},
		{"large number", `"inputSchema":{"maximum":9007199254740993}`, `"inputSchema":{"maximum":9007199254740992}`, true},
		{"order of an array", `"inputSchema":{"enum":[1,2]}`, `"inputSchema":{"enum":[2,1]}`, true},
	} {
		s, l := open(t, t.TempDir(), pins.Enforce, nil)
		if _, fresh := s.Check("hr", []pins.Tool{tool("x", row.before)}, true); fresh || l.String() != "" {
			t.Errorf("%s: got a change at first sight, %s", row.name, l)
		}
		changed, fresh := s.Check("hr", []pins.Tool{tool("x", row.after)}, true)
		if fresh != row.changed || (changed["x"] != "") != row.changed || (len(s.Changes("hr")) > 0) != row.changed || (s.Refusal("hr", "x", "") != "") != row.changed {
			t.Errorf("%s: got %v, %v, refusal %q, want changed: %v", row.name, fresh, s.Changes("hr"), s.Refusal("hr", "x", ""), row.changed)
		}
		if s.Check("hr", []pins.Tool{tool("x", row.after)}, true); strings.Count(l.String(), "level=WARN") != len(s.Changes("hr")) {
			t.Errorf("%s: got the log %s, want one warning for a change", row.name, l)
		}
		if s.Check("hr", []pins.Tool{tool("x", row.before)}, true); len(s.Changes("hr")) > 0 {
			t.Errorf("%s: the approved definition again: got %v, want no change", row.name, s.Changes("hr"))
		}
	}
}

func TestCheck_AddedTool(t *testing.T) {
	s, l := open(t, t.TempDir(), pins.Enforce, nil)
	if got, err := s.Approve("hr", pins.Selection{}, "ann"); got != nil || err != nil || s.Changes("hr") != nil || s.Known("hr") {
		t.Errorf("an unknown server: got %v, %v approved, want it unknown after that", got, err)
	}
	a, b := tool("a", object), tool("b", object)
	if s.Check("hr", []pins.Tool{a}, false); s.Known("hr") {
		t.Error("a page: got a known server, want it unknown until a whole list")
	}
	s.Check("hr", []pins.Tool{a}, true)
	s.Check("hr", []pins.Tool{b}, false)
	s.Check("web", []pins.Tool{a, b}, true)
	if got := s.Changes("hr"); len(got) != 1 || got[0].Tool != "b" || s.Refusal("hr", "b", "") == "" {
		t.Errorf("got %v changed, refusal %q, want b", got, s.Refusal("hr", "b", ""))
	}
	if s.Refusal("hr", "a", "") != "" || s.Refusal("web", "b", "") != "" || s.Refusal("new", "b", "") != "" {
		t.Error("got other tools refused, want b of hr alone")
	}
	if s.Refusal("hr", "never listed", "") == "" {
		t.Error("a tool that a known server never listed: want it refused")
	}
	if !strings.Contains(l.String(), "server=hr added=[b]") {
		t.Errorf("got the log %s, want the added tool", l)
	}
}

// A server that shows one client the approved definition and another a changed one gets no calls of the second.
func TestRefusal_ByDefinition(t *testing.T) {
	s, _ := open(t, t.TempDir(), pins.Enforce, nil)
	approved, other := []pins.Tool{tool("x", `"description":"a",`+object)}, []pins.Tool{tool("x", `"description":"b",`+object)}
	s.Check("hr", approved, true)
	changed, _ := s.Check("hr", other, true)
	if got, _ := s.Check("hr", approved, true); len(got) > 0 || s.Refusal("hr", "x", got["x"]) != "" {
		t.Errorf("who was shown the approved definition: got %v, refusal %q", got, s.Refusal("hr", "x", got["x"]))
	}
	if s.Refusal("hr", "x", changed["x"]) == "" {
		t.Error("who was shown another definition: want a refusal")
	}
	s.Check("hr", other, true)
	if _, err := s.Approve("hr", pins.Selection{}, "ann"); err != nil || s.Refusal("hr", "x", changed["x"]) != "" {
		t.Errorf("approved: got %v, refusal %q", err, s.Refusal("hr", "x", changed["x"]))
	}
}

func TestWarn_RefusesNothing(t *testing.T) {
	s, l := open(t, t.TempDir(), pins.Warn, nil)
	s.Check("hr", []pins.Tool{tool("a", object)}, true)
	s.Check("hr", []pins.Tool{tool("a", `"description":"x",`+object)}, true)
	if s.Refusal("hr", "a", "") != "" || len(s.Changes("hr")) != 1 || !strings.Contains(l.String(), "changed=[a]") {
		t.Errorf("got refusal %q, changed %v, log %s", s.Refusal("hr", "a", ""), s.Changes("hr"), l)
	}
	off, _ := open(t, t.TempDir(), pins.Off, nil)
	if _, fresh := off.Check("hr", nil, true); fresh || off.Changes("hr") != nil || off.Refusal("hr", "a", "") != "" {
		t.Error("off: got something, want nothing")
	}
}

// An approval in one process takes effect in another, and neither loses what the other saw.
func TestApprove_OtherProcess(t *testing.T) {
	folder := t.TempDir()
	told := make(chan string, 10)
	router, _ := open(t, folder, pins.Enforce, func(server string) { told <- server })
	router.Check("hr", []pins.Tool{tool("x", `"description":"gives a name",`+object)}, true)
	router.Check("hr", []pins.Tool{tool("x", `"description":"gives a salary",`+object), tool("y", object)}, true)
	other, _ := open(t, folder, pins.Enforce, nil)
	other.Check("web", []pins.Tool{tool("z", object)}, true)
	other.Close()
	mcptest.Eventually(t, "the change in the file", func() bool { return strings.Contains(content(t, folder), "gives a salary") })

	command, _ := open(t, folder, pins.Enforce, nil)
	changes, err := command.Approve("hr", pins.Selection{Tool: "x"}, "ann")
	if err != nil || len(changes) != 1 || changes[0].Tool != "x" || changes[0].Approved.By != pins.FirstSight {
		t.Fatalf("got %+v, %v, want x as it was approved at first sight", changes, err)
	}
	var fields []string
	for _, f := range changes[0].Fields() {
		fields = append(fields, f.String())
	}
	if got, want := strings.Join(fields, "\n"), "description: gives a [-name-]{+salary+}"; got != want {
		t.Errorf("got the difference %q, want %q", got, want)
	}
	select {
	case server := <-told:
		if server != "hr" || router.Refusal("hr", "x", "") != "" || router.Refusal("hr", "y", "") == "" {
			t.Errorf("got %s told, refusals %q and %q, want x approved alone", server, router.Refusal("hr", "x", ""), router.Refusal("hr", "y", ""))
		}
	case <-time.After(2 * time.Second):
		t.Fatal("the approval did not take effect within 2 s")
	}
	router.Close()
	for _, want := range []string{`"by":"ann"`, `"web"`, `"y":{"latest"`} {
		if got := content(t, folder); !strings.Contains(got, want) {
			t.Errorf("got the file %s, want %s in it", got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "pins.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
}

// Many processes that see many servers at once lose nothing.
func TestCheck_Concurrent(t *testing.T) {
	folder := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		s, _ := open(t, folder, pins.Warn, nil)
		wg.Go(func() {
			for j := range 5 {
				s.Check(fmt.Sprintf("s%d-%d", i, j), []pins.Tool{tool("a", object)}, true)
			}
			s.Close()
		})
	}
	wg.Wait()
	s, _ := open(t, folder, pins.Warn, nil)
	for i := range 8 {
		for j := range 5 {
			if name := fmt.Sprintf("s%d-%d", i, j); !s.Known(name) {
				t.Errorf("%s was lost", name)
			}
		}
	}
}

// A damaged file opens nothing, is kept, and is one line.
func TestOpen_Damaged(t *testing.T) {
	for _, damaged := range []string{"", "{", `{"version":1}`, `{"version":99,"servers":{}}`, `{"version":1,"servers":{"hr":null}}`,
		`{"version":1,"servers":{"hr":{"tools":{"x":{}}}}}`} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "pins.json"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		s, l := open(t, folder, pins.Enforce, nil)
		if strings.Count(l.String(), "\n") != 1 || !strings.Contains(l.String(), "damaged") || s.Damage() == "" {
			t.Errorf("%s: got the log %s, want one line about the damage", damaged, l)
		}
		s.Check("hr", []pins.Tool{tool("x", object)}, true)
		if s.Refusal("hr", "x", "") == "" || s.Refusal("other", "x", "") == "" {
			t.Errorf("%s: got tools that may be used, want none", damaged)
		}
		kept, err := filepath.Glob(filepath.Join(folder, "pins.json.damaged-*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("%s: got %v, %v, want the damaged file", damaged, kept, err)
		}
		if got, _ := os.ReadFile(kept[0]); string(got) != damaged {
			t.Errorf("%s: got %s kept", damaged, got)
		}
		s.Close()
		again, _ := open(t, folder, pins.Enforce, nil) // a restart opens nothing either
		if again.Refusal("hr", "x", "") == "" || again.Refusal("other", "x", "") == "" {
			t.Errorf("%s: got tools that may be used after a restart, want none", damaged)
		}
		if _, err := again.Approve("hr", pins.Selection{}, "ann"); err != nil || again.Refusal("hr", "x", "") != "" {
			t.Errorf("%s: approving: got %v, refusal %q", damaged, err, again.Refusal("hr", "x", ""))
		}
	}
}

// Damage while the router runs changes nothing of what it knows.
func TestLook_Damaged(t *testing.T) {
	folder := t.TempDir()
	s, l := open(t, folder, pins.Enforce, nil)
	s.Check("hr", []pins.Tool{tool("x", object)}, true)
	s.Check("hr", []pins.Tool{tool("x", object), tool("y", object)}, true)
	mcptest.Eventually(t, "the file", func() bool { _, err := os.Stat(filepath.Join(folder, "pins.json")); return err == nil })
	if err := os.WriteFile(filepath.Join(folder, "pins.json"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the warning", func() bool { return strings.Contains(l.String(), "damaged") })
	if s.Refusal("hr", "x", "") != "" || s.Refusal("hr", "y", "") == "" || !strings.Contains(content(t, folder), `"x":{"approved"`) {
		t.Errorf("got refusals %q and %q, file %s", s.Refusal("hr", "x", ""), s.Refusal("hr", "y", ""), content(t, folder))
	}
}

// Without a folder that can be written, pins hold until the process ends.
func TestCheck_NotKept(t *testing.T) {
	s, l := open(t, "", pins.Enforce, nil)
	s.Check("hr", []pins.Tool{tool("x", object)}, true)
	s.Check("hr", []pins.Tool{tool("x", `"title":"t",`+object)}, true)
	if !strings.Contains(l.String(), "will not survive a restart") || s.Refusal("hr", "x", "") == "" {
		t.Errorf("got refusal %q, log %s", s.Refusal("hr", "x", ""), l)
	}
	if _, err := s.Approve("hr", pins.Selection{Tool: "x"}, "ann"); err == nil || s.Refusal("hr", "x", "") != "" {
		t.Errorf("got %v, refusal %q, want an error and the approval", err, s.Refusal("hr", "x", ""))
	}
}

// The tools of one server take no room of another.
func TestCheck_Bound(t *testing.T) {
	s, _ := open(t, t.TempDir(), pins.Enforce, nil)
	many := make([]pins.Tool, 30_000)
	for i := range many {
		many[i] = tool(fmt.Sprintf("t%d", i), `"inputSchema":{}`)
	}
	s.Check("flood", many, true)
	s.Check("hr", many[:1], true)
	if s.Refusal("flood", "t0", "") != "" || s.Refusal("flood", "t29999", "") == "" || s.Refusal("hr", "t0", "") != "" {
		t.Error("want the first tools of each server, and no more than the bound")
	}
}

func content(t *testing.T, folder string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, "pins.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

// BenchmarkStart measures a start with 20,000 tools of 20 servers that are pinned, and the first start, which pins them.
// ms/pinned is the time until all are compared; ns/op includes the write of the file.
func BenchmarkStart(b *testing.B) {
	const servers, each = 20, 1000
	var lists [servers][]pins.Tool
	for i := range lists {
		for j := range each {
			lists[i] = append(lists[i], tool(fmt.Sprintf("tool_%d", j), `"description":"`+strings.Repeat("Does something useful. ", 20)+
				`","inputSchema":{"type":"object","required":["id"],"properties":{`+properties(10)+`}},"annotations":{"readOnlyHint":true}`))
		}
	}
	start := func(folder string) time.Duration {
		began := time.Now()
		s := pins.Open(pins.Options{Folder: folder, Mode: pins.Enforce, Logger: slog.New(slog.DiscardHandler)})
		s.Start()
		for i, list := range lists {
			s.Check(fmt.Sprintf("server%d", i), list, true)
		}
		took := time.Since(began)
		s.Close()
		return took
	}
	report := func(b *testing.B, total time.Duration) {
		b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/pinned")
	}
	full := b.TempDir()
	start(full)
	b.Run("first", func(b *testing.B) {
		var total time.Duration
		for b.Loop() {
			total += start(b.TempDir())
		}
		report(b, total)
	})
	b.Run("again", func(b *testing.B) {
		var total time.Duration
		for b.Loop() {
			total += start(full)
		}
		report(b, total)
	})
}

func properties(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{"type":"string","description":"The parameter number %d of the tool."}`, i, i))
	}
	return strings.Join(all, ",")
}
