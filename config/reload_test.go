package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

const (
	guardedServers  = "mcpServers:\n  a:\n    url: http://127.0.0.1:1/mcp\n  b:\n    url: http://127.0.0.1:2/mcp\n    tools:\n      deny: [\"delete_*\"]\n"
	guardedSettings = "log: {level: warn}\nauth:\n  api_keys:\n    - name: first\n      file: key\n    - name: second\n      sha256: " +
		"1111111111111111111111111111111111111111111111111111111111111111\n      tools:\n        allow: [\"a__*\"]\n\n"
)

// What a reload makes of files that were damaged, and of files that say less on purpose.
func TestReload(t *testing.T) {
	cut := func(name, from string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			content := read(t, filepath.Join(dir, name))
			i := strings.Index(content, from)
			if i < 0 {
				t.Fatalf("%s lacks %q", name, from)
			}
			place(t, filepath.Join(dir, name), content[:i])
		}
	}
	put := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { place(t, filepath.Join(dir, name), content) }
	}
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const both = "first second"
	for name, tc := range map[string]struct {
		change  func(t *testing.T, dir string)
		refused string // part of the problem; empty = taken over
		keys    string
		servers string
		warning string
	}{
		"settings emptied":             {change: put("settings.yaml", ""), refused: "settings.yaml: is empty now"},
		"settings of comments":         {change: put("settings.yaml", "# nothing\n"), refused: "settings.yaml: is empty now"},
		"settings of zeros":            {change: put("settings.yaml", strings.Repeat("\x00", 200)), refused: "settings.yaml"},
		"settings removed":             {change: remove("settings.yaml"), refused: "settings.yaml: is missing; restart"},
		"servers emptied":              {change: put("servers.yaml", ""), refused: "servers.yaml: is empty now"},
		"servers cut off after a key":  {change: put("servers.yaml", "mcpServers:\n"), refused: "servers.yaml: is empty now"},
		"servers removed":              {change: remove("servers.yaml"), refused: "servers.yaml: is missing"},
		"both removed":                 {change: remove("settings.yaml", "servers.yaml"), refused: "the folder has neither servers.yaml nor settings.yaml"},
		"the folder removed":           {change: remove("."), refused: "no such file or directory"},
		"a server without its filter":  {change: cut("servers.yaml", "    tools:"), refused: "servers.yaml: is cut off: it has only the first"},
		"a server cut off in a line":   {change: cut("servers.yaml", "27.0.0.1:2"), refused: "servers.yaml"},
		"a server's list cut off":      {change: cut("servers.yaml", "]"), refused: "servers.yaml"},
		"a key without its rights":     {change: cut("settings.yaml", "      tools:"), refused: "settings.yaml: is cut off"},
		"a key without its rule":       {change: cut("settings.yaml", "        allow:"), refused: "settings.yaml: is cut off"},
		"another server, an empty key": {change: put("key", " \n"), keys: both, servers: "a b", warning: `key "first": the file holds no key: the API keys in use stay`},
		"the key file cut off":         {change: put("key", "secr"), keys: both, servers: "a b", warning: `key "first": the file has only the beginning of the key in use: the API keys in use stay`},
		"the key file removed":         {change: remove("key"), keys: both, servers: "a b", warning: `key "first": reading the key: no such file or directory: the API keys in use stay`},
		"settings without auth":        {change: put("settings.yaml", "log: {level: warn}\n"), keys: both, servers: "a b", warning: "auth.api_keys is not set: the API keys in use stay; an empty list as auth.api_keys removes them"},
		"settings cut off before auth": {change: cut("settings.yaml", "auth:"), keys: both, servers: "a b", warning: "auth.api_keys is not set"},
		"auth without keys":            {change: put("settings.yaml", "auth:\n  api_keys:\n"), keys: both, servers: "a b", warning: "auth.api_keys is not set"},
		"keys removed":                 {change: put("settings.yaml", "auth: {api_keys: []}\n"), servers: "a b"},
		"the last key removed":         {change: cut("settings.yaml", "    - name: second"), keys: "first", servers: "a b"},
		"the last line not ended":      {change: cut("servers.yaml", "\n    tools:\n      deny: [\"delete_*\"]\n"), refused: "is cut off"},
		"spaces at the end removed":    {change: cut("settings.yaml", "\n\n"), keys: both, servers: "a b"},
		"the last server removed":      {change: cut("servers.yaml", "  b:"), keys: both, servers: "a"},
		"all servers removed":          {change: put("servers.yaml", "mcpServers: {}\n"), keys: both},
		"another ending": {change: func(t *testing.T, dir string) {
			remove("servers.yaml")(t, dir)
			put("servers.json", `{"mcpServers":{"a":{"url":"http://127.0.0.1:1/mcp"}}}`)(t, dir)
		}, keys: both, servers: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "config")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			place(t, filepath.Join(dir, "key"), "secret")
			place(t, filepath.Join(dir, "servers.yaml"), guardedServers)
			place(t, filepath.Join(dir, "settings.yaml"), guardedSettings)
			opts := config.Options{Env: func(string) (string, bool) { return "", false }}
			used, err := config.Load([]string{dir}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := config.Reload([]string{dir}, opts, used); err != nil || !again.Same(used) {
				t.Fatalf("nothing changed: got %+v, %v, want the same", again, err)
			}
			tc.change(t, dir)
			for range 2 { // the second time it is compared with what the first made of it
				got, err := config.Reload([]string{dir}, opts, used)
				if tc.refused != "" {
					if err == nil || !strings.Contains(err.Error(), tc.refused) {
						t.Fatalf("got error %v, want %q in it", err, tc.refused)
					}
					unredacted(t, err.Error())
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var keys, servers []string
				for _, k := range got.Auth.APIKeys {
					keys = append(keys, k.Name)
				}
				for _, s := range got.Servers {
					servers = append(servers, s.Name)
				}
				if strings.Join(keys, " ") != tc.keys || strings.Join(servers, " ") != tc.servers {
					t.Errorf("got keys %v, servers %v, want %s and %s", keys, servers, tc.keys, tc.servers)
				}
				warned := slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, tc.warning) })
				if tc.warning == "" && len(got.Warnings) > 0 || !warned && tc.warning != "" {
					t.Errorf("got warnings %q, want %q", got.Warnings, tc.warning)
				}
				for _, w := range got.Warnings {
					unredacted(t, w)
				}
				used = got
			}
		})
	}
}

// unredacted fails the test if the log would hide a part of an advice.
func unredacted(t *testing.T, advice string) {
	t.Helper()
	if logged := redact.Text(advice); logged != advice {
		t.Errorf("the log has %q, want %q", logged, advice)
	}
}

// The default folder may vanish for a moment, and the key of the environment is there in any case.
func TestReload_DefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	opts := config.Options{Env: func(name string) (string, bool) {
		return map[string]string{"NEXUS_API_KEY": "secret"}[name], name == "NEXUS_API_KEY"
	}}
	if err := os.Mkdir(config.DefaultFolder, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(config.DefaultFolder, "servers.yaml"), "mcpServers: {a: {url: http://127.0.0.1:1/mcp}}\n")
	used, err := config.Load(nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(config.DefaultFolder, "away"); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Reload(nil, opts, used); err == nil || !strings.Contains(err.Error(), "servers.yaml: is missing") {
		t.Errorf("without the folder: got %v, want an error that names the file", err)
	}
	if err := os.Rename("away", config.DefaultFolder); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Reload(nil, opts, used); err != nil || !got.Same(used) || len(got.Auth.APIKeys) != 1 {
		t.Errorf("back again: got %+v, %v, want what there was", got, err)
	}
}

// A reload knows the servers that no file configures from the last good configuration.
func TestReload_Others(t *testing.T) {
	dir := write(t, "settings.yaml", "policy: [{when: 'server == \"calculator\"', then: deny}]")
	used, err := config.Load([]string{dir}, config.Options{Others: []string{"calculator"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := config.Reload([]string{dir}, config.Options{}, used); err != nil || !got.Same(used) {
		t.Errorf("got %v, want the same configuration", err)
	}
}

// What tokens may do never widens by files that say less, unless they say so.
func TestReload_OAuth(t *testing.T) {
	const guarded = "auth:\n  oauth:\n    issuer: https://auth.example.com\n    audience: nexus\n    scopes: [mcp]\n" +
		"    claims:\n      - {claim: groups, value: a, servers: [a]}\n      - {claim: groups, value: b, servers: [b]}\n"
	cut := func(from string) string {
		before, _, _ := strings.Cut(guarded, from)
		return before
	}
	for name, tc := range map[string]struct {
		content string
		refused string // part of the problem; empty = taken over
		oauth   bool   // tokens count
		claims  int
		warning string
	}{
		"without auth":             {content: "log: {level: warn}\n", oauth: true, claims: 2, warning: "auth.oauth is not set: the access tokens in use stay"},
		"without oauth":            {content: "auth: {api_keys: []}\n", oauth: true, claims: 2, warning: "auth.oauth is not set"},
		"oauth without a value":    {content: "auth:\n  oauth:\n", oauth: true, claims: 2, warning: "auth.oauth is not set"},
		"no oauth":                 {content: "auth: {oauth: {}}\n"},
		"members without values":   {content: "auth:\n  oauth:\n    issuer:\n    audience:\n", refused: "auth.oauth: needs issuer"},
		"cut off before claims":    {content: cut("    claims:"), oauth: true, claims: 2, warning: "auth.oauth.claims is not set"},
		"cut off within claims":    {content: cut("      - {claim: groups, value: b"), refused: "is cut off"},
		"cut off before scopes":    {content: cut("    scopes:"), refused: "is cut off"},
		"claims without a value":   {content: "log: {level: warn}\n" + cut("      - {claim"), oauth: true, claims: 2, warning: "auth.oauth.claims is not set: those in use stay"},
		"empty claims":             {content: "log: {level: warn}\n" + cut("    claims:") + "    claims: []\n", refused: "auth.oauth.claims: is empty"},
		"one claim":                {content: "log: {level: warn}\n" + cut("      - {claim: groups, value: b"), oauth: true, claims: 1},
		"the same, otherwise told": {content: "# tokens\n" + guarded, oauth: true, claims: 2},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(write(t, "settings.yaml", guarded+"mcpServers: {a: {command: sh}, b: {command: sh}}\n"), "settings.yaml")
			opts := config.Options{Env: func(string) (string, bool) { return "", false }}
			used, err := config.Load([]string{file}, opts)
			if err != nil {
				t.Fatal(err)
			}
			content := tc.content
			if !strings.HasPrefix(tc.refused, "is cut") {
				content += "mcpServers: {a: {command: sh}, b: {command: sh}}\n"
			}
			place(t, file, content)
			got, err := config.Reload([]string{file}, opts, used)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got error %v, want %q in it", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o := got.Auth.OAuth; (o != nil) != tc.oauth || o != nil && len(o.Claims) != tc.claims {
				t.Errorf("got %+v, want tokens to count: %t, with %d claims", o, tc.oauth, tc.claims)
			}
			if all := strings.Join(got.Warnings, "\n"); tc.warning == "" && all != "" || !strings.Contains(all, tc.warning) {
				t.Errorf("got warnings %q, want %q", all, tc.warning)
			}
		})
	}
}
