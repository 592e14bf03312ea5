package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A session survives a restart: the next router knows its client, serves the handler the handshake once, and serves
// the request. An id sealed for another caller or path is refused.
func TestRevival(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	options := edge.Options{Keys: keys(t)}
	before := newWire(t, options).keep(folder)
	ann, bob := header{"X-API-Key": "key-ann"}, header{"X-API-Key": "key-bob"}
	open := func() header {
		_, h, _ := before.post(initialize("2025-06-18"), ann)
		return with(ann, "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	}
	lasting, deleted, unkeyed := open(), open(), before.open("2025-11-25")
	id := lasting["Mcp-Session-Id"]
	if resp := before.do(t.Context(), "DELETE", "/mcp", "", deleted); resp.StatusCode != 204 {
		t.Fatalf("DELETE: got %d, want 204", resp.StatusCode)
	}
	if len(id) >= 1024 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("got the id %q, want less than 1 KiB of plain characters", id)
	}
	for _, name := range []string{folder, filepath.Join(folder, "session.key")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got %v, %v; want it closed to others", name, info.Mode(), err)
		}
	}

	forged := "A" + id[1:]
	if forged == id {
		forged = "B" + id[1:]
	}
	after := newWire(t, options).keep(folder)
	for name, row := range map[string]struct {
		path string
		h    header
	}{
		"another key":     {"/mcp", with(bob, "Mcp-Session-Id", id)},
		"another path":    {"/other", lasting},
		"forged":          {"/mcp", with(ann, "Mcp-Session-Id", forged)},
		"longer":          {"/mcp", with(ann, "Mcp-Session-Id", id+"A")},
		"deleted":         {"/mcp", deleted},
		"unkeyed by none": {"/mcp", with(ann, "Mcp-Session-Id", "x")},
	} {
		if resp := after.do(t.Context(), "POST", row.path, request("1", "seen", ""), row.h); resp.StatusCode != 404 {
			t.Errorf("%s: got %d, want 404", name, resp.StatusCode)
		}
	}
	if resp := after.do(t.Context(), "GET", "/mcp", "", deleted); resp.StatusCode != 404 {
		t.Errorf("GET of a deleted session: got %d, want 404", resp.StatusCode)
	}
	if got := after.srv.all(); len(got) > 0 {
		t.Errorf("got %q served, want nothing", got)
	}
	var wg sync.WaitGroup
	for i := range 10 { // at once
		wg.Go(func() {
			status, _, body := after.post(request(fmt.Sprint(i), "seen", ""), lasting)
			for _, part := range []string{`"Version":"2025-06-18"`, `"Capabilities":{"sampling":{}}`, `"Session":"` + id + `"`} {
				if status != 200 || !strings.Contains(body, part) {
					t.Errorf("after a restart: got %d %s, want 200 and %s", status, body, part)
				}
			}
		})
	}
	wg.Wait()
	mcptest.Eventually(t, "the handler knows all", func() bool { return len(after.srv.all()) >= 2 })
	if got := fmt.Sprint(after.srv.all()); got != "[initialize:2025-06-18 notifications/initialized]" ||
		after.edge.Sessions() != 1 {
		t.Errorf("got %s served and %d sessions, want the handshake once and one session", got, after.edge.Sessions())
	}
	if status, _, body := after.post(request("1", "seen", `"api_key":"key-bob"`), unkeyed); status != 200 {
		t.Errorf("a session without a key yet: got %d %s, want 200", status, body)
	}
	if resp := after.do(t.Context(), "DELETE", "/mcp", "", lasting); resp.StatusCode != 204 {
		t.Errorf("DELETE of a revived session: got %d, want 204", resp.StatusCode)
	}
	third := newWire(t, options).keep(folder)
	if status, _, _ := third.post(request("1", "seen", ""), lasting); status != 404 {
		t.Errorf("after its DELETE: got %d, want 404", status)
	}
	if status, _, _ := newWire(t, options).post(request("1", "seen", ""), open()); status != 404 {
		t.Errorf("a router with another key: got %d, want 404", status)
	}
}

// A session that ended on another router with the same folder is not revived.
func TestEndedElsewhere(t *testing.T) {
	folder := t.TempDir()
	a, b := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	first, second := a.open("2025-11-25"), a.open("2025-11-25")
	b.do(t.Context(), "DELETE", "/mcp", "", first)
	a.do(t.Context(), "DELETE", "/mcp", "", second)
	b.do(t.Context(), "DELETE", "/mcp", "", with(nil, "Mcp-Session-Id", "x"))
	if status, _, _ := b.post(request("1", "seen", ""), second); status != 404 {
		t.Errorf("ended by the other: got %d, want 404", status)
	}
	if status, _, _ := b.post(request("1", "seen", ""), a.open("2025-11-25")); status != 200 {
		t.Errorf("opened by the other: got %d, want 200", status)
	}
}

// Routers that start at the same time use one key.
func TestOneKey(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	wires := make([]*wire, 8)
	var wg sync.WaitGroup
	for i := range wires {
		w := newWire(t, edge.Options{})
		wires[i] = w
		wg.Go(func() {
			if err := w.edge.Keep(folder); err != nil {
				t.Errorf("Keep: got %v, want nil", err)
			}
		})
	}
	wg.Wait()
	h := wires[0].open("2025-11-25")
	for i, w := range wires {
		if status, _, body := w.post(request("1", "seen", ""), h); status != 200 {
			t.Errorf("router %d: got %d %s, want 200", i, status, body)
		}
	}
}

func TestKeepFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short := t.TempDir()
	if err := os.WriteFile(filepath.Join(short, "session.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{file: file, short: "session.key has 5 bytes instead of 32; remove it"} {
		w := newWire(t, edge.Options{})
		if err := w.edge.Keep(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %s", folder, err, want)
		}
		if status, _, _ := w.post(request("1", "seen", ""), w.open("2025-11-25")); status != 200 {
			t.Errorf("%s: got %d, want sessions all the same", folder, status)
		}
	}
}

// A session may be revived for 24 hours from its start by the address that opened it. Its idle time starts anew.
func TestRevivalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		h := e.Streamable(srv, nil)
		post := func(remote, body, id string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(body))
			r.RemoteAddr = remote
			if id != "" {
				r.Header.Set("Mcp-Session-Id", id)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		open := func() string {
			return post("[2001:db8::1]:1", initialize("2025-11-25"), "").Header().Get("Mcp-Session-Id")
		}
		id, ended := open(), open()
		r := httptest.NewRequest("DELETE", "http://127.0.0.1/mcp", nil)
		r.RemoteAddr = "[2001:db8::1]:1"
		r.Header.Set("Mcp-Session-Id", ended)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusNoContent {
			t.Errorf("DELETE: got %d, want 204", w.Code)
		}
		for range 23 {
			time.Sleep(time.Hour)
			if got := e.Sessions(); got != 0 {
				t.Fatalf("after an hour: got %d sessions, want 0", got)
			}
			if w := post("[2001:db8:0:1::1]:1", request("1", "seen", ""), id); w.Code != 404 {
				t.Fatalf("another address: got %d, want 404", w.Code)
			}
			if w := post("[2001:db8::ffff]:1", request("1", "seen", ""), id); w.Code != 200 {
				t.Fatalf("its own /64: got %d, want 200", w.Code)
			}
			if w := post("[2001:db8::1]:1", request("1", "seen", ""), ended); w.Code != 404 {
				t.Fatalf("ended by DELETE: got %d, want 404", w.Code)
			}
		}
		time.Sleep(time.Hour)
		if w := post("[2001:db8::1]:1", request("1", "seen", ""), id); w.Code != 404 {
			t.Errorf("after 24 hours: got %d, want 404", w.Code)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
}

// The length of an id is bounded, whatever the client's description.
func TestLongClientInfo(t *testing.T) {
	folder := t.TempDir()
	before, after := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	long := strings.Repeat("x", 3000)
	_, h, _ := before.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"experimental":{"`+
		long+`":{}},"sampling":{},"roots":{}},"clientInfo":{"title":"`+long+`","name":"n","version":"1"}}}`, nil)
	id := h.Get("Mcp-Session-Id")
	if len(id) >= 1024 {
		t.Errorf("got an id of %d bytes, want less than 1 KiB", len(id))
	}
	_, _, body := after.post(request("1", "seen", ""), header{"Mcp-Session-Id": id})
	for _, part := range []string{`"Capabilities":{"sampling":{},"roots":{}}`, `"Info":{"name":"n","version":"1"}`} {
		if !strings.Contains(body, part) {
			t.Errorf("got %s, want %s in it", body, part)
		}
	}
	status, _, body := before.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"`+strings.Repeat("x",
		70_000)+`"}}`, nil)
	if status != 400 || !strings.Contains(body, "larger than 64 KiB") {
		t.Errorf("too much: got %d %s, want 400", status, body)
	}
}

// A revived stream can be resumed. Event ids from before the restart do not conflict.
func TestRevivedStream(t *testing.T) {
	folder := t.TempDir()
	before, after := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	h := before.open("2025-11-25")
	ctx, hangUp := context.WithCancel(t.Context())
	ev := readEvents(t, before.do(ctx, "GET", "/mcp", "", h).Body)
	before.edge.Send(h["Mcp-Session-Id"], []byte(`{"jsonrpc":"2.0","method":"notifications/1"}`))
	ev.next()
	f, _ := ev.next()
	hangUp()
	ev = readEvents(t, after.do(t.Context(), "GET", "/mcp", "", with(h, "Last-Event-ID", f.id)).Body)
	ev.next() // it is open
	if !after.edge.Send(h["Mcp-Session-Id"], []byte(`{"jsonrpc":"2.0","method":"notifications/2"}`)) {
		t.Fatal("Send to the revived session: got false, want true")
	}
	if got := ev.message(); !strings.Contains(got, "notifications/2") {
		t.Errorf("got %s, want what was sent after the revival", got)
	}
	if got := fmt.Sprint(after.srv.all()); !strings.HasPrefix(got, "[initialize:2025-11-25") {
		t.Errorf("got %s served, want the handshake", got)
	}
}

// A caller that ends too many sessions within an hour can revive none of that hour. Others can.
func TestManyEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		edges := make([]*edge.Edge, 2)
		handlers := make([]http.Handler, 2)
		for i := range edges {
			edges[i] = edge.New(edge.Options{})
			handlers[i] = edges[i].Streamable(newServer(), nil)
			if err := edges[i].Keep(folder); err != nil {
				t.Fatal(err)
			}
		}
		serve := func(h http.Handler, method, caller, body, id string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
			r.RemoteAddr = caller
			r.Header.Set("Mcp-Session-Id", id)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		open := func(caller string) string {
			return serve(handlers[0], "POST", caller, initialize("2025-06-18"), "").Header().Get("Mcp-Session-Id")
		}
		kept, others := open("192.0.2.1:1"), open("192.0.2.2:1")
		var last string
		for range 8200 {
			last = open("192.0.2.1:1")
			if w := serve(handlers[0], "DELETE", "192.0.2.1:1", "", last); w.Code != http.StatusNoContent {
				t.Fatalf("DELETE: got %d %s, want 204", w.Code, w.Body)
			}
		}
		if w := serve(handlers[0], "POST", "192.0.2.1:1", request("1", "seen", ""), kept); w.Code != 200 {
			t.Errorf("a session that exists: got %d, want 200", w.Code)
		}
		for id, want := range map[string]int{last: 404, kept: 404, others: 200} {
			caller := "192.0.2.1:1"
			if id == others {
				caller = "192.0.2.2:1"
			}
			if w := serve(handlers[1], "POST", caller, request("1", "seen", ""), id); w.Code != want {
				t.Errorf("in the next router, %s: got %d, want %d", caller, w.Code, want)
			}
		}
		files, err := os.ReadDir(filepath.Join(folder, "ended"))
		if err != nil || len(files) != 1 {
			t.Fatalf("got files %v, %v; want one", files, err)
		}
		if info, err := files[0].Info(); err != nil || info.Size() != 8192*34 {
			t.Errorf("got %d bytes, %v; want those of 8,192 sessions", info.Size(), err)
		}
		time.Sleep(26 * time.Hour)
		serve(handlers[0], "DELETE", "192.0.2.1:1", "", open("192.0.2.1:1"))
		if files, _ := os.ReadDir(filepath.Join(folder, "ended")); len(files) != 1 {
			t.Errorf("after a day: got %d files, want the new one alone", len(files))
		}
		for _, e := range edges {
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
