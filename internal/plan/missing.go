package plan

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// maxMissing limits the missing arguments that the user can be asked for.
const maxMissing = 10

// missing returns the required arguments that are absent or null, if the arguments are valid once these are given.
func (v *Validator) missing(input, arguments json.RawMessage, unknown []string) []string {
	s, err := schema.Read(input)
	if err != nil {
		return nil
	}
	given := make(map[string]bool)
	for name, value := range memberSeq(jsontext.Value(arguments)) {
		given[name] = value.Kind() != 'n'
	}
	var names []string
	for _, name := range s.Required {
		if !given[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > maxMissing {
		return nil
	}
	filled := arguments
	for _, name := range names {
		if _, null := given[name]; !null {
			filled = withNull(filled, name)
		}
		unknown = append(unknown, pointer([]string{name}))
	}
	if v.validate(input, filled, unknown) != nil {
		return nil
	}
	return names
}

// withNull adds a null member to an object.
func withNull(object json.RawMessage, name string) json.RawMessage {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(object)), "{"))
	if rest != "}" {
		rest = "," + rest
	}
	return append(append([]byte{'{'}, appendQuoted(nil, name)...), ":null"+rest...)
}
