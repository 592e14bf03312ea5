package router

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Limits of the summary that about returns.
const (
	maxToldServers = 20
	maxToldTools   = 3   // of a server
	maxToldText    = 100 // bytes of a tool's description
)

// about describes what the caller can do: the visible servers, how many tools each has, and a few of them.
func about(catalog *downstream.Catalog, visible downstream.Visible) string {
	var servers []string
	tools := map[string][]*downstream.Tool{}
	count := 0
	for t := range catalog.See(visible) {
		if tools[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		tools[t.Server] = append(tools[t.Server], t)
		count++
	}
	if count == 0 {
		return "No tools are connected."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I can use %s of %s:", plural(count, "tool"), plural(len(servers), "server"))
	for i, name := range servers {
		if i == maxToldServers {
			fmt.Fprintf(&b, "\n- and %s", plural(len(servers)-i, "more server"))
			break
		}
		fmt.Fprintf(&b, "\n- %s (%s): ", name, plural(len(tools[name]), "tool"))
		for j, t := range tools[name][:min(len(tools[name]), maxToldTools)] {
			if j > 0 {
				b.WriteString("; ")
			}
			b.WriteString(short.Line(t.Name, maxShownName))
			if text := short.Line(t.Description, maxToldText); text != "" {
				b.WriteString(" – " + text)
			}
		}
	}
	b.WriteString("\nAsk in your own words, or see all tools with list_available_tools.")
	return b.String()
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
