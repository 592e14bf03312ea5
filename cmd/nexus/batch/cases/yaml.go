package cases

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// readYAML reads a YAML list of cases.
func readYAML(text []byte, c *collector) {
	if line := deepCase(text); line > 0 {
		c.problem(line, "nests deeper than %d", maxNesting)
		return
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		c.yamlProblem(1, err)
		return
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		list, ok := doc.Body.(*ast.SequenceNode)
		if !ok {
			c.problem(doc.Body.GetToken().Position.Line, "want a list of cases, each of which begins with \"- id:\"")
			return
		}
		if (sizes{map[string]int{}}).of(list) > maxValues {
			c.problem(firstLine(list), "has more than %d values, counting each use of an alias", maxValues)
			return
		}
		var values []any // of the whole list, because an alias may refer to an anchor in another case
		if err := yaml.NodeToValue(list, &values); err != nil {
			c.yamlProblem(firstLine(list), err)
			return
		}
		for i, value := range values {
			line := firstLine(list.Values[i])
			object, err := json.Marshal(value)
			if err != nil {
				c.problem(line, "cannot be written as JSON: %v", err)
				continue
			}
			c.take(item{line: line, object: object})
		}
	}
}

// yamlProblem records an error of the library with its line, without the excerpt that the library adds.
func (c *collector) yamlProblem(line int, err error) {
	if known, ok := errors.AsType[yaml.Error](err); ok {
		if t := known.GetToken(); t != nil {
			line = t.Position.Line
		}
		c.problem(line, "invalid YAML: %s", known.GetMessage())
		return
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	c.problem(line, "invalid YAML: %s", text)
}

// firstLine returns the line where a node begins. The token of a mapping is the colon of its first value.
func firstLine(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	return node.GetToken().Position.Line
}
