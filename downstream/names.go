package downstream

import "strings"

// FullName is a tool's name on the proxy surface.
func FullName(server, tool string) string { return server + "__" + tool }

// SplitFull splits server__tool at the first "__". Server names cannot hold it, tool names may.
func SplitFull(name string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(name, "__")
	return server, tool, ok && server != "" && tool != ""
}

// separators stand between a server's name and a tool's.
var separators = [...]string{"__", ":", "."}

// splits returns every reading of a name as a server's and a tool's: server__tool, server:tool (at the
// first colon) and server.tool.
func splits(name string, visit func(server, tool string) bool) {
	for _, sep := range separators {
		if server, tool, ok := strings.Cut(name, sep); ok && server != "" && tool != "" && !visit(server, tool) {
			return
		}
	}
}
