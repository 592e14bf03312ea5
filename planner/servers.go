package planner

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxPurpose bounds what a server says of itself, in bytes.
const maxPurpose = 200

// header is the line above the tools of a server, "" for a server without a name.
func header(s Server) string {
	if s.Name == "" {
		return ""
	}
	name := "[server " + texts.Line(s.Name, maxName) + "]"
	return strings.TrimSpace(name + private(s) + " " + purpose(s.Instructions, maxPurpose))
}

// server is what stands before the shortened tools of a server.
func server(s Server) string {
	if s.Name == "" {
		return ""
	}
	return texts.Line(s.Name, maxName) + private(s) + ": "
}

// private is the mark of a private server.
func private(s Server) string {
	if s.Private {
		return " [private]"
	}
	return ""
}

func serverOf(servers []Server, name string) Server {
	if i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name }); i >= 0 {
		return servers[i]
	}
	return Server{Name: name}
}

// purposes returns a data block of servers with what they are for, "" if their names do not fit.
func purposes(servers []Server, room int) string {
	servers = slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Name == "" })
	for _, s := range servers {
		room -= cost(server(s))
	}
	if room < 0 || len(servers) == 0 {
		return ""
	}
	lines := make([]string, len(servers))
	for i, s := range servers {
		lines[i] = strings.TrimSuffix(server(s)+purpose(s.Instructions, min(maxPurpose, room/len(servers))), ": ")
	}
	return data(lines)
}

// purpose returns the sentences at the beginning of a server's instructions that say what it is for, up to the first
// one that tells an agent what to do. It has at most limit bytes.
func purpose(instructions string, limit int) string {
	var told []string
	for _, sentence := range texts.Sentences(texts.Prefix(instructions, 10*maxPurpose)) {
		if slices.ContainsFunc(texts.Words(sentence), func(w string) bool { return directive[w] }) {
			break
		}
		told = append(told, sentence)
	}
	return texts.Line(strings.Join(told, " "), max(limit-len("…"), 0))
}

// directive are words by which instructions address an agent.
var directive = func() map[string]bool {
	is := map[string]bool{}
	for w := range strings.FieldsSeq(`you yourself must always never should shall please important warning note remember ensure
		avoid prefer do don dont first before after when if instead rule rules instruction instructions call ask tell
		follow`) {
		is[w] = true
	}
	return is
}()
