package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	pages "github.com/agenticnexus/agenticnexus/tests/browser"
)

// sample writes n lines of results, so many for each case: plans of nine steps with failed, skipped and missing ones, long texts, texts that
// look like HTML, and some lines that fail only in one variant, which has models and a fingerprint of its own.
func sample(t *testing.T, n, repeats, variant int) string {
	t.Helper()
	var text strings.Builder
	tags := []string{"sums", "people", "search", "mail"}
	for i := range n {
		outcome, checks, step, reason := "passed", `{"name":"tools","passed":true}`, `"success":true`, ""
		switch {
		case i%10 == 3 || i%50 == variant:
			outcome, checks = "failed", `{"name":"answer_contains","passed":false,"reason":"the answer lacks \"Zebra\": <b>The total</b> is 42"},{"name":"tools","passed":false,"reason":"send_email was not called; called: query_hr, calculate"}`
			step = `"success":false,"error":{"reason":"timeout","message":"Tool execution timed out after 30s"}`
		case i%40 == 7:
			outcome, checks, reason = "error", "", `,"error":{"reason":"overloaded","message":"the router has no room"}`
		}
		fmt.Fprintf(&text, `{"case":"case-%05d%s","repeat":%d,"outcome":%q,"checks":[%s],"query":"Find everyone in Lisbon, count them, and email the sum to the office number %d","tags":[%q],`+
			`"result":{"answer":"There are **8 people** in Lisbon.\n\n- Priya Raman\n- Mei Castellan <script>alert(1)</script>\n%s","unmet":[%s],`+
			`"plan":{"steps":[{"id":"s1","tool":"query_hr","arguments":{"location":"Lisbon"}},{"id":"s2","tool":"query_hr","arguments":{"location":"Berlin"}},{"id":"s3","tool":"a_server_with_a_long_name__search_documents","arguments":{"query":"office"}},`+
			`{"id":"s4","tool":"calculate","arguments":{"expression":"${s1.count} + ${s2.count}"}},{"id":"s5","tool":"calculate","arguments":{"expression":"${s4.result} * %d"}},{"id":"s6","tool":"web_search","arguments":{"query":"news"},"after":["s3"]},`+
			`{"id":"s7","tool":"send_email","each":"$s1.employees","arguments":{"to":"$item.email","subject":"Sum","body":"${s5.result}"}},{"id":"s8","tool":"send_email","when":"s5 > 100","arguments":{"to":"office@example.com"}},{"id":"s9","tool":"calculate","arguments":{"expression":"${s6.total}"}}]},`+
			`"steps":[{"id":"s1","tool":"query_hr","server":"hr","success":true,"duration_ms":12.4},{"id":"s2","tool":"query_hr","server":"hr","success":true,"duration_ms":9.1},{"id":"s3","tool":"a_server_with_a_long_name__search_documents","server":"a_server_with_a_long_name","success":true,"duration_ms":140.3},`+
			`{"id":"s4","tool":"calculate","server":"calculator","success":true,"duration_ms":0.4},{"id":"s5","tool":"calculate","server":"calculator",%s,"duration_ms":3.2},{"id":"s6","tool":"web_search","server":"search","success":true,"duration_ms":80},{"id":"s7","tool":"send_email","server":"mail","success":true,"duration_ms":2},{"id":"s8","tool":"send_email","server":"mail","success":false,"skipped":true}],"usage":{"planner":{"model":"planner-%d"},"synthesizer":{"model":"writer"}}}%s,`+
			`"seconds":%g,"tokens":{"input":%d,"output":40},"cost":0.0012,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","started":"2026-11-22T1%d:00:00Z","fingerprint":"f00d%d","definition":"d%d"}`+"\n",
			i/repeats, strings.Repeat("-with-a-long-name", i/repeats%3), i%repeats+1, outcome, checks, i, tags[i%4], strings.Repeat("A long line of text. ", i%30),
			map[bool]string{true: `{"text":"book a table","reason":"no_tool"}`}[i%13 == 5], 10+variant, step, variant, reason,
			0.05*float64(1+i%17)*float64(variant), 100*variant+i%77, variant, variant, i/repeats)
	}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("run-%d.jsonl", variant))
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBatchPages opens reports and comparisons of few and of many lines in a browser.
func TestBatchPages(t *testing.T) {
	t.Parallel()
	b := pages.Start(t)
	light, phone := "light-desktop", "dark-phone"
	for _, s := range []struct {
		n, repeats int
		looks      []string
	}{{10, 1, []string{light}}, {50, 5, []string{light, phone}}, {10_000, 1, []string{phone}}} {
		for name, page := range samplePages(t, s.n, s.repeats) {
			if got := size(page); got >= 5_000_000 {
				t.Errorf("%s: got %d bytes, want less than 5 MB", name, got)
			}
			for _, look := range s.looks {
				p := b.Open(t, "file://"+page, pages.Options{Dark: look == phone, Phone: look == phone})
				t.Logf("%s %s: %d bytes, interactive after %.0f ms", name, look, size(page),
					pages.Eval[float64](p, `performance.getEntriesByType("navigation")[0].domInteractive`))
				if got := pages.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); got > 0 {
					t.Errorf("%s %s: got a page that is %g pixels too wide", name, look, got)
				}
				p.Screenshot(name + "-" + look)
				for _, problem := range p.Problems() {
					t.Errorf("%s %s: %s", name, look, problem)
				}
				if s.n > 50 {
					continue
				}
				// Of lines in detail some stand for all, for which axe-core takes minutes.
				pages.Eval[int](p, `document.querySelectorAll("details").forEach((d, i) => i < 10 ? d.open = i < 2 : d.remove()), 0`)
				p.Screenshot(name + "-open-" + look)
				p.Check()
			}
		}
	}
}

// samplePages writes the report and the comparison of n lines.
func samplePages(t *testing.T, n, repeats int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	first, second := sample(t, n, repeats, 1), sample(t, n, repeats, 2)
	report, compare := filepath.Join(dir, "report.html"), filepath.Join(dir, "compare.html")
	for _, args := range [][]string{{"report", first, "--html", report}, {"compare", first, second, "--html", compare}} {
		if out, err := command(dir, append([]string{"batch"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("batch %q: %v\n%s", args, err, out)
		}
	}
	return map[string]string{fmt.Sprintf("report-%d", n): report, fmt.Sprintf("compare-%d", n): compare}
}

// TestBatchReportKeys finds a line of a report and opens it with the keyboard alone.
func TestBatchReportKeys(t *testing.T) {
	t.Parallel()
	p := pages.Start(t).Open(t, "file://"+samplePages(t, 250, 1)["report-250"], pages.Options{})
	shown := func(want string) {
		t.Helper()
		p.Wait(fmt.Sprintf(`found.textContent === %q`, want))
	}
	shown("1 to 100 of 250")
	pages.Eval[int](p, `document.getElementById("text").focus(), 0`)
	p.Press("number 1")
	shown("1 to 100 of 111")
	p.Press(kb.Tab + "f") // the outcome: failed
	shown("1 to 14 of 14")
	p.Press(kb.Tab + "s") // the order: slowest first
	p.Press(kb.Tab)       // the table, which scrolls
	p.Press(kb.Tab)       // its first link
	p.Wait(`document.activeElement.tagName === "A"`)
	name := pages.Eval[string](p, `document.activeElement.textContent`)
	p.Press(kb.Enter)
	p.Wait(`[...document.querySelectorAll("details[open]")].some(d => d.querySelector("summary").textContent.includes(` + fmt.Sprintf("%q", name) + `))`)
	p.Check()
}
