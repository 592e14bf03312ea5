package pins_test

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// store is a State that can be out of reach.
type store struct {
	*shared.Memory
	lost atomic.Bool
}

func (s *store) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if s.lost.Load() {
		return 0, shared.ErrUnreachable
	}
	return s.Memory.Put(ctx, key, value, revision, ttl)
}

// replica opens a Store that shares its pins in a State and is closed with the test.
func replica(t testing.TB, state shared.State, approved func(string)) (*pins.Store, *mcptest.Log) {
	t.Helper()
	mirror, err := shared.OpenMirror(t.Context(), state, pins.SharedPrefix)
	if err != nil {
		t.Fatal(err)
	}
	l := &mcptest.Log{}
	s := pins.Open(pins.Options{
		Shared: mirror, Mode: pins.Enforce, Logger: slog.New(slog.NewTextHandler(l, nil)), Approved: approved,
	})
	s.Start()
	t.Cleanup(func() { s.Close(); mirror.Close() })
	return s, l
}

// What one replica sees or approves holds at the others within a second, and for those that start later.
func TestShared(t *testing.T) {
	state := shared.NewMemory()
	told := make(chan string, 10)
	one, _ := replica(t, state, nil)
	other, _ := replica(t, state, func(server string) { told <- server })
	one.Check("hr", []pins.Tool{tool("x", `"description":"gives a name",`+object)}, true)
	mcptest.Eventually(t, "the server is known", func() bool { return other.Known("hr") })
	if changed, _ := other.Check("hr", []pins.Tool{tool("x", `"description":"gives a salary",`+object)}, true); changed["x"] == "" {
		t.Fatal("the other replica takes another definition for the first one")
	}
	mcptest.Eventually(t, "the change is shared", func() bool { return one.Refusal("hr", "x", "") != "" })
	approved, err := one.Approve("hr", pins.Selection{Tool: "x"}, "ann")
	if err != nil || len(approved) != 1 || len(approved[0].Fields()) != 1 {
		t.Fatalf("got %+v, %v, want x with its difference", approved, err)
	}
	began := time.Now()
	if server := <-told; server != "hr" || other.Refusal("hr", "x", "") != "" || time.Since(began) > time.Second {
		t.Errorf("got %s approved after %v, refusal %q", server, time.Since(began), other.Refusal("hr", "x", ""))
	}
	if late, _ := replica(t, state, nil); !late.Known("hr") || len(late.Changes("hr")) != 0 {
		t.Errorf("a replica that starts later: got known %t, changes %v", late.Known("hr"), late.Changes("hr"))
	}
}

// Replicas that see and approve the tools of one server at once lose nothing of each other's.
func TestSharedAtOnce(t *testing.T) {
	state := shared.NewMemory()
	const replicas, tools = 3, 20
	var all []*pins.Store
	for range replicas {
		s, _ := replica(t, state, nil)
		all = append(all, s)
	}
	all[0].Check("hr", nil, true)
	mcptest.Eventually(t, "the server is known", func() bool { return all[1].Known("hr") && all[2].Known("hr") })
	var wg sync.WaitGroup
	for r, s := range all {
		wg.Go(func() {
			for i := range tools {
				name := fmt.Sprintf("t%d-%d", r, i)
				s.Check("hr", []pins.Tool{tool(name, object)}, false)
				if got, err := s.Approve("hr", pins.Selection{Tool: name}, "ann"); err != nil || len(got) != 1 {
					t.Errorf("%s: got %v, %v", name, got, err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range all {
		mcptest.Eventually(t, "all approvals are known", func() bool {
			for i := range replicas * tools {
				if s.Refusal("hr", fmt.Sprintf("t%d-%d", i/tools, i%tools), "") != "" {
					return false
				}
			}
			return true
		})
	}
}

// Without the shared state, what is known holds, an approval fails, and what is seen is shared later.
func TestSharedUnreachable(t *testing.T) {
	state := &store{Memory: shared.NewMemory()}
	one, l := replica(t, state, nil)
	other, _ := replica(t, state, nil)
	one.Check("hr", []pins.Tool{tool("x", object)}, true)
	mcptest.Eventually(t, "the server is known", func() bool { return other.Known("hr") })
	state.lost.Store(true)
	one.Check("hr", []pins.Tool{tool("x", `"title":"t",`+object), tool("y", object)}, true)
	got, err := one.Approve("hr", pins.Selection{}, "ann")
	if !errors.Is(err, shared.ErrUnreachable) || len(got) > 0 || strings.Contains(l.String(), "tool approved") {
		t.Errorf("got %v, %v, log %s, want an error and no approval", got, err, l)
	}
	if one.Refusal("hr", "x", "") == "" || other.Refusal("hr", "x", "") != "" {
		t.Errorf("got refusals %q and %q", one.Refusal("hr", "x", ""), other.Refusal("hr", "x", ""))
	}
	mcptest.Eventually(t, "a warning", func() bool { return strings.Contains(l.String(), "pins of tools cannot be kept") })
	state.lost.Store(false)
	mcptest.Eventually(t, "the change is shared", func() bool { return len(other.Changes("hr")) == 2 })
}

// What the shared state loses or cannot read is stored again, and approves nothing.
func TestSharedLost(t *testing.T) {
	state := shared.NewMemory()
	one, _ := replica(t, state, nil)
	one.Check("hr", []pins.Tool{tool("x", object)}, true)
	stored := func(key string) shared.Entry { e, _ := state.Get(t.Context(), key); return e }
	mcptest.Eventually(t, "the entry", func() bool { return stored("pins/hr").Revision != 0 })
	if err := state.Delete(t.Context(), "pins/hr", stored("pins/hr").Revision); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the lost entry", func() bool { return stored("pins/hr").Revision != 0 })
	if _, err := state.Put(t.Context(), "pins/hr", []byte("x"), stored("pins/hr").Revision, 0); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the damaged entry", func() bool { return len(stored("pins/hr").Value) > 1 })
	if _, err := state.Put(t.Context(), "pins/web", []byte("x"), 0, 0); err != nil {
		t.Fatal(err)
	}
	late, l := replica(t, state, nil)
	if late.Check("web", []pins.Tool{tool("x", object)}, true); late.Refusal("web", "x", "") == "" || late.Damage() == "" {
		t.Errorf("got refusal %q, damage %q, log %s", late.Refusal("web", "x", ""), late.Damage(), l)
	}
	if one.Refusal("hr", "x", "") != "" || late.Refusal("hr", "x", "") != "" {
		t.Errorf("got refusals %q, %q", one.Refusal("hr", "x", ""), late.Refusal("hr", "x", ""))
	}
}

// A server with more tools than an entry has room for loses the definitions first, then the last tools.
func TestSharedBound(t *testing.T) {
	state := shared.NewMemory()
	one, _ := replica(t, state, nil)
	source := rand.NewChaCha8([32]byte{})
	noise := func() string {
		b := make([]byte, 100)
		_, _ = source.Read(b)
		return fmt.Sprintf(`"description":"%x",`, b)
	}
	var some, many []pins.Tool
	for i := range 8000 {
		x := tool(fmt.Sprintf("t%04d", i), noise()+object)
		if many = append(many, x); i < 3000 {
			some = append(some, x)
		}
	}
	one.Check("some", some, true)
	one.Check("many", many, true)
	one.Close() // it writes them
	other, _ := replica(t, state, nil)
	if other.Refusal("some", "t0000", "") != "" || other.Refusal("some", "t2999", "") != "" {
		t.Error("3000 tools: want all of them approved")
	}
	if other.Check("some", []pins.Tool{tool("t0000", object)}, false); len(other.Changes("some")) != 1 {
		t.Error("a change without definitions: want it noticed")
	}
	for _, s := range []*pins.Store{one, other} {
		if s.Refusal("many", "t0000", "") != "" || s.Refusal("many", "t3999", "") != "" || s.Refusal("many", "t7999", "") == "" {
			t.Error("8000 tools: want the first ones approved, and not the last ones")
		}
	}
}

// overtaken is a State of which others replace an entry before a replica hears that it has stored it.
type overtaken struct {
	*shared.Memory
	then func(revision uint64)
}

func (s *overtaken) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	stored, err := s.Memory.Put(ctx, key, value, revision, ttl)
	s.then(stored)
	return stored, err
}

// An approval by another replica is not missed while this one stores what it saw.
func TestSharedOvertaken(t *testing.T) {
	state := &overtaken{Memory: shared.NewMemory()}
	if _, err := state.Memory.Put(t.Context(), "pins/hr", deflated(t, `{"tools":{}}`), 0, 0); err != nil {
		t.Fatal(err)
	}
	mirror, err := shared.OpenMirror(t.Context(), state, pins.SharedPrefix)
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	seen := make(chan string, 1)
	state.then = func(now uint64) {
		approved := deflated(t, fmt.Sprintf(`{"tools":{"x":{"approved":{"sha256":"%s"}}}}`, <-seen))
		stored, err := state.Memory.Put(t.Context(), "pins/hr", approved, now, 0)
		for err == nil && now != stored {
			err = mirror.Wait(t.Context(), "pins/hr", now)
			now = mirror.Entry("pins/hr").Revision
		}
		if err != nil {
			t.Error(err)
		}
	}
	s := pins.Open(pins.Options{Shared: mirror, Mode: pins.Enforce, Logger: slog.New(slog.DiscardHandler)})
	s.Start()
	defer s.Close()
	changed, _ := s.Check("hr", []pins.Tool{tool("x", object)}, true)
	seen <- changed["x"]
	mcptest.Eventually(t, "the approval is known", func() bool { return s.Refusal("hr", "x", "") == "" })
}

// deflated returns the value of an entry.
func deflated(t *testing.T, text string) []byte {
	t.Helper()
	var value bytes.Buffer
	w, _ := flate.NewWriter(&value, flate.DefaultCompression)
	_, err := w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Error(err)
	}
	return value.Bytes()
}

// seen matches a version that this one has written.
var seen = regexp.MustCompile(`\{"sha256":"[0-9a-f]*","definition":.*?,"at":"[^"]*"\}`)

// An entry of another version, with more in it than this one knows or without what it writes besides, approves what it
// says, and nothing else. What this version does not know stays in it.
func TestSharedVersions(t *testing.T) {
	known, _ := replica(t, shared.NewMemory(), nil)
	known.Check("hr", nil, true)
	changed, _ := known.Check("hr", []pins.Tool{tool("x", object)}, false)
	for name, c := range map[string]struct {
		entry   string // %[1]s stands for the hash of x
		refused string
		stored  string // what the entry has of x and of itself once y is approved
	}{
		"newer": {`{"tools":{"x":{"approved":{"sha256":"%[1]s","at":"2026-01-02T03:04:05Z","signed":{"by":12345678901234567890}},"later":[]},"y":{"later":{}}},"later":1}`,
			"", `{"tools":{"x":{"approved":{"sha256":"%[1]s","at":"2026-01-02T03:04:05Z","signed":{"by":12345678901234567890}},"later":[]},"y":{"approved":{},"later":{}}},"later":1}`},
		"older": {`{"tools":{"x":{"approved":{"sha256":"%[1]s"}}}}`,
			"", `{"tools":{"x":{"approved":{"sha256":"%[1]s","at":"0001-01-01T00:00:00Z"}},"y":{"approved":{}}}}`},
		"known to another only": {`{"tools":{"x":{"later":{"sha256":"%[1]s"}}}}`,
			"was added", `{"tools":{"x":{"latest":{},"later":{"sha256":"%[1]s"}},"y":{"approved":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			state := shared.NewMemory()
			t.Cleanup(state.Close)
			value := deflated(t, fmt.Sprintf(c.entry, changed["x"]))
			if _, err := state.Put(t.Context(), "pins/hr", value, 0, 0); err != nil {
				t.Fatal(err)
			}
			s, l := replica(t, state, nil)
			s.Check("hr", []pins.Tool{tool("x", object), tool("y", object)}, true)
			if got := s.Refusal("hr", "x", ""); s.Damage() != "" || !strings.Contains(got, c.refused) || c.refused == "" && got != "" {
				t.Errorf("x: got refusal %q, damage %q, want %q and none; log %s", got, s.Damage(), c.refused, l)
			}
			if s.Refusal("hr", "y", "") == "" {
				t.Error("y: got no refusal, want that it was added")
			}
			if _, err := s.Approve("hr", pins.Selection{Tool: "y"}, "ann"); err != nil || s.Refusal("hr", "y", "") != "" {
				t.Errorf("y: got %v and refusal %q, want it approved", err, s.Refusal("hr", "y", ""))
			}
			e, _ := state.Get(t.Context(), "pins/hr")
			stored, err := io.ReadAll(flate.NewReader(bytes.NewReader(e.Value)))
			if err != nil {
				t.Fatal(err)
			}
			got := seen.ReplaceAllString(string(stored), "{}")
			if want := fmt.Sprintf(c.stored, changed["x"]); got != want {
				t.Errorf("got the entry %s, want %s", got, want)
			}
		})
	}
}
