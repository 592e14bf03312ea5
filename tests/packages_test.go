package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite generated files: deploy/kubernetes/nexus.yaml, docs/compatibility.md")

// What packages and images start are commands and options of the program.
func TestPackagedCommands(t *testing.T) {
	started := regexp.MustCompile(`(?m)^\s*(?:Exec\w+=\S+/nexus|CMD \["/nexus",|CMD \[|command: \[|args: \[|run \[opt_bin/"nexus",) *(.*?)\]?$`)
	option := regexp.MustCompile(`^--[a-z-]+`)
	for _, file := range []string{"Dockerfile", "deploy/package/agenticnexus.service", "deploy/compose.yaml",
		"deploy/observability/compose.yaml", "deploy/kubernetes/nexus.yaml", "deploy/homebrew/agenticnexus.rb"} {
		found := 0
		for _, line := range started.FindAllStringSubmatch(read(t, file), -1) {
			words := strings.Fields(strings.NewReplacer(`"`, "", ",", " ").Replace(line[1]))
			if words[0] != "serve" && words[0] != "config" && words[0] != "health" {
				continue // of another program
			}
			found++
			var command, options []string
			for _, word := range words {
				switch {
				case option.MatchString(word):
					options = append(options, option.FindString(word))
				case len(options) == 0:
					command = append(command, word)
				}
			}
			help, err := exec.Command(program, append(command, "--help")...).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", file, words, err, help)
			}
			for _, o := range options {
				if !regexp.MustCompile(o + `\b`).Match(help) {
					t.Errorf("%s: %s has no option %s", file, command, o)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s starts nothing", file)
		}
	}
}

// Variables that packages and images set are those that the program reads.
func TestPackagedVariables(t *testing.T) {
	known := read(t, "config/load.go") + read(t, "config/cluster.go") + read(t, "cmd/nexus/remote.go")
	variable := regexp.MustCompile(`NEXUS_[A-Z_]+`)
	check := func(file string) {
		for _, name := range variable.FindAllString(read(t, file), -1) {
			if !strings.Contains(known, name) {
				t.Errorf("%s: the program does not read %s", file, name)
			}
		}
	}
	check("Dockerfile")
	err := filepath.WalkDir("../deploy", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			check(strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The packages for Linux have the files that the service uses, and a configuration that the program accepts.
func TestPackagedService(t *testing.T) {
	var packages struct {
		Contents []struct{ Src, Dst string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/package/nfpm.yaml")), &packages); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range packages.Contents {
		has[c.Dst] = true
		if strings.HasPrefix(c.Src, "dist/") || strings.HasPrefix(c.Src, "${") || c.Src == "" {
			continue // made for the release
		}
		if _, err := os.Stat(filepath.Join("..", c.Src)); err != nil {
			t.Errorf("nfpm.yaml: %v", err)
		}
	}
	unit := read(t, "deploy/package/agenticnexus.service")
	paths := regexp.MustCompile(`/etc/agenticnexus\S*`).FindAllString(unit, -1)
	for _, exec := range regexp.MustCompile(`(?m)^Exec\w+=(\S+)`).FindAllStringSubmatch(unit, -1) {
		paths = append(paths, exec[1])
	}
	for _, path := range paths {
		if !has[path] && path != "/bin/sh" { // every system has that
			t.Errorf("the unit uses %s, which no package has", path)
		}
	}
	const state = "state: /var/lib/agenticnexus"
	for _, want := range []string{"StateDirectory=agenticnexus\n", "WorkingDirectory=/var/lib/agenticnexus\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no line %s", want)
		}
	}
	folder := filepath.Join(t.TempDir(), "config")
	for _, args := range [][]string{{"config", "init", folder}, {"config", "check", "--config", folder}} {
		if out, err := command(t.TempDir(), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		file := filepath.Join(folder, "settings.yaml")
		settings, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// As deploy/release.sh does it.
		changed := bytes.Replace(settings, []byte("\n# state: \"\"\n"), []byte("\n"+state+"\n"), 1)
		if err := os.WriteFile(file, changed, 0o600); err != nil || !bytes.Contains(changed, []byte(state)) {
			t.Errorf("got %v, want settings with a line for the state folder", err)
		}
	}
	if !strings.Contains(read(t, "deploy/release.sh"), `s|^# state: ""|`+state+"|") {
		t.Error("deploy/release.sh sets another state folder")
	}
}

// The manifests are what the chart makes of its values, and both have the version of the program.
func TestChart(t *testing.T) {
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	var values map[string]any
	for file, into := range map[string]any{"Chart.yaml": &chart, "values.yaml": &values} {
		if err := yaml.Unmarshal([]byte(read(t, "deploy/helm/agenticnexus/"+file)), into); err != nil {
			t.Fatal(err)
		}
	}
	values["servers"] = map[string]any{"hr": map[string]string{"url": "http://hr.tools.svc:8080/mcp"}} // an example
	version, err := exec.Command(program, "version").Output()
	if got := "nexus " + chart.Version; err != nil || got != strings.TrimSpace(string(version)) || chart.AppVersion != chart.Version {
		t.Errorf("Chart.yaml: got %+v, want the version of %s, %v", chart, version, err)
	}
	// Those functions of Helm that the template uses.
	functions := template.FuncMap{
		"toJson": func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
		"fail":   func(text string) (string, error) { return "", errors.New(text) },
		"int":    func(v any) (n int, err error) { _, err = fmt.Sscan(fmt.Sprint(v), &n); return n, err },
		"add": func(values ...any) (sum int, err error) {
			for _, v := range values {
				n := 0
				if _, err := fmt.Sscan(fmt.Sprint(v), &n); err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		},
	}
	parsed, err := template.New("nexus").Funcs(functions).Parse(read(t, "deploy/helm/agenticnexus/templates/nexus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var made strings.Builder
	made.WriteString("# Made from deploy/helm/agenticnexus by: go test ./tests -run TestChart -update")
	data := map[string]any{"Values": values, "Release": map[string]string{"Name": "nexus"}, "Chart": chart}
	if err := parsed.Execute(&made, data); err != nil {
		t.Fatal(err)
	}
	const file = "deploy/kubernetes/nexus.yaml"
	if *update {
		if err := os.WriteFile(filepath.Join("..", file), []byte(made.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, file) != made.String() {
		t.Errorf("%s is not what the chart makes: change the chart, then run the command in its first line", file)
	}
}

// read returns the text of a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
