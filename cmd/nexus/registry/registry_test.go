package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/registry"
)

// serve serves one page of a registry.
func serve(t testing.TB, page string) string {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v0.1/servers" || r.URL.Query().Get("version") != "latest" || r.URL.Query().Get("search") == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// search searches a registry that has one server.
func search(t testing.TB, server string) registry.Entry {
	t.Helper()
	found, err := registry.Search(t.Context(), serve(t, `{"servers":[{"server":`+server+`,"_meta":{}}]}`), []string{"x"}, 10)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one server", found, err)
	}
	return found[0]
}

func TestSearch(t *testing.T) {
	const official = `"_meta":{"io.modelcontextprotocol.registry/official":{"status":"%s"}}`
	var servers []string
	for _, s := range [][2]string{
		{`"name":"com.example/weather","description":"Weather\u001b[31m of\u200b\n the day","version":"1.0.2"`, "active"},
		{`"name":"com.example/weather","description":"the day, older","version":"1.0.1"`, "active"},
		{`"name":"com.example/weather-old","title":"Day","version":"0.1"`, "deprecated"},
		{`"name":"com.example/weather-gone","description":"day"`, "deleted"},
		{`"name":"com.example/weather-night","description":"of the night"`, "active"},
	} {
		servers = append(servers, fmt.Sprintf(`{"server":{%s},`+official+`}`, s[0], s[1]))
	}
	address := serve(t, `{"servers":[`+strings.Join(servers, ",")+`],"metadata":{"nextCursor":"x"}}`)
	found, err := registry.Search(t.Context(), address+"/v0.1", []string{"Weather day"}, 10)
	if err != nil || len(found) != 2 {
		t.Fatalf("got %+v, %v, want two servers", found, err)
	}
	if got := found[0]; got.Description != "Weather[31m of the day" || got.Version != "1.0.2" || got.Deprecated {
		t.Errorf("got %+v, want it clean", got)
	}
	if !found[1].Deprecated {
		t.Errorf("got %+v, want it deprecated", found[1])
	}
	if found, err := registry.Search(t.Context(), address, []string{"weather"}, 1); err != nil || len(found) != 1 {
		t.Errorf("got %d servers, %v, want one", len(found), err)
	}
}

func TestSearchErrors(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, c := range map[string]struct{ address, want string }{
		"no address":   {"ftp://x", "want an address such as https://registry"},
		"out of reach": {closed.URL, "cannot be reached: dial tcp"},
		"no registry":  {serve(t, `{}`), "gives another answer"},
		"no JSON":      {serve(t, `<html>`), "gives another answer"},
		"another path": {serve(t, `{}`) + "/other", "answers 404 Not Found; is it a registry"},
		"endless":      {serve(t, `{"servers":[`+strings.Repeat(" ", 9<<20)), "answers more than 8388608 bytes"},
	} {
		_, err := registry.Search(t.Context(), c.address, []string{"x"}, 10)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := registry.Search(ctx, closed.URL, []string{"x"}, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestAdd(t *testing.T) {
	for _, c := range []struct{ name, server, line, needs string }{
		{
			"npm", `"packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@a/b","version":"1.0.2","transport":{"type":"stdio"},
				"runtimeArguments":[{"type":"named","name":"--registry","value":"http://evil"}],
				"packageArguments":[{"type":"positional","valueHint":"target dir","isRequired":true,"description":"Where"},
					{"type":"named","name":"--port","value":"80"},{"type":"positional","value":"a b"},{"type":"named","name":"--x","description":"optional"}],
				"environmentVariables":[{"name":"KEY","isRequired":true,"isSecret":true,"description":"The key"},{"name":"MODE","value":"fast"},
					{"name":"SIZE","isRequired":true,"default":"8"},{"name":"SECOND","isSecret":true},{"name":"DEBUG"}]}]`,
			`nexus server add y-x --env KEY --env MODE=fast --env SIZE=8 -- npx -y "@a/b@1.0.2" TARGET_DIR --port 80 "a b"`,
			"asks for KEY: The key|may have --env SECOND|replace TARGET_DIR: Where",
		},
		{"pypi", `"packages":[{"registryType":"pypi","identifier":"a-b","version":"1.0"}]`, `nexus server add y-x -- uvx "a-b@1.0"`, ""},
		{
			"oci", `"packages":[{"registryType":"oci","identifier":"ghcr.io/a/b:1.0","version":"1.0","environmentVariables":[{"name":"KEY","isRequired":true}]}]`,
			`nexus server add y-x --env KEY -- docker run -i --rm -e KEY ghcr.io/a/b:1.0`, "asks for KEY",
		},
		{
			"oci without a tag", `"packages":[{"registryType":"oci","registryBaseUrl":"https://docker.io","identifier":"a/b","version":"1.0"}]`,
			`nexus server add y-x -- docker run -i --rm a/b:1.0`, "",
		},
		{
			"address", `"remotes":[{"type":"sse","url":"https://h/events?a=1&b=2","headers":[{"name":"Authorization","isRequired":true,"isSecret":true,"value":"Bearer {key}","description":"Key"},{"name":"X-Odd"}]}]`,
			`nexus server add y-x --url "https://h/events?a=1&b=2" --type sse --header Authorization`, "asks for Authorization: Key: Bearer {key}",
		},
		{"address that ends in sse", `"remotes":[{"type":"streamable-http","url":"https://h/sse"}]`, `nexus server add y-x --url https://h/sse --type http`, ""},
		{
			"another kind first", `"packages":[{"registryType":"mcpb","identifier":"https://h/x.mcpb"},{"registryType":"npm","identifier":"b","transport":{"type":"sse","url":"{u}"}}],
				"remotes":[{"type":"streamable-http","url":"https://{tenant}.h/mcp"},{"type":"streamable-http","url":"https://h/mcp"}]`,
			`nexus server add y-x --url https://h/mcp`, "",
		},
		{"package of another registry", `"packages":[{"registryType":"npm","registryBaseUrl":"https://evil.example","identifier":"b"}]`, "", "no command for it"},
		{
			"too many values", `"packages":[{"registryType":"npm","identifier":"b","environmentVariables":[` +
				strings.Repeat(`{"name":"A","isRequired":true},`, 20) + `{"name":"B","isRequired":true}]}]`, "", "it needs more than 20 values; see",
		},
		{
			"too long", `"packages":[{"registryType":"npm","identifier":"b","packageArguments":[{"value":"` + strings.Repeat("x", 2048) + `"}]}]`,
			"", "its command would have more than 2048 bytes; see",
		},
		{"nothing", `"description":"d"`, "", "no command for it"},
	} {
		got := search(t, `{"name":"io.github.x/y_x",`+c.server+`}`).Add()
		if got.Line != c.line || !strings.Contains(strings.Join(got.Needs, "|"), c.needs) || c.needs == "" && len(got.Needs) > 0 {
			t.Errorf("%s: got\n%s\n%q, want\n%s\n%s", c.name, got.Line, got.Needs, c.line, c.needs)
		}
	}
}

// No command sets a variable that changes what is run. One that is not needed is left out.
func TestAddSteering(t *testing.T) {
	for name, steers := range map[string]bool{
		"DOCKER_HOST": true, "LD_PRELOAD": true, "DYLD_INSERT_LIBRARIES": true, "NODE_OPTIONS": true, "npm_config_registry": true,
		"NPM_CONFIG_REGISTRY": true, "UV_INDEX_URL": true, "PIP_INDEX_URL": true, "PYTHONPATH": true, "PATH": true, "Path": true,
		"HOME": true, "HTTPS_PROXY": true, "all_proxy": true, "JAVA_TOOL_OPTIONS": true, "_JAVA_OPTIONS": true,
		"NODE_ENV": false, "API_KEY": false, "HOME_URL": false, "FILE_PATH": false, "DOCKERHUB_TOKEN": false, "PROXY_KEY": false,
	} {
		for _, kind := range []string{"npm", "pypi", "oci"} {
			for more, sets := range map[string]bool{`"isRequired":true`: true, `"value":"1"`: true, `"isSecret":true`: false} {
				got := search(t, `{"name":"x/y","packages":[{"registryType":"`+kind+`","identifier":"b","environmentVariables":[{"name":"`+
					name+`",`+more+`}]}]}`).Add()
				said := strings.Contains(strings.Join(got.Needs, "|"), "it sets "+name)
				if (got.Line == "") != (steers && sets) || said != (steers && sets) || steers && strings.Contains(got.Line, name) {
					t.Errorf("%s %s %s: got %+v", kind, name, more, got)
				}
			}
		}
	}
	got := search(t, `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","environmentVariables":[{"name":"PATH","isRequired":true}]}],
		"remotes":[{"type":"streamable-http","url":"https://h/mcp"}]}`).Add()
	if got.Line != "nexus server add y --url https://h/mcp" {
		t.Errorf("got %+v, want the address", got)
	}
}

// A redirect from https to http could be to anybody.
func TestSearchRedirects(t *testing.T) {
	plain := serve(t, `{"servers":[]}`)
	to := plain
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(web.Close)
	usual := http.DefaultTransport
	http.DefaultTransport = web.Client().Transport // trusts it
	t.Cleanup(func() { http.DefaultTransport = usual })
	for _, c := range []struct{ to, want string }{{plain, "redirects from https to http"}, {web.URL, "redirects more than 5 times"}} {
		to = c.to
		if found, err := registry.Search(t.Context(), web.URL, []string{"x"}, 10); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %s: got %v, %v, want that it %s", c.to, found, err, c.want)
		}
	}
}

// hostile texts try to leave their place in a command line.
var hostile = []string{
	"a'b", `a"b`, "a`id`", "$(id)", "${HOME}", `a\`, `\"; id; "`, "a;id", "a&&id", "a|id", "a\nid", "a\rid", "a>b", "!!", "%PATH%", "^a", "~", "*", "=ls",
	"-rf", "--config", "--yes", "--", "@x", "{a,b}", "a b", "", "é", "\u202eabc", "\x00", "#x", "(id)", "<(id)", "--registry=http://evil",
}

// TestAddHostile: what a registry says stays one word of the shell, and no word of ours changes its meaning.
func TestAddHostile(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	quote := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }
	for _, text := range hostile {
		q := quote(text)
		var lines, places []string
		for place, server := range map[string]string{
			"name":          `{"name":` + quote("x/"+text+"y") + `,"packages":[{"registryType":"npm","identifier":"b"}]}`,
			"npm":           `{"name":"x/y","packages":[{"registryType":"npm","identifier":` + q + `}]}`,
			"pypi":          `{"name":"x/y","packages":[{"registryType":"pypi","identifier":` + q + `}]}`,
			"oci":           `{"name":"x/y","packages":[{"registryType":"oci","identifier":` + q + `}]}`,
			"version":       `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","version":` + q + `}]}`,
			"variable":      `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","environmentVariables":[{"name":` + q + `,"isRequired":true}]}]}`,
			"value":         `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","environmentVariables":[{"name":"A","value":` + q + `}]}]}`,
			"argument":      `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","packageArguments":[{"type":"positional","value":` + q + `}]}]}`,
			"named":         `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","packageArguments":[{"type":"named","name":` + q + `,"value":"1"}]}]}`,
			"hint":          `{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","packageArguments":[{"type":"positional","isRequired":true,"valueHint":` + q + `}]}]}`,
			"runtime":       `{"name":"x/y","packages":[{"registryType":"oci","identifier":"b","runtimeArguments":[{"type":"positional","value":` + q + `}]}]}`,
			"url":           `{"name":"x/y","remotes":[{"type":"sse","url":` + quote("https://h/"+text) + `}]}`,
			"whole url":     `{"name":"x/y","remotes":[{"type":"sse","url":` + q + `}]}`,
			"header":        `{"name":"x/y","remotes":[{"type":"sse","url":"https://h/sse","headers":[{"name":` + q + `,"isRequired":true}]}]}`,
			"header, value": `{"name":"x/y","remotes":[{"type":"sse","url":"https://h/sse","headers":[{"name":"A","isRequired":true,"value":` + q + `}]}]}`,
		} {
			if c := search(t, server).Add(); c.Line != "" {
				lines, places = append(lines, c.Line), append(places, place)
			}
		}
		script := `set -f; nexus() { printf '%s\0' "$@"; printf '\n\0'; }; ` + strings.Join(lines, "\n")
		out, err := exec.Command(bash, "-c", script).Output()
		given := strings.Split(strings.TrimSuffix(string(out), "\x00\n\x00"), "\x00\n\x00")
		if err != nil || len(given) != len(lines) {
			t.Errorf("%q: %s: %v, %q", text, script, err, given)
			continue
		}
		for i, words := range given {
			checkWords(t, places[i], text, lines[i], strings.Split(words, "\x00"))
		}
	}
}

var (
	program = regexp.MustCompile(`^[A-Za-z0-9@]`)
	own     = []string{"--env", "--url", "--type", "--header", "--"}
)

// checkWords checks the words that the program would be given.
func checkWords(t *testing.T, place, text, line string, words []string) {
	t.Helper()
	if len(words) < 3 || words[0] != "server" || words[1] != "add" || !program.MatchString(words[2]) {
		t.Errorf("%s %q: %s has the words %q", place, text, line, words)
		return
	}
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	for _, word := range words[3:end] {
		if strings.HasPrefix(word, "-") && !slices.Contains(own, word) {
			t.Errorf("%s %q: %s gives nexus %q", place, text, line, word)
		}
	}
	if end == len(words) {
		return
	}
	start := map[string]int{"npx": 2, "uvx": 1, "docker": 4}[words[end+1]]
	if at := end + 1 + start; start == 0 || at >= len(words) || !program.MatchString(words[at]) {
		t.Errorf("%s %q: %s runs %q", place, text, line, words[end+1:])
	}
}

// FuzzAdd: a line has only characters that mean themselves in every shell, in double quotes if need be.
func FuzzAdd(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	safe := regexp.MustCompile(`^(?:[A-Za-z0-9./:_=+-]+|"[A-Za-z0-9 ./:_=+@?&,;()<>{}|*#~-]*")(?: (?:[A-Za-z0-9./:_=+-]+|"[A-Za-z0-9 ./:_=+@?&,;()<>{}|*#~-]*"))*$`)
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Skip(err)
		}
		q := string(raw)
		for _, server := range []string{
			`{"name":"x/y","packages":[{"registryType":"npm","identifier":"b","environmentVariables":[{"name":"A","value":` + q + `}],"packageArguments":[{"value":` + q + `}]}]}`,
			`{"name":"x/y","packages":[{"registryType":"oci","identifier":` + q + `,"version":` + q + `}]}`,
			`{"name":"x/y","remotes":[{"type":` + q + `,"url":` + q + `}]}`,
		} {
			if c := search(t, server).Add(); c.Line != "" && !safe.MatchString(c.Line) {
				t.Errorf("%q: got %s", text, c.Line)
			}
		}
	})
}
