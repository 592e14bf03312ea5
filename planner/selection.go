package planner

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the descriptions of tools in a prompt, in bytes.
const (
	maxTool         = 1500 // a full description
	maxBrief        = 200  // a brief description
	maxInstructions = 500  // of a server, where all servers are listed
	maxHeader       = 300  // of a server, where some of its tools are listed
	maxRanked       = 100  // tools that are considered for a question,
	maxRankedInFull = 50   // and where all are listed already
)

// detail is the level of detail at which a tool is shown.
type detail int

const (
	named detail = iota + 1 // its name
	brief                   // a line with all required parameters
	whole                   // as many parameters and notes as fit
)

// Shown has the tools that a model sees in all rounds of a query. [Planner.Plan] fills it. The zero value is for the
// first round.
type Shown struct {
	started bool              // the tools for the first prompt are chosen
	catalog string            // data block of all tools or servers, the same for each question
	best    string            // data block of the tools that fit the question
	found   []string          // data blocks of tools found by searches
	details map[string]detail // by plan name
	others  bool              // some tools are not shown, or not in full
	listed  bool              // all tools are named
	native  bool              // the model calls tools natively
	called  bool              // it called tools in its last reply
	offered []string          // the tools it can call, by plan name

	approval approval

	searches int // requests with searches
	room     int // bytes for their results
}

// Visible reports whether the model sees the name of a tool, and whether it also sees the required parameters.
func (s *Shown) Visible(name string) (byName, withParameters bool) {
	return s.details[name] >= named, s.details[name] >= brief
}

// note records the level of detail at which a tool is shown.
func (s *Shown) note(t *plan.Tool, d detail) { s.details[t.Name] = max(s.details[t.Name], d) }

// Show chooses the tools for the first prompt of a query, within the budget. Plan calls it. If all tools fit, they are
// shown in full, in the order of the catalog. Otherwise the first part has all tools shortened or, if there are too
// many, the servers; it is the same for each question. The second part has the tools that fit the question, the best
// in full.
func (p *Planner) Show(ctx context.Context, req Request) *Shown {
	s := &Shown{started: true, details: map[string]detail{}, approval: approval{needed: req.NeedsApproval}}
	p.show(ctx, req, s)
	return s
}

func (p *Planner) show(ctx context.Context, req Request, s *Shown) {
	room := p.cfg.ToolTokens * bytesPerToken
	s.room = max(room/4, 2*maxTool)
	servers := req.Tools.Servers()
	all, listed := p.list(req.Tools, room*2/3, s)
	if s.catalog = everything(servers, all, room); s.catalog != "" {
		for _, e := range all {
			s.note(e.tool, whole)
		}
		s.listed = true
		return
	}
	s.others = true
	if listed {
		s.catalog = fit(shortened(servers, all), room*2/3-frame, s)
		s.listed = s.catalog != ""
	}
	if !s.listed {
		s.catalog = fit(heads(servers), room/8-frame, s)
	}
	rest := room - len(s.catalog)
	inFull, limit := rest, maxRankedInFull
	if !s.listed {
		inFull, limit = rest/3, maxRanked
	}
	ranked := p.rank(ctx, req, req.Query, limit)
	var meant []string
	if !s.listed {
		meant = meantServers(req.Query, ranked)
	}
	s.best = p.arrange(req.Tools, ranked, meant, rest, inFull, s)
}

// entry is a tool with its signature.
type entry struct {
	tool *plan.Tool
	*signature
}

// list returns all tools, or false if their names do not fit.
func (p *Planner) list(tools Tools, room int, s *Shown) (all []entry, fits bool) {
	for t := range tools.All() {
		if room -= len(texts.Line(t.Name, maxName)) + len("(…)") + overhead; room < 0 {
			return nil, false
		}
	}
	for t := range tools.All() {
		all = append(all, entry{t, p.signatureOf(t, s.approval.mark(t))})
	}
	return all, true
}

// everything describes all tools in full, server by server. It returns "" if they do not fit.
func everything(servers []Server, all []entry, room int) string {
	var lines []string
	room -= frame
	for i, e := range all {
		if i == 0 || all[i-1].tool.Server != e.tool.Server {
			lines = append(lines, header(serverOf(servers, e.tool.Server), maxInstructions))
			room -= cost(lines[len(lines)-1])
		}
		lines = append(lines, e.full)
		if room -= cost(e.full); room < 0 {
			return ""
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return data(lines)
}

// shortened are the lines of all tools, server by server.
func shortened(servers []Server, all []entry) []line {
	lines := make([]line, 0, len(all)+len(servers))
	for i, e := range all {
		if i == 0 || all[i-1].tool.Server != e.tool.Server {
			lines = append(lines, newHead(serverOf(servers, e.tool.Server)))
		}
		lines = append(lines, line{entry: e, length: len(e.line), least: e.minBrief()})
	}
	return lines
}

// arrange describes ranked tools that the model has not seen in that detail, server by server: the best in full, within
// inFull bytes, and the others briefly. For servers that are clearly meant it also names the other tools.
func (p *Planner) arrange(tools Tools, ranked []plan.Tool, meant []string, room, inFull int, s *Shown) string {
	l := layout{room: room - frame, servers: tools.Servers()}
	if len(meant) > 0 {
		l.room -= room / 10 // for the names
	}
	inFull = l.room - min(l.room, inFull) // the room at which no more tools are shown in full
	for i := range ranked {
		t := &ranked[i]
		sign := p.signatureOf(t, s.approval.mark(t))
		if s.details[t.Name] < whole && l.room > inFull && l.add(t.Server, sign.full) {
			s.note(t, whole)
			continue
		}
		if s.details[t.Name] >= brief {
			continue
		}
		text, complete := sign.brief(maxBrief)
		if s.details[t.Name] == named && !complete || !l.add(t.Server, text) {
			continue
		}
		s.note(t, named)
		if complete {
			s.note(t, brief)
		}
	}
	if len(meant) > 0 {
		l.room += room / 10
	}
	for _, server := range meant {
		l.name(tools.Of(server), server, s)
	}
	return l.String()
}

// meantServers returns the servers of ranked tools that the question names, or that have most of the best five tools.
func meantServers(query string, ranked []plan.Tool) (meant []string) {
	const best, most, least = 5, 3, 3
	words := texts.Words(query)
	among := map[string]int{}
	for i, t := range ranked {
		if i < best {
			among[t.Server]++
		}
		if slices.Contains(meant, t.Server) {
			continue
		}
		name := texts.Words(t.Server)
		stated := len(t.Server) >= least && len(name) > 0 && !slices.ContainsFunc(name, func(w string) bool {
			return !slices.Contains(words, w)
		})
		if stated || among[t.Server] == most {
			meant = append(meant, t.Server)
		}
	}
	return meant
}

// frame is the size of a data block without its lines.
const frame = 100

// overhead is the size of a line in a data block without its text.
const overhead = len(llm.DataMark) + len("\n")

// cost returns the size of lines in a data block.
func cost(lines string) int { return len(lines) + (strings.Count(lines, "\n")+1)*overhead }

// header is the line above the tools of a server.
func header(s Server, limit int) string {
	name := "[server " + texts.Line(s.Name, maxName) + "]"
	if s.Private {
		name += " [private]"
	}
	text := texts.Line(s.Instructions, maxInstructions)
	room := limit - len(name) - len(" …")
	switch {
	case text == "":
		return name
	case room <= 0:
		return name + " …"
	}
	return name + " " + texts.Cut(text, room)
}

func serverOf(servers []Server, name string) Server {
	if i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name }); i >= 0 {
		return servers[i]
	}
	return Server{Name: name}
}

// data returns the data block with lines about tools.
func data(lines []string) string {
	return llm.Data("the servers' descriptions of their tools", strings.Join(lines, "\n"))
}

// line is a line that can be shortened.
type line struct {
	entry  // the tool; empty for a server
	server Server
	length int // without shortening
	least  int
}

func heads(servers []Server) (lines []line) {
	for _, s := range servers {
		lines = append(lines, newHead(s))
	}
	return lines
}

func newHead(s Server) line {
	return line{server: s, length: len(header(s, maxInstructions)), least: len(header(s, 0))}
}

// size returns the length of a line shortened to a limit.
func (l line) size(limit int) int { return max(l.least, min(limit, l.length)) }

// limit returns the highest limit, at most maxInstructions, for which the shortened lines take at most room bytes, and
// their size. The limit is negative if the lines cannot be that short.
func limit(lines []line, room int) (limit, taken int) {
	sum := func(limit int) (n int) {
		for _, l := range lines {
			n += l.size(limit) + overhead
		}
		return n
	}
	low, high := -1, maxInstructions // the highest limit that fits is in low..high
	for low < high {
		if mid := (low + high + 1) / 2; sum(mid) <= room {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, sum(low)
}

// fit shortens lines until they take at most room bytes: if there are tools, the lines of servers to a quarter, then
// all others evenly. It returns nil if the lines cannot be that short.
func fit(lines []line, room int, s *Shown) string {
	var servers, tools []line
	for _, l := range lines {
		if l.tool == nil {
			servers = append(servers, l)
		} else {
			tools = append(tools, l)
		}
	}
	share := room
	if len(tools) > 0 {
		_, least := limit(servers, 0)
		share = max(share/4, least)
	}
	forServers, taken := limit(servers, share)
	forTools, _ := limit(tools, room-taken)
	if len(lines) == 0 || forServers < 0 || forTools < 0 {
		return ""
	}
	var out []string
	for _, l := range lines {
		if l.tool == nil {
			out = append(out, header(l.server, l.size(forServers)))
			continue
		}
		text, complete := l.brief(l.size(forTools))
		out = append(out, text)
		s.note(l.tool, named)
		if complete {
			s.note(l.tool, brief)
		}
	}
	return data(out)
}

// layout puts lines about tools below their servers, within a size.
type layout struct {
	room    int // bytes
	servers []Server
	groups  []*group // in the order of their first tools
}

// group are the lines about tools of one server.
type group struct {
	server string
	lines  []string
}

// add adds the description of a tool. It reports whether there was room.
func (l *layout) add(server, text string) bool {
	price := cost(text)
	i := slices.IndexFunc(l.groups, func(g *group) bool { return g.server == server })
	head := ""
	if i < 0 {
		head = header(serverOf(l.servers, server), maxHeader)
		price += cost(head)
	}
	if price > l.room {
		return false
	}
	l.room -= price
	if i < 0 {
		i = len(l.groups)
		l.groups = append(l.groups, &group{server, []string{head}})
	}
	l.groups[i].lines = append(l.groups[i].lines, text)
	return true
}

// name adds the names of a server's tools that the model has not seen.
func (l *layout) name(tools iter.Seq[*plan.Tool], server string, s *Shown) {
	const also, marks = "also: ", 40
	var names []string
	var shown []*plan.Tool
	room, more := l.room-len(also)-marks, 0
	for t := range tools {
		if s.details[t.Name] != 0 {
			continue
		}
		name := texts.Line(t.Name, maxName)
		if room -= len(name) + len(", "); room < 0 {
			more++
			continue
		}
		names, shown = append(names, name), append(shown, t)
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("… and %d more", more))
	}
	if len(names) > 0 && l.add(server, also+strings.Join(names, ", ")) {
		for _, t := range shown {
			s.note(t, named)
		}
	}
}

// String returns the data block, "" if nothing was added.
func (l *layout) String() string {
	if len(l.groups) == 0 {
		return ""
	}
	var lines []string
	for _, g := range l.groups {
		lines = append(lines, g.lines...)
	}
	return data(lines)
}
