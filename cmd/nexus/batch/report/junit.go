package report

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// suite and its fields are the elements of JUnit's XML.
type suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
}

type testCase struct {
	XMLName xml.Name `xml:"testcase"`
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *problem `xml:"failure"`
	Error   *problem `xml:"error"`
	Skipped *problem `xml:"skipped"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a test case for each line, in the order of the file, and reads the file once more.
func (b *Batch) WriteJUnit(w io.Writer) error {
	out := bufio.NewWriter(w)
	c := b.Counts()
	total := 0.0
	for _, r := range b.Rows {
		total += r.Seconds
	}
	head := suite{Name: "nexus batch", Tests: c.Lines, Failures: c.Failed, Errors: c.Errors, Skipped: c.Skipped, Time: fmt.Sprintf("%.3f", total)}
	raw, err := xml.Marshal(head)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%s\n", xml.Header, strings.TrimSuffix(string(raw), "</testsuite>"))
	_, err = results.Read(b.Path, func(l *full, _ results.Place) error {
		raw, err := xml.Marshal(l.test())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "  %s\n", raw)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "</testsuite>")
	return out.Flush()
}

func (l *full) test() testCase {
	d := Detail{Case: l.Case, Repeat: l.Repeat}
	t := testCase{Name: d.name(), Class: "nexus.batch", Time: fmt.Sprintf("%.3f", l.Seconds)}
	reasons := l.reasons()
	p := &problem{Text: strings.Join(append(reasons, "query: "+short.Text(l.Query, maxQuery)), "\n")}
	if len(reasons) > 0 {
		p.Message = reasons[0]
	}
	switch outcome(l.Outcome) {
	case results.Failed:
		t.Failure = p
	case results.Errored:
		t.Error = p
	case results.Skipped:
		t.Skipped = p
	}
	return t
}
