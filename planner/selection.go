package planner

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Bounds of what a prompt says about tools, in bytes.
const (
	maxTool         = 1500 // about one
	maxBrief        = 200  // about one, briefly
	maxInstructions = 500  // of a server, where all servers are listed
	maxHeader       = 300  // of a server, where some of its tools are listed
	maxRanked       = 100  // tools that are considered for a question,
	maxRankedInFull = 50   // and where all are listed already
)

// detail says how much of a tool is shown.
type detail int

const (
	named detail = iota + 1 // its name
	brief                   // with all required parameters
	whole                   // with as many parameters and notes as there is room for
)

// Shown is what a model is shown of the tools in all rounds of a query. The zero value is for the first round. It
// belongs to one query and is filled by [Planner.Plan].
type Shown struct {
	started bool              // the tools for the first prompt are chosen
	catalog string            // data block of all tools or servers, the same for each question
	best    string            // data block of the tools that fit the question
	found   []string          // data blocks of what searches have found
	details map[string]detail // by plan name
	others  bool              // some tools are not shown, or not in full
	listed  bool              // all tools are named
	native  bool              // the model calls tools natively,
	called  bool              // has done so in its last turn,
	offered []string          // and can call these, by plan name

	searches int // turns with searches
	room     int // bytes for what they find
}

// Visible reports whether the model knows the name of a tool, and whether it also knows what the tool requires.
func (s *Shown) Visible(name string) (byName, withParameters bool) {
	return s.details[name] >= named, s.details[name] >= brief
}

// note notes how much of a tool is shown.
func (s *Shown) note(t *plan.Tool, d detail) { s.details[t.Name] = max(s.details[t.Name], d) }

// Show chooses the tools for the first prompt of a query, within the budget; Plan does so itself. If all fit, they are
// shown in the order of the catalog. Else a first part is the same for each question over these tools: all of them
// shortened, or the servers where there are too many. The second part has the tools that fit the question, the best
// ones in full.
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

// list returns all tools, false if their names do not fit.
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

// everything describes all tools in full, server by server, nothing if there is no room.
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

// arrange describes ranked tools that the model was not shown so: at most inFull bytes of the best in full and the
// others briefly, server by server. Of servers that are clearly meant it names the other tools, too.
func (p *Planner) arrange(tools Tools, ranked []plan.Tool, meant []string, room, inFull int, s *Shown) string {
	l := layout{room: room - frame, servers: tools.Servers()}
	if len(meant) > 0 {
		l.room -= room / 10 // for the names
	}
	inFull = l.room - min(l.room, inFull) // what is left when no other tool is shown in full
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

// meantServers are the servers among those of ranked tools that the question names, or that have most of the best five
// tools.
func meantServers(query string, ranked []plan.Tool) (meant []string) {
	const best, most, least = 5, 3, 3
	words := wordsOf(query)
	among := map[string]int{}
	for i, t := range ranked {
		if i < best {
			among[t.Server]++
		}
		if slices.Contains(meant, t.Server) {
			continue
		}
		name := wordsOf(t.Server)
		stated := len(t.Server) >= least && len(name) > 0 && !slices.ContainsFunc(name, func(w string) bool {
			return !slices.Contains(words, w)
		})
		if stated || among[t.Server] == most {
			meant = append(meant, t.Server)
		}
	}
	return meant
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
