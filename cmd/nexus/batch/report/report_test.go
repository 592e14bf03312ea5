package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
)

// write writes n lines of that many steps, of which every tenth has failed, and reads them.
func write(t *testing.T, n, steps int) *report.Batch {
	t.Helper()
	var plan, ran []string
	for i := range steps {
		plan = append(plan, fmt.Sprintf(`{"id":"s%d","tool":"tool <%d>","arguments":{"x":"$s%d.y"}}`, i, i, i-1))
		ran = append(ran, fmt.Sprintf(`{"id":"s%d","tool":"tool <%d>","server":"a","success":true,"attempts":1}`, i, i))
	}
	var text strings.Builder
	for i := range n {
		outcome, check := "passed", `{"name":"tools","passed":true}`
		if i%10 == 9 {
			outcome, check = "failed", `{"name":"tools","passed":false,"reason":"<script>alert(1)</script> & more"}`
		}
		fmt.Fprintf(&text, `{"case":"case %05d </script>","repeat":1,"outcome":%q,"checks":[%s],"result":{"answer":%q,"plan":{"steps":[%s]},"steps":[%s]},"seconds":%g,"tokens":{"input":1,"output":1},"trace_id":"","fingerprint":"f","query":"what?"}`+"\n",
			i, outcome, check, strings.Repeat("<b>long</b> ", 300), strings.Join(plan, ","), strings.Join(ran, ","), float64(i)/1000)
	}
	return load(t, text.String())
}

// load reads lines of results.
func load(t *testing.T, lines string) *report.Batch {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// figures computes the figures of a batch.
func figures(t *testing.T, b *report.Batch) *report.Figures {
	t.Helper()
	f, err := b.Figures()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The page requests nothing, and what stands in results stays text.
func TestHTML(t *testing.T) {
	b := write(t, 500, 12)
	f := figures(t, b)
	var page bytes.Buffer
	if err := b.WriteHTML(&page, f); err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for z := html.NewTokenizer(&page); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Error(z.Err())
			}
			break
		}
		token := z.Token()
		if kind == html.StartTagToken && token.Data == "script" {
			scripts++
		}
		for _, a := range token.Attr {
			if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "#") && a.Val != "data:," {
				t.Errorf("got a request for %s", a.Val)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("got %d scripts, want 1", scripts)
	}
}

// Whatever form a report has, it begins with the lines that failed.
func TestFailuresFirst(t *testing.T) {
	b := write(t, 10, 1)
	f := figures(t, b)
	var text, markdown, page strings.Builder
	if err := errors.Join(f.WriteText(&text), f.WriteMarkdown(&markdown), b.WriteHTML(&page, f)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ form, report, other string }{
		{"text", text.String(), "pass rate"}, {"Markdown", markdown.String(), "pass rate"}, {"HTML", page.String(), "By reason</h2>"},
	} {
		_, body, _ := strings.Cut(row.report, "</header>")
		if body == "" {
			body = row.report
		}
		failure, other := strings.Index(body, "case 00009"), strings.Index(body, row.other)
		if failure < 0 || other < failure {
			t.Errorf("%s: got the failure at %d and %q at %d, want the failure first", row.form, failure, row.other, other)
		}
	}
}

func TestJUnitIsXML(t *testing.T) {
	b := write(t, 30, 1)
	var out bytes.Buffer
	if err := b.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests int `xml:"tests,attr"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(out.Bytes(), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 30 || len(suite.Cases) != 30 || suite.Cases[9].Failure == nil || suite.Cases[8].Failure != nil {
		t.Errorf("got %+v", suite)
	}
}

// Lines that are there twice, as of files put together, are no repeats.
func TestLineTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	const a, b = `{"case":"a","repeat":1,"outcome":"passed"}` + "\n", `{"case":"a","repeat":2,"outcome":"passed"}` + "\n"
	if err := os.WriteFile(path, []byte(a+b+a), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Load(path); err == nil || !strings.HasSuffix(err.Error(), ":3: case a, repeat 1 has a line already; remove one") {
		t.Errorf("got %v, want the third line refused", err)
	}
}

// Neither a terminal nor Markdown interprets what stands in results.
func TestHostileTexts(t *testing.T) {
	const hostile = `\u001b[2J\u0007\r\n| <img src=x> &lt;b> @everyone`
	text := `{"case":"a` + hostile + `","repeat":1,"outcome":"failed","tags":["t` + hostile + `"],"checks":[{"name":"c","passed":false,"reason":"` +
		hostile + `"}],"result":{},"fingerprint":"f"}` + "\n"
	f := figures(t, load(t, text))
	var plain, markdown bytes.Buffer
	if err := errors.Join(f.WriteText(&plain), f.WriteMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{plain.String(), markdown.String()} {
		if strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), unicode.IsControl) || !strings.Contains(got, "[2J") {
			t.Errorf("got %q, want the case without control characters", got)
		}
	}
	if got := markdown.String(); strings.ContainsAny(got, "<@") || strings.Contains(got, " &lt;b") {
		t.Errorf("got %s, want no markup and no mention", got)
	}
}

// What no model has answered cost nothing; without a price, what one has cost is not known.
func TestMetrics_Cost(t *testing.T) {
	for tokens, known := range map[int]bool{0: true, 7: false} {
		b := load(t, fmt.Sprintf(`{"case":"a","repeat":1,"outcome":"passed","tokens":{"input":%d,"output":0}}`+"\n", tokens))
		if cost, ok := b.Metrics()["cost"]; ok != known || cost != 0 {
			t.Errorf("%d tokens: got cost %g, known %t, want known %t", tokens, cost, ok, known)
		}
	}
}

func TestGates(t *testing.T) {
	a := map[string]float64{"p95": 2, "errors": 0}
	b := map[string]float64{"p95": 3, "errors": 1, "pass_rate": 0.9}
	for text, fails := range map[string]bool{
		"pass_rate<0.9": false, "pass_rate <= 0.9": true, "pass_rate>0.8": true, "errors>=2": false, "errors==1": true, "errors!=1": false,
		"p95>1.4x": true, "p95>1.5x": false, "cost>1": true, // what is not known cannot be held
	} {
		g, err := report.ParseGate(text, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if failed := report.Judge([]report.Gate{g}, a, b); (len(failed) > 0) != fails {
			t.Errorf("%s: got %q, want failed %t", text, failed, fails)
		}
	}
	for _, text := range []string{"", "p95", "p95>", "p95>x", "p95>1.2.3", "speed>1", "p95=>1", "flipped_to_fail>1x"} {
		if _, err := report.ParseGate(text, true); err == nil {
			t.Errorf("%s: got a gate, want an error", text)
		}
	}
	for _, text := range []string{"p95>1x", "flipped_to_pass<1"} {
		if _, err := report.ParseGate(text, false); err == nil {
			t.Errorf("%s without A: got a gate, want an error", text)
		}
	}
}

// A step waits for the steps that the router waits for: those of its conditions, too, and none that a text or an element
// of a list is only named like.
func TestStepsAfter(t *testing.T) {
	line := `{"case":"a","repeat":1,"outcome":"failed","checks":[],"result":{"plan":{"steps":[{"id":"a","tool":"t","arguments":{}},{"id":"item","tool":"t","arguments":{}},` +
		`{"id":"b","tool":"t","arguments":{"x":"$c"},"pick":"value + a"},{"id":"c","tool":"t","when":"b == \"a\"","arguments":{}},{"id":"d","tool":"t","each":"$a","arguments":{"x":"$item.y"}}]}},"seconds":1,"trace_id":"","fingerprint":"f"}`
	f := figures(t, load(t, line+"\n"))
	got := ""
	for _, s := range f.Failures[0].Steps {
		got += fmt.Sprint(s.ID, s.After)
	}
	if want := "a[]item[]b[a c]c[b]d[a]"; got != want {
		t.Errorf("got the edges %s, want %s", got, want)
	}
}
