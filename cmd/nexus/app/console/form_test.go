package console_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/browser"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const bookSchema = `{"type":"object","$defs":{"Guest":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0},"with":{"$ref":"#/$defs/Guest"}},"required":["name"]}},
	"properties":{"room":{"type":"integer","description":"Number of the room"},"nights":{"type":"integer","default":2},"price":{"type":"number"},"breakfast":{"type":"boolean"},
	"view":{"enum":["sea","street",3]},"tags":{"type":"array","items":{"type":"string"}},"guests":{"type":"array","items":{"$ref":"#/$defs/Guest"}},
	"address":{"type":"object","properties":{"street":{"type":"string"},"geo":{"type":"object","properties":{"lat":{"type":"number"}}}},"required":["street"]},
	"note":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"meta":{"type":"object"},"pair":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"required":["room","tags"]}`

// A form has a field for each value of a schema, and what it reads is sent exactly. The result is shown by its kinds.
func testForm(t *testing.T, b *browser.Browser, _ *site) {
	hotel := &mcptest.Server{Stateless: true}
	hotel.SetTools(`[{"name":"book","description":"Looks up a room","inputSchema":` + strings.ReplaceAll(bookSchema, "\n\t", "") + `,"annotations":{"readOnlyHint":true}}]`)
	hotel.OnMessage = func(_ context.Context, m mcptest.Message, send func(string)) bool {
		if m.Method != "tools/call" {
			return false
		}
		const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
		send(m.Response(fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"image","mimeType":"image/png","data":"%s"},{"type":"audio","mimeType":"audio/wav","data":"AAAA"},`+
			`{"type":"image","mimeType":"image/svg+xml","data":"AAAA"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///y","text":"inside"}}],"structuredContent":{"n":9007199254740993}}`,
			quoted(t, string(m.Call().Arguments)), pixel)))
		return true
	}
	server := httptest.NewServer(hotel)
	t.Cleanup(server.Close)
	s := open(t, func(o *app.Options) {
		o.Config.Servers = []downstream.ServerConfig{{Name: "hotel", Type: downstream.TransportHTTP, URL: server.URL}}
	})
	for name, options := range map[string]browser.Options{"light": {}, "dark-phone": {Dark: true, Phone: true}} {
		p := b.Open(t, s.base+"/ui/#/tools/hotel/book", options)
		const problem, result = `document.querySelector(".problem[role=alert]")?.textContent.includes(%q)`, `document.querySelector("section [aria-label=Text]")?.textContent`
		button := func(text string) {
			browser.Eval[bool](p, fmt.Sprintf(`([...document.querySelectorAll("form button")].findLast((b) => b.textContent === %q).click(), true)`, text))
		}
		p.Click("form button.primary")
		p.Wait(fmt.Sprintf(problem, "room is needed"))
		if !browser.Eval[bool](p, `document.activeElement.matches("[name=room][aria-invalid]")`) {
			t.Error("the focus is not on the field that is wrong")
		}
		p.Type("[name=room]", "9007199254740993")
		button("Call")
		p.Wait(result + ` === '{"room":9007199254740993,"nights":2,"tags":[]}'`)
		button("Add to tags")
		button("Add to tags")
		p.Press("a")
		button("Add to guests")
		p.Press("Ann")
		button("Call")
		p.Wait(fmt.Sprintf(problem, "Element is needed"))
		button("Remove")
		browser.Eval[bool](p, `(document.querySelector("fieldset ol button").click(), true)`)
		for name, text := range map[string]string{"price": "0.5", "street": "High St", "meta": `{"big":12345678901234567890}`, "pair": `["x"]`, "note": "quiet"} {
			p.Type(fmt.Sprintf("[name=%s]", name), text)
		}
		browser.Eval[bool](p, `(document.querySelector("[name=breakfast]").value = "false", document.querySelector("[name=view]").value = "2", true)`)
		p.Screenshot("page-form-" + name)
		button("Call")
		p.Wait(fmt.Sprintf(result+` === %q`, `{"room":9007199254740993,"nights":2,"price":0.5,"breakfast":false,"view":3,"tags":["a"],"address":{"street":"High St"},"note":"quiet","meta":{"big":12345678901234567890},"pair":["x"]}`))
		if got, want := browser.Eval[string](p, `[...document.querySelectorAll("section h3")].map((x) => x.textContent).join("|")`), "text|image, image/png|audio, audio/wav|image, image/svg+xml|resource link|resource"; got != want {
			t.Errorf("got the kinds %q, want %q", got, want)
		}
		p.Wait(`document.querySelectorAll("main img").length === 1 && document.querySelector("main img").naturalWidth === 1`)
		if !browser.Eval[bool](p, `document.querySelector("[aria-label='Structured content']").textContent.includes("9007199254740993")`) {
			t.Error("a large integer of the result is rounded")
		}
		p.Screenshot("page-result-" + name)
		if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("the page is %v pixels too wide", wide)
		}
		p.Check()
	}
}
