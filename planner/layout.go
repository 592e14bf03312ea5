package planner

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// frame is the size of a data block without its lines.
const frame = 100

// overhead is the size of a line in a data block without its text.
const overhead = len(llm.DataMark) + len("\n")

// cost returns the size of lines in a data block.
func cost(lines string) int { return len(lines) + (strings.Count(lines, "\n")+1)*overhead }

// header is the line above the tools of a server.
func header(s Server, limit int) string {
	name := "[server " + short.Line(s.Name, maxName) + "]"
	text := short.Line(s.Instructions, maxInstructions)
	room := limit - len(name) - len(" …")
	switch {
	case text == "":
		return name
	case room <= 0:
		return name + " …"
	}
	return name + " " + short.Text(text, room)
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
		name := short.Line(t.Name, maxName)
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
