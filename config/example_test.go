package config_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/agenticnexus/agenticnexus/config"
)

// Load reads files and folders and checks them as a whole. Values may come from the environment.
func ExampleLoad() {
	folder, err := os.MkdirTemp("", "nexus-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "servers.yaml")
	text := "mcpServers:\n  tickets:\n    url: https://${HOST}/mcp\nquery:\n  timeout: 90s\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	env := map[string]string{"HOST": "tickets.example.org"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	cfg, err := config.Load([]string{file}, config.Options{Env: lookup})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Servers[0].Name, cfg.Servers[0].URL, cfg.Query.Timeout)
	// Output:
	// tickets https://tickets.example.org/mcp 1m30s
}
