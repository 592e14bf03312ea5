package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

const (
	maxList       = 1 << 20     // bytes of a list
	maxRemembered = 8 * maxList // bytes of a file
	maxFiles      = 100         // in the folder; the oldest go
)

// Memory keeps, in a file, what a server listed last in the session that clients share, so that lists of clients can
// be answered while the server starts. Nothing else is made of it: no catalog, pin, decision or call. Another command
// or URL of the server is another file. Of a server with OAuth nothing is kept: another account may have others.
// Of a private server, lists of resources are data and are not kept.
type Memory struct {
	server *Server
	path   string // empty = nothing is kept

	mu    sync.Mutex
	lists map[string][]string          // the file: items by method, as texts so that their bytes stay; nil = not read
	given map[string][]json.RawMessage // lists that clients got, by method, until they are compared
}

func newMemory(s *Server, folder string) *Memory {
	c := s.Config
	m := &Memory{server: s, given: map[string][]json.RawMessage{}}
	if folder == "" || c.PerClient() || c.Auth != nil || c.Via != nil || s.opts.Embedded[c.Name] != nil {
		return m
	}
	identity, _ := json.Marshal([]any{ // strings always marshal
		c.Name, c.Type, c.URL, c.Command, c.Args, c.Cwd, revealed(c.Env), revealed(c.Headers)})
	sum := sha256.Sum256(identity)
	m.path = filepath.Join(folder, hex.EncodeToString(sum[:16])+".json")
	return m
}

func revealed(secrets map[string]redact.Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, value := range secrets {
		out[name] = value.Reveal()
	}
	return out
}

// List returns the remembered items of a list while the server makes its first attempt to connect; else ok is false.
// Tools that are hidden now are left out. If the real list turns out to be another, Options.OnReturn is called.
func (m *Memory) List(method string) (items []json.RawMessage, ok bool) {
	if !m.keeps(method) {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	kept, ok := m.lists[method]
	if !ok || !fresh(m.server.Own) {
		return nil, false
	}
	for _, text := range kept {
		if item := json.RawMessage(text); method != "tools/list" || m.shows(item) {
			items = append(items, item)
		}
	}
	m.given[method] = items
	return items, true
}

// shows reports whether clients may see a remembered tool.
func (m *Memory) shows(tool json.RawMessage) bool {
	s, name := m.server, jsonrpc.Text(jsonrpc.Get(tool, "name"))
	return s.Config.Tools.Allows(name) && s.Pins.store.RefusesDefinition(s.Config.Name, name, tool) == ""
}

func (m *Memory) keeps(method string) bool {
	definitions := method == "tools/list" || method == "prompts/list"
	return m.path != "" && Member(method) != "" && (definitions || !m.server.Config.Private())
}

// answers reports whether lists of clients are answered from memory.
func (m *Memory) answers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	return len(m.lists) > 0 && fresh(m.server.Own)
}

// fresh reports whether the first attempt to connect has not ended.
func fresh(c *Connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx.Err() == nil && held(c.server.Config.Lease) && (c.attempts == 0 || c.attempts == 1 && c.attempt != nil)
}

// prove compares the lists that clients got with the real ones when an attempt to connect has ended, with this error.
func (m *Memory) prove(failed error) {
	s := m.server
	defer s.RecoverPanic("comparing lists", nil)
	m.mu.Lock()
	given := maps.Clone(m.given)
	clear(m.given)
	m.mu.Unlock()
	for method, items := range given {
		var l *List
		err := failed
		if err == nil {
			l, err = s.Own.Lists.Get(s.ctx, method, ForClient)
		}
		switch {
		case s.ctx.Err() != nil, s.Queue.IsRetired():
			return // its successor is announced
		case err != nil, !slices.EqualFunc(l.Items, items, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }):
			s.opts.OnReturn(s.Config.Name)
			return
		}
	}
}

// keep remembers the last list that was read.
func (m *Memory) keep(method string) {
	if !m.keeps(method) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	var texts []string
	size := 0
	for _, item := range m.server.Own.Lists.Last(method).Items {
		if size += len(item); size <= maxList {
			texts = append(texts, string(item))
		}
	}
	known, ok := m.lists[method]
	switch {
	case size <= maxList && (!ok || !slices.Equal(known, texts)):
		m.lists[method] = texts
	case size > maxList && ok:
		delete(m.lists, method) // it is not true any more
	default:
		return
	}
	m.save()
}

// load reads the file, once. One that cannot be read counts as empty. Lists that are not kept any more are removed from
// it. The caller holds m.mu.
func (m *Memory) load() {
	if m.lists != nil {
		return
	}
	m.lists = map[string][]string{}
	raw, err := atomicfile.Read(m.path, maxRemembered)
	var lists map[string][]string
	if err != nil || json.Unmarshal(raw, &lists) != nil {
		return
	}
	for method, texts := range lists {
		if slices.ContainsFunc(texts, func(t string) bool { return jsonrpc.Valid([]byte(t)) != nil || t[0] != '{' }) {
			clear(m.lists)
			return
		}
		if m.keeps(method) {
			m.lists[method] = texts
		}
	}
	if len(m.lists) < len(lists) {
		m.save()
	}
}

// save replaces the file, and removes the oldest one if there are too many. It logs a failure. The caller holds m.mu.
func (m *Memory) save() {
	content, _ := json.Marshal(m.lists) // strings always marshal
	folder := filepath.Dir(m.path)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = atomicfile.Write(m.path, content)
	}
	if err != nil {
		m.server.opts.Logger.Warn("cannot keep lists for the next start", "server", m.server.Config.Name, "error", err)
	}
	if files, _ := os.ReadDir(folder); len(files) > maxFiles {
		oldest := slices.MinFunc(files, func(a, b fs.DirEntry) int { return modified(a).Compare(modified(b)) })
		_ = os.Remove(filepath.Join(folder, oldest.Name())) // another process may have done so
	}
}

func modified(e fs.DirEntry) (t time.Time) {
	if info, err := e.Info(); err == nil {
		t = info.ModTime()
	}
	return t // zero if it is gone
}
