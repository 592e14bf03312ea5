// Package pattern compiles regular expressions when they are first used, so that commands that do not use them start
// sooner.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It panics if the expression is invalid. It is safe for
// concurrent use.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
