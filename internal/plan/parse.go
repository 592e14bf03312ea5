package plan

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Parse reads a plan from the text of a model:
//
//	[{"tool": …, "arguments": {…}}, …]
//	{"tools": [{"tool": …, "arguments": {…}}, …]}
//	{"steps": [{"id": …, "tool": …, "arguments": {…}, "after": […]}, …], "more": true, "unmet": ["…"]}
//
// and the plan object of a process_query result. "name" is accepted for "tool", and "args" or "parameters" for
// "arguments"; "more" may be an expression (Plan.MoreIf). The steps of the first two forms are sequential
// (Plan.Sequential). The plan may stand alone, in a code fence, amid prose, or after <think>…</think>. If there are
// several, the last one outside of the thinking counts; an empty array in the middle of a sentence counts only if
// nothing else outside of the thinking is a plan. An empty plan is valid.
//
// A step without an id gets one that is neither in the plan nor in taken, the ids of earlier rounds. An error in one
// step is stored in its Invalid. Arguments are compacted; their numbers and member order are unchanged.
//
// The errors wrap ErrNoPlan, ErrTooLong or ErrBroken and can be shown to the model. The time is linear in the length of
// the text.
func Parse(text string, taken ...string) (Plan, error) {
	if len(text) > MaxText {
		return Plan{}, ErrTooLong
	}
	best, err := find([]byte(text), taken)
	if err != nil {
		return Plan{}, err
	}
	return best.plan, best.err
}

// A candidate is a part of the text that may be the plan.
type candidate struct {
	plan Plan
	rank int
	err  error // it looks like a plan but cannot be read
}

// Ranks of candidates, from worst to best.
const (
	rankThought      = iota + 1 // inside <think>
	rankEmptyInProse            // an empty array within a line of prose
	rankPlan
)

// find returns the best candidate, the last of those with the highest rank.
func find(text []byte, taken []string) (candidate, error) {
	var best candidate
	offer := func(c candidate) {
		if c.rank >= best.rank {
			best = c
		}
	}
	d := new(jsontext.Decoder)
	inThought := false
	broken := 0                    // text before this offset is part of a value that is not JSON
	budget := 16 * (1 + len(text)) // bytes that may be scanResult, because broken values are scanResult again
	for i := 0; i < len(text) && budget > 0; {
		if text[i] == '<' {
			if n, open := thinkTag(text[i:]); n > 0 {
				if !open && !inThought && best.rank > 0 { // everything before was thinking
					best.rank = rankThought
				}
				inThought = open
				i += n
				continue
			}
		}
		if !mayStartPlan(text[i:]) {
			i++
			continue
		}
		s, err := scan(d, text[i:])
		budget -= s.end + 1
		c := candidate{rank: rankPlan}
		switch {
		case errors.Is(err, errUnfinished):
			return candidate{}, fmt.Errorf("%w: %w", ErrNoPlan, err)
		case err != nil && !s.steps:
			broken = max(broken, i+s.end)
			i++
			continue
		case err != nil:
			c.err = fmt.Errorf("%w: %w", ErrBroken, err)
			if !inThought { // its parts are not plans
				s.end = brokenEnd(text[i:])
			}
		default:
			var ok bool
			c.plan, ok, c.err = decode(text[i:i+s.end], taken)
			empty := ok && len(c.plan.Steps) == 0
			if c.err == nil && !ok || empty && i < broken {
				i += s.end
				continue
			}
			if empty && text[i] == '[' && !ownLine(text, i, i+s.end) {
				c.rank = rankEmptyInProse
			}
		}
		if inThought {
			c.rank = rankThought
		}
		offer(c)
		i += max(s.end, 1)
	}
	if best.rank == 0 || budget <= 0 {
		return candidate{}, ErrNoPlan
	}
	return best, nil
}

// scanResult describes the part of a JSON value that scan has read.
type scanResult struct {
	end   int  // bytes up to the value's end, or to where reading stopped
	steps bool // it looks like a plan: a list of objects with a tool, or "steps" or "tools"
}

// scan reads the JSON value at the start of text; anything may follow. The error is errUnfinished if text ends within
// the value and errTooDeep if the value is nested too deeply.
func scan(d *jsontext.Decoder, text []byte) (scanResult, error) {
	d.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	var s scanResult
	root := jsontext.Kind(0)
	for {
		token, err := d.ReadToken()
		s.end = int(d.InputOffset())
		if err != nil {
			return s, syntaxError(err)
		}
		depth := d.StackDepth()
		if root == 0 {
			root = token.Kind()
		}
		switch {
		case depth == 0:
			return s, nil
		case depth > MaxDepth:
			return s, errTooDeep
		case s.steps || depth > 2 || token.Kind() != '"':
			continue
		}
		if kind, length := d.StackIndex(depth); kind != '{' || length%2 == 0 {
			continue // not a member's name
		}
		switch name := token.String(); {
		case root == '{' && depth == 1:
			s.steps = name == "steps" || name == "tools"
		case root == '[' && depth == 2:
			s.steps = name == "tool"
		}
	}
}

// brokenEnd returns the end of the value at the start of text by its brackets and strings alone.
func brokenEnd(text []byte) int {
	depth := 0
	inString, escaped := false, false
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"' && c != '\n'
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// startLook is how far mayStartPlan looks: enough for any indentation, and a bound for the time.
const startLook = 64

// mayStartPlan reports whether text may start with a plan: with "[{", "[]" or `{"`, spaces aside. It saves scans.
func mayStartPlan(text []byte) bool {
	if text[0] != '[' && text[0] != '{' {
		return false
	}
	rest := bytes.TrimLeft(text[1:min(len(text), startLook)], " \t\r\n")
	if len(rest) == 0 {
		return len(text) >= startLook
	}
	if text[0] == '{' {
		return rest[0] == '"'
	}
	return rest[0] == '{' || rest[0] == ']'
}

// thinkTag returns the length of the opening or closing <think> tag at the start of text, or 0.
func thinkTag(text []byte) (n int, open bool) {
	head := strings.ToLower(string(text[:min(len(text), len("</thinking>"))]))
	for _, name := range []string{"think>", "thinking>"} {
		if strings.HasPrefix(head, "<"+name) {
			return 1 + len(name), true
		}
		if strings.HasPrefix(head, "</"+name) {
			return 2 + len(name), false
		}
	}
	return 0, false
}

// ownLine reports whether the lines of text[from:to] have nothing else but a few spaces and backquotes.
func ownLine(text []byte, from, to int) bool {
	const blank, few = " \t\r`", 64
	before := bytes.TrimRight(text[max(0, from-few):from], blank)
	after := bytes.TrimLeft(text[to:min(len(text), to+few)], blank)
	return (len(before) == 0 || before[len(before)-1] == '\n') && (len(after) == 0 || after[0] == '\n')
}

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
	root      byte // '[' or '{'
	depth     int  // objects and arrays that are open
	listDepth int  // depth within the list of steps, 0 before it begins
	step      int  // start of the open step
	inString  bool
	escaped   bool // the next byte belongs to an escape sequence
	quote     int  // start of the last string
	name      []byte
	member    string // the member of the root object whose value is being read
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

// Sequential reports whether the steps of the plan run one after the other. Then none may start before the plan is
// complete.
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
			r.state, r.root, r.depth, r.listDepth, r.member = reading, rest[0], 1, 0, ""
			if r.sequential = r.root == '['; r.sequential {
				r.listDepth = 1
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
			r.listDepth = 2
		case r.listDepth > 0 && r.depth == r.listDepth+1:
			r.step = r.pos - 1
		}
	case '}', ']':
		r.depth--
		switch {
		case r.listDepth > 0 && r.depth == r.listDepth:
			return r.complete(r.text[r.step:r.pos])
		case r.listDepth > 0 && r.depth < r.listDepth:
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
