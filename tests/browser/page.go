package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tallest bounds screenshots, in pixels.
const tallest = 6000

// Page is an open page.
type Page struct {
	t   testing.TB
	ctx context.Context
	axe string // source of axe-core
	own string // its host
	url string

	mu       sync.Mutex
	problems []string
}

// Tab opens an address in another tab of the same window, which hides this page.
func (p *Page) Tab(url string) *Page {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithNewWindow(false))
	p.t.Cleanup(cancel)
	tab := &Page{t: p.t, ctx: ctx, axe: p.axe, own: host(url), url: url}
	if err := chromedp.Listen(ctx, tab.observe); err != nil { // opens the tab
		p.t.Fatalf("opening a tab: %v", err)
	}
	tab.do("opening "+url, chromedp.Navigate(url))
	return tab
}

// Show brings the page to the front again.
func (p *Page) Show() {
	p.t.Helper()
	p.do("showing "+p.url, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.BringToFront, cdp.Empty{})
		return err
	}))
}

// observe is called for each event.
func (p *Page) observe(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.problem("exception: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, strings.Trim(string(a.Value), `"`)+a.Description)
			}
			p.problem("console error: " + strings.Join(words, " "))
		}
	case *log.EventEntryAdded: // of the browser itself: failed requests, and violations of the security policy
		if e.Entry.Level == log.EntryLevelError {
			p.problem(fmt.Sprintf("%s error: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		p.request(e.Request.URL)
	case *network.EventWebSocketCreated:
		p.request(e.URL)
	}
}

// request notes a request that leaves the page's own host. The page of a file has none: it may load nothing else.
func (p *Page) request(address string) {
	switch scheme, _, _ := strings.Cut(address, ":"); {
	case scheme == "data" || scheme == "blob" || scheme == "about" || address == p.url:
	case p.own == "" || host(address) != p.own:
		p.problem("external request: " + address)
	}
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

func (p *Page) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// Problems returns console errors, exceptions, violations of the content security policy and external requests so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

// Check fails the test if there are problems, or violations that axe-core finds in the page as it is now.
func (p *Page) Check() {
	p.t.Helper()
	for _, problem := range append(p.Violations(), p.Problems()...) {
		p.t.Errorf("%s: %s", p.url, problem)
	}
}

// Violations returns what axe-core finds of serious or critical impact, with an element for each rule.
func (p *Page) Violations() []string {
	p.t.Helper()
	if !Eval[bool](p, `typeof axe === "object"`) {
		p.do("loading axe-core", ignore(chromedp.Evaluate[any](p.axe+";null")))
	}
	return Eval[[]string](p, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
		.filter(v => v.impact == "serious" || v.impact == "critical")
		.map(v => "axe: " + v.impact + ": " + v.id + ": " + v.help + ": " + v.nodes.length + " elements, first "
			+ v.nodes[0].html.slice(0, 300) + " " + (v.nodes[0].failureSummary || "")))`)
}

// Eval returns the value of a JavaScript expression; of a promise, what it resolves to.
func Eval[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	p.do("evaluating "+expression, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		value, err = chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)(ctx, t)
		return err
	}))
	return value
}

// Wait waits until a JavaScript expression is true.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	p.do("waiting for "+expression, ignore(chromedp.Poll[bool]("!!("+expression+")",
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience))))
}

// Click waits for the first element of a CSS selector to be visible, and clicks it.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do("clicking "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Type waits for the first element of a CSS selector to be visible, focuses it and types.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.do("typing into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// Press presses keys, one for each rune: characters, and the constants of chromedp's package kb.
func (p *Page) Press(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.do(fmt.Sprintf("pressing %q", keys), chromedp.KeyEvent(keys, options...))
}

// Screenshot writes the whole page, down to 6,000 pixels, to NAME.png in the folder NEXUS_ARTIFACTS, if that is set.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("NEXUS_ARTIFACTS")
	if dir == "" {
		return
	}
	size := Eval[[]float64](p, `[document.documentElement.clientWidth, document.documentElement.scrollHeight]`)
	yes := true
	var image []byte
	p.do("taking a screenshot", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &yes,
			Clip:                  &page.Viewport{Width: size[0], Height: min(size[1], tallest), Scale: 1},
		})
		image = r.Data
		return err
	}))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// do runs steps one after the other.
func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		if len(what) > 200 {
			what = what[:200] + "…"
		}
		p.t.Fatalf("%s: %s: %v\n%s", p.url, what, err, strings.Join(p.Problems(), "\n"))
	}
}

func ignore[T any](a chromedp.Action[T]) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := a(ctx, t)
		return err
	})
}
