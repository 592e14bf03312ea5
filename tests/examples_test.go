package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// example returns the path of an example of the documentation, and skips the test without the programs that it needs.
func example(t *testing.T, name string, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	path, err := filepath.Abs(filepath.Join("..", "docs", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExampleShell(t *testing.T) {
	t.Parallel()
	path := example(t, "ask.sh", "sh", "curl", "jq")
	r := serve(t, "", "--demo")
	out, err := exec.Command("sh", path, `What is 15% of 2500? And book a "flight" to Mars`, r.url+"/mcp").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "375") || !strings.Contains(string(out), "not done:") {
		t.Errorf("got %s, %v, want 375 and what is not done", out, err)
	}
	if out, err := exec.Command("sh", path, "", r.url+"/mcp").CombinedOutput(); err == nil || !strings.Contains(string(out), "error:") {
		t.Errorf("an empty question: got %s, %v, want an error", out, err)
	}
}

func TestExamplePython(t *testing.T) {
	t.Parallel()
	path := example(t, "ask.py", "python3")
	r := serve(t, "", "--demo")
	c := exec.Command("python3", path, r.url+"/mcp")
	c.Stdin = strings.NewReader("What is 15% of 2500?\n\nWho works in Lisbon?\n")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("got %v\n%s", err, out)
	}
	var tools []string
	for line := range strings.Lines(string(out)) {
		var found struct {
			Answer string
			Tools  []string
		}
		if err := json.Unmarshal([]byte(line), &found); err != nil || found.Answer == "" {
			t.Errorf("got %s, %v, want an answer", line, err)
		}
		tools = append(tools, found.Tools...)
	}
	if got := strings.Join(tools, " "); got != "calculate query_hr" {
		t.Errorf("got tools %s, want calculate and query_hr", got)
	}
	c = exec.Command("python3", path, r.url+"/nowhere")
	c.Stdin = strings.NewReader("What is 15% of 2500?\n")
	if out, err := c.Output(); err == nil || !strings.Contains(string(out), `"error"`) {
		t.Errorf("no router: got %s, %v, want an error", out, err)
	}
}

// The steps of the workflow run twice: first for the main branch, and then for a change.
func TestExampleWorkflow(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(example(t, "batch.yml", "bash"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(raw, &workflow); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "nexus")); err != nil {
		t.Fatal(err)
	}
	cases := "- {id: sum, query: What is 15% of 2500?, expect: {answer_contains: ['375']}}\n"
	if err := os.WriteFile(filepath.Join(dir, "cases.yaml"), []byte(cases), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, step := range workflow.Jobs["batch"].Steps {
			if step.Run == "" || step.Name == "Install" {
				continue
			}
			run := strings.ReplaceAll(step.Run, "p95>1.5x", "p95>1000x") // a busy machine is no regression
			c := exec.Command("bash", "-euo", "pipefail", "-c", run)
			c.Dir = dir
			c.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "NEXUS_FLAGS=--demo",
				"GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", step.Name, err, out)
			}
		}
		if err := os.Remove(filepath.Join(dir, "results.jsonl")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"report.html", "junit.xml", "summary.md", "compare.html"} {
		if size(filepath.Join(dir, name)) == 0 {
			t.Errorf("got no %s", name)
		}
	}
}
