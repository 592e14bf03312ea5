package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the descriptions of tools in a prompt.
const (
	maxTool     = 1500 // bytes of a full description,
	minTool     = 400  // and where there is little room
	minInFull   = 8    // tools have room in full,
	maxInFull   = 15   // at most so many are shown in full,
	maxOfServer = 5    // and so many of a server that the question does not name
	maxAgain    = 5    // and so many of the last round again, besides those used
	maxRanked   = 200  // tools are considered for a question,

	maxRankedInFull = 50 // and where all are listed already
)

// detail is the level of detail at which a tool is shown.
type detail int

const (
	named detail = iota + 1 // its name
	brief                   // its name, with those of all required arguments
	whole                   // as many parameters and notes as fit
)

// Shown has the tools that a model sees in a query. [Planner.Plan] fills it. The zero value is for the first round.
type Shown struct {
	catalog string            // data block of all tools or servers, the same for each question
	best    string            // data block of the tools that fit the question; later also of used and found ones
	kept    []string          // tools found by searches, by plan name
	details map[string]detail // by plan name; nil until the tools for the first prompt are chosen
	typed   map[string]bool   // tools that earlier rounds have shown in full, with their result types
	others  bool              // some tools are not shown, or not in full
	listed  bool              // all tools are named
	most    bool              // most tools are not shown
	native  bool              // the model calls tools natively
	called  bool              // it called tools in its last reply
	offered []string          // the tools it can call, by plan name

	approval approval
	invalid  string // what is wrong with the last plan's condition for another round

	searches int // requests with searches
	room     int // bytes for their results
}

// Visible reports whether the model sees the name of a tool, and whether it also sees those of its required arguments.
func (s *Shown) Visible(name string) (byName, withParameters bool) {
	return s.details[name] >= named, s.details[name] >= brief
}

// Size returns the bytes of the tools in the first prompt of a round.
func (s *Shown) Size() int { return len(s.catalog) + len(s.best) }

// note records the level of detail at which a tool is shown.
func (s *Shown) note(t *plan.Tool, d detail) { s.details[t.Name] = max(s.details[t.Name], d) }

// Show chooses the tools for the first prompt of a query as Plan does, within the budget. If all tools fit, they are
// shown in full, in the order of the catalog. Otherwise the first part has all tools shortened or, if there are too
// many, the servers; it is the same for each question. The second part has the tools that fit the question, the best
// in full.
func (p *Planner) Show(ctx context.Context, req Request) *Shown {
	s := &Shown{}
	p.show(ctx, req, s)
	return s
}

// show chooses the tools for the first prompt of a round. After the first round, a catalog is shown in full only if it
// is small; the second part has those tools in full that were used or found, beside the results the best of those that
// earlier rounds have shown in full, and of the others the result types.
func (p *Planner) show(ctx context.Context, req Request, s *Shown) {
	room := p.cfg.ToolTokens * bytesPerToken
	found := max(room/4, 2*maxTool) // bytes for what is found by searches
	if s.details == nil {
		s.room, s.typed = found, map[string]bool{}
	}
	for name, d := range s.details {
		s.typed[name] = s.typed[name] || d == whole
	}
	s.forget(req)
	s.best, s.listed, s.others, s.most = "", true, false, false
	small := room
	if req.Round > 1 {
		small /= 4
	}
	servers := req.Tools.Servers()
	all, fits := p.list(req.Tools, room)
	l := layout{room: small - frame, servers: servers, shown: s}
	if fits && l.everything(all) {
		s.catalog = l.String()
		return
	}
	s.forget(req)
	s.others = true
	l = layout{room: room*5/6 - frame, servers: servers, shown: s}
	if s.listed = fits && l.shortened(all); s.listed {
		s.catalog = l.String()
	} else {
		s.forget(req)
		s.catalog = purposes(servers, room/8-frame)
	}
	rest := room - len(s.catalog) - frame
	if req.Round > 1 {
		rest += found
	}
	l = layout{room: rest, servers: servers, shown: s}
	words := texts.Words(req.Query)
	inFull, most := rest, maxRankedInFull
	if !s.listed {
		inFull, most = rest/2, maxRanked
	}
	ranked := p.rank(ctx, req, most)
	if req.Round <= 1 {
		p.addFull(&l, fitting(words, ranked, len(servers) > 1), inFull)
	} else {
		p.addFull(&l, s.used(req), inFull)
		p.addFull(&l, s.again(ranked), l.room-found-sizeOf(req.Outcomes))
	}
	p.addResults(&l, req.Tools)
	p.addShort(&l, ranked)
	if !s.listed {
		for _, server := range meantServers(words, ranked) {
			for t := range req.Tools.Of(server) {
				l.short(t, p.signatureOf(t))
			}
		}
		s.most = fewer(len(s.details), req.Tools)
	}
	s.best = l.String()
}

// forget begins without any tool.
func (s *Shown) forget(req Request) {
	s.details, s.approval = map[string]detail{}, approval{needed: req.NeedsApproval}
}

// used returns the tools that were called in earlier rounds, and those found by searches.
func (s *Shown) used(req Request) (tools []plan.Tool) {
	names := slices.Clip(s.kept)
	for _, o := range req.Outcomes {
		names = append(names, o.Step.Tool)
	}
	for i, name := range names {
		if t, unknown := req.Tools.Lookup(name); unknown == nil && !slices.Contains(names[:i], name) {
			tools = append(tools, t)
		}
	}
	return tools
}

// again returns the best tools that an earlier round has shown in full.
func (s *Shown) again(ranked []plan.Tool) (tools []plan.Tool) {
	for _, t := range ranked {
		if s.typed[t.Name] && len(tools) < maxAgain {
			tools = append(tools, t)
		}
	}
	return tools
}

// sizeOf returns at most how many bytes the results take in a prompt.
func sizeOf(outcomes []plan.Outcome) (size int) {
	for _, o := range outcomes {
		size += min(len(o.Value), maxOutcome)
	}
	return min(size, maxOutcomes)
}

// fewer reports whether n is less than half of the tools.
func fewer(n int, tools Tools) bool {
	total := 0
	for range tools.All() {
		if total++; total > 2*n {
			return true
		}
	}
	return false
}

// entry is a tool with its signature.
type entry struct {
	tool *plan.Tool
	*signature
}

// list returns all tools, or false if their names do not fit.
func (p *Planner) list(tools Tools, room int) (all []entry, fits bool) {
	for t := range tools.All() {
		if room -= len(texts.Line(t.Name, maxName)) + len("(), "); room < 0 {
			return nil, false
		}
	}
	for t := range tools.All() {
		all = append(all, entry{t, p.signatureOf(t)})
	}
	return all, len(all) > 0
}

// fitting returns the ranked tools to show in full.
func fitting(question []string, ranked []plan.Tool, several bool) (best []plan.Tool) {
	of := map[string]int{}
	for _, t := range ranked {
		if of[t.Server]++; several && of[t.Server] > maxOfServer && !names(question, t.Server) {
			continue
		}
		if best = append(best, t); len(best) == maxInFull {
			break
		}
	}
	return best
}

// addFull adds tools in full that the model has not seen in full, within room bytes.
func (p *Planner) addFull(l *layout, tools []plan.Tool, room int) {
	end, limit := l.room-min(l.room, room), max(minTool, min(maxTool, room/minInFull))
	for i := range tools {
		if t := &tools[i]; l.room > end && l.shown.details[t.Name] < whole {
			l.full(t, p.signatureOf(t), limit)
		}
	}
}

// addShort adds shortened tools that the model has not seen.
func (p *Planner) addShort(l *layout, tools []plan.Tool) {
	for i := range tools {
		l.short(&tools[i], p.signatureOf(&tools[i]))
	}
}

// addResults adds the result types that earlier rounds have shown of tools that are not in full.
func (p *Planner) addResults(l *layout, tools Tools) {
	for t := range tools.All() {
		if !l.shown.typed[t.Name] || l.shown.details[t.Name] == whole {
			continue
		}
		if s := p.signatureOf(t); s.result != "" && l.short(t, s) {
			l.behind(t.Server, s.name+s.result)
		}
	}
}

// meantServers returns the servers of ranked tools that the question names, or that have most of the best five tools.
func meantServers(question []string, ranked []plan.Tool) (meant []string) {
	const best, most = 5, 3
	among := map[string]int{}
	for i, t := range ranked {
		if i < best {
			among[t.Server]++
		}
		if !slices.Contains(meant, t.Server) && (among[t.Server] == most || names(question, t.Server)) {
			meant = append(meant, t.Server)
		}
	}
	return meant
}

// names reports whether a question has all words of a server's name.
func names(question []string, server string) bool {
	const least = 3
	words := texts.Words(server)
	return len(server) >= least && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains(question, w)
	})
}

// frame is the size of a data block without its lines.
const frame = 100

// overhead is the size of a line in a data block without its text.
const overhead = len(llm.DataMark) + len("\n")

// cost returns the size of lines in a data block.
func cost(lines string) int { return len(lines) + (strings.Count(lines, "\n")+1)*overhead }

// data returns the data block with lines about tools.
func data(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return llm.Data("the servers", strings.Join(lines, "\n"))
}

// layout puts tools below or, shortened, behind the names of their servers, within a size.
type layout struct {
	room    int // bytes
	servers []Server
	shown   *Shown
	groups  []*group // in the order of their first tools
}

// group are tools of one server: lines below its name, or shortened ones behind it.
type group struct {
	server string
	short  bool
	texts  []string
}

// everything adds all tools in full, until one does not fit.
func (l *layout) everything(all []entry) bool {
	return !slices.ContainsFunc(all, func(e entry) bool { return !l.full(e.tool, e.signature, maxTool) })
}

// shortened adds all tools shortened, until one does not fit.
func (l *layout) shortened(all []entry) bool {
	return !slices.ContainsFunc(all, func(e entry) bool { return !l.short(e.tool, e.signature) })
}

// full adds a tool in full. It reports whether there was room.
func (l *layout) full(t *plan.Tool, s *signature, limit int) bool {
	s.mark = l.shown.approval.mark(t)
	text := s.long(limit)
	added := l.add(group{server: t.Server}, text, cost(text), cost(header(serverOf(l.servers, t.Server))))
	if added {
		l.shown.note(t, whole)
		l.shown.approval.shown(s.mark)
	}
	return added
}

// short adds a shortened tool, unless the model has seen it. It reports whether there was room.
func (l *layout) short(t *plan.Tool, s *signature) bool {
	if l.shown.details[t.Name] != 0 {
		return true
	}
	s.mark = l.shown.approval.mark(t)
	text, complete := s.short()
	if !l.behind(t.Server, text) {
		return false
	}
	l.shown.approval.shown(s.mark)
	l.shown.note(t, named)
	if complete {
		l.shown.note(t, brief)
	}
	return true
}

// behind adds a text behind the name of a server.
func (l *layout) behind(name, text string) bool {
	return l.add(group{server: name, short: true}, text, len(", ")+len(text), overhead+len(server(serverOf(l.servers, name))))
}

// add adds a text to a group, at a price, and at a further one if the group is new.
func (l *layout) add(to group, text string, price, first int) bool {
	i := slices.IndexFunc(l.groups, func(g *group) bool { return g.server == to.server && g.short == to.short })
	if i < 0 {
		price += first
	}
	if price > l.room {
		return false
	}
	l.room -= price
	if i < 0 {
		i = len(l.groups)
		l.groups = append(l.groups, &to)
	}
	l.groups[i].texts = append(l.groups[i].texts, text)
	return true
}

// String returns the data block, "" if nothing was added.
func (l *layout) String() string {
	var lines []string
	for _, g := range l.groups {
		if g.short {
			lines = append(lines, server(serverOf(l.servers, g.server))+strings.Join(g.texts, ", "))
			continue
		}
		if head := header(serverOf(l.servers, g.server)); head != "" {
			lines = append(lines, head)
		}
		lines = append(lines, g.texts...)
	}
	return data(lines)
}
