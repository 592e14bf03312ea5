// Package pins remembers the definitions of the tools of servers, and tells which tools have changed since they were
// approved.
//
// The first list of a server is approved as it is. Later, a tool that differs from its approved definition, or that
// has none, counts as changed until [Store.Approve], or until the server shows the approved definition again. Under
// [Enforce], [Store.Refusal] tells why a changed tool may not be used.
//
// [Open] reads the pins from a file in the state folder, or from what replicas share. [Store.Check] compares a list of
// tools and never waits for a disk or network. After [Store.Start], a goroutine writes what was seen and notices
// approvals by other processes; [Store.Close] ends it and writes what is left. Processes that share pins lose none of
// each other's: each change is merged into what is kept. What is remembered is bounded per server, so that no server
// takes the room of another. Methods are safe for concurrent use. A nil Store remembers nothing and refuses nothing.
package pins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
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
	Folder string         // of the file; "" keeps nothing
	Shared *shared.Mirror // of SharedPrefix, in place of the file; nil = the file
	Mode   string
	Logger *slog.Logger

	// Approved is called when tools of a server count as approved again, by Approve or by another process. It may be
	// nil. It must not call the Store.
	Approved func(server string)
}

// Store holds pins.
type Store struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	merging sync.Mutex // held while keeper is used; taken before mu
	keeper  keeper     // nil = none
	damage  string     // what was wrong with what was kept; empty = nothing
	failing bool       // the last merge failed

	mu        sync.Mutex
	pins      *document
	unwritten map[string]map[string]bool // tools by server that are not kept as they are in pins
	warned    map[[2]string]string       // SHA-256 of the last change that was logged, by server and tool
}

// keeper keeps pins outside of the process. One call of merge is made at a time.
type keeper interface {
	// merge changes what is kept of some servers and returns all that is kept. What is lost is replaced by what is
	// known; damage tells what cannot be read. change may be called again for another document. After an error, doc is
	// nil or what is kept in this process.
	merge(ctx context.Context, known *document, servers []string, change func(doc *document, server string)) (
		doc *document, damage string, err error)
	// changed reports whether others have changed what is kept since the last merge.
	changed() bool
	String() string // where it is
}

// Open returns a Store, or nil if nothing is to be remembered. If what is kept is damaged or cannot be read, no tool
// counts as approved.
func Open(o Options) *Store {
	if o.Mode != Warn && o.Mode != Enforce {
		return nil
	}
	s := &Store{
		opts: o, keeper: &file{folder: o.Folder}, pins: &document{Servers: map[string]*pinned{}},
		unwritten: map[string]map[string]bool{}, warned: map[[2]string]string{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if o.Shared != nil {
		s.keeper = &entries{mirror: o.Shared, decoded: map[string]uint64{}}
	} else if o.Folder == "" {
		o.Logger.Warn("pins of tools will not survive a restart; set state to a writable folder")
	}
	if s.keeper.changed() {
		if err := s.merge("", nil); err != nil {
			s.pins.Lost = true
			s.damaged(fmt.Sprintf("the pins of tools in %s cannot be read (%v); no tool counts as approved", s.keeper, err))
		}
	}
	return s
}

func (s *Store) damaged(how string) {
	s.damage = how
	s.opts.Logger.Warn(how)
}

// Damage describes what was wrong with what was kept. It is empty if nothing was.
func (s *Store) Damage() string {
	if s == nil {
		return ""
	}
	s.merging.Lock()
	defer s.merging.Unlock()
	return s.damage
}

// Enforces reports whether changed tools are quarantined.
func (s *Store) Enforces() bool { return s != nil && s.opts.Mode == Enforce }

// Check compares tools that a server lists with their approved definitions. whole means that the server lists no
// others; a part of a list is ignored before the first whole list. Check returns the SHA-256 of the definitions that
// are not approved, by tool, and reports whether there are changes that are new to this process.
func (s *Store) Check(server string, tools []Tool, whole bool) (changed map[string]string, fresh bool) {
	if s == nil {
		return nil, false
	}
	versions := make([]Version, len(tools))
	for i, t := range tools {
		versions[i] = define(t.Raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.pins.first(server)
	if first && !whole {
		return nil, false
	}
	known := s.pins.server(server)
	if first {
		s.note(server)
	}
	changed = map[string]string{}
	var others, added []string // that were not logged yet
	for i, t := range tools {
		if changed[t.Name] != "" {
			continue // one that is listed twice has to agree twice
		}
		bad, differs := known.see(t.Name, versions[i], first)
		if differs {
			s.note(server, t.Name)
		}
		if !bad {
			continue
		}
		changed[t.Name] = versions[i].SHA256
		p, kept := known.Tools[t.Name]
		if key := [2]string{server, t.Name}; kept && s.warned[key] != versions[i].SHA256 {
			s.warned[key] = versions[i].SHA256
			if p.Approved == nil {
				added = append(added, t.Name)
			} else {
				others = append(others, t.Name)
			}
		}
	}
	if fresh = len(others)+len(added) > 0; fresh {
		what := "tools have changed since they were approved"
		if s.opts.Mode == Enforce {
			what += " and are quarantined"
		}
		attributes := []any{"server", server}
		attributes = append(append(attributes, named("changed", others)...), named("added", added)...)
		s.opts.Logger.Warn(what, append(attributes, "approve", ApproveCommand(server, ""))...)
	}
	return changed, fresh
}

// note makes the next merge write what is known of tools of a server. The caller holds mu.
func (s *Store) note(server string, tools ...string) {
	if s.unwritten[server] == nil {
		s.unwritten[server] = map[string]bool{}
	}
	for _, tool := range tools {
		s.unwritten[server][tool] = true
	}
}

// named returns the attribute of a log line that names tools, unless there are none.
func named(attribute string, tools []string) []any {
	if len(tools) == 0 {
		return nil
	}
	var names []string
	for _, name := range tools[:min(len(tools), maxNamed)] {
		names = append(names, texts.Line(name, 100))
	}
	if more := len(tools) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return []any{attribute, names}
}

// ApproveCommand returns the command that approves a tool, or all tools of a server.
func ApproveCommand(server, tool string) string {
	command := "nexus tools approve " + server
	if tool != "" {
		command += " " + tool
	}
	return command
}

// Refusal returns why a tool may not be used; empty if it may. listed is the SHA-256 of the definition that its user
// was shown last if that was not approved then, else empty: servers may show each client another one.
func (s *Store) Refusal(server, tool, listed string) string {
	if !s.Enforces() {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins.first(server) {
		return ""
	}
	p, known := s.pins.pin(server, tool)
	switch {
	case !known:
		return "no definition of it was approved"
	case p.Approved == nil:
		return "it was added and is not approved; see " + ApproveCommand(server, "")
	case p.Latest != nil, listed != "" && listed != p.Approved.SHA256:
		return "its definition has changed since it was approved; see " + ApproveCommand(server, "")
	}
	return ""
}

// RefusesDefinition is like Refusal for a definition that its user was shown.
func (s *Store) RefusesDefinition(server, tool string, raw json.RawMessage) string {
	if !s.Enforces() {
		return ""
	}
	return s.Refusal(server, tool, define(raw).SHA256)
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

// Changes returns the changed tools of a server, in order of their names.
func (s *Store) Changes(server string) []Change {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins.changes(server, Selection{})
}

// Approve approves changed tools of a server as they were seen last. It returns what it approved. The error means that
// the approval ends with the process, or that nothing was approved; with shared pins it means the latter.
func (s *Store) Approve(server string, which Selection, by string) (approved []Change, err error) {
	s.merging.Lock()
	defer s.merging.Unlock()
	err = s.merge(server, func(doc *document) {
		approved = doc.changes(server, which)
		for _, c := range approved {
			now := c.Latest
			now.By, now.At = by, time.Now().UTC().Truncate(time.Second)
			k := doc.Servers[server]
			k.put(c.Tool, pin{Approved: &now, Rest: k.Tools[c.Tool].Rest})
		}
	})
	s.mu.Lock()
	approved = slices.DeleteFunc(approved, func(c Change) bool { // what is not kept, not even in this process
		p, _ := s.pins.pin(server, c.Tool)
		return p.Approved == nil || p.Approved.SHA256 != c.Latest.SHA256
	})
	s.mu.Unlock()
	for _, c := range approved {
		s.opts.Logger.Info("tool approved", "server", server, "tool", texts.VisibleName(c.Tool), "by", by,
			"sha256", c.Latest.SHA256)
	}
	return approved, err
}

// interval is the time between merges: what was seen is written, and approvals by other processes are noticed.
const interval = 500 * time.Millisecond

// Start starts to write what is seen and to look for approvals by other processes.
func (s *Store) Start() {
	if s == nil || !s.keeps() {
		return
	}
	s.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
				s.sync()
			}
		}
	})
}

func (s *Store) keeps() bool { return s.opts.Folder != "" || s.opts.Shared != nil }

// Close writes what is left and ends the Store.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.done.Wait()
	s.sync()
}

// sync merges what this process and others have seen. What cannot be written is kept for the next time.
func (s *Store) sync() {
	s.merging.Lock()
	defer s.merging.Unlock()
	s.mu.Lock()
	idle := len(s.unwritten) == 0
	s.mu.Unlock()
	if !s.keeps() || idle && !s.keeper.changed() {
		return
	}
	err := s.merge("", nil)
	if err != nil && !s.failing {
		s.opts.Logger.Warn("pins of tools cannot be kept", "in", s.keeper.String(), "error", err)
	}
	s.failing = err != nil
}

// merge adds what this process saw to what is kept, and takes over the rest. With edit, it edits what is kept of one
// server, and adds only what was seen of that. The caller holds merging.
func (s *Store) merge(only string, edit func(*document)) error {
	s.mu.Lock()
	known := s.pins.clone()
	seen := s.unwritten
	s.unwritten = map[string]map[string]bool{}
	servers := slices.Sorted(maps.Keys(seen))
	s.mu.Unlock()
	if edit != nil {
		servers = []string{only}
	}
	doc, damage, err := s.keeper.merge(s.ctx, known, servers, func(doc *document, server string) {
		if names, ok := seen[server]; ok {
			doc.replay(known, map[string]map[string]bool{server: names})
		}
		if edit != nil {
			edit(doc)
		}
	})
	if damage != "" {
		s.damaged(damage)
	}
	if err == nil {
		for _, server := range servers {
			delete(seen, server)
		}
	}
	s.adopt(doc, seen)
	return err
}

// adopt replaces the pins by doc, unless it is nil, with what was seen since it was read. What was seen before and is
// not kept is for the next merge.
func (s *Store) adopt(doc *document, again map[string]map[string]bool) {
	var approved []string
	s.mu.Lock()
	for server, tools := range again {
		s.note(server, slices.Collect(maps.Keys(tools))...)
	}
	if doc == nil {
		doc = s.pins
	}
	doc.replay(s.pins, s.unwritten)
	for _, server := range slices.Sorted(maps.Keys(s.pins.Servers)) {
		for tool, p := range s.pins.Servers[server].Tools {
			if now, known := doc.pin(server, tool); p.Latest != nil && known && now.Latest == nil {
				approved = append(approved, server)
				break
			}
		}
	}
	s.pins = doc
	s.mu.Unlock()
	for _, server := range approved {
		if s.opts.Approved != nil {
			s.opts.Approved(server)
		}
	}
}
