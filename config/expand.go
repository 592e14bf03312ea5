package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// variable is what may stand between "${" and "}".
var variable = pattern.New(`^(env:)?([A-Za-z_][A-Za-z0-9_]*)(:-((?s:.*)))?$`)

// isVariable reports whether s can name an environment variable.
func isVariable(s string) bool {
	m := variable().FindStringSubmatch(s)
	return m != nil && m[1] == "" && m[3] == ""
}

// expand replaces ${VAR} by the value of the variable, and ${VAR:-default} by its value or, if it is unset or empty,
// by default, which ends at the first "}" that closes no variable within it, and is expanded, too. "$${" means "${";
// any other "$" is plain text. Values are not expanded again. With client, ${env:VAR} means ${VAR}. An unset variable
// without a default is an error; other mistakes come first.
func expand(s string, env func(string) (string, bool), client bool) (_ string, missing error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			out.WriteString(s)
			return out.String(), missing
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(literal + "${")
			s = rest
			continue
		}
		out.WriteString(before)
		inside, after, closed := cutVariable(rest)
		m := variable().FindStringSubmatch(inside)
		switch {
		case client && strings.HasPrefix(inside, "input:"):
			return "", fmt.Errorf("${%s} is asked for by the desktop client; write ${env:NAME} and set the variable", inside)
		case !closed || m == nil || (m[1] != "" && !client):
			return "", errors.New("after ${ want NAME} or NAME:-default}; write $${ for a plain ${")
		}
		value, ok := env(m[2])
		switch {
		case m[3] != "" && value == "":
			var err error
			if value, err = expand(m[4], env, client); err != nil {
				return "", err
			}
		case !ok && missing == nil:
			missing = &unset{m[2]}
		}
		out.WriteString(value)
		s = after
	}
}

// unset is the error for a variable that is not set.
type unset struct{ name string }

// Error implements error.
func (u *unset) Error() string {
	return fmt.Sprintf("environment variable %[1]s is not set; set it or write ${%[1]s:-default}", u.name)
}

// cutVariable cuts s at the "}" that closes it.
func cutVariable(s string) (inside, after string, closed bool) {
	open := 1
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			open++
		case s[i] == '}':
			if open--; open == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}
