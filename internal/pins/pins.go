// Package pins remembers the definitions of the tools of servers, and tells which tools have changed since they were
// approved.
//
// The first list of a server is approved as it is. Later, a tool that differs from its approved definition, or that
// has none, counts as changed until [Store.Approve], or until the server shows the approved definition again. Under
// [Enforce], [Store.Refusal] tells why a changed tool may not be used.
//
// [Open] reads the file of pins in the state folder. [Store.Check] compares a list of tools and never waits for a disk.
// After [Store.Start], a goroutine writes the file and notices approvals by other processes; [Store.Close] ends it and
// writes what is left. Processes that share the file lose none of each other's pins: each change is merged into the
// file under a lock. Memory holds the hashes, the file also the definitions. Both are bounded per server, so that no
// server takes the room of another. Methods are safe for concurrent use. A nil Store remembers nothing and refuses
// nothing.
package pins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// What happens to changed tools.
const (
	Off     = "off"     // nothing is remembered
	Warn    = "warn"    // they are reported
	Enforce = "enforce" // they are also quarantined
)

// FirstSight is the approver of the tools of a server's first list.
const FirstSight = "first sight"

// Bounds per server. What is beyond them counts as never approved.
const (
	maxTools      = 25_000
	maxName       = 1024     // bytes of a tool's name
	maxDefinition = 32 << 10 // bytes of a definition that is kept; of a longer one only the hash is
	maxKept       = 32 << 20 // bytes of all definitions that are kept
	maxNamed      = 20       // tools named in a log line
)

// Config is the setting tools.
type Config struct {
	Pin string `yaml:"pin"` // off, warn or enforce
}

// Tool is a tool as its server lists it.
type Tool struct {
	Name string
	Raw  json.RawMessage
}

// Options of a Store.
type Options struct {
	Folder string // of the file; "" keeps nothing
	Mode   string
	Logger *slog.Logger

	// Approved is called when tools of a server count as approved again, by Approve or by another process. It may be
	// nil. It must not call the Store.
	Approved func(server string)
}

// Store holds pins.
type Store struct {
	opts   Options
	file   file
	damage string // what was wrong with the file when it was opened; empty = nothing
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	dirty  chan struct{} // has a signal while there are changes to write

	merging sync.Mutex // held while the file is used; taken before mu
	failing bool       // the last write failed

	mu     sync.Mutex
	pins   document             // without the texts of definitions
	news   news                 // what the file does not have yet
	warned map[string]sightings // by server: the last changes that were logged
}

// Open returns a Store, or nil if nothing is to be remembered.
func Open(o Options) *Store {
	if o.Mode != Warn && o.Mode != Enforce {
		return nil
	}
	s := &Store{
		opts: o, file: file{folder: o.Folder}, dirty: make(chan struct{}, 1),
		news: newNews(), warned: map[string]sightings{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if o.Folder == "" {
		o.Logger.Warn("pins of tools will not survive a restart; set state to a writable folder")
	}
	if s.file.exists() {
		s.open()
	}
	return s
}

// Start starts to write the file and to look for approvals by other processes.
func (s *Store) Start() {
	if s != nil {
		s.done.Go(s.work)
	}
}

// open reads the file for the first time. If it is damaged or cannot be read, no tool counts as approved.
func (s *Store) open() {
	err := s.file.locked(s.ctx, func() error {
		doc, damage, err := s.file.load(document{}, document{Lost: true})
		s.pins, s.damage = doc.withoutTexts(), damage
		return err
	})
	if err != nil {
		s.pins.Lost = true
		s.damage = fmt.Sprintf("the pins of tools in %s cannot be read (%v); no tool counts as approved", s.file.path(), err)
	}
	if s.damage != "" {
		s.opts.Logger.Warn(s.damage)
	}
}

// Damage describes what was wrong with the file when it was opened. It is empty if nothing was.
func (s *Store) Damage() string {
	if s == nil {
		return ""
	}
	return s.damage
}

// Enforces reports whether changed tools are quarantined.
func (s *Store) Enforces() bool { return s != nil && s.opts.Mode == Enforce }

// Check compares tools that a server lists with their approved definitions. whole means that the server lists no
// others; a part of a list is ignored before the first whole list. Check reports whether there are changes that are new
// to this process.
func (s *Store) Check(server string, tools []Tool, whole bool) (fresh bool) {
	if s == nil {
		return false
	}
	definitions := s.define(server, tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.pins.first(server)
	if first && !whole {
		return false
	}
	known, dirty := s.pins.server(server), first
	if first {
		s.news.first[server] = sightings{}
	}
	var others, added []string                // that were not logged yet
	seen := make(map[string]bool, len(tools)) // whether a tool has changed: one that is listed twice has to agree twice
	for i, t := range tools {
		d := definitions[i]
		bad, twice := seen[t.Name]
		if bad || !known.takes(t.Name) {
			continue
		}
		changed, differs := known.see(t.Name, d.withoutText(), first && !twice)
		seen[t.Name] = changed
		if differs {
			dirty = true
			if s.opts.Folder == "" {
				d = d.withoutText()
			}
			s.news.add(server, t.Name, d, first && !twice)
		}
		if !changed || s.warned[server][t.Name].SHA256 == d.SHA256 {
			continue
		}
		put(s.warned, server, t.Name, d.withoutText())
		if known.Tools[t.Name].Approved == nil {
			added = append(added, t.Name)
		} else {
			others = append(others, t.Name)
		}
	}
	if dirty {
		select {
		case s.dirty <- struct{}{}:
		default: // the signal is there
		}
	}
	if fresh = len(others)+len(added) > 0; fresh {
		what := "tools have changed since they were approved"
		if s.opts.Mode == Enforce {
			what += " and are quarantined"
		}
		s.opts.Logger.Warn(what, changesOf(server, others, added)...)
	}
	return fresh
}

// define returns the definitions of tools. Those that are listed byte for byte as they were approved are not read.
func (s *Store) define(server string, tools []Tool) []definition {
	out := make([]definition, len(tools))
	for i, t := range tools {
		out[i].Listed = digest(t.Raw)
	}
	s.mu.Lock()
	for i, t := range tools {
		if p := s.pins.pin(server, t.Name); p != nil && p.Approved != nil && p.Approved.Listed == out[i].Listed {
			out[i] = *p.Approved
		}
	}
	s.mu.Unlock()
	for i, t := range tools {
		if out[i].SHA256 == "" {
			out[i] = define(t.Raw)
		}
	}
	return out
}

// changesOf returns the attributes of a log line about changed and added tools.
func changesOf(server string, changed, added []string) []any {
	attributes := []any{"server", server}
	for _, group := range []struct {
		name  string
		tools []string
	}{{"changed", changed}, {"added", added}} {
		if len(group.tools) == 0 {
			continue
		}
		names := make([]string, 0, maxNamed)
		for _, name := range group.tools[:min(len(group.tools), maxNamed)] {
			names = append(names, texts.Line(name, 100))
		}
		if more := len(group.tools) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		attributes = append(attributes, group.name, names)
	}
	return append(attributes, "approve", ApproveCommand(server, ""))
}

// ApproveCommand returns the command that approves a tool, or all tools of a server.
func ApproveCommand(server, tool string) string {
	command := "nexus tools approve " + server
	if tool != "" {
		command += " " + tool
	}
	return command
}

// Changed returns the names of a server's changed tools, in order.
func (s *Store) Changed(server string) []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins.Servers[server].changed()
}

// Refusal returns why a tool may not be used; empty if it may.
func (s *Store) Refusal(server, tool string) string {
	if s == nil || s.opts.Mode != Enforce {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins.first(server) {
		return ""
	}
	p := s.pins.pin(server, tool)
	switch {
	case p == nil:
		return "no definition of it was approved"
	case p.Latest == nil:
		return ""
	case p.Approved == nil:
		return "it was added and is not approved; see " + ApproveCommand(server, "")
	}
	return "its definition has changed since it was approved; see " + ApproveCommand(server, "")
}

// Known reports whether a whole list of a server was compared.
func (s *Store) Known(server string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.pins.first(server)
}

// Changes returns the changed tools of a server with their definitions, in order of their names.
func (s *Store) Changes(server string) ([]Change, error) {
	if s == nil {
		return nil, nil
	}
	s.merging.Lock()
	defer s.merging.Unlock()
	var changes []Change
	err := s.file.locked(s.ctx, func() error {
		doc, err := s.read(nil)
		if err == nil {
			changes = doc.Servers[server].changes(Selection{})
		}
		return err
	})
	return changes, err
}

// Approve approves changed tools of a server as they were seen last. It returns what it approved. The error means that
// the approval ends with the process, or that nothing was approved.
func (s *Store) Approve(server string, which Selection, by string) ([]Change, error) {
	s.merging.Lock()
	defer s.merging.Unlock()
	var approved []Change
	err := s.merge(func(doc *document) {
		known := doc.Servers[server]
		approved = known.changes(which)
		now := time.Now().UTC().Truncate(time.Second)
		for _, c := range approved {
			p := known.Tools[c.Tool]
			p.Approved, p.Latest = p.Latest, nil
			p.Approved.By, p.Approved.At = by, now
		}
	})
	for _, c := range approved {
		s.opts.Logger.Info("tool approved", "server", server, "tool", texts.VisibleName(c.Tool), "by", by,
			"sha256", c.Latest.SHA256)
	}
	return approved, err
}

// Close writes what is left and ends the Store.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.done.Wait()
	s.write()
}

const (
	writeDelay    = 50 * time.Millisecond  // from a change to its write, so that servers that start together share one
	writeInterval = 300 * time.Millisecond // between writes, longer after a slow one
	lookInterval  = 500 * time.Millisecond // at which approvals by other processes are noticed
)

// work writes changes and notices those of other processes.
func (s *Store) work() {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-look.C:
			s.look()
		case <-s.dirty:
			s.pause(writeDelay)
			began := time.Now()
			s.write()
			s.pause(min(max(writeInterval, 2*time.Since(began)), time.Second))
		}
	}
}

// pause waits, or until the Store is closed.
func (s *Store) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// write merges what this process saw into the file. What cannot be written is kept for the next time.
func (s *Store) write() {
	s.merging.Lock()
	defer s.merging.Unlock()
	s.mu.Lock()
	none := s.news.empty()
	s.mu.Unlock()
	if none || s.opts.Folder == "" {
		return
	}
	err := s.merge(func(*document) {})
	if err != nil && !s.failing {
		s.opts.Logger.Warn("pins of tools cannot be kept", "file", s.file.path(), "error", err)
	}
	s.failing = err != nil
}

// look reads the file if another process has changed it.
func (s *Store) look() {
	s.merging.Lock()
	defer s.merging.Unlock()
	if !s.file.changed() {
		return
	}
	err := s.file.locked(s.ctx, func() error {
		doc, err := s.read(nil)
		if err == nil {
			s.adopt(doc)
		}
		return err
	})
	if err != nil && !s.failing {
		s.opts.Logger.Warn("pins of tools cannot be read", "file", s.file.path(), "error", err)
	}
	s.failing = err != nil
}

// read returns the file with what this process saw. A file that is lost or damaged does not change what is known. The
// caller holds merging. If taken is not nil, it gets what this process saw.
func (s *Store) read(taken *news) (document, error) {
	s.mu.Lock()
	known := s.pins.withoutTexts()
	s.mu.Unlock()
	doc, damage, err := s.file.load(known, known)
	if damage != "" {
		s.opts.Logger.Warn(damage)
	}
	if err != nil {
		return document{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news.replay(&doc)
	if taken != nil {
		*taken, s.news = s.news, newNews()
	}
	return doc, nil
}

// merge adds what this process saw, and then edit, to the file. The caller holds merging.
func (s *Store) merge(edit func(*document)) error {
	return s.file.locked(s.ctx, func() error {
		var written news
		doc, err := s.read(&written)
		if err != nil {
			return err
		}
		edit(&doc)
		if err = s.file.write(doc); err != nil {
			s.mu.Lock()
			s.news.restore(written)
			s.mu.Unlock()
		}
		s.adopt(doc)
		return err
	})
}

// adopt replaces the pins in memory, and reports the servers with tools that are approved now. The caller holds
// merging.
func (s *Store) adopt(doc document) {
	now := doc.withoutTexts()
	s.mu.Lock()
	s.news.replay(&now)
	var approved []string
	for server, known := range s.pins.Servers {
		for tool, p := range known.Tools {
			if after := now.pin(server, tool); p.Latest != nil && after != nil && after.Latest == nil {
				approved = append(approved, server)
				break
			}
		}
	}
	s.pins = now
	s.mu.Unlock()
	for _, server := range approved {
		if s.opts.Approved != nil {
			s.opts.Approved(server)
		}
	}
}
