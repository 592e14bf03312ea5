package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Sizes of a drawing, in its own units, which are about pixels.
const (
	boxHeight  = 42
	lineHeight = 15 // more of a box, for a condition
	bendHeight = 8
	gapX       = 36
	gapY       = 14
	margin     = 4
	charWidth  = 8
	minLabel   = 14 // bytes
	maxLabel   = 24
)

// node is a step or a bend. A bend is the place of an edge in a column that the edge passes, so that it crosses no box.
type node struct {
	step   int // -1 = a bend
	column int
	height int
	before []*node // in the column before, from which edges come
	y      int     // of the middle
}

// drawing lays out a plan in columns from left to right, with each step to the right of the steps that it waits for.
type drawing struct {
	steps   []DetailStep
	nodes   []*node // those of the steps come first, in their order
	columns [][]*node
	width   int // of a box
	height  int
}

func graph(steps []DetailStep) template.HTML {
	d := drawing{steps: steps}
	d.connect()
	d.arrange()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plan" width="%d" height="%d" role="img" aria-label="%s">`,
		d.x(len(d.columns))-gapX+margin, d.height, template.HTMLEscapeString(describe(steps)))
	for _, n := range d.nodes {
		d.edges(&b, n)
	}
	for i, s := range steps {
		d.box(&b, d.nodes[i], s)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// connect makes the nodes. Edges of one step share their bends.
func (d *drawing) connect() {
	depth := depths(d.steps)
	d.columns = make([][]*node, slices.Max(append(depth, 0))+1)
	add := func(n *node) *node {
		d.nodes = append(d.nodes, n)
		d.columns[n.column] = append(d.columns[n.column], n)
		return n
	}
	index := map[string]int{}
	label := minLabel
	for i, s := range d.steps {
		index[s.ID] = i
		n := add(&node{step: i, column: depth[i], height: boxHeight})
		if condition(s) != "" {
			n.height += lineHeight
		}
		label = max(label, len(tool(s)), len(status(s)), len(condition(s)))
	}
	d.width = charWidth*min(label, maxLabel) + 2*margin
	bends := map[[2]int]*node{}
	for i, s := range d.steps {
		for _, id := range s.After {
			from, known := index[id]
			if !known || depth[from] >= depth[i] { // an edge of a cycle
				continue
			}
			last := d.nodes[from]
			for c := depth[from] + 1; c < depth[i]; c++ {
				key := [2]int{from, c}
				if bends[key] == nil {
					bends[key] = add(&node{step: -1, column: c, height: bendHeight, before: []*node{last}})
				}
				last = bends[key]
			}
			d.nodes[i].before = append(d.nodes[i].before, last)
		}
	}
}

// arrange sorts each column by the positions of connected nodes, so that few edges cross.
func (d *drawing) arrange() {
	after := map[*node][]*node{}
	for _, n := range d.nodes {
		for _, from := range n.before {
			after[from] = append(after[from], n)
		}
	}
	for _, column := range d.columns {
		d.stack(column)
	}
	sweep := func(column []*node, neighbours func(*node) []*node) {
		middle := map[*node]float64{}
		for _, n := range column {
			middle[n] = float64(n.y)
			if near := neighbours(n); len(near) > 0 {
				sum := 0
				for _, o := range near {
					sum += o.y
				}
				middle[n] = float64(sum) / float64(len(near))
			}
		}
		slices.SortStableFunc(column, func(a, b *node) int { return cmp.Compare(middle[a], middle[b]) })
		d.stack(column)
	}
	for range 2 {
		for _, column := range d.columns {
			sweep(column, func(n *node) []*node { return n.before })
		}
		for _, column := range slices.Backward(d.columns) {
			sweep(column, func(n *node) []*node { return after[n] })
		}
	}
	for _, n := range d.nodes {
		n.y += d.height / 2
	}
}

// stack places a column around 0.
func (d *drawing) stack(column []*node) {
	height := 2*margin - gapY
	for _, n := range column {
		height += n.height + gapY
	}
	d.height = max(d.height, height)
	y := margin - height/2
	for _, n := range column {
		n.y = y + n.height/2
		y += n.height + gapY
	}
}

func (d *drawing) x(column int) int { return margin + column*(d.width+gapX) }

// edges draws the edges that end at a node.
func (d *drawing) edges(b *strings.Builder, n *node) {
	x := d.x(n.column)
	for _, from := range n.before {
		fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, x-gapX, from.y, x-gapX/2, from.y, x-gapX/2, n.y, x, n.y)
	}
	switch {
	case n.step < 0:
		fmt.Fprintf(b, `<path d="M%d %dh%d"/>`, x, n.y, d.width)
	case len(n.before) > 0:
		fmt.Fprintf(b, `<path class="head" d="M%d %dl-7 -4v8z"/>`, x, n.y)
	}
}

func (d *drawing) box(b *strings.Builder, n *node, s DetailStep) {
	x, y := d.x(n.column), n.y-n.height/2
	class, title := strings.ReplaceAll(s.Status, " ", "-"), template.HTMLEscapeString(s.ID+": "+s.Tool+" "+s.Arguments)
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
		class, title, x, y, d.width, n.height)
	for i, text := range []string{tool(s), status(s), condition(s)} {
		class := ""
		if i > 0 {
			class = ` class="sub"`
		}
		fmt.Fprintf(b, `<text%s x="%d" y="%d">%s</text>`, class, x+8, y+17+i*lineHeight, template.HTMLEscapeString(texts.Line(text, maxLabel)))
	}
	b.WriteString("</g>")
}

// tool names the tool of a step, without its server where the name is long.
func tool(s DetailStep) string {
	if _, rest, prefixed := strings.Cut(s.Tool, "__"); prefixed && len(s.Tool) > maxLabel {
		return rest
	}
	return s.Tool
}

// status describes the outcome of a step.
func status(s DetailStep) string {
	text := s.ID + ": " + s.Status
	if s.Millis > 0 {
		text += ", " + seconds(s.Millis/1000)
	}
	return text
}

// condition describes when and over which list a step runs.
func condition(s DetailStep) string {
	var parts []string
	if s.Each != "" {
		parts = append(parts, "each "+s.Each)
	}
	if s.When != "" {
		parts = append(parts, "when "+s.When)
	}
	return strings.Join(parts, ", ")
}

// describe tells the plan in words.
func describe(steps []DetailStep) string {
	var told []string
	for _, s := range steps {
		text := s.ID + " " + s.Tool + " " + s.Status
		if len(s.After) > 0 {
			text += " after " + strings.Join(s.After, ", ")
		}
		told = append(told, text)
	}
	return "Plan: " + strings.Join(told, "; ")
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
