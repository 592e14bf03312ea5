package expression

import (
	"regexp"
	"regexp/syntax"
)

// Pattern is a regular expression and the length of its program.
type Pattern struct {
	*regexp.Regexp
	Size int // instructions
}

// CompilePattern reads a regular expression.
func CompilePattern(source string) (*Pattern, error) {
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	parsed, _ := syntax.Parse(source, syntax.Perl) // regexp.Compile has done the same without an error
	program, _ := syntax.Compile(parsed.Simplify())
	return &Pattern{re, len(program.Inst)}, nil
}
