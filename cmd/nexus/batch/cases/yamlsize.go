package cases

import (
	"bytes"

	"github.com/goccy/go-yaml/ast"
)

// Bounds of a YAML file. The library has none.
const (
	maxNesting = 1000      // of brackets, dashes and the like in one case, including those in texts
	maxValues  = 2_000_000 // counting each use of an alias
)

// deepCase returns the line of the case in which brackets and dashes nest too deep, 0 if there is none.
func deepCase(text []byte) int {
	number, depth, goesOn := 0, 0, false
	for line := range bytes.Lines(text) {
		number++
		if bytes.HasPrefix(line, []byte("- ")) && !goesOn {
			depth = 0
		}
		before, _, _ := bytes.Cut(line, []byte(" #"))
		if before = bytes.TrimSpace(before); len(before) > 0 && before[0] != '#' {
			goesOn = bytes.IndexByte([]byte("[{,:"), before[len(before)-1]) >= 0
		}
		within := 0 // levels that the end of the line closes
		for i, c := range line {
			switch {
			case c == '[', c == '{':
				depth++
			case (c == ']' || c == '}') && depth > 0:
				depth--
			case (c == '-' || c == '?' || c == ':') && i+1 < len(line) && line[i+1] == ' ', c == '!', c == '&':
				within++
			}
			if depth+within > maxNesting {
				return number
			}
		}
	}
	return 0
}

// sizes counts values.
type sizes struct{ anchors map[string]int }

// of returns how many values a node has, more than maxValues if it has too many.
func (s sizes) of(n ast.Node) int {
	sum := 1
	add := func(of ...ast.Node) {
		for _, part := range of {
			if part != nil && sum <= maxValues {
				sum += s.of(part)
			}
		}
	}
	switch n := n.(type) {
	case *ast.SequenceNode:
		add(n.Values...)
	case *ast.MappingNode:
		for _, member := range n.Values {
			add(member)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.TagNode:
		add(n.Value)
	case *ast.AnchorNode:
		add(n.Value)
		s.anchors[n.Name.GetToken().Value] = sum
	case *ast.AliasNode:
		sum = max(1, s.anchors[n.Value.GetToken().Value])
	}
	return sum
}
