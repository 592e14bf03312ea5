package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const extension = "extension" // instead of a version

// The suite's scenarios of authorization pass with a person who runs the commands that the router names, each at the
// last version that has it. Not in the list are those of extensions that the router does not have: enterprise-managed
// authorization (the router has no identity provider of its own), DPoP and workload identity federation.
func TestAuthConformance(t *testing.T) {
	t.Parallel()
	c, env := others(t), driverEnv(t)
	for version, scenarios := range map[string][]string{
		"2025-03-26": {"2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"},
		"2026-07-28": {
			"metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "scope-from-www-authenticate",
			"scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit",
			"token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration",
			"resource-mismatch", "offline-access-scope", "offline-access-not-supported", "authorization-server-migration",
			"iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected",
			"iss-normalized", "metadata-issuer-mismatch",
		},
		extension: {"client-credentials-basic", "client-credentials-jwt"},
	} {
		for _, scenario := range scenarios {
			t.Run(version+" "+scenario, func(t *testing.T) {
				t.Parallel()
				if got, out, err := c.clientConformance(t, version, "auth/"+scenario, env); err != nil || got.failed > 0 || got.passed == 0 {
					t.Errorf("got %d passed and %d failed (%v), want none failed:\n%s", got.passed, got.failed, err, out)
				}
			})
		}
	}
}

// loginAdvice finds the command that nexus asks a person to run.
var loginAdvice = regexp.MustCompile(`nexus (auth login suite[\w:. -]*)`)

// authFor returns the auth member of the suite's server, with what the suite says about the client.
func authFor(scenario, about, dir string) (string, error) {
	if !strings.HasPrefix(scenario, "auth/") {
		return "", nil
	}
	auth := map[string]any{}
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
	}
	if about != "" {
		if err := json.Unmarshal([]byte(about), &client); err != nil {
			return "", err
		}
	}
	if scenario == "auth/basic-cimd" {
		client.ID = "https://conformance-test.local/client-metadata.json"
	}
	if client.ID != "" {
		auth["client_id"] = client.ID
	}
	if client.Secret != "" {
		auth["client_secret"] = client.Secret
	}
	if client.Key != "" {
		file := filepath.Join(dir, "key.pem")
		if err := os.WriteFile(file, []byte(client.Key), 0o600); err != nil {
			return "", err
		}
		auth["private_key"] = file
	}
	if strings.HasPrefix(scenario, "auth/client-credentials-") {
		auth["flow"] = "client_credentials"
	}
	text, err := json.Marshal(auth)
	return ", auth: " + string(text), err
}
