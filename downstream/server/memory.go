package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
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

	mu     sync.Mutex
	read   bool
	lists  map[string][]json.RawMessage // by method; those of an unknown method are nil
	proven map[string]bool              // methods whose lists were given to a client and are compared
}

func newMemory(s *Server, folder string) *Memory {
	c := s.Config
	m := &Memory{server: s, lists: map[string][]json.RawMessage{}, proven: map[string]bool{}}
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
	s := m.server
	if !m.keeps(method) || !fresh(s.Own) {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	if items, ok = m.lists[method]; !ok {
		return nil, false
	}
	if method == "tools/list" {
		items = slices.DeleteFunc(slices.Clone(items), func(item json.RawMessage) bool {
			name := jsonrpc.Text(jsonrpc.Get(item, "name"))
			return !s.Config.Tools.Allows(name) || s.Pins.store.RefusesDefinition(s.Config.Name, name, item) != ""
		})
	}
	if !m.proven[method] {
		m.proven[method] = whileOpen(s.Own, func() { m.prove(method, items) })
	}
	return items, true
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
	return c.ctx.Err() == nil && (c.attempts == 0 || c.attempts == 1 && c.attempt != nil)
}

// whileOpen runs f in a goroutine of the server, unless the connection is closed.
func whileOpen(c *Connection, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.ctx.Err() == nil
	if open {
		c.server.wg.Go(f)
	}
	return open
}

// prove compares the real list with the one that was given to clients.
func (m *Memory) prove(method string, given []json.RawMessage) {
	s := m.server
	defer s.RecoverPanic("comparing "+method, nil)
	_, err := s.Own.Connect(s.ctx)
	var l *List
	if err == nil {
		l, err = s.Own.Lists.Get(s.ctx, method, ForClient)
	}
	if s.ctx.Err() != nil || errors.Is(err, admission.ErrRetired) || err == nil && same(l.Items, given) {
		return
	}
	s.opts.OnReturn(s.Config.Name)
}

// keep remembers a list that was read.
func (m *Memory) keep(method string, items []json.RawMessage) {
	if !m.keeps(method) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	known, ok := m.lists[method]
	switch {
	case ok && same(known, items):
		return
	case size(items) <= maxList:
		m.lists[method] = items
	case ok:
		delete(m.lists, method) // it is not true any more
	default:
		return
	}
	m.save()
}

func size(items []json.RawMessage) (n int) {
	for _, item := range items {
		n += len(item)
	}
	return n
}

// same compares lists byte by byte.
func same(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// load reads the file, once. One that cannot be read counts as empty. Lists that are not kept any more are removed from
// it. The caller holds m.mu.
func (m *Memory) load() {
	if m.read {
		return
	}
	m.read = true
	raw, err := atomicfile.Read(m.path, maxRemembered)
	var lists map[string][]string
	if err != nil || json.Unmarshal(raw, &lists) != nil {
		return
	}
	dropped := false
	for method, texts := range lists {
		if !m.keeps(method) {
			dropped = true
			continue
		}
		var items []json.RawMessage
		for _, text := range texts {
			if jsonrpc.Valid([]byte(text)) != nil || text[0] != '{' {
				clear(m.lists)
				return
			}
			items = append(items, json.RawMessage(text))
		}
		m.lists[method] = items
	}
	if dropped {
		m.save()
	}
}

// save writes the file and logs a failure. The caller holds m.mu.
func (m *Memory) save() {
	if err := m.write(); err != nil {
		m.server.opts.Logger.Warn("cannot keep lists for the next start", "server", m.server.Config.Name, "error", err)
	}
}

// write replaces the file. The caller holds m.mu.
func (m *Memory) write() error {
	lists := map[string][]string{} // texts, so that their bytes stay
	for method, items := range m.lists {
		lists[method] = []string{}
		for _, item := range items {
			lists[method] = append(lists[method], string(item))
		}
	}
	content, err := json.Marshal(lists)
	if err != nil {
		return err
	}
	folder := filepath.Dir(m.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(m.path, content); err != nil {
		return err
	}
	return prune(folder)
}

// prune removes the oldest files if there are too many.
func prune(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) <= maxFiles {
		return err
	}
	age := func(e fs.DirEntry) int64 {
		if info, err := e.Info(); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0 // it is gone
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return int(age(a) - age(b)) })
	for _, e := range entries[:len(entries)-maxFiles] {
		_ = os.Remove(filepath.Join(folder, e.Name())) // another process may have done so
	}
	return nil
}
