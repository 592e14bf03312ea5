package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// variable is what may stand between "${" and "}".
var variable = regexp.MustCompile(`^(env:)?([A-Za-z_][A-Za-z0-9_]*)(:-((?s:.*)))?$`)

// isVariable reports whether s can name an environment variable.
func isVariable(s string) bool {
	m := variable.FindStringSubmatch(s)
	return m != nil && m[1] == "" && m[3] == ""
}

// expand replaces ${VAR} by the value of the variable, and ${VAR:-default} by its value or, if it is unset or empty,
// by default, which ends at the first "}". "$${" means "${"; any other "$" is plain text. Values are not expanded
// again. With client, ${env:VAR} means ${VAR}. An unset variable without a default is an error.
func expand(s string, env func(string) (string, bool), client bool) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			out.WriteString(s)
			return out.String(), nil
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(literal + "${")
			s = rest
			continue
		}
		out.WriteString(before)
		inside, after, closed := strings.Cut(rest, "}")
		m := variable.FindStringSubmatch(inside)
		if !closed || m == nil || (m[1] != "" && !client) {
			return "", errors.New("after ${ want NAME} or NAME:-default}; write $${ for a plain ${")
		}
		value, ok := env(m[2])
		switch {
		case m[3] != "" && value == "":
			value = m[4]
		case !ok:
			return "", fmt.Errorf("environment variable %[1]s is not set; set it or write ${%[1]s:-default}", m[2])
		}
		out.WriteString(value)
		s = after
	}
}
