package cases

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// listSeparator separates the elements of a list in a cell.
const listSeparator = ";"

// readCSV reads a table whose first row names the fields. Empty cells are fields that are not given.
func readCSV(text []byte, c *collector) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return
	}
	if err != nil {
		c.csvProblem(1, err)
		return
	}
	unknown := false
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		if kindOf(header[i]) == cellUnknown {
			unknown = true
			c.problem(1, "unknown column %q; known: %s, vars.NAME and expect.CHECK", shown(header[i]), strings.Join(caseFields, ", "))
		}
	}
	for !unknown {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			c.csvProblem(0, err)
			return
		}
		line, _ := r.FieldPos(0)
		if len(row) != len(header) {
			c.problem(line, "has %d columns, and the first row has %d", len(row), len(header))
			continue
		}
		if object, ok := c.object(line, header, row); ok {
			c.take(item{line: line, object: object})
		}
	}
}

func (c *collector) csvProblem(line int, err error) {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		line, err = parse.Line, parse.Err
	}
	c.problem(line, "invalid CSV: %v", err)
}

// Kinds of cells.
type cell int

const (
	cellUnknown cell = iota
	cellText
	cellList
	cellJSON
)

// kindOf returns the kind of the cells of a column.
func kindOf(column string) cell {
	switch column {
	case "id", "query", "expect.answer_matches", "expect.answer_equals", "expect.judge":
		return cellText
	case "servers", "tags", "expect.answer_contains", "expect.answer_not_contains", "expect.tools", "expect.not_tools",
		"expect.tools.includes", "expect.tools.sequence":
		return cellList
	case "context", "plan", "vars", "timeout_seconds", "max_rounds", "expect", "expect.json_schema", "expect.arguments",
		"expect.max_steps", "expect.max_seconds", "expect.max_tokens", "expect.degraded", "expect.unmet":
		return cellJSON
	}
	if name, ok := strings.CutPrefix(column, "vars."); ok && name != "" {
		return cellText
	}
	return cellUnknown
}

// object returns a row as a JSON object.
func (c *collector) object(line int, header, row []string) (object []byte, ok bool) {
	fields := map[string]any{}
	ok = true
	for i, column := range header {
		if row[i] == "" {
			continue
		}
		value, err := valueOf(column, row[i])
		if err != nil {
			c.problem(line, "%s: %v", column, err)
			ok = false
			continue
		}
		into := fields
		path := strings.Split(column, ".")
		for _, name := range path[:len(path)-1] {
			inner, is := into[name].(map[string]any)
			if !is {
				inner = map[string]any{}
				into[name] = inner
			}
			into = inner
		}
		name := path[len(path)-1]
		if members, is := value.(map[string]any); is {
			if before, is := into[name].(map[string]any); is { // an earlier column such as vars.a
				maps.Copy(members, before)
			}
		}
		into[name] = value
	}
	if !ok || len(fields) == 0 {
		return nil, false
	}
	object, err := json.Marshal(fields)
	return object, err == nil
}

func valueOf(column, text string) (any, error) {
	switch kindOf(column) {
	case cellList:
		if object := strings.TrimSpace(text); column == "expect.tools" && strings.HasPrefix(object, "{") {
			if !json.Valid([]byte(object)) {
				return nil, errors.New("want JSON, or a list of tools")
			}
			return json.RawMessage(object), nil
		}
		list := []string{}
		for part := range strings.SplitSeq(text, listSeparator) {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	case cellJSON:
		text = strings.TrimSpace(text)
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			text = lower // as spreadsheets write them
		}
		var members map[string]json.RawMessage
		if (column == "vars" || column == "expect") && json.Unmarshal([]byte(text), &members) == nil {
			object := map[string]any{}
			for name, value := range members {
				object[name] = value
			}
			return object, nil
		}
		if json.Valid([]byte(text)) {
			return json.RawMessage(text), nil
		}
		if column == "context" {
			return text, nil
		}
		return nil, errors.New("want JSON")
	}
	return text, nil
}

// maxNesting bounds brackets and dashes in a YAML file, including those in texts. The library has no bound.
const maxNesting = 1000

// readLines reads JSON Lines. An invalid line is a mistake; later lines are still read.
func readLines(text []byte, c *collector) {
	line := 0
	for raw := range bytes.Lines(text) {
		line++
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			c.take(item{line: line, object: raw})
		}
	}
}

// readYAML reads a YAML list of cases, or a JSON array of them, which is YAML without tabs.
func readYAML(text []byte, c *collector) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	if line := deep(text); line > 0 {
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
		if aliases := ast.Filter(ast.AliasType, list); len(aliases) > 0 { // a few can stand for millions of values
			c.problem(aliases[0].GetToken().Position.Line, "aliases are not supported; write the value itself")
			return
		}
		var values []any
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

// deep returns the line in which brackets and dashes nest too deep, 0 if there is none.
func deep(text []byte) int {
	depth, number := 0, 0
	for line := range bytes.Lines(text) {
		number++
		if len(line) > 1 && line[0] == '-' && line[1] == ' ' && !bytes.ContainsAny(line, "[{") {
			depth = 0 // a new case
		}
		depth += bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{")) -
			bytes.Count(line, []byte("]")) - bytes.Count(line, []byte("}"))
		depth = max(depth, 0)
		marks := bytes.Count(line, []byte("- ")) + bytes.Count(line, []byte("? ")) + bytes.Count(line, []byte(": ")) +
			bytes.Count(line, []byte("!")) + bytes.Count(line, []byte("&"))
		if depth+marks > maxNesting {
			return number
		}
	}
	return 0
}
