package plan

import (
	"bytes"
)

// Reader reads a plan while the model writes it. It returns each step once its object is complete, so that a step that
// only reads can start before the plan is complete.
//
// The steps are preliminary: Parse of the whole text decides. Both agree on every step if the text contains one plan,
// no other text that looks like a plan, and either all ids or none. After the first error a Reader returns no more
// steps. A Reader must be used by one goroutine. Use NewReader.
type Reader struct {
	text  []byte
	pos   int // end of the text read so far
	state readerState
	ids   ids
	count int // steps returned

	sequential bool

	// In the value that may be the plan:
	root     byte // '[' or '{'
	depth    int  // objects and arrays that are open
	list     int  // depth within the list of steps, 0 before it begins
	step     int  // start of the open step
	inString bool
	escaped  bool // the next byte belongs to an escape sequence
	quote    int  // start of the last string
	name     []byte
	member   string // the member of the root object whose value is being read
}

type readerState int

const (
	seeking readerState = iota
	thinking
	reading
	finished
)

// NewReader returns a Reader. It generates no id in taken, the ids of earlier rounds.
func NewReader(taken ...string) *Reader { return &Reader{ids: newIDs(taken)} }

// Feed takes the next piece of the text and returns the steps that it completes. The total time is linear in the length
// of the text, however small the pieces are.
func (r *Reader) Feed(chunk string) []Step {
	if r.state == finished {
		return nil
	}
	if len(r.text)+len(chunk) > MaxText {
		r.stop()
		return nil
	}
	r.text = append(r.text, chunk...)
	var steps []Step
	for r.pos < len(r.text) {
		if r.state != reading {
			if !r.seek() {
				break
			}
		} else if s, ok := r.read(); ok {
			steps = append(steps, s)
		}
	}
	return steps
}

// Sequential reports whether the last steps run one after the other, so that only the first of them may start.
func (r *Reader) Sequential() bool { return r.sequential }

func (r *Reader) stop() { *r = Reader{state: finished, sequential: r.sequential} }

// seek reads a byte outside of JSON. It reports false if it needs more text.
func (r *Reader) seek() bool {
	rest := r.text[r.pos:]
	switch rest[0] {
	case '<':
		n, open := thinkTag(rest)
		switch {
		case n == 0 && len(rest) < len("</thinking>") && !bytes.ContainsAny(rest, " \n>"):
			return false
		case n == 0:
		case open:
			r.state = thinking
		default:
			r.state = seeking
		}
		r.pos += max(n, 1)
		return true
	case '[', '{':
		if r.state == thinking {
			break
		}
		if len(rest) < startLook && len(bytes.TrimLeft(rest[1:], " \t\r\n")) == 0 {
			return false
		}
		if mayStartPlan(rest) {
			r.state, r.root, r.depth, r.list, r.member = reading, rest[0], 1, 0, ""
			if r.sequential = r.root == '['; r.sequential {
				r.list = 1
			}
		}
	}
	r.pos++
	return true
}

// read reads a byte of JSON. It returns the step that ends there, if any.
func (r *Reader) read() (Step, bool) {
	c := r.text[r.pos]
	r.pos++
	if r.inString {
		switch {
		case r.escaped:
			r.escaped = false
		case c == '\\':
			r.escaped = true
		case c == '"':
			r.inString = false
			r.name = r.text[r.quote:r.pos]
		}
		return Step{}, false
	}
	switch c {
	case '"':
		r.inString, r.quote = true, r.pos-1
	case ':':
		if r.depth == 1 {
			r.member = unquote(r.name)
			r.sequential = r.sequential || r.root == '{' && (r.member == "tools" || r.member == "sequential")
		}
	case '{', '[':
		r.depth++
		switch {
		case r.depth > MaxDepth:
			r.stop()
		case r.root == '{' && r.depth == 2 && c == '[' && (r.member == "steps" || r.member == "tools"):
			r.list = 2
		case r.list > 0 && r.depth == r.list+1:
			r.step = r.pos - 1
		}
	case '}', ']':
		r.depth--
		switch {
		case r.list > 0 && r.depth == r.list:
			return r.complete(r.text[r.step:r.pos])
		case r.list > 0 && r.depth < r.list:
			r.stop()
		case r.depth == 0:
			r.state = seeking
		}
	}
	return Step{}, false
}

// complete reads the object of one step.
func (r *Reader) complete(object []byte) (Step, bool) {
	if object[0] != '{' || strict(object) != nil || !hasTool(object) || r.count == MaxSteps {
		r.stop()
		return Step{}, false
	}
	s := decodeStep(bytes.Clone(object))
	r.count++
	r.ids.give(&s, r.count)
	r.ids.fill(&s, r.count)
	return s, true
}
