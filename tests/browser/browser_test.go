package browser_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/browser"
)

const clean = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Clean</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><style>@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } }</style>
</head><body><main><h1>Hello</h1><label>Name <input id="name"></label><button id="greet">Greet</button><p id="out"></p></main>
<script>greet.onclick = () => setTimeout(() => { out.textContent = "Hello " + document.getElementById("name").value }, 50)</script></body></html>`

const faulty = `<!doctype html><html><head><title>Faulty</title></head><body>
<img src="http://elsewhere.test/pixel.png"><p style="color:#aaa;background:#bbb">faint</p>
<script nonce="good">console.error("wrong", 7); setTimeout(() => { throw new Error("thrown") })</script>
<script>document.title = "refused"</script></body></html>`

func serve(t *testing.T, page, policy string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", policy)
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestPage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NEXUS_ARTIFACTS", dir)
	b := browser.Start(t)
	headers := map[string]string{"Authorization": browser.BasicAuth("ann", "secret")}
	for _, row := range []struct {
		name    string
		options browser.Options
		width   int
		color   string
	}{
		{"light", browser.Options{Headers: headers}, 1280, "rgb(0, 0, 0)"},
		{"dark phone", browser.Options{Headers: headers, Dark: true, Phone: true}, 390, "rgb(255, 255, 255)"},
	} {
		p := b.Open(t, serve(t, clean, "default-src 'self' data: 'unsafe-inline'"), row.options)
		p.Type("#name", "Ann")
		p.Press("e")
		p.Click("#greet")
		p.Wait(`out.textContent === "Hello Anne"`)
		if got := browser.Eval[string](p, `getComputedStyle(document.body).color`); got != row.color {
			t.Errorf("%s: got text of color %s, want %s", row.name, got, row.color)
		}
		p.Check()
		p.Screenshot(row.name)
		raw, err := os.ReadFile(filepath.Join(dir, row.name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		image, err := png.Decode(bytes.NewReader(raw))
		if err != nil || image.Bounds().Dx() != row.width {
			t.Errorf("%s: got a screenshot of %v, %v, want %d wide", row.name, image.Bounds(), err, row.width)
		}
	}

	p := b.Open(t, serve(t, faulty, "script-src 'nonce-good'"), browser.Options{Headers: headers})
	browser.Eval[bool](p, `new Promise(done => setTimeout(() => done(true), 100))`) // timers of the page come first
	found := strings.Join(append(p.Violations(), p.Problems()...), "\n")
	for _, want := range []string{"console error: wrong 7", "exception: Uncaught Error: thrown", "external request: http://elsewhere.test/pixel.png",
		"security error", "Content Security Policy", "axe: serious: color-contrast", "axe: critical: image-alt"} {
		if !strings.Contains(found, want) {
			t.Errorf("got problems\n%s\nwant one with %q", found, want)
		}
	}
}
