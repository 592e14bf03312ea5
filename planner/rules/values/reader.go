package values

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// scanner looks at the tokens of one text.
type scanner struct {
	Options
	text   string
	tokens []token
	words  lexicon
}

// figures reads numbers and what belongs to them, and matches the rules of the grammar.
type figures struct {
	scanner
	captures   found
	numbers    map[int]capture // by token
	calculated int             // the token after the last expression
}

// calendar reads dates and times of day.
type calendar struct{ figures }

// reader reads the values of one text.
type reader struct {
	calendar
	taken []bool // tokens of values
	out   []Value
}

// capture is what an element of the grammar has matched.
type capture struct {
	name, means string
	at, next    int
	n, other    *big.Rat // of a number
}

// found is what a rule has captured.
type found []capture

func (f found) get(name string) (last capture) {
	for _, c := range f {
		if c.name == name {
			last = c
		}
	}
	return last
}

func (f found) has(name string) bool { return f.get(name).name != "" }

// num returns what elements mean as a number; those that are missing are 0.
func (f found) num(names ...string) (sum int) {
	for _, name := range names {
		sum += atoi(f.get(name).means)
	}
	return sum
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func newReader(text string, quotes [][2]int, o Options) *reader {
	r := &reader{}
	r.Options, r.text, r.tokens, r.numbers = o, text, tokenize(text, quotes), map[int]capture{}
	if lexicons()[r.Language] == nil {
		r.Language = "en"
	}
	r.words, r.taken = lexicons()[r.Language], make([]bool, len(r.tokens))
	return r
}

// tok returns a token, an empty one beyond the ends.
func (r *scanner) tok(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{start: len(r.text), end: len(r.text), gap: true, stop: true}
	}
	return r.tokens[i]
}

// match returns what the longest phrase of a class at token i means and the token after it, 0 if there is none.
func (r *scanner) match(i int, class string) (means string, next int) {
phrases:
	for _, p := range r.words[class][r.tok(i).fold] {
		for j, word := range p.rest {
			if r.tok(i+1+j).fold != word {
				continue phrases
			}
		}
		return p.means, i + 1 + len(p.rest)
	}
	return "", 0
}

// is reports whether a phrase of one of the classes is at token i.
func (r *scanner) is(i int, classes ...string) bool { return r.skip(i, classes...) > i }

// skip returns the token after a phrase of one of the classes, or i.
func (r *scanner) skip(i int, classes ...string) int {
	for _, class := range classes {
		if _, next := r.match(i, class); next > 0 {
			return next
		}
	}
	return i
}

// mark reports whether token i is one of the marks.
func (r *scanner) mark(i int, marks string) bool {
	t := r.tok(i)
	return t.kind == 'p' && strings.Contains(marks, t.fold)
}

// tight reports whether token i is of a kind and no gap is before it.
func (r *scanner) tight(i int, kind byte) bool { return r.tok(i).kind == kind && !r.tok(i).gap }

// word reports whether token i is a word with a meaning of its own.
func (r *scanner) word(i int) bool {
	return r.tok(i).kind == 'w' && !r.is(i, "article", "other", "cue")
}

// ends reports whether what ends before token next is not the beginning of a longer word or code.
func (r *scanner) ends(next int) bool {
	t, after := r.tok(next), r.tok(next+1)
	return t.gap || t.kind == 'q' || t.kind == 'p' && (!r.mark(next, `-_/.:@\`) || after.gap || after.kind == 'p')
}

// parse matches a rule of the grammar and returns the token after it, 0 if it does not match.
func (r *figures) parse(rule string, i int) int {
	before := len(r.captures)
sequences:
	for _, sequence := range grammar()[rule] {
		r.captures = r.captures[:before]
		j := i
		for _, e := range sequence {
			if next := r.element(e, j); next > 0 {
				j = next
			} else if !e.optional {
				continue sequences
			}
		}
		if j > i {
			return j
		}
	}
	r.captures = r.captures[:before]
	return 0
}

func (r *figures) element(e element, i int) int {
	c, t := capture{name: e.name, at: i}, r.tok(i)
	switch length := t.size(); {
	case e.tight && t.gap:
	case grammar()[e.name] != nil:
		return r.parse(e.name, i)
	case e.high != "":
		c.means = t.fold
		n := atoi(t.fold)
		if t.kind == 'd' && length >= len(e.low) && length <= len(e.high) && n >= atoi(e.low) && n <= atoi(e.high) {
			c.next = i + 1
		}
	case !unicode.IsLetter(rune(e.name[0])):
		if r.mark(i, e.name) {
			c.next = i + 1
		}
	default:
		c.next = r.terminal(i, &c)
	}
	if c.next == 0 || c.means != cmp.Or(e.means, c.means) {
		return 0
	}
	r.captures = append(r.captures, c)
	return c.next
}

// rule matches a rule and returns what it has captured.
func (r *figures) rule(name string, i int) (found, int) {
	r.captures = nil
	next := r.parse(name, i)
	return r.captures, next
}

// terminal matches a phrase of the class that c names or what else that stands for. Some names match no token: they say
// what has to stand before token i, or at it.
func (r *figures) terminal(i int, c *capture) (next int) {
	here := func(ok bool) int { return i * boolean(ok) }
	switch c.name {
	case "n":
		return r.number(i, c)
	case "unit":
		return r.unit(i, c)
	case "spelled": // an hour
		n, next := r.spelled(i)
		if n == nil || n.Cmp(rat("24")) > 0 {
			return 0
		}
		c.means = n.RatString()
		return next
	case "join":
		return r.joins(i)
	case "intro": // a word that introduces a date
		return here(r.cue(i) != "" || r.is(i-1, "next"))
	case "lead": // the 5th
		return here(r.is(i-1, "article") || r.cue(i) == "on")
	case "lower":
		return here(r.is(i-1, "el"))
	case "plain": // nothing that a number counts
		counted := r.is(i, "unit", "percent", "currency", "oclock", "scale", "half", "past")
		return here(!r.word(i) && r.tok(i).kind != 'd' && !counted && r.ends(i))
	}
	c.means, next = r.match(i, c.name)
	if c.name == "hemisphere" && (!r.tok(i).upper || r.tok(i-2).fold != ".") {
		return 0 // 74.0060 W
	}
	if t := r.tok(i); c.name == "month" && next > 0 {
		if r.mark(next, ".") && t.size() < 5 && r.tok(next+1).kind == 'd' {
			next++ // Apr. 3
		} else if verb := c.means == "3" || c.means == "5"; verb && r.Language == "en" && !t.upper && r.tok(i-1).kind != 'd' && !r.is(i-1, "of") {
			return 0 // may, march
		}
	}
	return next
}

// value makes a value of the tokens [i,next).
func (r *scanner) value(kind Kind, i, next int) Value {
	start, end := r.tok(i).start, r.tok(next-1).end
	return Value{Kind: kind, Start: start, End: end, Text: r.text[start:end], at: i, next: next}
}

// add keeps values and returns the token after the last.
func (r *reader) add(values ...Value) (next int) {
	for _, v := range values {
		r.out = append(r.out, v)
		next = max(next, v.next)
		for i := v.at; i < v.next; i++ {
			r.taken[i] = r.taken[i] || v.Kind != Phrase
		}
	}
	return next
}

// cue is the function word that ends before token i.
func (r *scanner) cue(i int) string {
	for back := 4; back > 0; back-- { // the longest phrase
		if means, next := r.match(i-back, "cue"); next == i && i > 0 {
			return means
		}
	}
	return ""
}

// Cue is the English function word for a word of a language: "in" for "dans"; "" for what is none.
func Cue(word, language string) string {
	for _, p := range lexicons()[language]["cue"][fold(word)] {
		if len(p.rest) == 0 {
			return p.means
		}
	}
	return ""
}

// before returns the cue and the label of a value at token i.
func (r *reader) before(i int) (cue, label string) {
	j := i - 1
	if r.mark(j, "#") {
		j--
	}
	keyed := r.mark(j, ":=")
	if keyed {
		j--
	}
	// A label is a word, two if the second is one such as "number", three before a colon.
	end := j
	for j >= 0 && r.word(j) && !r.taken[j] && !r.tok(j+1).stop &&
		(j == end || keyed && end-j < 3 || r.is(j+1, "generic")) {
		j--
	}
	if keyed && j == end { // a = 1
		j--
	}
	if j < end && r.tok(end).kind == 'w' {
		label = strings.ToLower(r.text[r.tok(j+1).start:r.tok(end).end])
	}
	for skipped := 0; skipped < 2 && r.is(j, "article") && r.cue(j+1) == ""; skipped++ {
		j--
	}
	if r.tok(j + 1).stop {
		return "", label
	}
	return r.cue(j + 1), label
}

// pairCues gives the second of two values that "between" or a dash joins the cue "to", and the first one "from". "Of"
// before a value with "to" after it means from as well: de Paris à Londres.
func (r *reader) pairCues() {
	for i := range r.out {
		v := &r.out[i]
		for j := i + 1; j < min(len(r.out), i+6); j++ {
			w := &r.out[j]
			if w.Kind != v.Kind || w.at < v.next || w.at > v.next+2 {
				continue
			}
			to := w.Cue == "to" || w.Cue == "until"
			if v.Cue == "between" && r.is(v.next, "and") || w.at == v.next+1 && r.is(v.next, "dash") || v.Cue == "of" && to {
				v.Cue, w.Cue = "from", "to"
			}
			break
		}
	}
}
