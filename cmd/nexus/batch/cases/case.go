// Package cases reads the cases of a batch: questions and the expectations about their answers.
//
// [Load] reads JSON Lines, a JSON array, CSV and YAML. It reads a whole file and reports every mistake with its file
// and line. The returned cases are valid: ids are unique, expressions and schemas compile.
package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Case is one question of a batch.
type Case struct {
	ID        string
	Query     string          // with its variables replaced
	Context   json.RawMessage // text or messages; nil = none
	Servers   []string
	Plan      json.RawMessage // replaces the planner; nil = plan
	Tags      []string
	Timeout   float64 // seconds; 0 = as configured
	MaxRounds int     // 0 = as configured
	Expect    *Expect // nil expects only that there is no error
	Line      int     // where it begins in its file

	Definition string // SHA-256 of the case in the file, in hexadecimal
}

// Expect has the expectations of a case. Nil and empty fields are not checked.
type Expect struct {
	AnswerContains    []string
	AnswerNotContains []string
	AnswerMatches     *regexp.Regexp
	AnswerEquals      *string
	JSONSchema        *jsonschema.Schema // of the answer
	Tools             *Tools
	NotTools          []string
	Arguments         []Arguments
	MaxSteps          *int
	MaxSeconds        *float64
	MaxTokens         *int
	Degraded          *bool
	Unmet             *bool
	Judge             string // rubric
}

// Comparisons of the expected tools with the called ones.
const (
	ToolsExactly  = "exactly"  // these in any order and number
	ToolsIncludes = "includes" // these and possibly others
	ToolsSequence = "sequence" // these one after the other, possibly others in between
)

// Tools are the tools that a case expects to be called.
type Tools struct {
	How   string
	Names []string
}

// Arguments are values that one call of a tool must have.
type Arguments struct {
	Tool   string
	Values map[string]json.RawMessage // by path, such as filter.0.name
}

// Problem is a mistake in a file of cases.
type Problem struct {
	File string
	Line int // 0 = the file as a whole
	Text string
}

// String returns file:line: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Error lists the mistakes in a file of cases, at most maxProblems of them.
type Error struct {
	Problems []Problem
	More     int // that are not listed
}

const maxProblems = 50

// Error returns one mistake a line.
func (e *Error) Error() string {
	var text []byte
	for i, p := range e.Problems {
		if i > 0 {
			text = append(text, '\n')
		}
		text = append(text, p.String()...)
	}
	if e.More > 0 {
		text = fmt.Appendf(text, "\n%s: %d more mistakes", e.Problems[0].File, e.More)
	}
	return string(text)
}

// digest returns the hash of a case in the file.
func digest(object []byte) string {
	sum := sha256.Sum256(object)
	return hex.EncodeToString(sum[:])
}
