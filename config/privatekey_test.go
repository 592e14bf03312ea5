package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

// The path of a private key is relative to the file that names it. The key is read at the start only.
func TestPrivateKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := write(t, "keys/hr.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "servers.yaml",
		"mcpServers: {hr: {url: 'https://hr.example.com/mcp', auth: {flow: client_credentials, client_id: nexus, private_key: keys/hr.pem}}}")
	cfg := load(t, environment(), folder)
	file := filepath.Join(folder, "keys", "hr.pem")
	if got := cfg.Servers[0].Auth.PrivateKey; got != file {
		t.Errorf("got the private key %s, want %s", got, file)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Reload([]string{folder}, environment(), cfg); err != nil {
		t.Errorf("Reload without the file = %v, want nil", err)
	}
}
