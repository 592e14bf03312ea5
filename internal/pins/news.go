package pins

import "maps"

// news is what a process saw and the file does not have yet.
type news struct {
	first map[string]sightings // by server: first lists
	later map[string]sightings // by server: other definitions
	kept  map[string]int       // by server: bytes of the texts
}

// sightings are definitions that a server showed, by tool.
type sightings map[string]definition

func newNews() news {
	return news{map[string]sightings{}, map[string]sightings{}, map[string]int{}}
}

func (n *news) empty() bool { return len(n.first)+len(n.later) == 0 }

func (n *news) add(server, tool string, d definition, first bool) {
	if n.kept[server]+len(d.Text) > maxKept {
		d.Text = nil
	}
	n.kept[server] += len(d.Text)
	if first {
		put(n.first, server, tool, d)
	} else {
		put(n.later, server, tool, d)
	}
}

func put(in map[string]sightings, server, tool string, d definition) {
	if in[server] == nil {
		in[server] = sightings{}
	}
	in[server][tool] = d
}

// restore takes back what could not be written. What was seen since is newer.
func (n *news) restore(from news) {
	for server, tools := range from.first {
		if n.first[server] == nil {
			n.first[server] = tools
		}
	}
	for server, tools := range from.later {
		maps.Copy(tools, n.later[server])
		n.later[server] = tools
	}
	for server, bytes := range from.kept {
		n.kept[server] += bytes
	}
}

// replay adds what was seen to doc.
func (n *news) replay(doc *document) {
	for server, tools := range n.first {
		first := doc.first(server)
		known := doc.server(server)
		for tool, d := range tools {
			known.see(tool, d, first)
		}
	}
	for server, tools := range n.later {
		known := doc.server(server)
		for tool, d := range tools {
			known.see(tool, d, false)
		}
	}
}
