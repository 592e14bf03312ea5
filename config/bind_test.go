package config_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

func TestCheckBind(t *testing.T) {
	loopback := []string{"127.0.0.1:8002", "127.8.9.10:0", "localhost:8002", "LocalHost:1", "[::1]:8002", "[::ffff:127.0.0.1]:1"}
	beyond := []string{":8002", "0.0.0.0:8002", "[::]:8002", "192.0.2.1:8002", "example.com:80", "localhost.example.com:80", "127.1:80", "[fe80::1%eth0]:80"}
	key := auth.Config{APIKeys: []auth.KeyConfig{{Name: "a", Key: "k"}}}
	for _, listen := range loopback {
		if err := config.CheckBind(listen, auth.Config{}); err != nil {
			t.Errorf("CheckBind(%q) without keys = %v, want nil", listen, err)
		}
	}
	for _, listen := range beyond {
		err := config.CheckBind(listen, auth.Config{})
		if err == nil || !strings.Contains(err.Error(), "NEXUS_API_KEY") || !strings.Contains(err.Error(), listen) {
			t.Errorf("CheckBind(%q) without keys = %v, want it refused with a way out", listen, err)
		}
		for _, access := range []auth.Config{key, {Anonymous: true}, {OAuth: &auth.OAuthConfig{}}} {
			if err := config.CheckBind(listen, access); err != nil {
				t.Errorf("CheckBind(%q, %+v) = %v, want nil", listen, access, err)
			}
		}
	}
	for _, listen := range []string{"", "8002", "localhost", "::1:8002", "localhost:http", "localhost:65536", "localhost:-1", "localhost:080", "a b:1", "-a:1"} {
		if err := config.CheckBind(listen, key); err == nil {
			t.Errorf("CheckBind(%q) = nil, want an error", listen)
		}
	}
}

func TestCheckRefusesOpenRouter(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := config.Check(nil, environment("NEXUS_LISTEN", "0.0.0.0:8002"))
	if err == nil || !strings.Contains(err.Error(), "refusing to listen on 0.0.0.0:8002") {
		t.Errorf("Check = %v, want it refused", err)
	}
	if _, err := config.Check(nil, environment("NEXUS_LISTEN", "0.0.0.0:8002", "NEXUS_API_KEY", "k")); err != nil {
		t.Errorf("Check with a key = %v, want nil", err)
	}
	if _, err := config.Check([]string{"missing"}, environment()); err == nil {
		t.Error("Check of a missing file = nil, want an error")
	}
}
