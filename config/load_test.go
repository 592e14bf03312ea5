package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// environment looks variables up in pairs of name and value.
func environment(pairs ...string) config.Options {
	return config.Options{Env: func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}}
}

// secrets are in the files of testdata or the environment of their tests, and nowhere else.
var secrets = []string{"hunter2", "swordfish", "sesame", "key-in-b-file"}

func testdataEnvironment() config.Options {
	return environment("OPENAI_API_KEY", "sesame", "SECRET", "swordfish", "CI_KEY", "swordfish", "EMPTY", "  ", "HR_TOKEN", "swordfish")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (%s)\n%s", got, file, want)
	}
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("the text shows the secret %q:\n%s", secret, got)
		}
	}
}

func testdata(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	for _, ending := range []string{"*.yaml", "*.json"} {
		found, err := filepath.Glob(filepath.Join("testdata", folder, ending))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files: %v", err)
		}
		files = append(files, found...)
	}
	return files
}

// testdata/bad.txt has files with one mistake each and, behind =>, what is said about it.
func TestMistakes(t *testing.T) {
	const table = "testdata/bad.txt"
	content, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for block := range strings.SplitSeq(strings.TrimSuffix(string(content), "\n"), "\n\n") {
		file, want, _ := strings.Cut(block, "\n=> ")
		name := "f.yaml"
		if strings.HasPrefix(file, "{") {
			name = "f.json"
		}
		path := filepath.Join(write(t, name, file+"\n"), name)
		_, err := config.Load([]string{path}, environment("SECRET", "swordfish", "EMPTY", "  "))
		var wrong *config.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s\ngot %v (%T), want a *config.Error", file, err, err)
			continue
		}
		got := strings.ReplaceAll(err.Error(), path, name)
		crlf := filepath.Join(write(t, name, strings.ReplaceAll(file+"\n", "\n", "\r\n")), name)
		_, err = config.Load([]string{crlf}, environment("SECRET", "swordfish", "EMPTY", "  "))
		if err == nil || strings.ReplaceAll(err.Error(), crlf, name) != got {
			t.Errorf("%s\nwith CRLF: got %v, want %s", file, err, got)
		}
		if got != want && !*update {
			t.Errorf("%s\ngot  %s\nwant %s", file, got, want)
		}
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%q shows a secret", got)
			}
		}
		out = append(out, file+"\n=> "+got)
	}
	if *update {
		if err := os.WriteFile(table, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoodFiles(t *testing.T) {
	for _, file := range testdata(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			report, err := config.Check([]string{file}, testdataEnvironment())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file+".want", filepath.ToSlash(report.String()))
		})
	}
}

// write makes files in a new folder; it takes pairs of name and content.
func write(t *testing.T, pairs ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		file := filepath.Join(folder, pairs[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(pairs[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func load(t *testing.T, opts config.Options, paths ...string) config.Config {
	t.Helper()
	cfg, err := config.Load(paths, opts)
	if err != nil {
		t.Fatalf("Load(%q) = %v", paths, err)
	}
	return cfg
}

func serverNames(cfg config.Config) string {
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestFolder(t *testing.T) {
	folder := write(t,
		"servers.yml", "mcpServers:\n  z: {command: x}\n  a: {command: x}\n",
		"settings.json", `{"listen": "127.0.0.1:1"}`,
		"other.yaml", "nonsense: 1\n",
		"below/settings.yaml", "nonsense: 1\n",
	)
	cfg := load(t, environment(), folder)
	if got := serverNames(cfg); got != "z a" || cfg.Listen != "127.0.0.1:1" {
		t.Errorf("got servers %q and listen %s, want the order of the file and the listen of settings.json", got, cfg.Listen)
	}
	want := []string{filepath.Join(folder, "servers.yml"), filepath.Join(folder, "settings.json")}
	if !slices.Equal(cfg.Files, want) {
		t.Errorf("Files = %q, want %q", cfg.Files, want)
	}
}

func TestFolderErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"empty", nil, "neither servers.yaml nor settings.yaml"},
		{"two variants", []string{"servers.yaml", "", "servers.json", ""}, "holds servers.yaml and servers.json; keep one"},
		{"three variants", []string{"settings.yaml", "", "settings.yml", "", "settings.json", ""}, "holds settings.yaml, settings.yml and settings.json; keep one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, c.files...)
			_, err := config.Load([]string{folder}, environment())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), folder) {
				t.Errorf("Load = %v, want %s: %s", err, folder, c.want)
			}
		})
	}
}

func TestMissingPath(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	_, err := config.Load([]string{missing}, environment())
	if want := missing + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestWithoutPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	if cfg := load(t, environment()); cfg.Listen != config.Default().Listen || len(cfg.Servers)+len(cfg.Files) > 0 {
		t.Errorf("without a folder: got %+v, want the defaults", cfg)
	}
	if err := os.Mkdir(config.DefaultFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	load(t, environment())
	if err := os.WriteFile(filepath.Join(config.DefaultFolder, "settings.yaml"), []byte("listen: 127.0.0.1:1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if cfg := load(t, environment()); cfg.Listen != "127.0.0.1:1" {
		t.Errorf("Listen = %s, want that of the default folder", cfg.Listen)
	}
}

func TestSeveralFiles(t *testing.T) {
	folder := write(t,
		"a.yaml", "execution: {attempts: 5, max_parallel: 2}\nallowed_origins: [https://a.example, https://b.example]\nmcpServers: {one: {command: x}}\n",
		"b.yaml", "execution: {attempts: 7}\nallowed_origins: [https://c.example]\nlog:\n",
		"c.json", `{"mcpServers": {"two": {"url": "http://localhost/mcp"}}, "unrelated": 1}`,
	)
	a, b, c := filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml"), filepath.Join(folder, "c.json")
	cfg := load(t, environment(), a, b, c)
	if cfg.Execution.Attempts != 7 || cfg.Execution.MaxParallel != 2 || cfg.Execution.RetryDelay != time.Second {
		t.Errorf("Execution = %+v, want 7 attempts, 2 in parallel, the default delay", cfg.Execution)
	}
	if len(cfg.AllowedOrigins) != 1 || cfg.AllowedOrigins[0] != "https://c.example" {
		t.Errorf("AllowedOrigins = %q, want those of the later file", cfg.AllowedOrigins)
	}
	if got := serverNames(cfg); got != "one two" {
		t.Errorf("servers %q, want one two", got)
	}
	if cfg := load(t, environment(), b, a); cfg.Execution.Attempts != 5 || len(cfg.AllowedOrigins) != 2 {
		t.Errorf("the other way round: got %+v, %q", cfg.Execution, cfg.AllowedOrigins)
	}
	if _, err := config.Load([]string{a, a}, environment()); err == nil || !strings.Contains(err.Error(), a+": is given twice") {
		t.Errorf("the same file twice: %v", err)
	}
}

func TestServerInTwoFiles(t *testing.T) {
	folder := write(t,
		"a.yaml", "mcpServers:\n  hr: {command: x}\n",
		"b.json", "{\"mcpServers\":\n {\"hr\": {\"command\": \"x\"}}}",
	)
	a, b := filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.json")
	_, err := config.Load([]string{a, b}, environment())
	if want := b + `:2:3: mcpServers: server "hr" is already defined at ` + a + ":2:3"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestFileWithoutEnding(t *testing.T) {
	folder := write(t, "json", `{"mcpServers": {"a": {"command": "x"}}, "other": 1}`, "yaml", "listen: 127.0.0.1:1\n")
	cfg := load(t, environment(), filepath.Join(folder, "json"), filepath.Join(folder, "yaml"))
	if serverNames(cfg) != "a" || cfg.Listen != "127.0.0.1:1" {
		t.Errorf("got servers %q, listen %s", serverNames(cfg), cfg.Listen)
	}
}

func TestServer(t *testing.T) {
	file := filepath.Join("testdata", "good", "servers.yaml")
	absolute, err := filepath.Abs(filepath.Join("testdata", "good", "sub", "dir"))
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]downstream.ServerConfig{}
	for _, s := range load(t, testdataEnvironment(), file).Servers {
		servers[s.Name] = s
	}
	p := servers["program"]
	if want := []string{"-p", "8080", "", "${HOME} costs $5", "a b c"}; !slices.Equal(p.Args, want) {
		t.Errorf("Args = %q, want %q", p.Args, want)
	}
	if p.Cwd != absolute || p.Command != "./bin/server" || p.Env["PORT"].Reveal() != "8080" || p.Env["ON"].Reveal() != "true" {
		t.Errorf("program = %+v, want cwd %s and the scalars of env as text", p, absolute)
	}
	if token := servers["common"].Headers["X-Token"].Reveal(); token != "swordfish" {
		t.Errorf("X-Token of common = %q, want the value of the variable", token)
	}
	if off := servers["off"]; !off.Disabled || !servers["maybe"].Disabled || off.Timeout != 0 {
		t.Errorf("off = %+v, want it disabled", off)
	}
	if h := servers["useless"].Headers; len(h) != 1 || h["X"].Reveal() != "y" {
		t.Errorf("headers of useless = %v, want X alone", h)
	}
	if got := servers["forwarded"].ForwardHeaders; !slices.Equal(got, []string{"X-Tenant"}) {
		t.Errorf("forward_headers = %q, want X-Tenant alone", got)
	}
	if !servers["common"].TrustsAnnotations() {
		t.Error("annotations are not trusted by default")
	}
}

// A colon within a word is a part of it, also in a list within braces.
func TestColons(t *testing.T) {
	for list, want := range map[string][]string{
		"[run, mcp/x:latest]":             {"run", "mcp/x:latest"},
		"[-p, 8080:80, a:b:c , d ]":       {"-p", "8080:80", "a:b:c", "d"},
		"[http://h:80/x, a:0x1f, b:null]": {"http://h:80/x", "a:0x1f", "b:null"},
		`[a :b, c:d e, f:"g"]`:            {"a :b", "c:d e", `f:"g"`},
		"[a:b # c\n, é::x]":               {"a:b", "é::x"},
		"[a: b]":                          nil, `["a":b]`: nil, "[{a:b}]": nil, "[a:[b]]": nil,
	} {
		for _, form := range []string{"{command: x, args: %s}", "\n    command: x\n    args: %s"} {
			folder := write(t, "servers.yaml", "mcpServers:\n  a: "+fmt.Sprintf(form, list)+"\n")
			cfg, err := config.Load([]string{folder}, environment())
			if (err == nil) != (want != nil) || err == nil && !slices.Equal(cfg.Servers[0].Args, want) {
				t.Errorf(form+": got %+v, %v, want %q", list, cfg.Servers, err, want)
			}
		}
	}
}

func TestModels(t *testing.T) {
	for _, c := range []struct {
		name, llm          string
		planner, synth     llm.Config
		plannerKey, synKey string
		warning            string
	}{
		{
			name: "defaults", llm: "llm: {}",
			planner: llm.Default(), plannerKey: "sesame",
		},
		{
			name: "synthesizer as planner", llm: "llm: {planner: {base_url: 'http://localhost:1/v1/', api_key: k, api: responses}, synthesizer: {model: m}}",
			planner:    llm.Config{BaseURL: "http://localhost:1/v1", Model: "gpt-5", API: "responses", Timeout: time.Minute},
			plannerKey: "k",
			synth:      llm.Config{BaseURL: "http://localhost:1/v1", Model: "m", API: "responses", Timeout: time.Minute},
			synKey:     "k",
		},
		{
			name: "the planner's key stays on its host", llm: "llm: {planner: {api_key: k}, synthesizer: {base_url: 'http://localhost:2/v1'}}",
			planner: llm.Default(), plannerKey: "k",
			synth: llm.Config{BaseURL: "http://localhost:2/v1", Model: "gpt-5", API: "chat", Timeout: time.Minute},
		},
		{
			name: "no key for another host", llm: "llm: {planner: {base_url: 'http://localhost:2/v1'}}",
			planner: llm.Config{BaseURL: "http://localhost:2/v1", Model: "gpt-5", API: "chat", Timeout: time.Minute},
		},
		{
			name: "settings stay, what is for a host stays there", llm: "llm: {planner: {base_url: 'http://localhost:1/v1', model: m, verbosity: low, max_tokens: 9, headers: {X: y}, extra: {a: {b: [1, x, true]}}}, synthesizer: {base_url: 'http://localhost:2/v1', max_tokens: 8}}",
			planner: llm.Config{
				BaseURL: "http://localhost:1/v1", Model: "m", API: "chat", Timeout: time.Minute, Verbosity: "low", MaxTokens: 9,
				Headers: map[string]redact.Secret{"X": "y"}, Extra: llm.Extra{"a": json.RawMessage(`{"b":[1,"x",true]}`)},
			},
			synth: llm.Config{BaseURL: "http://localhost:2/v1", Model: "m", API: "chat", Timeout: time.Minute, Verbosity: "low", MaxTokens: 8},
		},
		{
			name: "Anthropic", llm: "llm: {planner: {api: anthropic, model: claude-sonnet-5, reasoning_effort: low}, synthesizer: {api: chat, model: gpt-5}, embeddings: {}}",
			planner: llm.Config{
				BaseURL: llm.AnthropicURL, Model: "claude-sonnet-5", API: "anthropic", Timeout: time.Minute, ReasoningEffort: "low",
			},
			plannerKey: "ant", synKey: "sesame",
			synth: llm.Config{BaseURL: llm.Default().BaseURL, Model: "gpt-5", API: "chat", Timeout: time.Minute, ReasoningEffort: "low"},
		},
		{
			name: "answers of Anthropic's", llm: "llm: {planner: {api_key: k}, synthesizer: {api: anthropic, model: claude-haiku-5-5, verbosity: low}}",
			planner: llm.Default(), plannerKey: "k", warning: "a.yaml:1:96: llm.synthesizer.verbosity has no effect with api: anthropic",
			synth: llm.Config{
				BaseURL: llm.AnthropicURL, Model: "claude-haiku-5-5", API: "anthropic", Timeout: time.Minute, Verbosity: "low",
			},
			synKey: "ant",
		},
		{
			name: "Anthropic behind a gateway", llm: "llm: {planner: {api: anthropic, model: m, base_url: 'http://localhost:4000/v1'}, synthesizer: {max_tokens: 5}}",
			planner: llm.Config{BaseURL: "http://localhost:4000/v1", Model: "m", API: "anthropic", Timeout: time.Minute},
			synth:   llm.Config{BaseURL: "http://localhost:4000/v1", Model: "m", API: "anthropic", Timeout: time.Minute, MaxTokens: 5},
		},
		{name: "the client's alone", llm: "llm: {use_client: true}"},
		{
			name: "the client's as well", llm: "llm: {use_client: true, planner: {api_key: k}}", warning: "llm.use_client has no effect",
			planner: llm.Default(), plannerKey: "k",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := load(t, environment("OPENAI_API_KEY", "sesame", "ANTHROPIC_API_KEY", "ant"), filepath.Join(write(t, "a.yaml", c.llm), "a.yaml"))
			check := func(name string, got *llm.Config, want llm.Config, key string) {
				t.Helper()
				if got == nil {
					got = &llm.Config{}
				}
				if got.APIKey.Reveal() != key {
					t.Errorf("key of the %s = %q, want %q", name, got.APIKey.Reveal(), key)
				}
				got.APIKey = ""
				if !reflect.DeepEqual(*got, want) {
					t.Errorf("%s = %+v, want %+v", name, *got, want)
				}
			}
			check("planner", &cfg.LLM.Planner, c.planner, c.plannerKey)
			check("synthesizer", cfg.LLM.Synthesizer, c.synth, c.synKey)
			if named := c.planner.Model != ""; cfg.LLM.Plans() != named {
				t.Errorf("a model is named = %t, want %t", !named, named)
			}
			if warnings := strings.Join(cfg.Warnings, "\n"); (c.warning == "") != (warnings == "") || !strings.Contains(warnings, c.warning) {
				t.Errorf("warnings = %q, want %q", warnings, c.warning)
			}
		})
	}
}

func TestEmbeddings(t *testing.T) {
	usual := llm.DefaultEmbeddings()
	with := func(base, key, model string, timeout time.Duration) *llm.EmbeddingsConfig {
		return &llm.EmbeddingsConfig{BaseURL: base, APIKey: redact.Secret(key), Model: model, Timeout: timeout}
	}
	for _, c := range []struct {
		name, llm string
		want      *llm.EmbeddingsConfig
		plans     bool
	}{
		{name: "none", llm: "llm: {}", plans: true},
		{name: "alone", llm: "llm: {embeddings: {}}", want: with(usual.BaseURL, "sesame", usual.Model, usual.Timeout)},
		{name: "alone, elsewhere", llm: "llm: {embeddings: {base_url: 'http://localhost:1/v1/', model: m, timeout: 1s}}", want: with("http://localhost:1/v1", "", "m", time.Second)},
		{name: "with the planner's key", llm: "llm: {planner: {base_url: 'http://localhost:1/v1', api_key: k}, embeddings: {}}", plans: true, want: with("http://localhost:1/v1", "k", usual.Model, usual.Timeout)},
		{name: "not with the planner's key", llm: "llm: {planner: {api_key: k}, embeddings: {base_url: 'http://localhost:2/v1'}}", plans: true, want: with("http://localhost:2/v1", "", usual.Model, usual.Timeout)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := load(t, environment("OPENAI_API_KEY", "sesame"), filepath.Join(write(t, "a.yaml", c.llm), "a.yaml"))
			if got := cfg.LLM.Embeddings; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got := cfg.LLM.Plans(); got != c.plans {
				t.Errorf("a model plans: got %v, want %v", got, c.plans)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := load(t, environment("NEXUS_LISTEN", "0.0.0.0:9", "NEXUS_API_KEY", " swordfish\n"))
	if cfg.Listen != "0.0.0.0:9" {
		t.Errorf("Listen = %s, want that of NEXUS_LISTEN", cfg.Listen)
	}
	if keys := cfg.Auth.APIKeys; len(keys) != 1 || keys[0].Name != "env" || keys[0].Key.Reveal() != "swordfish" {
		t.Errorf("keys = %+v, want the one of NEXUS_API_KEY", keys)
	}
	if cfg := load(t, environment("NEXUS_LISTEN", "", "NEXUS_API_KEY", " ")); len(cfg.Auth.APIKeys) > 0 || cfg.Listen != config.Default().Listen {
		t.Errorf("empty variables: got %+v, want the defaults", cfg)
	}
	_, err := config.Load(nil, environment("NEXUS_LISTEN", "nonsense"))
	if want := `NEXUS_LISTEN: listen: want host:port, such as 127.0.0.1:8002, got "nonsense"`; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
	file := filepath.Join(write(t, "a.yaml", "auth: {api_keys: [{name: env, env: NEXUS_API_KEY}]}"), "a.yaml")
	_, err = config.Load([]string{file}, environment("NEXUS_API_KEY", "swordfish"))
	if err == nil || !strings.Contains(err.Error(), `"env" is the name of the key in NEXUS_API_KEY`) {
		t.Errorf("Load = %v, want a conflict with NEXUS_API_KEY", err)
	}
}

func TestKeys(t *testing.T) {
	cfg := load(t, testdataEnvironment(), filepath.Join("testdata", "good", "every-setting.yaml"))
	keys := cfg.Auth.APIKeys
	if len(keys) != 3 {
		t.Fatalf("got %d keys, want 3", len(keys))
	}
	if want := "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7"; keys[0].SHA256 != want || keys[0].Key != "" {
		t.Errorf("SHA256 = %s, want %s", keys[0].SHA256, want)
	}
	if keys[1].Key.Reveal() != "key-in-b-file" || keys[2].Key.Reveal() != "swordfish" || keys[1].File+keys[2].Env != "" {
		t.Errorf("got %q and %q, want the keys of the file and the variable", keys[1].Key.Reveal(), keys[2].Key.Reveal())
	}
}

func TestLargeKeyFile(t *testing.T) {
	folder := write(t, "a.yaml", "auth: {api_keys: [{name: a, file: key}]}", "key", strings.Repeat("x", 1<<17))
	_, err := config.Load([]string{folder + "/a.yaml"}, environment())
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Load = %v, want the file refused", err)
	}
}

func TestVariablesInTypedValues(t *testing.T) {
	folder := write(t, "a.yaml", `
auth: {anonymous: "${YES}"}
execution: {attempts: "${SEVEN}", tool_timeout: "${SEVEN}s"}
limits: {body_bytes: "${SEVEN}MiB"}
log: {level: "${UNSET:-${EMPTY:-}de}bug"}
validation: {deny_patterns: ["a$", "$$", "$${x}", "${INJECTION}"]}
mcpServers:
  off: {command: x, disabled: "${YES}", timeout: "${NOPE}", trust_annotations: "${NOPE}", env: {A: 5}}
`)
	cfg := load(t, environment("YES", "TRUE", "SEVEN", "7", "INJECTION", "x]\nlisten: 1"), folder+"/a.yaml")
	if !cfg.Auth.Anonymous || cfg.Execution.Attempts != 7 || cfg.Execution.ToolTimeout != 7*time.Second || cfg.Limits.BodyBytes != 7<<20 || cfg.Log.Level != "debug" {
		t.Errorf("got %+v, want the values of the variables", cfg.Settings)
	}
	if got, want := cfg.Validation.DenyPatterns, []string{"a$", "$$", "${x}", "x]\nlisten: 1"}; !slices.Equal(got, want) {
		t.Errorf("patterns = %q, want %q", got, want)
	}
	if off := cfg.Servers[0]; !off.Disabled || off.TrustAnnotations != nil || off.Env["A"].Reveal() != "5" {
		t.Errorf("off = %+v", off)
	}
}

// JSON files may have everything that YAML files have. The keys of desktop clients are left out.
func TestJSONHasSettingsAndAuth(t *testing.T) {
	const file = "testdata/good/both.json"
	cfg, err := config.Load([]string{file}, environment())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != "localhost:9000" {
		t.Errorf("listen: got %q, want localhost:9000", cfg.Listen)
	}
	var got []string
	for _, s := range cfg.Servers {
		if s.Auth != nil {
			got = append(got, fmt.Sprint(s.Name, " ", s.Auth.Flow, " ", s.Auth.ClientID))
		}
	}
	if want := []string{"hr client_credentials nexus", "crm  "}; !slices.Equal(got, want) {
		t.Errorf("auth: got %q, want %q", got, want)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct{ name, file, content, want string }{
		{"large", "a.yaml", strings.Repeat("# comment\n", 1<<17), "larger than 1048576 bytes"},
		{"large JSON", "a.json", `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, "larger than 1048576 bytes"},
		{"deep", "a.yaml", strings.Repeat("[", 1<<19), "more than 20000 lines"},
		{"deep dashes", "a.yaml", strings.Repeat("- ", 1<<18), "more than 20000 lines"},
		{"binary", "a.yaml", "listen: \xff", "not UTF-8 text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			_, err := config.Load([]string{filepath.Join(write(t, c.file, c.content), c.file)}, environment())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load = %.200v, want %s", err, c.want)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// Scalars that stand for text are read as written, in JSON and YAML.
func TestTexts(t *testing.T) {
	for name, content := range map[string]string{
		"a.json": "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\", \"args\": [1.10, 1e3, true, \"\\ud83d\\ude00\\/\\u00e9\\t\", \"// no /* comment */,]\"]}\n\t}\n}",
		"a.yaml": "mcpServers:\n  a: {command: x, args: [1.10, 1e3, true, \"\\U0001F600/é\\t\", '// no /* comment */,]']}\n",
	} {
		cfg := load(t, environment(), filepath.Join(write(t, name, content), name))
		if got, want := cfg.Servers[0].Args, []string{"1.10", "1e3", "true", "😀/é\t", "// no /* comment */,]"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestPrice(t *testing.T) {
	if got := (config.Price{Input: 3, Output: 15}).Of(2_000_000, 1_000_000); got != 21 {
		t.Errorf("got %g, want 21", got)
	}
}

// A variable that is not set disables its server alone, and is a mistake for Check. Settings need theirs.
func TestUnsetVariable(t *testing.T) {
	dir := write(t, "f.yaml", `mcpServers:
  hr: {url: "https://${HR_HOST}/mcp", headers: {A: "Bearer ${HR_TOKEN}"}, timeout: "${T}", session: shared, max_parallel: 3}
  files: {command: npx, args: [x]}
`)
	path := filepath.Join(dir, "f.yaml")
	cfg, err := config.Load([]string{path}, environment("HR_HOST", "hr.example.com"))
	if err != nil || len(cfg.Servers) != 2 {
		t.Fatalf("got %v, %v; want two servers", cfg.Servers, err)
	}
	const why = "mcpServers.hr.headers.A: environment variable HR_TOKEN is not set; set it or write ${HR_TOKEN:-default}"
	if hr := cfg.Servers[0]; !hr.Disabled || hr.Unusable != why || hr.MaxParallel != 3 {
		t.Errorf("got %+v, want it disabled because %s", hr, why)
	}
	if files := cfg.Servers[1]; files.Disabled || files.Unusable != "" {
		t.Errorf("got %+v, want the other server enabled", files)
	}
	if _, err := config.Check([]string{path}, environment("HR_HOST", "hr.example.com")); err == nil || err.Error() != path+":2:52: "+why {
		t.Errorf("Check: got %v, want the mistake", err)
	}
}
