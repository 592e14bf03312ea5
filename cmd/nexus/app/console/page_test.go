package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/tests/browser"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// site is a router whose page is tested.
type site struct {
	t    *testing.T
	base string
	app  *app.App
}

// open starts a router.
func open(t *testing.T, change func(o *app.Options)) *site {
	t.Helper()
	o := app.Options{Config: config.Default(), Version: "1.2.3"}
	o.Config.Listen, o.Config.State = "127.0.0.1:0", t.TempDir()
	o.Config.Execution.RetryDelay = 20 * time.Millisecond
	change(&o)
	a, err := app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = a.Stop(ctx) // pages may be open still
	})
	return &site{t, "http://" + a.Addr(), a}
}

// post calls a tool and returns what came.
func (s *site) post(tool, arguments string) string {
	s.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
	resp, err := http.Post(s.base+"/mcp", "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// newest waits until the history has a number of queries, and returns the id of the newest whose question has a text.
func (s *site) newest(text string) (id uint64) {
	s.t.Helper()
	mcptest.Eventually(s.t, "a query in the history", func() bool {
		resp, err := http.Get(s.base + "/ui/api/queries?kind=query&text=" + strings.ReplaceAll(text, " ", "+"))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var page struct{ Entries []struct{ ID uint64 } }
		if json.NewDecoder(resp.Body).Decode(&page) != nil || len(page.Entries) == 0 {
			return false
		}
		id = page.Entries[0].ID
		return true
	})
	return id
}

// warehouse is a server with a tool that lists orders, one that fails for some of them, and one that is lost once.
func warehouse(t *testing.T) string {
	const schema = `"inputSchema":{"type":"object","properties":{"id":{"type":"integer","description":"Number of the order","minimum":1},"express":{"type":"boolean"},"via":{"enum":["air","sea"]}},"required":["id"]}`
	s := &mcptest.Server{Stateless: true}
	s.SetTools(`[{"name":"list_orders","description":"List the open orders of a customer","inputSchema":{"type":"object","properties":{"customer":{"type":"string"}}},"annotations":{"readOnlyHint":true}},` +
		`{"name":"get_order","description":"Get one order with its state",` + schema + `,"annotations":{"readOnlyHint":true}},` +
		`{"name":"check_stock","description":"Check what is in stock","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
		`{"name":"ship_order","description":"Ship an order to its customer",` + schema + `},` +
		`{"name":"delete_order","description":"Delete an order",` + schema + `,"annotations":{"destructiveHint":true}}]`)
	var lost atomic.Bool
	s.OnHTTP = func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" && strings.Contains(string(m.Params), "check_stock") && lost.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	s.OnMessage = func(_ context.Context, m mcptest.Message, send func(string)) bool {
		var p struct {
			Name      string
			Arguments struct{ ID int }
		}
		if m.Method != "tools/call" || json.Unmarshal(m.Params, &p) != nil {
			return false
		}
		result := `{"content":[{"type":"text","text":"done"}],"structuredContent":{"done":true}}`
		switch {
		case p.Name == "list_orders":
			result = `{"content":[],"structuredContent":{"customer":"ACME","orders":[{"id":101,"total":2500},{"id":102,"total":130},{"id":103,"total":77}]}}`
		case p.Name == "get_order" && p.Arguments.ID == 102:
			result = `{"content":[{"type":"text","text":"order 102 is locked by accounting"}],"isError":true}`
		case p.Name == "get_order":
			result = fmt.Sprintf(`{"content":[],"structuredContent":{"id":%d,"state":"packed on Friday"}}`, p.Arguments.ID)
		case p.Name == "delete_order":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"order %d is deleted"}]}`, p.Arguments.ID)
		case p.Name == "ship_order":
			result = `{"content":[{"type":"text","text":"carrier refused the parcel"}],"isError":true}`
		}
		send(m.Response(result))
		return true
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

const ordersPlan = `{"steps":[{"id":"s1","tool":"list_orders","arguments":{"customer":"ACME"}},` +
	`{"id":"s2","tool":"get_order","each":"$s1.orders","arguments":{"id":"$item.id"}},` +
	`{"id":"s3","tool":"check_stock","arguments":{},"when":"len(s1.orders) > 0"},` +
	`{"id":"s4","tool":"web_search","arguments":{"query":"ACME"},"when":"len(s1.orders) > 50"},` +
	`{"id":"s5","tool":"calculate","arguments":{"expression":"${s1.orders.0.total} * 0.15"},"after":["s3"]},` +
	`{"id":"s6","tool":"ship_order","arguments":{"id":"$s1.orders.0.id"},"after":["s5"]},` +
	`{"id":"s7","tool":"get_order","arguments":{"id":"$s6.order"}}]}`

const ordersAnswer = "**ACME has three open orders**, the largest of 2500. [s1: \"2500\"]\n\n" +
	"| Order | Total | State |\n|---|--:|---|\n| 101 | 2500 | packed on Friday |\n| 102 | 130 | *locked* |\n\n" +
	"- A discount of `15 %` would be 375. [s5: \"375\"]\n- The parcel could not be shipped. [s6 failed] [s7 failed]\n\n" +
	"> Order 101 is packed on Friday [s2: \"packed on Friday\"].\n\nMore at [the carrier](https://carrier.example/track)."

// busySite is a router with much to see: queries that went well and badly, a server that is down, and a model.
func busySite(t *testing.T) *site {
	m := llmtest.New(t)
	m.Script(func(r llmtest.Request) (llmtest.Reply, bool) {
		switch asks := llmtest.Structured(r); {
		case asks && strings.Contains(fmt.Sprint(r), "Delete order 7"):
			return llmtest.Reply{Text: `{"steps":[{"id":"s1","tool":"delete_order","arguments":{"id":7}}]}`}, true
		case asks:
			return llmtest.Reply{Text: ordersPlan}, true
		case strings.Contains(fmt.Sprint(r), "ACME"):
			return llmtest.Reply{Text: ordersAnswer}, true
		}
		return llmtest.Reply{Text: "It is done. [s1]"}, true
	})
	s := open(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Planner.MaxRounds = 1
		o.Config.Policy = []trust.Rule{{When: `tool == "ship_order" && source == "client"`, Then: trust.Ask, Reason: "shipping costs money"}}
		o.Config.LLM = &config.LLM{Planner: llm.Config{BaseURL: m.BaseURL, Model: "gpt-test", API: llm.APIChat, Timeout: 10 * time.Second}}
		o.Config.Prices = map[string]config.Price{"gpt-test": {Input: 2, Output: 8}}
		o.Config.Servers = []downstream.ServerConfig{
			{Name: "warehouse", Type: downstream.TransportHTTP, URL: warehouse(t)},
			{Name: "a-server-with-quite-a-long-name-that-nobody-would-want-to-type", Type: downstream.TransportHTTP, URL: "http://127.0.0.1:1/mcp"},
		}
	})
	s.post("process_query", `{"query":"What are the latest news about Go?","plan":[{"tool":"web_search","arguments":{"query":"Go"}}]}`)
	s.post("process_query", `{"query":"What is open for ACME, when does it arrive, and what would a discount of 15 % on the largest order be? Ship it, too."}`)
	for range 3 {
		s.post("warehouse__get_order", `{"id":102}`)
	}
	s.post("calculator__calculate", `{"expression":"6*7"}`)
	s.newest("ACME")
	return s
}

// visit shows a view and waits until it is there.
func visit(p *browser.Page, hash, has string) {
	browser.Eval[bool](p, fmt.Sprintf(`(location.hash = %q, true)`, hash))
	p.Wait(fmt.Sprintf(`document.body.dataset.view === %q && document.querySelector("main").textContent.includes(%q)`, hash, has))
}

// TestPage has one browser look at a router with much to see.
func TestPage(t *testing.T) {
	b, s := browser.Start(t), busySite(t)
	for _, part := range []struct {
		name string
		test func(t *testing.T, b *browser.Browser, s *site)
	}{
		{"views", testViews}, {"empty views", testEmptyViews}, {"failing step", testFailingStep}, {"filters", testFilters},
		{"lost connection", testLostConnection}, {"ask", testAsk}, {"approve plan", testApprovePlan}, {"call tool", testCallTool}, {"switch server", testSwitchServer},
		{"consent", testConsent}, {"form", testForm}, {"access", testAccess}, {"keys", testKeys}, {"add server", testAddServer}, {"editor", testEditor}, {"approve tool", testApproveTool}, {"markdown", testMarkdown},
		{"live", testLive}, {"many tabs", testManyTabs}, {"hostile names", testHostileNames}, {"large plan", testLargePlan},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, b, s) })
	}
}

// Every view is free of errors, foreign requests and serious faults of accessibility, on a light desktop and on a dark
// phone; nothing makes a phone scroll sideways.
func testViews(t *testing.T, b *browser.Browser, s *site) {
	id := s.newest("ACME")
	views := []struct{ name, hash, has string }{
		{"now", "#/now", "Needs attention"},
		{"servers", "#/servers", "warehouse"},
		{"server", "#/servers/warehouse", "Changes of state"},
		{"tools", "#/tools", "check_stock"},
		{"tool", "#/tools/warehouse/delete_order", "Input schema"},
		{"queries", "#/queries", "a call of a client"},
		{"query", fmt.Sprintf("#/queries/%d", id), "102 is locked"},
		{"step", fmt.Sprintf("#/queries/%d/s2", id), "packed on Friday"},
		{"ask", "#/ask", "Your question"},
		{"sessions", "#/sessions", "client session"},
		{"models", "#/models", "gpt-test"},
		{"access", "#/access", "shipping costs money"},
	}
	for name, options := range map[string]browser.Options{"light-desktop": {}, "dark-phone": {Dark: true, Phone: true}} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, s.base+"/ui/", options)
			for _, v := range views {
				visit(p, v.hash, v.has)
				p.Screenshot("page-" + v.name + "-" + name)
				p.Check()
				if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
					t.Errorf("%s: the page is %v pixels too wide", v.name, wide)
				}
				if t.Failed() {
					t.Fatalf("in the view %s", v.name)
				}
			}
		})
	}
}

// Empty states say what to do next, also with servers and before the first question.
func testEmptyViews(t *testing.T, b *browser.Browser, _ *site) {
	p := b.Open(t, open(t, func(*app.Options) {}).base+"/ui/", browser.Options{})
	for hash, has := range map[string]string{
		"#/now": "nexus serve --demo", "#/servers": "servers.yaml", "#/tools": "servers", "#/queries": "Ask a question", "#/ask": "no server to ask",
		"#/sessions": "/mcp", "#/models": "llm: {planner", "#/servers/none": "There is no server none", "#/nonsense": "nexus serve --demo",
	} {
		visit(p, hash, has)
	}
	visit(p, "#/now", "nexus client add")
	p.Screenshot("page-empty")
	p.Check()
	visit(p, "#/queries/99", "Nothing to show")

	fresh := open(t, func(o *app.Options) { o.Demo = true })
	p = b.Open(t, fresh.base+"/ui/", browser.Options{Dark: true, Phone: true})
	p.Wait(`document.querySelector(".steps")?.textContent.includes("nexus client add claude-code --url " + location.origin + "Copy")`)
	browser.Eval[bool](p, `(navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }, document.querySelector(".copied:last-child button").click(), true)`)
	p.Wait(`window.copied === location.origin + "/mcp" && document.querySelector("#say").textContent === "Copied"`)
	p.Screenshot("page-first")
	p.Check()
	p.Click(`.steps a[href*="15%25"]`)
	p.Click("form.ask button.primary")
	p.Wait(`document.querySelector(".answers")?.textContent.includes("375")`)
	visit(p, "#/now", "The last hour")
	p.Wait(`!document.querySelector(".steps")`)
}

// From the first view it takes two clicks to the step that failed, and a drawn step shows itself.
func testFailingStep(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/", browser.Options{})
	p.Click(`section[aria-labelledby=failures] a.row`)
	p.Wait(`document.querySelector("section[aria-labelledby=troubles]")?.textContent.includes("carrier refused the parcel")`)
	p.Wait(`document.querySelector("#step")?.textContent.includes("102 is locked") || document.querySelector("#step")?.textContent.includes("carrier refused")`)
	if got := browser.Eval[string](p, `document.querySelector(".fall .selected a").textContent`); !strings.Contains(got, "s2") && !strings.Contains(got, "s6") {
		t.Errorf("got %q selected, want a step that failed", got)
	}
	browser.Eval[bool](p, `(document.querySelector('.graph [data-step="s3"]').dispatchEvent(new MouseEvent("click", {bubbles: true})), true)`)
	p.Wait(`document.querySelector("#step h2").textContent.includes("s3: check_stock") && document.querySelector("#step").textContent.includes("503") || document.querySelector("#step table tbody tr:nth-child(2)")`)
	const seen = `document.querySelector("#step").getBoundingClientRect().top < innerHeight - 100`
	for _, link := range []string{`section[aria-labelledby=troubles] li:last-child a`, `.answer a`} {
		browser.Eval[bool](p, `(scrollTo(0, 0), true)`)
		p.Click(link)
		p.Wait(`document.querySelector("#step h2").textContent.startsWith(document.querySelector(` + "`" + link + "`" + `).textContent.match(/s\d/)[0] + ":") && ` + seen)
	}
	edges := browser.Eval[[]string](p, `fetch("api/queries/" + location.hash.split("/")[2]).then(r => r.json()).then(q => q.detail.graph.nodes.flatMap(n => n.needs.map(x => x + ">" + n.id)))`)
	if want := "[s1>s2 s1>s3 s1>s4 s1>s5 s3>s5 s1>s6 s5>s6 s6>s7]"; fmt.Sprint(edges) != want {
		t.Errorf("got the edges %v, want %s", edges, want)
	}
	p.Check()
}

// A question is asked, consent given in a form, and the answer leads to how it came about.
func testAsk(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/ask", browser.Options{})
	p.Type("#question", "Delete order 7")
	p.Click("form.ask button.primary")
	p.Wait(`document.querySelector(".asked")?.textContent.includes("delete_order")`)
	if got := browser.Eval[string](p, `document.activeElement.textContent`); !strings.Contains(got, "delete_order") {
		t.Errorf("the focus is on %q, want what is to be allowed, no button", got)
	}
	const parts = `[...document.querySelectorAll(".asked dd, .asked li, .asked th[scope=row], .asked td")].map((x) => x.textContent).join("|")`
	if got, want := browser.Eval[string](p, parts), "warehouse|delete_order|The tool may change something.|This tool is marked destructive.|id|7"; got != want {
		t.Errorf("got the parts %q, want %q", got, want)
	}
	p.Screenshot("page-ask-consent")
	p.Check()
	visit(p, "#/queries", "Delete order 7") // it waits, and goes on when the user comes back
	p.Wait(`document.querySelector("#nav a[aria-current] ~ a").textContent.includes("waits for you")`)
	visit(p, "#/ask", "delete_order")
	p.Click(".asked button.primary")
	p.Wait(`document.querySelector(".answers a")`)
	p.Screenshot("page-ask-answer")
	p.Click(".answers a")
	p.Wait(`document.querySelector("#step h2")?.textContent.includes("delete_order")`)
	p.Check()

	// The answer stays if its entry in the history cannot be read, and the link to the question does not say for ever
	// that it waits.
	visit(p, "#/ask", "Your question")
	p.Click("form.ask button.primary")
	p.Wait(`document.querySelector(".asked") && document.querySelector("#nav").textContent.includes("waits for you")`)
	visit(p, "#/ask?q=Delete+order+7+again", "Your question")
	p.Wait(`document.querySelector("#question").value.includes("again")`)
	browser.Eval[bool](p, `(() => {
		const real = fetch;
		window.fetch = (url, options) => String(url).includes("api/queries") ? Promise.reject(new TypeError("lost")) : real(url, options);
		document.querySelector("form.ask button.primary").click();
		return true;
	})()`)
	if browser.Eval[bool](p, `document.querySelector("#nav").textContent.includes("waits for you")`) {
		t.Error("a question that has been replaced still waits")
	}
	p.Click(".asked button.primary")
	p.Wait(`document.querySelector(".answers h2, .answers .problem") && !document.querySelector("form.ask button.primary").disabled`)
	if got := browser.Eval[string](p, `document.querySelector(".answers").textContent`); !strings.Contains(got, "It is done") {
		t.Errorf("got the answer %q", got)
	}

	// A second form does not take the keys that are meant for the first.
	visit(p, "#/tools", "check_stock")
	if !browser.Eval[bool](p, `import("./tools.js").then(({ elicited }) => {
		const ask = (message) => elicited({ message, requestedSchema: { type: "object", properties: { code: { type: "string" } } } }, document.querySelector("main"));
		ask("The first question");
		const at = document.activeElement;
		ask("The second question");
		return at.name === "code" && document.activeElement === at && document.querySelectorAll(".asked").length === 2;
	})`) {
		t.Error("the second form has the focus, want the first")
	}
}

// What asks for consent fits on all screens. A plan that waits for approval is shown before it runs.
func testApprovePlan(t *testing.T, b *browser.Browser, s *site) {
	look := func(p *browser.Page, name string) {
		t.Helper()
		p.Screenshot(name)
		p.Check()
		if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("%s is %v pixels too wide", name, wide)
		}
	}
	for name, options := range map[string]browser.Options{"dark": {Dark: true}, "phone": {Phone: true}, "dark-phone": {Dark: true, Phone: true}} {
		p := b.Open(t, s.base+"/ui/#/ask", options)
		browser.Eval[bool](p, `(() => {
			const real = fetch;
			window.fetch = (url, o) => real(url, o?.body?.includes('"action"') ? { ...o, body: JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(o.body).id, error: { code: -32603, message: "nobody answers" } }) } : o);
			return true;
		})()`)
		p.Type("#question", "Delete order 7")
		p.Click("form.ask button.primary")
		p.Wait(`document.querySelector(".asked")`)
		look(p, "page-consent-"+name)
		p.Click(".asked button.primary")
		p.Wait(`document.querySelector(".answers .buttons button")`)
		look(p, "page-approve-"+name)
		p.Click(".answers .buttons button")
		p.Wait(`document.querySelector("dialog[open]")?.textContent.includes("delete_order")`)
		look(p, "page-approve-plan-"+name)
		p.Click("dialog button.primary")
		p.Wait(`document.querySelector(".answers")?.textContent.includes("It is done")`)

		visit(p, "#/sessions", "Sessions")
		call := `Arguments: {"to":"a-rather-long-address-of-somebody@department-of-long-names.example","subject":"Your order","text":"Dear customer,\nyour order is on its way. It will arrive within three working days.","ids":[1,2,3]}`
		browser.Eval[bool](p, fmt.Sprintf(`import("./tools.js").then(({ elicited }) => { elicited({ message: %s, requestedSchema: { type: "object", properties: {} } }, document.querySelector("main")); return true; })`,
			quoted(t, "Allow these 3 calls?\nData of hr and a-server-with-quite-a-long-name-that-nobody-would-want-to-type goes to mail.\nServer: mail\nTool: send_a_message_to_somebody\nReason: mail leaves the company\n"+strings.Repeat(call+"\n", 3)+"This tool is marked destructive.\n… and 12 calls that are not shown")))
		look(p, "page-consent-loop-"+name)
	}
}

// A tool that writes is called only after consent, with arguments that the form has checked.
func testCallTool(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/tools/warehouse/delete_order", browser.Options{})
	p.Click("form button.primary")
	p.Wait(`document.querySelector("main").textContent.includes("id is needed")`)
	p.Type("input[name=id]", "7")
	p.Click("form button.primary")
	p.Wait(`document.querySelector("dialog[open] tbody")?.textContent === "id7"`)
	p.Screenshot("page-tool-consent")
	p.Check()
	p.Click("dialog button.primary")
	p.Wait(`document.querySelector("main").textContent.includes("order 7 is deleted")`)
	p.Check()
}

// What the router asks consent to is shown in parts: why it asks, server and tool, and the arguments as a table, exact and
// with what cannot be seen. What others ask is shown as they write it.
func testConsent(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/tools/warehouse/ship_order", browser.Options{})
	p.Type("input[name=id]", "7")
	p.Click("form button.primary")
	p.Click("dialog button.primary")
	p.Wait(`document.querySelector(".asked li")?.textContent === "Shipping costs money"`)
	p.Screenshot("page-consent-policy")
	p.Check()
	p.Click(".asked button:not(.primary)")
	p.Wait(`document.querySelector(".problem")?.textContent.includes("declined")`)

	const shown = `import("./tools.js").then(({ elicited }) => {
		const place = document.createElement("div");
		elicited({ message: %s, requestedSchema: { type: "object", properties: {} } }, place);
		return [...place.querySelectorAll("h2, dt, dd, li, th, td, pre, p.prose, p.muted")].map((x) => x.textContent).join("|");
	})`
	const list = "Allow these 2 calls?\nServer: mail\nTool: send\nArguments: {\"to\":\"a\"}\nArguments: {\"to\":\"b\",\"cc\":[1,2]}"
	for _, row := range []struct{ name, message, want string }{
		{"flow", "Allow this call?\nData of hr and crm goes to mail.\nServer: mail\nTool: send\nArguments: {\"text\":\"x\\ny\",\"to\":{\"name\":\"\",\"ids\":[1,2]}}",
			"Allow this call?|Server|mail|Tool|send|Private data of hr and crm goes to mail.|Argument|Value|text|x\ny|to.name|(empty)|to.ids|[\n  1,\n  2\n]"},
		{"loop", list + "\n… and 3 calls that are not shown", "Allow these 2 calls?|Server|mail|Tool|send|The tool may change something.|" +
			"Call|to|cc|1|a||2|b|[\n  1,\n  2\n]|… and 3 calls that are not shown"},
		{"all of a loop", list, "Allow these 2 calls?|Server|mail|Tool|send|The tool may change something.|Call|to|cc|1|a||2|b|[\n  1,\n  2\n]"},
		{"others", "Allow this call?\nData of hr goes to mail.\nServer: mail\nTool: send\nArguments: {\"to\":1}\nThe answer also applies to:\nArguments: {\"to\":2}",
			"Allow this call?|Server|mail|Tool|send|Private data of hr goes to mail.|Argument|Value|to|1|Argument|Value|to|2"},
		{"exact", `Allow this request?
From: ann
Server: x
Method: resources/read
Arguments: {"uri": "a\u202eb\u200bc", "n": 9007199254740993}
Reason: it is private`, "Allow this request?|From|ann|Server|x|Method|resources/read|It is private|Argument|Value|uri|a\\u{202e}b\\u{200b}c|n|9007199254740993|" +
			`{"uri": "a\u202eb\u200bc", "n": 9007199254740993}`},
		{"twice the same name", "Allow this call?\nServer: x\nTool: y\nArguments: {\"to\":1,\"to\":2}\nThis exact call was made before.",
			"Allow this call?|Server|x|Tool|y|The tool may change something.|This exact call was made before.|Argument|Value|to|2|{\"to\":1,\"to\":2}"},
		{"cut", "Allow this call?\nServer: x\nTool: y\nArguments: {\"a… (cut, 9 bytes are not shown)", "Allow this call?|Server|x|Tool|y|The tool may change something.|{\"a… (cut, 9 bytes are not shown)"},
		{"of a server", "Server x asks: Allow this call?\nServer: y\nTool: z\nArguments: {}", "Your answer is needed|Server x asks: Allow this call?\nServer: y\nTool: z\nArguments: {}"},
	} {
		if got := browser.Eval[string](p, fmt.Sprintf(shown, quoted(t, row.message))); got != row.want {
			t.Errorf("%s: got\n%q\nwant\n%q", row.name, got, row.want)
		}
	}
}

// A server is disabled and enabled on the page, which shows it at once.
func testSwitchServer(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/servers", browser.Options{})
	p.Click("#switch-warehouse")
	p.Click("dialog button.primary")
	p.Wait(`document.querySelector("#switch-warehouse")?.textContent === "Enable"`)
	p.Check()
	p.Click("#switch-warehouse")
	p.Wait(`document.querySelector("#switch-warehouse")?.textContent === "Disable"`)
}

// The page of a server shows what has changed at its tools, also in a name with markup, and approves it.
func testApproveTool(t *testing.T, b *browser.Browser, _ *site) {
	changing := &mcptest.Server{Stateless: true}
	const tools = `[{"name":"<b>lookup</b>","description":"Gives the %s of an employee.","inputSchema":{"type":"object"}}]`
	changing.SetTools(fmt.Sprintf(tools, "name"))
	web := httptest.NewServer(changing)
	t.Cleanup(web.Close)
	s := open(t, func(o *app.Options) {
		o.Config.Tools.Pin = pins.Enforce
		o.Config.Servers = []downstream.ServerConfig{{Name: "hr", Type: downstream.TransportHTTP, URL: web.URL}}
	})
	s.post("list_available_tools", "{}")
	changing.SetTools(fmt.Sprintf(tools, "salary"))
	s.post("run", `{"tool":"hr__other"}`) // an unknown tool is looked up
	p := b.Open(t, s.base+"/ui/#/servers/hr", browser.Options{})
	p.Wait(`document.querySelector("del")?.textContent === "name" && document.querySelector("ins")?.textContent === "salary"`)
	p.Wait(`document.querySelector(".change").textContent.includes("<b>lookup</b>") && document.querySelector("main").textContent.includes("Approved by first sight")`)
	p.Screenshot("page-approve-tool")
	p.Check()
	p.Click("[id^=approve-]")
	p.Wait(`!document.querySelector(".change") && !document.querySelector("main").textContent.includes("quarantined")`)
	p.Check()
}

// What happens shows without a reload: events renew the view.
func testLive(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/queries", browser.Options{})
	p.Wait(`document.body.dataset.live === "true" && document.querySelector("tbody")`)
	browser.Eval[bool](p, `(document.querySelector("tbody a").focus(), window.before = document.activeElement.textContent, true)`)
	browser.Eval[bool](p, `(window.kept = document.querySelector("thead"), true)`)
	s.post("process_query", `{"query":"A question that comes later","plan":[]}`)
	p.Wait(`document.querySelector("tbody").textContent.includes("comes later")`)
	if !browser.Eval[bool](p, `window.kept.isConnected`) {
		t.Error("what has not changed is replaced: a click under way and a selection are lost")
	}
	if !browser.Eval[bool](p, `document.activeElement.textContent === window.before`) {
		t.Error("the focus is lost when the view is renewed")
	}
	p.Check()

	// The list does not move under a mouse that moves.
	browser.Eval[bool](p, `(() => {
		let moves = 30;
		const move = () => {
			if (!moves--) return;
			window.moved = Date.now();
			document.querySelector("tbody").dispatchEvent(new PointerEvent("pointermove", { bubbles: true, pointerType: "mouse" }));
			setTimeout(move, 100);
		};
		move();
		new MutationObserver(() => {
			if (document.querySelector("tbody").textContent.includes("under the mouse")) window.rested ||= Date.now() - window.moved;
		}).observe(document.querySelector("main"), { childList: true, subtree: true });
		return true;
	})()`)
	s.post("process_query", `{"query":"A question under the mouse","plan":[]}`)
	p.Wait(`window.rested`)
	if rested := browser.Eval[float64](p, `window.rested`); rested < 1000 {
		t.Errorf("the list changes %v ms after the mouse has moved", rested)
	}
}

// Many tabs can be open: hidden ones hold no connection, of which a browser opens only a few, and are renewed when they
// are shown again.
func testManyTabs(t *testing.T, b *browser.Browser, s *site) {
	first := b.Open(t, s.base+"/ui/#/queries", browser.Options{})
	first.Wait(`document.body.dataset.live === "true"`)
	for range 6 {
		first.Tab(s.base + "/ui/#/servers").Wait(`document.body.dataset.live === "true" && document.querySelector("tbody")`)
	}
	s.post("process_query", `{"query":"A question in a hidden tab","plan":[]}`)
	first.Show()
	first.Wait(`document.querySelector("tbody").textContent.includes("in a hidden tab")`)
	first.Check()
}

// A page that has lost the router says so, and when the router is back it shows what it could not read.
func testLostConnection(t *testing.T, b *browser.Browser, s *site) {
	target, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	var lost atomic.Bool
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(network.Close)
	p := b.Open(t, network.URL+"/ui/", browser.Options{Phone: true})
	p.Wait(`document.body.dataset.live === "true"`)
	lost.Store(true)
	network.CloseClientConnections()
	p.Wait(`document.querySelector("#link").textContent.includes("out of date")`)
	visit(p, "#/tools", "The router cannot be reached")
	p.Screenshot("page-lost")
	lost.Store(false)
	p.Wait(`document.body.dataset.live === "true" && document.querySelector("main").textContent.includes("check_stock")`)
}

// Servers are counted and filtered by state, tools ordered by use, and queries found by trace id.
func testFilters(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/servers", browser.Options{})
	p.Click(`a[href="#/servers?state=disconnected"]`)
	p.Wait(`document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody").textContent.includes("a-server-with-quite-a-long-name")`)
	p.Check()
	visit(p, "#/tools?order=failed", "check_stock")
	if got := browser.Eval[string](p, `document.querySelector("tbody tr").textContent`); !strings.Contains(got, "100 %") {
		t.Errorf("got %q first, want a tool of which all calls failed", got)
	}
	p.Check()
	trace := browser.Eval[string](p, fmt.Sprintf(`fetch("api/queries/%d").then(r => r.json()).then(q => q.detail.trace_id)`, s.newest("ACME")))
	visit(p, "#/queries?text="+trace, "What is open for ACME")
	if n := browser.Eval[float64](p, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("got %v entries with that trace id, want 1", n)
	}
}

// A plan of 1,000 steps can be looked at.
func testLargePlan(t *testing.T, b *browser.Browser, s *site) {
	var steps []string
	for i := range 1000 {
		expression := "1"
		if i >= 10 {
			expression = fmt.Sprintf("1+${c%d.result}*0+${c%d.result}*0", i-10, i-7-i%3)
		}
		steps = append(steps, fmt.Sprintf(`{"id":"c%d","tool":"calculate","arguments":{"expression":%q}}`, i, expression))
	}
	s.post("process_query", `{"query":"A thousand steps","plan":{"steps":[`+strings.Join(steps, ",")+`]}}`)
	p := b.Open(t, fmt.Sprintf("%s/ui/#/queries/%d", s.base, s.newest("thousand")), browser.Options{})
	p.Wait(`document.querySelectorAll(".graph [data-step]").length === 1000 && document.querySelectorAll(".fall li").length >= 1000`)
	p.Screenshot("page-large")
	if problems := p.Problems(); len(problems) > 0 { // axe-core takes a minute for so many elements
		t.Errorf("got %q, want no problems", problems)
	}
}
