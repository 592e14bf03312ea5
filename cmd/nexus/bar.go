package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
)

const (
	maxMessage = 60 // longest message of a line, in characters
	barColumns = 20 // columns of the bar on a terminal
)

// bar shows progress on stderr: one line that changes on a terminal, otherwise one line per report.
type bar struct {
	w    *world
	mu   sync.Mutex
	away bool // hidden while the user is asked

	fraction float64
	message  string
	tools    []string // whose calls run
	last     string   // last line
}

func newBar(w *world) *bar { return &bar{w: w} }

// show reports progress. Messages come from servers and are cut to one harmless line.
func (b *bar) show(fraction float64, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fraction, b.message = fraction, firstLine(message, 1000)
	if b.w.terminal {
		b.draw()
		return
	}
	line := fmt.Sprintf("%3.0f%% %s\n", fraction*100, firstLine(message, maxMessage))
	if line != b.last && !b.away { // a growing answer repeats its cut beginning
		fmt.Fprint(b.w.stderr, line)
	}
	b.last = line
}

// running shows the tools whose calls run, on a terminal.
func (b *bar) running(tools []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(tools)
	b.tools = slices.Compact(tools)
	b.draw()
}

// draw draws the line on a terminal.
func (b *bar) draw() {
	if !b.w.terminal || b.away {
		return
	}
	columns, ok := width(b.w.stderr) // it may have been resized
	if !ok {
		columns = usualColumns
	}
	text := b.message
	if len(b.tools) > 0 {
		names := strings.Join(b.tools, ", ")
		text = firstLine(names, 1000) + ": " + strings.TrimPrefix(text, "["+names+"] ")
	}
	done := min(int(b.fraction*barColumns), barColumns)
	line := fmt.Sprintf("%s%s %3.0f%% ", strings.Repeat("█", done), strings.Repeat("░", barColumns-done), b.fraction*100)
	line = terminal.Cut(line+text, columns-1)
	b.write(line)
}

// write replaces the line on a terminal, without escape sequences.
func (b *bar) write(line string) {
	if line == b.last {
		return
	}
	rest := strings.Repeat(" ", max(0, terminal.Columns(b.last)-terminal.Columns(line)))
	fmt.Fprint(b.w.stderr, "\r"+line+rest+strings.Repeat("\b", len(rest)))
	b.last = line
}

// hide hides or shows the bar, so that the user can be asked.
func (b *bar) hide(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.away = away
}

// close removes the bar.
func (b *bar) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

func (b *bar) clear() {
	if b.w.terminal && !b.away && b.last != "" {
		b.write("")
		fmt.Fprint(b.w.stderr, "\r")
	}
}
