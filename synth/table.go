package synth

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// table reports whether a list should be a table: its objects have the same few short scalars and no title.
func (n node) table() bool {
	if len(n.items) < 2 || len(n.items) > maxRows || n.cut {
		return false
	}
	columns := n.items[0].keys
	if len(columns) < 2 || len(columns) > maxColumns {
		return false
	}
	for _, row := range n.items {
		if row.kind != '{' || !slices.Equal(row.keys, columns) {
			return false
		}
		for _, cell := range row.items {
			if !cell.scalar() || utf8.RuneCountInString(cell.text) > maxCell || strings.ContainsAny(cell.text, "\n|") {
				return false
			}
		}
	}
	return true
}

func (p *page) rows(n node, indent int) {
	columns := n.items[0].keys
	p.line(indent, "| %s |", strings.Join(columns, " | "))
	p.line(indent, "|%s", strings.Repeat(" --- |", len(columns)))
	for _, row := range n.items {
		cells := make([]string, len(row.items))
		for i, cell := range row.items {
			if cell.kind != 'n' {
				cells[i] = cell.text
			}
		}
		p.line(indent, "| %s |", strings.Join(cells, " | "))
	}
}
