// Package browser opens pages in Debian's Chromium, headless, and reports what is wrong with them: console errors,
// exceptions, violations of the content security policy, requests to other hosts, and what axe-core finds.
//
//	p := browser.Start(t).Open(t, url, browser.Options{Dark: true})
//	p.Click("#run")
//	p.Wait(`document.querySelector("#answer").textContent != ""`)
//	p.Screenshot("answer-dark")
//	p.Check()
//
// Methods fail the test when they fail; they wait up to two minutes, for machines under load. A browser and a page end
// with the test that started or opened them; subtests share a browser. A Browser and a Page serve one goroutine.
// Without Chromium or axe-core the test is skipped, or fails where CI is true. Screenshots go to the folder
// NEXUS_ARTIFACTS, if it is set.
package browser

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// patience is how long anything may take.
const patience = 2 * time.Minute

// Browser is a running Chromium with a profile of its own.
type Browser struct {
	ctx context.Context
	axe string // source of axe-core
}

// starts is how often Chromium may try to start: rarely it crashes before it listens.
const starts = 3

// Start starts Chromium. It ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, axe := find(t), readAxe(t)
	var err error
	for range starts {
		var ctx context.Context
		if ctx, err = launch(t, path); err == nil {
			return &Browser{ctx: ctx, axe: axe}
		}
		t.Logf("starting %s: %v", path, err)
	}
	t.Fatalf("starting %s failed %d times: %v", path, starts, err)
	return nil
}

// launch starts the program and returns the context of its first page.
func launch(t testing.TB, path string) (context.Context, error) {
	// Only the loopback can be reached, by address or as localhost.
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile(t)),
		chromedp.Env("HOME="+t.TempDir()), chromedp.Flag("no-sandbox", os.Getuid() == 0), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	ctx, kill := chromedp.NewExecAllocator(context.Background(), flags...) // kill waits for the process
	t.Cleanup(kill)
	ctx, cancel := chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	late := time.AfterFunc(patience, cancel) // the first context lives as long as the browser, so it has no deadline
	defer late.Stop()
	return ctx, chromedp.Do(ctx)
}

// profile returns an empty folder. It is not t.TempDir, as Chromium's children may still write there for a moment.
func profile(t testing.TB) string {
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func find(t testing.TB) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "Chromium: install the package chromium")
	return ""
}

// missing skips the test, or fails it in continuous integration.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s", what)
	}
	t.Skipf("needs %s", what)
}

// Options say how a page is shown.
type Options struct {
	Dark    bool              // prefers-color-scheme
	Phone   bool              // 390 × 844 with touch instead of 1280 × 800
	Headers map[string]string // sent with every request
}

// BasicAuth is the value of an Authorization header.
func BasicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Open opens an address in a page with storage of its own and waits until it is loaded. The page ends with the test.
func (b *Browser) Open(t testing.TB, url string, o Options) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, axe: b.axe, own: host(url), url: url}
	size := chromedp.EmulateViewport(1280, 800)
	if o.Phone {
		size = chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if o.Dark {
		scheme.Value = "dark"
	}
	headers := network.Headers{}
	for name, value := range o.Headers {
		headers[name] = value
	}
	setup := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{scheme}}
		if _, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, media); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: headers})
		return err
	})
	if err := chromedp.Listen(ctx, p.observe); err != nil { // opens the page
		t.Fatalf("opening a page: %v", err)
	}
	p.do("opening "+url, size, setup, chromedp.Navigate(url))
	return p
}

// readAxe returns the source of axe-core, which is installed with the other programs of npm.
func readAxe(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(os.Getenv("NEXUS_COUNTERPARTS"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		missing(t, "axe-core: run npm ci in tests/counterparts and set NEXUS_COUNTERPARTS to that folder")
	}
	return string(raw)
}
