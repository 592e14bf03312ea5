package faults

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// document has the table of the suite, between two marks.
const (
	document = "../../docs/reliability.md"
	begin    = "<!-- The table is written by `make faults`. -->\n"
	end      = "<!-- end of the table -->\n"
)

const head = "| fault | outcome | runs | slowest |\n|---|---|--:|--:|\n"

// writeTable puts what came of a run into the document.
func writeTable(faults []fault, records []record) error {
	raw, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, _, after, err := parts(raw)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(begin + head)
	for i, f := range faults {
		fmt.Fprintf(&b, "%s %d | %s |\n", f.row(), records[i].Runs, records[i].Slowest.Round(10*time.Millisecond))
	}
	b.WriteString(end)
	b.Write(after)
	return os.WriteFile(document, b.Bytes(), 0o644)
}

// row is what the suite says of a fault, as the first columns of the table.
func (f fault) row() string { return "| " + f.name + " | " + f.outcome + " |" }

// parts cuts the document at the marks.
func parts(raw []byte) (before, table, after []byte, err error) {
	before, rest, ok := bytes.Cut(raw, []byte(begin))
	table, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, nil, nil, fmt.Errorf("%s lacks the marks around its table", document)
	}
	return before, table, after, nil
}

// TestTable checks that the table has exactly the faults of the suite, with their outcomes, each run a hundred
// times at least.
func TestTable(t *testing.T) {
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _, err := parts(raw)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSuffix(strings.TrimPrefix(string(table), head), "\n"), "\n")
	faults := suite()
	if len(rows) != len(faults) {
		t.Errorf("%s: got %d rows, want %d; run make faults", document, len(rows), len(faults))
	}
	for i := range min(len(rows), len(faults)) {
		rest, ok := strings.CutPrefix(rows[i], faults[i].row())
		var runs int
		if _, err := fmt.Sscan(rest, &runs); !ok || err != nil || runs < 100 {
			t.Errorf("%s: got row %q, want %s and 100 runs or more; run make faults", document, rows[i], faults[i].row())
		}
	}
}
