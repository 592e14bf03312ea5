package bench

import (
	"fmt"
	"math"
	"strings"
)

// Sizes of the plot in pixels.
const (
	panelWidth  = 300
	panelHeight = 220
	gap         = 60
	barWidth    = 22
)

var colours = map[string]string{byRouter: "#1b6ca8", byTurns: "#c8553d", byParallel: "#e0a458"}

var labels = map[string]string{byRouter: "router", byTurns: "ReAct, one call a turn", byParallel: "ReAct, parallel calls"}

// draw makes an SVG of two rows, time and prompt tokens, with a panel for each number of tools there are.
func draw(all []figures) string {
	var svg strings.Builder
	width, height := 3*(panelWidth+gap)+gap, 2*(panelHeight+gap)+2*gap
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	x := gap
	for _, way := range []string{byRouter, byTurns, byParallel} {
		fmt.Fprintf(&svg, `<rect x="%d" y="16" width="12" height="12" fill="%s"/><text x="%d" y="27">%s</text>`+"\n", x, colours[way], x+18, labels[way])
		x += 200
	}
	for row, quantity := range []struct {
		name  string
		value func(figures) float64
	}{
		{"seconds a question", func(f figures) float64 { return f.ms / 1000 }},
		{"prompt tokens a question (logarithmic)", func(f figures) float64 { return math.Log10(max(f.tokens, 1)) }},
	} {
		most := 0.0
		for _, f := range all {
			most = max(most, quantity.value(f))
		}
		for column, out := range []int{10, 100, 1000} {
			left, top := gap+column*(panelWidth+gap), 2*gap+row*(panelHeight+gap)
			fmt.Fprintf(&svg, `<text x="%d" y="%d" font-weight="bold">%d tools: %s</text>`+"\n", left, top-14, out, quantity.name)
			fmt.Fprintf(&svg, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="black"/>`+"\n", left, top+panelHeight, left+panelWidth, top+panelHeight)
			for i, needed := range []int{1, 3, 8} {
				at := left + 10 + i*100
				fmt.Fprintf(&svg, `<text x="%d" y="%d">%d called</text>`+"\n", at+6, top+panelHeight+16, needed)
				for _, f := range all {
					if f.out != out || f.needed != needed {
						continue
					}
					tall := quantity.value(f) / most * (panelHeight - 16)
					y := float64(top+panelHeight) - tall
					fmt.Fprintf(&svg, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="%s"/>`, at, y, barWidth, tall, colours[f.way])
					shown := fmt.Sprintf("%.1f", f.ms/1000)
					if row == 1 {
						shown = thousands(f.tokens)
					}
					fmt.Fprintf(&svg, `<text x="%d" y="%.1f" font-size="9" text-anchor="middle">%s</text>`+"\n", at+barWidth/2, y-3, shown)
					at += barWidth + 5
				}
			}
		}
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

func thousands(n float64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%.0f", n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", n/1000)
	}
	return fmt.Sprintf("%.0fk", n/1000)
}
