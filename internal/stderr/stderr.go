// Package stderr keeps the last lines that a program writes to its error output, and finds the line that tells why it
// ended.
package stderr

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Bounds of a Tail.
const (
	maxLines = 200 // a crash may print many goroutines or frames after its cause
	maxBytes = 16 << 10
	maxShown = 50
)

// Tail holds the last lines of one or more programs, at most maxLines of them and maxBytes. The zero value is empty.
// It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines []string // up to twice as much as the bounds until it is read
	bytes int
}

// Add appends a line without secrets. A blank line, or one longer than maxBytes, is left out. A nil Tail
// keeps nothing.
func (t *Tail) Add(line string) {
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	if t == nil || line == "" || len(line) > maxBytes {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.bytes += len(line)
	if len(t.lines) > 2*maxLines || t.bytes > 2*maxBytes {
		t.trim()
	}
}

// trim removes the first lines beyond the bounds. The caller holds t.mu.
func (t *Tail) trim() {
	first := 0
	for len(t.lines)-first > maxLines || t.bytes > maxBytes {
		t.bytes -= len(t.lines[first])
		first++
	}
	t.lines = slices.Delete(t.lines, 0, first)
}

// Last returns the last lines, at most 50, oldest first.
func (t *Tail) Last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	return slices.Clone(t.lines[max(0, len(t.lines)-maxShown):])
}

var (
	// named matches a line that names an error: of Node, Python (also in groups of exceptions), Java, Go, Rust and
	// programs that begin a line with "error:".
	named = pattern.New(`^[ |]*(?:(?:Uncaught )?[\w.$]*(?:Error|Exception)(?: \[\w+\])?(?::|$)|Exception in thread ` +
		`|panic: |fatal error: |thread '.*' panicked at |(?i:error|fatal)(?:\[\w+\])?: )`)
	// missing matches what shells, loaders and interpreters say about a program, file or module that they cannot use.
	missing = pattern.New(`: (?:command )?not found$|: No such file or directory$|: Permission denied$` +
		`|: No module named |: cannot open shared object file`)
	// npmOther matches lines of npm that do not say what went wrong.
	npmOther = pattern.New(`^npm (?:error|ERR!)(?: (?:code|errno|syscall|path|command|dest|cwd|signal)\b.*|[ \d]*)$`)
	// noise matches lines that say nothing of the cause: frames of stacks, marks, the version of Node.
	noise = pattern.New(`^\s*(?:at .*|Node\.js v[\d.]+|[\^~|+{}()\[\]\s-]*|exit status \d+)$`)
)

// Cause returns the line that names the error with which a program ended: the last one that has the form of an error,
// npm's first one, or else the last line that is no frame of a stack. It is empty if there is no such line.
func (t *Tail) Cause() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	last := ""
	for i, line := range slices.Backward(t.lines) {
		switch {
		case isNPM(line):
			return npmCause(t.lines[:i+1])
		case named().MatchString(line), missing().MatchString(line):
			return strings.TrimLeft(line, " |")
		case last == "" && !noise().MatchString(line):
			last = strings.TrimSpace(line)
		}
	}
	return last
}

func isNPM(line string) bool {
	return strings.HasPrefix(line, "npm error ") || strings.HasPrefix(line, "npm ERR! ")
}

// npmCause returns what npm says first in the messages at the end of lines.
func npmCause(lines []string) (cause string) {
	for _, line := range slices.Backward(lines) {
		switch {
		case !strings.HasPrefix(line, "npm "):
			return cause
		case isNPM(line) && !npmOther().MatchString(line):
			cause = line
		}
	}
	return cause
}
