package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/agenticnexus/agenticnexus/config"
)

// The router accepts the configuration in the manifests.
func TestKubernetesConfiguration(t *testing.T) {
	text, err := os.ReadFile("../deploy/kubernetes/nexus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Data map[string]string }
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &manifest); err != nil || len(manifest.Data) != 2 {
		t.Fatalf("the first manifest: got %v and %d files, want 2", err, len(manifest.Data))
	}
	folder := t.TempDir()
	for name, content := range manifest.Data {
		for _, file := range []string{"nats.creds", "ca.crt"} { // as if they were mounted
			content = strings.ReplaceAll(content, "/etc/nats/"+file, filepath.Join(folder, file))
			if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{
		"NEXUS_API_KEY": strings.Repeat("k", 32), "NEXUS_LISTEN": "0.0.0.0:8002", "NEXUS_ADVERTISE": "http://10.0.0.1:8002",
		"NEXUS_CLUSTER_KEY": strings.Repeat("0f", 32), "NEXUS_REPLICA": "nexus-0",
	}
	cfg, err := config.Load([]string{folder}, config.Options{Env: func(name string) (string, bool) {
		value, found := env[name]
		return value, found
	}})
	if err != nil || !cfg.Cluster.Enabled() || len(cfg.Servers) == 0 {
		t.Errorf("got %v and %d servers, want a cluster and servers", err, len(cfg.Servers))
	}
}
