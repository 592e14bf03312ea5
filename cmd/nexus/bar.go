package main

import (
	"fmt"
	"sync"

	"github.com/schollz/progressbar/v3"
)

const (
	maxMessage = 60 // longest message, in characters
	barColumns = 24 // columns of the bar and its percentage
)

// bar shows progress on stderr: a bar on a terminal, otherwise one line per report.
type bar struct {
	w    *world
	mu   sync.Mutex
	on   *progressbar.ProgressBar // nil without a terminal
	away bool                     // hidden while the user is asked
	last string                   // last line
}

func newBar(w *world) *bar {
	b := &bar{w: w}
	if w.terminal {
		b.on = progressbar.NewOptions(1000,
			progressbar.OptionSetWriter(w.stderr), progressbar.OptionSetWidth(24), progressbar.OptionFullWidth(),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return b
}

// show reports progress. Messages come from servers and are cut to one harmless line.
func (b *bar) show(fraction float64, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return
	}
	if b.on == nil {
		line := fmt.Sprintf("%3.0f%% %s\n", fraction*100, firstLine(message, maxMessage))
		if line != b.last { // a growing answer repeats its cut beginning
			fmt.Fprint(b.w.stderr, line)
		}
		b.last = line
		return
	}
	b.on.Describe(firstLine(message, b.room()))
	_ = b.on.Set(int(fraction * 1000)) // drawing is best effort
}

// room returns the longest message that fits beside the bar. The terminal may have been resized.
func (b *bar) room() int {
	columns, ok := width(b.w.stderr)
	if !ok {
		columns = 80
	}
	return max(1, min(maxMessage, columns-barColumns))
}

// hide hides or shows the bar, so that the user can be asked.
func (b *bar) hide(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
	if away && b.on != nil {
		_ = b.on.Clear()
	}
}

// close removes the bar.
func (b *bar) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on != nil {
		_ = b.on.Clear()
	}
}
