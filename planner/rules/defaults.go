package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// accepts reports whether a value has the parameter's type.
func (p param) accepts(v any) bool {
	switch v := v.(type) {
	case string:
		return p.kind == "string" || p.kind == ""
	case bool:
		return p.kind == "boolean" || p.kind == ""
	case float64:
		return p.kind == "number" || p.kind == "integer" && v == float64(int64(v)) || p.kind == ""
	case []any:
		return p.kind == "array" || p.kind == ""
	case map[string]any:
		return p.kind == "object" || p.kind == ""
	}
	return false
}

var statedDefault = regexp.MustCompile(`(?i)\bdefaults?(?: value)?(?: is| to|:| =)? ['"` + "`" + `]?([\w.+-]*\w)`)

// describedDefault is the default that a description states in words: "Default is 52."
func (p param) describedDefault() any {
	m := statedDefault.FindStringSubmatch(p.description)
	if m == nil {
		return nil
	}
	word := m[1]
	switch p.kind {
	case "boolean":
		if b, err := strconv.ParseBool(strings.ToLower(word)); err == nil {
			return b
		}
	case "integer":
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return float64(n)
		}
	case "number":
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			return f
		}
	case "string":
		if len(p.enum) > 0 && slices.Contains(p.enum, any(word)) {
			return word
		}
	}
	return nil
}

// convention is what a required parameter is by common usage when nobody says otherwise: results are
// read from the first on.
func (p param) convention() (any, bool) {
	if p.kind != "integer" && p.kind != "number" {
		return nil, false
	}
	switch p.name {
	case "offset", "skip", "start_index", "startIndex":
		return 0, true
	case "page", "page_number", "pageNumber", "page_num":
		return 1, true
	}
	return nil, false
}
