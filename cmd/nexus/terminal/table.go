package terminal

import (
	"slices"
	"strings"

	tables "github.com/yuin/goldmark/extension/ast"
)

const (
	gap      = 3 // columns between two cells
	leastRow = 8 // columns of a cell that is not made narrower
)

// table lays out a table. Cells of wide columns are wrapped; if the terminal is too narrow for that, each row becomes
// lines that name their columns.
func (p page) table(n *tables.Table, columns int) (out []line) {
	var rows [][]line
	widths := make([]int, len(n.Alignments))
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		st := style(0)
		if len(rows) == 0 {
			st = bold
		}
		cells := make([]line, len(widths))
		for i, cell := 0, row.FirstChild(); cell != nil && i < len(cells); i, cell = i+1, cell.NextSibling() {
			cells[i] = p.inline(cell, st)
			for _, l := range wrap(cells[i], columns, true) {
				widths[i] = max(widths[i], l.columns())
			}
		}
		rows = append(rows, cells)
	}
	if !narrowed(widths, columns) {
		return records(rows, columns)
	}
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("─", w)
	}
	for i, cells := range rows {
		out = append(out, row(cells, widths, n.Alignments)...)
		if i == 0 {
			out = append(out, styled(strings.Join(rule, "─┼─"), dim))
		}
	}
	return out
}

// narrowed makes the widest columns narrower until all fit.
func narrowed(widths []int, columns int) bool {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	for ; sum > columns; sum-- {
		widest := slices.Max(widths)
		if widest <= leastRow {
			return false
		}
		widths[slices.Index(widths, widest)]--
	}
	return true
}

// row lays out one row.
func row(cells []line, widths []int, alignments []tables.Alignment) (out []line) {
	wrapped := make([][]line, len(cells))
	height := 1
	for i, cell := range cells {
		wrapped[i] = wrap(cell, widths[i], true)
		height = max(height, len(wrapped[i]))
	}
	for y := range height {
		var l line
		for i, w := range widths {
			var part line
			if y < len(wrapped[i]) {
				part = wrapped[i][y]
			}
			front := 0
			switch alignments[i] {
			case tables.AlignRight:
				front = w - part.columns()
			case tables.AlignCenter:
				front = (w - part.columns()) / 2
			}
			if i > 0 {
				l = append(l, styled(" │ ", dim)...)
			}
			l = append(l, part.padded(w, front)...)
		}
		out = append(out, trimmed(l))
	}
	return out
}

// records lays out each row as lines of a name and a value.
func records(rows [][]line, columns int) (out []line) {
	for i, cells := range rows[1:] {
		if i > 0 {
			out = append(out, nil)
		}
		for j, cell := range cells {
			out = append(out, wrap(slices.Concat(rows[0][j], styled(": ", bold), cell), columns, false)...)
		}
	}
	return out
}
