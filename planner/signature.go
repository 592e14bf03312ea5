package planner

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds of a signature. Definitions of tools are untrusted.
const (
	maxParameters  = 30
	maxExplanation = 120 // bytes about one parameter
	maxDescription = 500 // bytes about a tool
	maxName        = 200 // bytes
)

// signature has the parts of a tool's description in a prompt.
type signature struct {
	name     string
	params   []string // with their types, the required ones first
	required int      // of them
	cut      bool     // there are others
	result   string
	hints    string
	about    string
	notes    []string // about parameters
	full     string   // the long description, at most maxTool bytes
	line     string   // the brief description, at most maxBrief bytes
}

// newSignature reads the definition of a tool.
func newSignature(t *plan.Tool) *signature {
	s := &signature{name: short.Line(t.Name, maxName), hints: hints(t.Annotations)}
	if s.about = short.Line(t.Description, maxDescription); s.about == "" {
		s.about = short.Line(t.Title, maxDescription)
	}
	if output, err := schema.Read(t.OutputSchema); err == nil && len(t.OutputSchema) > 0 {
		s.result = " -> " + short.Text((&typeWriter{}).typeOf(output, 0), maxType)
	}
	input, err := schema.Read(t.InputSchema)
	if err != nil {
		s.cut = true
		return s
	}
	parameters := slices.Clone(input.Fields)
	slices.SortStableFunc(parameters, func(a, b schema.Property) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	if len(parameters) > maxParameters {
		parameters, s.cut = parameters[:maxParameters], true
	}
	var w typeWriter
	for _, p := range parameters {
		param := w.property(p, 0)
		if d := p.Default; len(d) > 0 && len(d) <= 40 {
			param += " = " + short.Line(string(d), maxName)
		}
		s.params = append(s.params, param)
		if p.Required {
			s.required++
		}
		if p.Description != "" {
			s.notes = append(s.notes, "\n  "+short.Line(p.Name, maxName)+": "+short.Line(p.Description, maxExplanation))
		}
	}
	return s
}

// learn adds the learned result type and argument names of a tool that does not declare them.
func (s *signature) learn(result string, arguments []string) {
	if s.result == "" && result != "" {
		s.result = " -> " + short.Text(result, maxType) + " (seen)"
	}
	if len(s.params) == 0 && !s.cut && len(arguments) > 0 {
		s.notes = append(s.notes, "\n  accepted before: "+short.Line(strings.Join(arguments, ", "), maxExplanation))
	}
}

// call writes the call of the tool with the first n of its parameters.
func (s *signature) call(n int) string {
	params := strings.Join(s.params[:n], ", ")
	if n < len(s.params) || s.cut {
		if n > 0 {
			params += ", "
		}
		params += "…"
	}
	return s.name + "(" + params + ")"
}

// long describes the tool in a few lines: its call, its purpose and its parameters. "…" marks omissions.
//
//	web_search(query: string, limit?: integer = 10) -> {results: {title: string, url: string}[]} [read-only]
//	  Searches the web.
//	  query: words to look for
//
// It has at most limit bytes, including the marks of data lines. Descriptions of parameters are left out first.
func (s *signature) long(limit int) string {
	const mark, left = len(llm.DataMark), "\n  …"
	text := short.Text(s.call(len(s.params))+s.result+s.hints, limit-mark-len("…"))
	if room := limit - len(text) - 2*mark - len(left); s.about != "" && room > 0 {
		text += "\n  " + short.Text(s.about, room)
	}
	lines := 1 + strings.Count(text, "\n")
	for i, note := range s.notes {
		rest := 0
		if i < len(s.notes)-1 {
			rest = len(left) + mark
		}
		if lines++; len(text)+len(note)+lines*mark+rest > limit {
			if len(text)+len(left)+lines*mark <= limit {
				text += left
			}
			break
		}
		text += note
	}
	return text
}

// brief describes the tool in a line of at most limit bytes or, if that is not possible, by its name alone. "…" marks
// omissions. It reports whether the line has all required parameters.
func (s *signature) brief(limit int) (text string, complete bool) {
	const least = 20 // bytes of a useful description
	text = s.call(s.required)
	tail := s.hints
	if len(text)+len(tail) > limit && tail != "" {
		tail = " …"
	}
	text += tail
	if complete = len(text) <= limit && !(s.cut && s.required == len(s.params)); !complete {
		text = s.name + "(…)"
	}
	switch room := limit - len(text) - len(": …"); {
	case s.about == "":
	case room >= min(least, len(s.about)):
		text += ": " + short.Text(s.about, room)
	case !strings.Contains(text, "…") && room >= 0:
		text += ": …"
	}
	return text, complete
}

// size returns the approximate size of the signature.
func (s *signature) size() int {
	n := 200 + len(s.name) + len(s.result) + len(s.about) + len(s.full) + len(s.line)
	for _, text := range append(slices.Clip(s.params), s.notes...) {
		n += len(text)
	}
	return n
}

// minBrief is the least length of a brief description.
func (s *signature) minBrief() int { return len(s.name) + len("(…)") }

func hints(a plan.Annotations) string {
	switch {
	case a.ReadOnly():
		return " [read-only]"
	case a.Destructive():
		return " [destructive]"
	}
	return ""
}

// Bounds of the cached signatures.
const (
	maxSignatures     = 20_000
	maxSignatureBytes = 16 << 20
)

// signatures caches signatures of tools by a hash of their definitions, because reading schemas takes most of the time
// of a prompt. It evicts the least recently used. It is safe for concurrent use.
type signatures struct {
	seed    maphash.Seed
	known   *lru.Cache[uint64, *signature]
	learned func(t *plan.Tool) (result string, arguments []string) // may be nil
}

func newSignatures(learned func(t *plan.Tool) (result string, arguments []string)) *signatures {
	return &signatures{maphash.MakeSeed(), lru.New[uint64, *signature](maxSignatures, maxSignatureBytes), learned}
}

// of returns the signature of a tool, which must not be changed.
func (c *signatures) of(t *plan.Tool) *signature {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, text := range []string{t.Name, t.Title, t.Description, hints(t.Annotations)} {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(t.InputSchema)
	_ = h.WriteByte(0)
	_, _ = h.Write(t.OutputSchema)
	var result string
	var arguments []string
	if c.learned != nil {
		result, arguments = c.learned(t)
	}
	for _, text := range append(slices.Clip(arguments), result) {
		_ = h.WriteByte(0)
		_, _ = h.WriteString(text)
	}
	key := h.Sum64()
	if s, ok := c.known.Get(key); ok {
		return s
	}
	s := newSignature(t)
	s.learn(result, arguments)
	s.full = s.long(maxTool)
	s.line, _ = s.brief(maxBrief)
	c.known.Put(key, s, s.size())
	return s
}
