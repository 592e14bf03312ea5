package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

func TestCluster(t *testing.T) {
	folder := write(t, "nats/c.creds", "x", "nats/ca.pem", "x", "settings.yaml",
		"cluster: {nats: {url: 'nats://me:hunter2@n1:4222', creds: nats/c.creds, tls: {ca: nats/ca.pem}}, advertise: 'http://r1:1'}")
	cfg := load(t, environment(), folder)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Cluster
	if !c.Enabled() || c.Name != "agenticnexus" || c.Replica != host || c.NATS.Creds != filepath.Join(folder, "nats", "c.creds") ||
		c.NATS.TLS.CA != filepath.Join(folder, "nats", "ca.pem") {
		t.Errorf("got %+v, want the defaults and absolute paths", c)
	}
	if secrets := cfg.Secrets(); !slices.Contains(secrets, "hunter2") {
		t.Errorf("secrets = %q, want the password of NATS", secrets)
	}
	if err := os.Remove(filepath.Join(folder, "nats", "ca.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Reload([]string{folder}, environment(), cfg); err != nil {
		t.Errorf("Reload without the file = %v, want nil, because it is not read again", err)
	}
}

// What tells replicas with one configuration apart is in the environment.
func TestClusterEnvironment(t *testing.T) {
	folder := write(t, "settings.yaml", "cluster: {nats: {url: 'nats://n1:4222'}, replica: file, advertise: 'http://file:1'}")
	key := strings.Repeat("5a", 32)
	c := load(t, environment("NEXUS_REPLICA", "r2", "NEXUS_ADVERTISE", "http://r2:8002/", "NEXUS_CLUSTER_KEY", key), folder).Cluster
	if c.Replica != "r2" || c.Advertise != "http://r2:8002" || c.Key.Reveal() != key {
		t.Errorf("got %+v, want the values of the environment", c)
	}
	for name, want := range map[string]string{
		"NEXUS_REPLICA":     `NEXUS_REPLICA: want letters, digits, ".", "-" and "_", starting with a letter or digit, got "a b"`,
		"NEXUS_CLUSTER_KEY": "NEXUS_CLUSTER_KEY is not 32 bytes in base64 or hex; openssl rand -hex 32 makes one",
		"NEXUS_ADVERTISE":   "NEXUS_ADVERTISE: want the URL at which other replicas reach this one, such as http://10.0.0.5:8002",
	} {
		if _, err := config.Load([]string{folder}, environment(name, "a b")); err == nil || err.Error() != want {
			t.Errorf("Load = %v, want %s", err, want)
		}
	}
	alone := load(t, environment("NEXUS_REPLICA", "r2", "NEXUS_ADVERTISE", "/"), write(t, "settings.yaml", "")).Cluster
	if alone.Enabled() || alone.Replica != "" {
		t.Errorf("without a cluster: got %+v, want nothing set", alone)
	}
}

func TestClusterAddress(t *testing.T) {
	for _, c := range []struct{ listen, advertise, want string }{
		{"10.0.0.5:8002", "", "http://10.0.0.5:8002"},
		{"[::1]:8002", "", "http://[::1]:8002"},
		{"r1.example.com:8002", "", "http://r1.example.com:8002"},
		{"0.0.0.0:8002", "https://r1", "https://r1"},
		{"0.0.0.0:8002", "", ""},
		{"[::]:8002", "", ""},
		{":8002", "", ""},
		{"127.0.0.1:0", "", ""},
	} {
		got, err := config.Cluster{Advertise: c.advertise}.Address(c.listen)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.listen) {
			t.Errorf("Address(%q) with %q = %q, %v; want %q", c.listen, c.advertise, got, err, c.want)
		}
	}
	open := write(t, "settings.yaml", "{listen: ':8002', auth: {anonymous: true}, cluster: {nats: {url: 'nats://n1:4222'}}}")
	if _, err := config.Check([]string{open}, environment()); err == nil || !strings.Contains(err.Error(), "cluster.advertise is needed") {
		t.Errorf("Check = %v, want advertise to be needed", err)
	}
}

func TestClusterOnLoopback(t *testing.T) {
	for nats, warned := range map[string]bool{
		"nats://n1:4222": true, "nats://127.0.0.1:4222": false, "tls://localhost:4222,tls://n2:4222": false,
	} {
		folder := write(t, "settings.yaml", "cluster: {nats: {url: '"+nats+"'}}")
		if warnings := load(t, environment(), folder).Warnings; (len(warnings) == 1) != warned {
			t.Errorf("NATS at %s, listening on loopback: got warnings %q, want one: %v", nats, warnings, warned)
		}
	}
}
