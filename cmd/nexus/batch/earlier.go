package batch

import (
	"fmt"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// Earlier has the lines of a results file from earlier runs.
type Earlier struct {
	Tally Tally
	lines map[results.Key]struct{}
}

// Has reports whether a case and repeat has a line. A nil Earlier has none.
func (e *Earlier) Has(id string, repeat int) bool {
	if e == nil {
		return false
	}
	_, has := e.lines[results.Key{Case: id, Repeat: repeat}]
	return has
}

// brief is the part of a line that resuming needs.
type brief struct {
	Case        string   `json:"case"`
	Repeat      int      `json:"repeat"`
	Outcome     string   `json:"outcome"`
	Definition  string   `json:"definition"`
	Fingerprint string   `json:"fingerprint"`
	Cost        *float64 `json:"cost"`
}

// ReadEarlier reads a results file to resume. It refuses a file with other cases or another fingerprint, because its
// lines are not comparable with new ones. all has all cases of the file of cases.
func ReadEarlier(path string, all []cases.Case, fingerprint string) (*Earlier, error) {
	e := &Earlier{lines: map[results.Key]struct{}{}}
	known := map[string]string{}
	for _, c := range all {
		known[c.ID] = c.Definition
	}
	number := 0
	_, err := results.Read(path, func(l *brief, _ results.Place) error {
		number++
		wrong := ""
		definition, is := known[l.Case]
		key := results.Key{Case: l.Case, Repeat: l.Repeat}
		_, again := e.lines[key]
		switch {
		case l.Case == "" || l.Repeat < 1 || l.Outcome == "":
			wrong = "not a result: it needs case, repeat and outcome"
		case again:
			wrong = fmt.Sprintf("case %s, repeat %d has a line already; remove one", l.Case, l.Repeat)
		case !is:
			wrong = fmt.Sprintf("case %s is not among the cases any more; write to another --out, or restore the case", l.Case)
		case l.Definition != definition:
			wrong = fmt.Sprintf("case %s has changed since; write to another --out, or restore the case", l.Case)
		case l.Fingerprint != fingerprint:
			wrong = "was written with another configuration, catalog or version; write to another --out, or restore what was used"
		}
		if wrong != "" {
			return &results.Error{Path: path, Line: number, Text: wrong}
		}
		e.lines[key] = struct{}{}
		e.Tally.Count(l.Outcome)
		if l.Cost != nil {
			e.Tally.Cost += *l.Cost
		}
		return nil
	})
	return e, err
}
