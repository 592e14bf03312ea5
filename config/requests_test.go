package config_test

import (
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

// An empty list of requests lets a server ask nothing; without the list it may ask everything.
func TestRequestsOfServers(t *testing.T) {
	for text, want := range map[string]string{
		"mcpServers: {a: {command: x, requests: []}}":              "",
		"mcpServers: {a: {command: x, requests: [roots]}}":         "roots/list",
		"mcpServers: {a: {command: x}}":                            "roots/list elicitation/create acme/ask",
		"mcpServers: {a: {command: x, requests: [elicitation]}}\n": "elicitation/create",
	} {
		c, err := config.Load([]string{filepath.Join(write(t, "f.yaml", text), "f.yaml")}, environment())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := ""
		for _, method := range []string{"roots/list", "elicitation/create", "acme/ask"} {
			if c.Servers[0].MayAsk(method) {
				if got != "" {
					got += " "
				}
				got += method
			}
		}
		if got != want {
			t.Errorf("%s: may ask %q, want %q", text, got, want)
		}
	}
}
