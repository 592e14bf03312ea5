package planner

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/segment"
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
	called  bool              // it called tools in its last turn
	offered []string          // the tools it can call, by plan name

	searches int // turns with searches
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
	s := &Shown{started: true, details: map[string]detail{}}
	p.show(ctx, req, s)
	return s
}

func (p *Planner) show(ctx context.Context, req Request, s *Shown) {
	room := p.cfg.ToolTokens * bytesPerToken
	s.room = max(room/4, 2*maxTool)
	servers := req.Tools.Servers()
	all, listed := p.list(req.Tools, room*2/3)
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

// rank returns the tools that fit a question, best first.
func (p *Planner) rank(ctx context.Context, req Request, query string, limit int) []plan.Tool {
	if p.ranker != nil {
		ranked := p.ranker.Rank(ctx, query, req.Tools, limit)
		return ranked[:min(len(ranked), limit)]
	}
	var first []plan.Tool
	for t := range req.Tools.All() {
		if len(first) == limit {
			break
		}
		first = append(first, *t)
	}
	return first
}

// entry is a tool with its signature.
type entry struct {
	tool *plan.Tool
	*signature
}

// list returns all tools, or false if their names do not fit.
func (p *Planner) list(tools Tools, room int) (all []entry, fits bool) {
	for t := range tools.All() {
		e := entry{t, p.signatures.of(t)}
		if room -= e.minBrief() + overhead; room < 0 {
			return nil, false
		}
		all = append(all, e)
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
		sign := p.signatures.of(t)
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
	words := segment.Words(query)
	among := map[string]int{}
	for i, t := range ranked {
		if i < best {
			among[t.Server]++
		}
		if slices.Contains(meant, t.Server) {
			continue
		}
		name := segment.Words(t.Server)
		stated := len(t.Server) >= least && len(name) > 0 && !slices.ContainsFunc(name, func(w string) bool {
			return !slices.Contains(words, w)
		})
		if stated || among[t.Server] == most {
			meant = append(meant, t.Server)
		}
	}
	return meant
}
