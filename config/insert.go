package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// plainText needs no quotes in YAML, in a flow list either.
	plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)
	// reserved means something else to one YAML reader or another.
	reserved = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
	// emptyServers is the line of an mcpServers key without entries.
	emptyServers = regexp.MustCompile(`^(mcpServers:)[ \t]*(?:\{[ \t]*\}|null|~)?([ \t]*#.*)?$`)
)

// insert returns content, a YAML file with the servers before (nil = none), with the servers in add appended. It
// parses the result and fails if anything else has changed.
func insert(file, content string, before *node, add []member) (string, error) {
	content, crlf := strings.ReplaceAll(content, "\r\n", "\n"), strings.Contains(content, "\r\n")
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if content == "" {
		lines = nil
	}
	key := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "mcpServers:") })
	if key < 0 {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, "mcpServers:")
		key = len(lines) - 1
	}
	indent := "  "
	if before != nil && len(before.members) > 0 {
		indent = strings.Repeat(" ", max(before.members[0].at.column-1, 1))
	} else {
		lines[key] = emptyServers.ReplaceAllString(lines[key], "$1$2")
	}
	end := key + 1 // index after the last line of the servers
	for i := end; i < len(lines); i++ {
		line := lines[i]
		if line != "" && !strings.ContainsAny(line[:1], " \t#") {
			break
		}
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			end = i + 1
		}
	}
	lines = slices.Insert(lines, end, render(add, indent)...)
	merged := strings.Join(lines, "\n") + "\n"
	if crlf {
		merged = strings.ReplaceAll(merged, "\n", "\r\n")
	}
	after, err := parseServers(file, merged)
	want := &node{kind: mapping, members: add}
	if before != nil {
		want.members = append(slices.Clone(before.members), add...)
	}
	if err != nil || after == nil || !same(after, want) {
		return "", fmt.Errorf("%s: cannot add to mcpServers in its current form; write it as an indented block", file)
	}
	return merged, nil
}

// same reports whether two values are equal, at any position.
func same(a, b *node) bool {
	return a.kind == b.kind && a.text == b.text && slices.EqualFunc(a.items, b.items, same) &&
		slices.EqualFunc(a.members, b.members, func(x, y member) bool { return x.key == y.key && same(x.value, y.value) })
}

// render writes members as the lines of a block mapping.
func render(members []member, indent string) []string {
	var lines []string
	for _, m := range members {
		line := indent + quoteText(m.key) + ":"
		if m.value.kind == mapping && len(m.value.members) > 0 {
			lines = append(lines, line)
			lines = append(lines, render(m.value.members, indent+"  ")...)
		} else {
			lines = append(lines, line+" "+renderValue(m.value))
		}
	}
	return lines
}

func renderValue(n *node) string {
	switch n.kind {
	case text:
		return quoteText(n.text)
	case list:
		items := make([]string, len(n.items))
		for i, value := range n.items {
			items[i] = renderValue(value)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case mapping:
		return "{}"
	case null:
		return "null"
	}
	return n.text
}

// quoteText returns text plain if that is safe, else in double quotes as in JSON.
func quoteText(s string) string {
	if plainText.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}
