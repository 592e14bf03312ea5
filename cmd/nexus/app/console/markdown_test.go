package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/browser"
)

// Answers are shown as Markdown: what is known of it as elements, everything else as text.
func testMarkdown(t *testing.T, b *browser.Browser, s *site) {
	p := b.Open(t, s.base+"/ui/#/models", browser.Options{})
	p.Wait(`document.body.dataset.ready`)
	const shown = `Promise.all([import("./markdown.js"), import("./dom.js")]).then(([{ markdown }, { h, put }]) => {
		const place = document.createElement("div");
		put(place, markdown(%s, (text) => text === "s1" && [h("b", {}, text)]));
		return %s;
	})`
	const link = `<a href="%s" rel="noreferrer noopener" target="_blank">%s</a><span class="muted"> (%s)</span>`
	for _, row := range []struct{ name, text, want string }{
		{"text", "one\ntwo\r\n\nthree", "<p>one\ntwo</p><p>three</p>"},
		{"headings", "# One *two*\n#### four ##\n####### no", "<h3>One <em>two</em></h3><h6>four</h6><p>####### no</p>"},
		{"emphasis", "**a _b_** ***c*** ~~d~~ snake_case_name 2 * 3 * 4 **open *and _more", "<p><strong>a <em>b</em></strong> <strong><em>c</em></strong> <del>d</del> snake_case_name 2 * 3 * 4 **open *and _more</p>"},
		{"code", "`a **b**` ``c ` d``\n\n~~~go\nx := \"`\"\n\n# no\n~~~\n```\nopen", `<p><code>a **b**</code> <code>c ` + "`" + ` d</code></p><pre tabindex="0">x := "` + "`" + "\"\n\n# no</pre><pre tabindex=\"0\">open</pre>"},
		{"lists", "- a\n- b\n  1. c\n  2. d\n\n- e\n\nf\n3) g", "<ul><li><p>a</p></li><li><p>b</p><ol><li><p>c</p></li><li><p>d</p></li></ol></li><li><p>e</p></li></ul><p>f</p><ol start=\"3\"><li><p>g</p></li></ol>"},
		{"quote and rule", "> a\n> > b\n\n---\n* * *", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><hr><hr>"},
		{"table", "| a | b |\n|:--|--:|\n| 1 | **2** | 3 |\n| `x\\|y` |\n\nz", `<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead><tbody><tr><td>1</td><td><strong>2</strong></td></tr><tr><td><code>x|y</code></td></tr></tbody></table></div><p>z</p>`},
		{"no table", "a | b\n|-|\nc", "<p>a | b\n|-|\nc</p>"},
		{"too wide", strings.Repeat("|", 34) + "\n" + strings.Repeat("|-", 33) + "|", "<p>" + strings.Repeat("|", 34) + "\n" + strings.Repeat("|-", 33) + "|</p>"},
		{"references", "It is [s1] [s2: \"no\"]", "<p>It is <b>s1</b> [s2: \"no\"]</p>"},
		{"escapes", `\*a\* \[b](c)`, "<p>*a* [b](c)</p>"},
		{"link", `[a **b**](https://Example.com/x "title")`, "<p>" + fmt.Sprintf(link, "https://example.com/x", "a <strong>b</strong>", "example.com") + "</p>"},
		{"other host", "[https://bank.example](https://bank.example@evil.example/)", "<p>[https://bank.example](https://bank.example@evil.example/)</p>"},
		{"image", "![x](https://e.example/a.png)", "<p>" + fmt.Sprintf(link, "https://e.example/a.png", "x", "e.example") + "</p>"},
		{"bare", "(https://e.example/a). <https://e.example/b>", `<p>(<a href="https://e.example/a" rel="noreferrer noopener" target="_blank">https://e.example/a</a>). <a href="https://e.example/b" rel="noreferrer noopener" target="_blank">https://e.example/b</a></p>`},
		{"bare host", "https://e.example", `<p><a href="https://e.example/" rel="noreferrer noopener" target="_blank">https://e.example</a></p>`},
		{"bare with another host", "https://Bank.example\\@evil.example https://a@evil.example/", "<p>" + fmt.Sprintf(link, "https://bank.example/@evil.example", `https://Bank.example\@evil.example`, "bank.example") + " https://a@evil.example/</p>"},
		{"schemes", "[a](javascript:alert(1)) [b](JaVaScRiPt&#58;x) [c](data:text/html,x) [d](//e.example) [e](/ui/) [f](vbscript:x)", "<p>[a](javascript:alert(1)) [b](JaVaScRiPt&amp;#58;x) [c](data:text/html,x) [d](//e.example) [e](/ui/) [f](vbscript:x)</p>"},
		{"newline in a scheme", "[a](java\tscript:alert(1)) <javascript:alert(1)>", "<p>[a](java\tscript:alert(1)) &lt;javascript:alert(1)&gt;</p>"},
		{"html", markup + "<!-- x --><a href='javascript:x'>y</a>&lt;", "<p>&lt;img src=x onerror=alert(1)&gt;&lt;script&gt;alert(2)&lt;/script&gt;&lt;!-- x --&gt;&lt;a href='javascript:x'&gt;y&lt;/a&gt;&amp;lt;</p>"},
		{"attributes", "[a](https://e.example/\"onclick=alert(1))", "<p>" + fmt.Sprintf(link, "https://e.example/%22onclick=alert(1)", "a", "e.example") + "</p>"},
		{"directions", "a\u202eb", "<p>a\ufffdb</p>"},
	} {
		if got := browser.Eval[string](p, fmt.Sprintf(shown, quoted(t, row.text), "place.innerHTML")); got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, got, row.want)
		}
	}

	// Of a million characters the page reads the first 100,000, within bounded depth and time, and loses none.
	for name, part := range map[string]string{
		"stars": "*", "openings": "**a ", "brackets": "[", "links": "[a](x", "parentheses": "[a](", "code": "`` a", "quotes": ">",
		"lists": "- ", "items": "- a\n", "apart": "- a\n\n", "tables": "|\n-|\n", "cells": "|-", "spaces": " ", "lines": "\n", "urls": "https://a(", "dots": "https://a...",
		"heading": "# #", "words": "_a", "separators": "# \u2028\t", "rules": "- * ", "bang": "![", "nested": "> - 1. ",
	} {
		text := strings.Repeat(part, 1_000_000/len([]rune(part)))
		got := browser.Eval[[]float64](p, fmt.Sprintf(strings.Replace(shown, "const place", "const began = performance.now(), place", 1), quoted(t, text),
			`[performance.now() - began, Math.max(0, ...[...place.querySelectorAll(":not(:has(*))")].map((x) => { let n = 0; for (; x !== place; x = x.parentNode) n++; return n; })), place.textContent.length]`))
		if took, depth, length := got[0], got[1], got[2]; took > 5000 || depth > 40 || length < 800_000 {
			t.Errorf("%s: took %.0f ms, %v elements deep, %v characters; want at most 5000, 40 and at least 800,000", name, took, depth, length)
		}
	}
	p.Check()
}
