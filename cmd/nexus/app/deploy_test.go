package app_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// deployed is the folder of what is ready-made for operators.
const deployed = "../../../deploy/observability/"

// checkDeployment checks that the files of the folder are valid, and that alerts and the dashboard ask for nothing but
// metrics and labels of a router.
func checkDeployment(t *testing.T, metrics string) {
	t.Helper()
	known := map[string]bool{"job": true, "instance": true}
	word := regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`)
	for _, name := range word.FindAllString(metrics, -1) {
		known[name] = true
	}
	check := func(file, query string) {
		for _, name := range word.FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(query, ""), -1) {
			if !known[name] && name != "histogram_quantile" {
				t.Errorf("%s: %s is no metric or label, in %s", file, name, query)
			}
		}
	}

	for _, file := range []string{"compose.yaml", "collector.yaml", "prometheus.yml", "alerts.yml", "grafana/datasources.yaml", "grafana/dashboards.yaml"} {
		var content map[string]any
		text, err := os.ReadFile(deployed + file)
		if err == nil {
			err = yaml.Unmarshal(text, &content)
		}
		if err != nil || len(content) == 0 {
			t.Errorf("%s: got %v and %d settings, want a mapping", file, err, len(content))
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, _ := os.ReadFile(deployed + "alerts.yml")
	if err := yaml.Unmarshal(text, &alerts); err != nil || len(alerts.Groups) == 0 {
		t.Fatalf("alerts: got %v and %d groups", err, len(alerts.Groups))
	}
	guide, _ := os.ReadFile("../../../docs/operations.md")
	for _, rule := range alerts.Groups[0].Rules {
		check("alerts.yml", rule.Expr)
		if !strings.Contains(string(guide), "`"+rule.Alert+"`") {
			t.Errorf("docs/operations.md says nothing about the alert %s", rule.Alert)
		}
	}

	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	file := "grafana/dashboards/nexus.json"
	text, _ = os.ReadFile(deployed + file)
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) < 10 {
		t.Fatalf("%s: got %v and %d panels", file, err, len(dashboard.Panels))
	}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("%s: panel %d %q: want an id and a title of its own", file, p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			check(file, strings.NewReplacer("$__rate_interval", "5m", "$__range", "5m").Replace(target.Expr))
		}
	}
}

// promtool finds nothing wrong with the rules and the configuration. It is in Debian's package prometheus.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	folder, err := filepath.Abs(deployed)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", folder + "/alerts.yml"}, {"check", "config", "--syntax-only", folder + "/prometheus.yml"}} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
