package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

const hr = "mcpServers:\n  hr: {url: \"http://127.0.0.1:1/mcp\", headers: {A: \"${A}\", B: \"${B}\", C: \"${C}\"}}\n"

// Variables come from the environment or, if it has none, from secrets.env beside the file.
func TestSecretsFile(t *testing.T) {
	folder := write(t, "servers.yaml", hr, "secrets.env", "# mine\nA=file\n B = x=y z \n\nC=\" \\\"c\\\"\"\n")
	if err := os.Chmod(filepath.Join(folder, "secrets.env"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, filepath.Join(folder, "servers.yaml")} {
		cfg := load(t, environment("A", "environment"), path)
		headers := cfg.Servers[0].Headers
		if headers["A"].Reveal() != "environment" || headers["B"].Reveal() != "x=y z" || headers["C"].Reveal() != ` "c"` {
			t.Errorf("got A %q, B %q, C %q", headers["A"].Reveal(), headers["B"].Reveal(), headers["C"].Reveal())
		}
		if len(cfg.Warnings) > 0 {
			t.Errorf("got warnings %q", cfg.Warnings)
		}
	}
	watcher := config.Watch([]string{folder}, config.Options{})
	if err := os.WriteFile(filepath.Join(folder, "secrets.env"), []byte("A=1\nB=2\nC=3\nD=4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if first, second := watcher.Changed(), watcher.Changed(); first || !second {
		t.Errorf("a change of secrets.env: got %t, %t, want it seen once it has settled", first, second)
	}
	if err := os.Chmod(filepath.Join(folder, "secrets.env"), 0o644); err != nil {
		t.Fatal(err)
	}
	if cfg := load(t, environment(), folder); len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "chmod 600") {
		t.Errorf("others can read it: got warnings %q", cfg.Warnings)
	}
}

func TestSecretsFile_Errors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"A=1\nB\n", "secrets.env:2:1: want NAME=value"},
		{"1A=1\n", "secrets.env:1:1: want NAME=value"},
		{"A=\"x\n", "secrets.env:1:1: A: the quotes do not match"},
	} {
		folder := write(t, "servers.yaml", "", "secrets.env", c.text)
		_, err := config.Load([]string{folder}, environment())
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// The folders of one configuration share their variables, so each has one value.
func TestSecretsFile_TwoFolders(t *testing.T) {
	a := write(t, "servers.yaml", hr, "secrets.env", "A=1\nB=2\n")
	for text, want := range map[string]string{
		"B=2\nC=3\n": "",
		"C=3\nB=x\n": "secrets.env: B has another value in the secrets.env of another folder; rename one",
	} {
		b := write(t, "settings.yaml", "listen: 127.0.0.1:1\n", "secrets.env", text)
		_, err := config.Load([]string{a, b}, environment())
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// What a difference must not show: the credentials of all servers, whatever the format of the file.
func TestCredentials(t *testing.T) {
	for name, text := range map[string]string{
		"a.json": `{"mcpServers": {"a": {"command": "x", "args": ["--token", "hunter2x", "y"], "env": {"API_KEY": "k"}}}}`,
		"a.yaml": "mcpServers:\n  a:\n    args:\n      - --token\n      - hunter2x\n    headers: {Authorization: Bearer k}\n",
	} {
		if got := config.Credentials(name, []byte(text)); !slices.Equal(got, []string{"hunter2x", "k"}) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := config.Credentials("a.yaml", []byte("a: [")); got != nil {
		t.Errorf("of a file with a mistake: got %q", got)
	}
}

// Credentials of new servers go to secrets.env; what only looks like a setting stays.
func TestImportHidesCredentials(t *testing.T) {
	t.Setenv("A_TAKEN_TOKEN", "of something else")
	folder := write(t, "client.json", `{"mcpServers": {
		"a": {"command": "x", "args": ["--mode", "fast", "--token", "t1", "--key=ghp_abcdefghijklmnopqrst"],
			"env": {"A_PASSWORD": "correct horse", "A_API_KEY": "k1", "MODE": "fast", "REF": "${env:TOKEN}", "TAKEN_TOKEN": "k2", "EMPTY_TOKEN": ""}},
		"b-1": {"url": "https://b.example.com/mcp?api_key=abcdefgh1234", "headers": {"Authorization": "Bearer b1", "X-Team": "red"}},
		"9": {"url": "https://c.example.com/mcp", "headers": {"X-API-Key": "\"q\""}}}}`,
		"secrets.env", "# mine\nB_1_AUTHORIZATION=other")
	if err := os.Chmod(filepath.Join(folder, "secrets.env"), 0o644); err != nil {
		t.Fatal(err)
	}
	done, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil {
		t.Fatal(err)
	}
	want := `mcpServers:
  a:
    command: x
    args:
      - --mode
      - fast
      - --token
      - ${A_ARG_4}
      - ${A_ARG_5}
    env:
      A_PASSWORD: ${A_PASSWORD}
      A_API_KEY: ${A_API_KEY}
      MODE: fast
      REF: ${TOKEN}
      TAKEN_TOKEN: ${A_TAKEN_TOKEN_2}
      EMPTY_TOKEN: ""
  b-1:
    url: ${B_1_URL}
    headers:
      Authorization: Bearer ${B_1_AUTHORIZATION_2}
      X-Team: red
  "9":
    url: https://c.example.com/mcp
    headers:
      X-API-Key: ${_9_X_API_KEY}
`
	if !strings.Contains(done.String(), "others on this machine can read it; run: chmod 600") {
		t.Errorf("summary %q lacks that others can read the credentials", done)
	}
	if got := read(t, done.File); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = "# mine\nB_1_AUTHORIZATION=other\nA_ARG_4=t1\nA_ARG_5=--key=ghp_abcdefghijklmnopqrst\nA_PASSWORD=correct horse\nA_API_KEY=k1\nA_TAKEN_TOKEN_2=k2\n" +
		"B_1_URL=https://b.example.com/mcp?api_key=abcdefgh1234\nB_1_AUTHORIZATION_2=b1\n_9_X_API_KEY=\"\\\"q\\\"\"\n"
	if got := read(t, filepath.Join(folder, "secrets.env")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	cfg := load(t, environment("TOKEN", "x"), folder)
	if got := cfg.Servers[2].Headers["X-API-Key"].Reveal(); got != `"q"` {
		t.Errorf("X-API-Key = %s", got)
	}
	again, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil || len(again.Added)+len(again.Others) > 0 || read(t, filepath.Join(folder, "secrets.env")) != want {
		t.Errorf("a second time: %+v, %v; want nothing to change", again, err)
	}
}

// A credential's variable gives no value to anything else: not to the router, a model, or another file.
func TestVariablesOfServers(t *testing.T) {
	t.Setenv("OUTSIDE_API_KEY", "same")
	for name, want := range map[string]string{
		"nexus": "SERVER_NEXUS_API_KEY", "nexus-a": "SERVER_NEXUS_A_API_KEY", "openai": "OPENAI_API_KEY_2",
		"anthropic": "ANTHROPIC_API_KEY_2", "llm": "LLM_API_KEY_2", "support": "SUPPORT_API_KEY_2",
		"outside": "OUTSIDE_API_KEY_2", "files-": "FILES_API_KEY", "b_-": "B_API_KEY",
	} {
		folder := write(t, "settings.yaml", "state: \"${LLM_API_KEY:-x}\"\nauth: {api_keys: [{name: a, env: SUPPORT_API_KEY}]}\n")
		text := `{"mcpServers": {"` + name + `": {"url": "http://h/mcp", "headers": {"API-Key": "same"}}}}`
		for range 2 { // again is nothing to do
			added, err := config.Add("client.json", []byte(text), folder)
			if err != nil || added.Renamed[name] != name || len(added.Others) > 0 {
				t.Fatalf("%s: got %+v, %v", name, added, err)
			}
			apply(t, added.Files...)
		}
		if got := read(t, filepath.Join(folder, "secrets.env")); got != want+"=same\n" {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		removal, err := config.Remove(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		if change, err := removal.Secrets(); err != nil || change == nil {
			t.Errorf("%s: got %v, %v, want its variable to go with it", name, change, err)
		}
	}
}

// A credential that was asked for is what was typed, whatever it has in braces. Only a whole reference is one.
func TestAddAsked(t *testing.T) {
	for value, want := range map[string]string{
		"pa${abc}x": "${A_API_KEY}", "${abc}x": "${A_API_KEY}", "pa${": "${A_API_KEY}", "${abc": "${A_API_KEY}",
		"pa ${abc}x": "${A_API_KEY}", "$${abc}": "${A_API_KEY}",
		"pa${env:abc}": "${A_API_KEY}", "${input:abc}": "${A_API_KEY}", "Bearer pa${abc}x": "Bearer ${A_API_KEY}",
		"${abc}": "${abc}", "${env:abc}": "${abc}", "${abc:-x}": "${abc:-x}", "Bearer ${abc}": "Bearer ${abc}",
		"ApiKey ${abc}": "ApiKey ${abc}",
	} {
		folder := write(t, "settings.yaml", "")
		text := `{"mcpServers": {"a": {"url": "http://h/mcp", "headers": {"API-Key": "` + value + `"}}}}`
		added, err := config.Add("client.json", []byte(text), folder, value)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		apply(t, added.Files...)
		if got := read(t, filepath.Join(folder, "servers.yaml")); !strings.HasSuffix(got, "API-Key: "+want+"\n") {
			t.Errorf("%s: got\n%s\nwant %s", value, got, want)
		}
		if want == "${A_API_KEY}" {
			if got := load(t, environment(), folder).Servers[0].Headers["API-Key"].Reveal(); got != value {
				t.Errorf("%s: it is read as %s", value, got)
			}
		}
	}
}

// "$${" in a client's file is no reference, and a credential with it is one like others.
func TestImportPlainBraces(t *testing.T) {
	folder := write(t, "client.json",
		`{"mcpServers": {"a": {"command": "x", "env": {"MODE": "$${env:A}", "NEXT": "$${input:B}", "API_KEY": "k$${c}"}}}}`)
	done, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil || len(done.Warnings) != 1 {
		t.Fatalf("got %+v, %v, want no warning but of secrets.env", done, err)
	}
	env := load(t, environment(), folder).Servers[0].Env
	if env["MODE"].Reveal() != "${env:A}" || env["NEXT"].Reveal() != "${input:B}" || env["API_KEY"].Reveal() != "k${c}" {
		t.Errorf("got %s", read(t, done.File))
	}
	if got := read(t, filepath.Join(folder, "secrets.env")); got != "A_API_KEY=k${c}\n" {
		t.Errorf("got %s", got)
	}
}
