package cases

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
)

// filterable is what an expression of --filter may ask of a case.
type filterable struct {
	ID      string   `expr:"id"`
	Query   string   `expr:"query"`
	Tags    []string `expr:"tags"`
	Servers []string `expr:"servers"`
	Plan    bool     `expr:"plan"`   // it brings its own
	Expect  bool     `expr:"expect"` // it has checks
}

// maxNodes bounds an expression.
const maxNodes = 200

// Filter returns the cases for which an expr-lang expression over id, query, tags, servers, plan and expect is true.
func Filter(all []Case, expression string) ([]Case, error) {
	program, err := expr.Compile(expression, expr.Env(filterable{}), expr.AsBool(), expr.MaxNodes(maxNodes))
	if err != nil {
		return nil, fmt.Errorf("--filter %s: %s", expression, oneLine(err))
	}
	var kept []Case
	for _, c := range all {
		holds, err := expr.Run(program, filterable{
			ID: c.ID, Query: c.Query, Tags: c.Tags, Servers: c.Servers, Plan: c.Plan != nil, Expect: c.Expect != nil,
		})
		if err != nil {
			return nil, fmt.Errorf("--filter %s: case %s: %s", expression, c.ID, oneLine(err))
		}
		if holds == true {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
