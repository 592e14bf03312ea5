package report

import (
	"fmt"
	"html/template"
	"strings"
)

// Sizes of a drawing, in its own units.
const (
	boxWidth  = 170
	boxHeight = 44
	gapX      = 40
	gapY      = 14
	margin    = 4
	maxLabel  = 22 // characters
)

// graph draws a plan: columns from left to right, each step to the right of what it waits for.
func graph(steps []DetailStep) template.HTML {
	columns := depths(steps)
	rows := map[int]int{} // used of a column
	type point struct{ x, y int }
	places := map[string]point{}
	width, height := 0, 0
	var boxes, lines strings.Builder
	for i, s := range steps {
		at := point{margin + columns[i]*(boxWidth+gapX), margin + rows[columns[i]]*(boxHeight+gapY)}
		rows[columns[i]]++
		places[s.ID] = at
		width, height = max(width, at.x+boxWidth+margin), max(height, at.y+boxHeight+margin)
		fmt.Fprintf(&boxes, `<g class="%s"><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
			strings.ReplaceAll(s.Status, " ", "-"), at.x, at.y, boxWidth, boxHeight)
		fmt.Fprintf(&boxes, `<text x="%d" y="%d">%s</text><text class="sub" x="%d" y="%d">%s</text></g>`,
			at.x+8, at.y+18, template.HTMLEscapeString(cut(s.ID+" "+s.Tool, maxLabel)),
			at.x+8, at.y+35, template.HTMLEscapeString(fmt.Sprintf("%s, %.1f ms", s.Status, s.Millis)))
	}
	for _, s := range steps {
		to := places[s.ID]
		for _, id := range s.After {
			from, drawn := places[id]
			if !drawn {
				continue
			}
			x1, y1, x2, y2 := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
			fmt.Fprintf(&lines, `<path d="M%d %d C%d %d %d %d %d %d"/>`, x1, y1, x1+gapX/2, y1, x2-gapX/2, y2, x2, y2)
		}
	}
	var described []string
	for _, s := range steps {
		text := s.ID + " " + s.Tool + " " + s.Status
		if len(s.After) > 0 {
			text += " after " + strings.Join(s.After, ", ")
		}
		described = append(described, text)
	}
	label := template.HTMLEscapeString("Plan: " + strings.Join(described, "; "))
	head := fmt.Sprintf(`<svg class="plan" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		width, height, width, height, label)
	return template.HTML(head + lines.String() + boxes.String() + "</svg>")
}

// depths returns the column of each step. Steps of a cycle end where they are met again.
func depths(steps []DetailStep) []int {
	index := map[string]int{}
	for i, s := range steps {
		index[s.ID] = i
	}
	columns := make([]int, len(steps))
	for range steps { // each round sets at least the next column
		changed := false
		for i, s := range steps {
			for _, id := range s.After {
				if j, known := index[id]; known && columns[i] <= columns[j] && columns[j]+1 < len(steps) {
					columns[i], changed = columns[j]+1, true
				}
			}
		}
		if !changed {
			break
		}
	}
	return columns
}
