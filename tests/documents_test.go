package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// documents returns the text of each page of the documentation by its path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, file := range append(files, "../README.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		name := strings.TrimPrefix(filepath.ToSlash(file), "../")
		text[name] = read(t, name)
	}
	return text
}

// documentServer starts a router of the demo servers, which is a server, too.
const documentServer = `{command: bin/nexus, args: [stdio, --demo, --profile, proxy]}`

// documentServers are the servers that examples of settings and commands name.
const documentServers = "mcpServers:\n" +
	"  hr: " + documentServer + "\n  billing: " + documentServer + "\n  mail: " + documentServer + "\n  search: " + documentServer + "\n"

// documentVariables are the variables that examples of the documentation name.
var documentVariables = []string{"HR_TOKEN=x", "OPENAI_API_KEY=x", "ANTHROPIC_API_KEY=x", "STOCK_SECRET=x",
	"CI_KEY=nexus-0123456789abcdef0123456789abcdef", "NEXUS_CLUSTER_KEY=" + strings.Repeat("0f", 32), "NEXUS_ADVERTISE=http://10.0.0.1:8002"}

// documentFolder returns a folder with what the examples of the documentation speak of.
func documentFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	examples, err := filepath.Abs("../docs/examples")
	if err := errors.Join(err, os.MkdirAll(filepath.Join(dir, "bin"), 0o700), os.MkdirAll(filepath.Join(dir, "docs"), 0o700),
		os.Symlink(program, filepath.Join(dir, "bin", "nexus")), os.Symlink(examples, filepath.Join(dir, "docs", "examples"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The settings and servers in the documentation are valid.
func TestDocumentedConfiguration(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	found := 0
	for page, text := range documents(t) {
		for _, match := range block.FindAllStringSubmatch(text, -1) {
			settings := strings.ReplaceAll(match[1], "sha256: …", "sha256: "+strings.Repeat("0", 64))
			files := map[string]string{"config/settings.yaml": settings, "config/servers.yaml": documentServers,
				"config/hr.key": "nexus-fedcba9876543210fedcba9876543210", "config/nats.creds": "", "config/ca.crt": ""}
			switch {
			case strings.HasPrefix(settings, "- ") || strings.Contains(settings, "\n- id:") || strings.HasPrefix(settings, "static_resources:"):
				continue // cases of a batch, and another program
			case strings.Contains(settings, "mcpServers:"):
				files["config/servers.yaml"] = settings
				delete(files, "config/settings.yaml")
			}
			found++
			cmd := command(documentFolder(t, files), "config", "check", "--config", "config")
			cmd.Env = append(cmd.Env, documentVariables...)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "warnings: none") {
				t.Errorf("%s: %v\n%s\n%s", page, err, out, settings)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d examples, want 10 or more", found)
	}
}

// Commands and options that the documentation names exist.
func TestDocumentedOptions(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("(?m)`(?:bin/)?nexus ([^`]*)`|^ {4}(?:[A-Z_]+=\\S+ )*(?:bin/)?nexus ([^#\n]*)")
	word, option := regexp.MustCompile(`^[a-z]+$`), regexp.MustCompile(`^--[a-z-]+`)
	usage := manuals(t)
	for page, text := range documents(t) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(match[1] + match[2])
			var command []string
			for _, w := range words {
				if !word.MatchString(w) || usage[strings.Join(append(slices.Clone(command), w), " ")] == "" {
					break
				}
				command = append(command, w)
			}
			if len(command) == 0 {
				t.Errorf("%s: %s is no command", page, words)
				continue
			}
			for _, w := range words {
				if o := option.FindString(w); o != "" && o != "--help" && !regexp.MustCompile(o+`\b`).MatchString(usage[strings.Join(command, " ")]) {
					t.Errorf("%s: nexus %s has no option %s", page, strings.Join(command, " "), o)
				}
			}
		}
	}
}

// manuals returns the manual of each command, from one start of the program.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(program, "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "nexus-*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("got the pages %v, %v", pages, err)
	}
	of := map[string]string{}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(page), "nexus-"), ".1")
		command := own
		for line := range strings.Lines(strings.ReplaceAll(string(raw), `\-`, "-")) {
			if strings.HasPrefix(line, ".SH ") {
				command = own
			}
			if sub, found := strings.CutPrefix(line, ".SS nexus "); found {
				command = strings.TrimSpace(sub)
			}
			of[command] += line
		}
	}
	return of
}

// Commands of the program in the documentation do what the page says, in the order of the page.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	part := regexp.MustCompile("(?m)^```yaml\n# (cases.yaml)\n((?s:.*?))^```|^ {4}((?:[A-Z_]+=\\S+ )*(?:bin/)?nexus .*(?:\\\\\n.*)*)$")
	code := regexp.MustCompile(`# exits with (\d)`)
	elsewhere := regexp.MustCompile(`nexus auth login|nexus server add|nexus serve.*&$|--record|--replay|=…`) // tests of their own
	client := regexp.MustCompile(`nexus client (?:add|import|remove) \S+`)
	router := regexp.MustCompile(`(?:bin/)?nexus serve\b`)
	remote := serve(t, "", "--demo")
	address := strings.NewReplacer("https://router.example.com", remote.url, "http://127.0.0.1:8002", remote.url, "/etc/nexus", "config")
	run := func(t *testing.T, page string, parts [][]string) {
		files := map[string]string{
			"config/servers.yaml": documentServers, "config/settings.yaml": "", "other.yaml": "execution: {max_parallel: 2}\n",
			"FILE":                  `{"mcpServers": {"hr": {"command": "bin/nexus", "args": ["stdio", "--demo"]}}}`,
			"CASES":                 "- {id: lisbon, query: Who works in Lisbon?}\n",
			"home/.cursor/mcp.json": `{"mcpServers": {"docs": {"command": "bin/nexus", "args": ["stdio", "--demo"]}}}`,
			"home/.config/Claude/claude_desktop_config.json": "{}",
		}
		if page == "README.md" { // it begins without a configuration
			delete(files, "config/servers.yaml")
			delete(files, "config/settings.yaml")
		}
		dir := documentFolder(t, files)
		for _, match := range parts {
			text := match[3]
			switch {
			case match[1] != "":
				if err := os.WriteFile(filepath.Join(dir, match[1]), []byte(match[2]), 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			case elsewhere.MatchString(text):
				continue
			}
			want := "0"
			if c := code.FindStringSubmatch(text); c != nil {
				want = c[1]
			}
			text = client.ReplaceAllString(address.Replace(text), "$0 --yes")
			if router.MatchString(text) { // until it listens
				text, _, _ = strings.Cut(text, " #")
				text = ">log\n" + router.ReplaceAllString(text, "$0 --listen 127.0.0.1:0") + " 2>log &\n" + // not that of another
					"until grep -q listening log || ! kill -0 $!; do sleep 0.1; done; kill $!; wait $! || { cat log; false; }"
			}
			cmd := exec.Command("bash", "-c", text+"\n[ $? = "+want+" ]")
			cmd.Dir = dir
			cmd.Env = append(nexustest.Env(filepath.Join(dir, "home")), documentVariables...)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", text, err, out)
			}
		}
	}
	found := 0
	for page, text := range documents(t) {
		parts := part.FindAllStringSubmatch(text, -1)
		found += len(parts)
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			run(t, page, parts)
		})
	}
	if found < 20 {
		t.Errorf("found %d commands, want 20 or more", found)
	}
}
