package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// span is a part of the question.
type span struct{ start, end int }

// argument is a value for a parameter, and the part of the question that it takes.
type argument struct {
	value any
	span  span
	score float64
	typed bool // its form says that it fits, or its name stands beside it
}

// filling is the arguments of a call as far as the question gives them.
type filling struct {
	args    map[string]argument
	missing []param
	text    bool // an argument is unquoted text

	calculated bool // a calculation is an argument
}

// takes reports whether a token is part of an argument.
func (f filling) takes(t token) bool { return f.taker(t) != nil }

func (f filling) taker(t token) *argument {
	for _, a := range f.args {
		if a.span.start <= t.start && t.end <= a.span.end {
			return &a
		}
	}
	return nil
}

// typed counts the arguments whose form or neighbours say that they fit.
func (f filling) typed() (n int) {
	for _, a := range f.args {
		if a.typed {
			n++
		}
	}
	return n
}

// json returns the arguments as a JSON object.
func (f filling) json() json.RawMessage {
	values := map[string]any{}
	for name, a := range f.args {
		values[name] = a.value
	}
	raw, _ := json.Marshal(values) // strings, numbers and lists of them
	return raw
}

// How well a value must fit a parameter.
const (
	enough         = 0.6
	enoughOptional = 1.5
)

// fill finds arguments for a tool in a clause. All fitting pairs of parameters and values are found first; the best
// pairs are taken, and no part of the question is taken twice.
func fill(c clause, t *tool, text string) filling {
	type pair struct {
		param int
		argument
	}
	f := filling{args: map[string]argument{}}
	f.calculation(c, t)
	f.repository(c, t)
	var pairs []pair
	for i, q := range t.params {
		if _, given := f.args[q.name]; given {
			continue
		}
		for _, a := range q.arguments(c, t, text) {
			if q.required {
				a.score += 0.3
			}
			pairs = append(pairs, pair{i, a})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	for _, p := range pairs {
		q := t.params[p.param]
		_, given := f.args[q.name]
		overlaps := slices.ContainsFunc(slices.Collect(maps.Values(f.args)), func(a argument) bool {
			return a.span.start < p.span.end && p.span.start < a.span.end
		})
		if given || overlaps || !q.required && p.score < enoughOptional || p.score < enough {
			continue
		}
		f.args[q.name] = p.argument
	}
	for _, q := range t.params {
		_, given := f.args[q.name]
		switch {
		case given || !q.required:
		case q.fallback != nil:
			var value any
			if json.Unmarshal(q.fallback, &value) == nil {
				f.args[q.name] = argument{value: value}
			}
		case q.named(textNames) && q.typ == "string" || q.named(wordsNames) && q.typ == "string" && t.reads:
			if topic := c.topic(t, q.named(wordsNames), text); t.reads && topic.start < topic.end && !f.text {
				f.args[q.name] = argument{value: text[topic.start:topic.end], span: topic}
				f.text = true
				continue
			}
			f.missing = append(f.missing, q)
		default:
			f.missing = append(f.missing, q)
		}
	}
	return f
}

// calculation gives a calculation to a parameter for expressions, or its operands to numeric parameters.
func (f *filling) calculation(c clause, t *tool) {
	i := slices.IndexFunc(c.tokens, func(x token) bool { return x.kind == calculation })
	if i < 0 {
		return
	}
	x := c.tokens[i]
	var numeric []param
	for _, q := range t.params {
		if q.typ == "string" && q.named(sumNames) {
			f.args[q.name] = argument{value: x.text, span: span{x.start, x.end}, typed: true}
			f.calculated = true
			return
		}
		if q.required && q.numeric() {
			numeric = append(numeric, q)
		}
	}
	for i, q := range numeric {
		if len(numeric) == len(x.operands) && t.operates(x.operator) {
			f.args[q.name] = argument{value: number64(x.operands[i]), span: span{x.start, x.end}, typed: true}
			f.calculated = true
		}
	}
}

// operates reports whether a tool is named after a calculation with an operator.
func (t *tool) operates(operator byte) bool {
	return slices.ContainsFunc(t.full, func(w string) bool { return strings.Contains(operations[operator], " "+w+" ") })
}

// repository gives the parts of owner/name to parameters of these names.
func (f *filling) repository(c clause, t *tool) {
	at := map[string]bool{}
	for _, q := range t.params {
		at[q.name] = q.typ == "string"
	}
	if !at["owner"] || !at["repo"] {
		return
	}
	for _, x := range c.tokens {
		owner, repo, ok := strings.Cut(x.text, "/")
		if ok && x.kind == path && owner != "" && !strings.ContainsAny(repo, "/*") {
			f.args["owner"] = argument{value: owner, span: span{x.start, x.end}, typed: true}
			f.args["repo"] = argument{value: repo, span: span{x.start, x.end}, typed: true}
			return
		}
	}
}

// number64 is a number as JSON writes it best.
func number64(n float64) any {
	if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return n
}

// arguments returns all values of a clause that fit a parameter.
func (q param) arguments(c clause, t *tool, text string) (out []argument) {
	first := 0
	if c.act == command {
		first = 1
	}
	if q.typ == "array" {
		return q.lists(c, text, first)
	}
	for i := first; i < len(c.tokens); i++ {
		x := c.tokens[i]
		if value, score := q.accepts(x); score > 0 {
			cue := q.cue(c, i, i+1)
			out = append(out, argument{value, span{x.start, x.end}, score + cue, score >= 1.4 || cue >= 1})
		}
		for _, known := range []struct {
			values []string
			score  float64
		}{{q.choices, 2.8}, {q.examples, 2.1}} {
			for _, choice := range known.values {
				if n := matches(c.tokens[i:], choice); n > 0 && (known.score > 2.5 || x.kind == word) {
					out = append(out, argument{q.value(choice), span{x.start, c.tokens[i+n-1].end}, known.score + q.cue(c, i, i+n), true})
				}
			}
		}
	}
	if !q.free() || q.named(textNames) || q.named(wordsNames) || q.identifies() {
		return out
	}
	for _, p := range c.phrases(first) {
		from, to, label := p.from, p.to, 0.0
		for to-from > 1 && q.labels(c.lower(to-1)) && !c.tokens[to-1].capital() {
			to, label = to-1, 1.4 // "Blue room"
		}
		for to-from > 1 && q.labels(c.lower(from)) {
			from, label = from+1, 1.4 // "entity Project X"
		}
		for to-from > 1 && !p.name && (slices.Contains(t.name, search.Stem(c.lower(from))) || t.labels(c.lower(from))) {
			from++
		}
		if !t.reads && !p.name && to-from > 1 {
			continue // "server alpha seems wrong"
		}
		own := true
		for _, x := range c.tokens[from:to] {
			own = own && t.words[search.Stem(x.lower)] >= 0.8
		}
		cue := max(label, q.cue(c, from, to))
		score := 0.3 + cue
		if p.name {
			score += 0.7
			if q.named(personNames) {
				score += 0.5
			}
		} else if own {
			score -= 0.8
		}
		if s := (span{c.tokens[from].start, c.tokens[to-1].end}); score > 0 {
			out = append(out, argument{text[s.start:s.end], s, score, cue >= 1 || p.name && q.named(personNames)})
		}
	}
	return out
}

// value is a choice in the type of the parameter.
func (q param) value(choice string) any {
	var n float64
	if q.numeric() && json.Unmarshal([]byte(choice), &n) == nil {
		return number64(n)
	}
	return choice
}

// matches returns how many tokens at the start of a list are a value, 0 if none are.
func matches(tokens []token, value string) int {
	words := strings.Fields(strings.ToLower(value))
	if len(words) == 0 || len(words) > len(tokens) {
		return 0
	}
	for i, w := range words {
		x := tokens[i]
		same := strings.ToLower(x.text) == w || x.kind == word && len(w) > 2 && search.Stem(x.lower) == search.Stem(w)
		if !same || len(w) == 1 && x.text != value {
			return 0
		}
	}
	return len(words)
}

// accepts returns the value of a token for a parameter, and how well its form fits; 0 if it does not.
func (q param) accepts(x token) (any, float64) {
	if q.numeric() {
		if x.kind != number || q.typ == "integer" && x.number != math.Trunc(x.number) {
			return nil, 0
		}
		if strings.ContainsAny(x.text, "$€£") && q.named(moneyNames) {
			return number64(x.number), 2
		}
		return number64(x.number), 1.4
	}
	if q.typ != "string" || len(q.choices) > 0 {
		return nil, 0
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(q.about, w) })
	}
	pick := func(fits bool, well, otherwise float64) (any, float64) {
		if fits {
			return x.text, well
		}
		return x.text, otherwise
	}
	loose := 0.0
	if q.free() {
		loose = 0.9
	}
	format := q.schema.Format
	switch x.kind {
	case date:
		day, _ := time.Parse(time.DateOnly, x.text)
		return day.Format(cmp.Or(q.layout, time.DateOnly)), fit(q.layout != "" || format == "date" || format == "" && q.named(dateNames), 3)
	case clock:
		return x.text, fit(q.named(clockNames) && format != "date-time" && !q.named(dateNames) || says("hh:mm"), 3)
	case email:
		return pick(format == "email" || q.named(emailNames) || says("mail"), 3, loose)
	case address:
		return pick(format == "uri" || q.named(linkNames) || says("url"), 3, loose)
	case path:
		repository := strings.Contains(x.text, "/") && q.named(repoNames)
		pattern := strings.Contains(x.text, "*") && says("pattern", "glob")
		file := q.named(pathNames) && !strings.Contains(x.text, "*") || q.named(fileNames) || says("path ")
		return pick(file || repository || pattern, 2.6, loose)
	case identifier:
		score := fit(q.named(idNames) || says("number", " id"), 2.3)
		if slices.ContainsFunc(q.examples, func(e string) bool { return alike(e, x.text) }) {
			score++
		}
		return x.text, max(score, fit(q.free(), 1.2))
	case number:
		return strings.TrimRight(x.text, "%"), fit(q.named(idNames), 1.4)
	case quotation:
		score := fit(q.named(titleNames) || q.named(wordsNames) || q.named(textNames), 2)
		if score = max(score, fit(q.free() || q.named(pathNames), 1.6), fit(q.named(idNames), 1.2)); !q.required {
			score -= 0.5
		}
		return x.text, score
	}
	return nil, 0
}

func fit(ok bool, score float64) float64 {
	if ok {
		return score
	}
	return 0
}

// alike reports whether two identifiers begin with the same letters: "C-17" and "C-4".
func alike(a, b string) bool {
	letters := func(s string) string { return s[:max(strings.IndexAny(s, "0123456789"), 0)] }
	return letters(a) != "" && strings.EqualFold(letters(a), letters(b))
}

// identifies reports whether a parameter is an identifier rather than a name.
func (q param) identifies() bool { return len(q.stems) > 0 && idNames[q.stems[len(q.stems)-1]] }

// labels reports whether a word names a parameter of a tool.
func (t *tool) labels(w string) bool {
	return slices.ContainsFunc(t.params, func(q param) bool { return q.labels(w) })
}

// labels reports whether a word names the parameter.
func (q param) labels(w string) bool { return w != "" && slices.Contains(q.stems, search.Stem(w)) }

// cue says how well the words around some tokens fit a parameter.
func (q param) cue(c clause, from, to int) (score float64) {
	before := from - 1
	for before >= 0 && skipped[c.lower(before)] {
		before--
	}
	w := c.lower(before)
	switch {
	case q.labels(w), w == "titled" && q.labels("title"):
		score = 1.6
	case q.named(cues[w]):
		score = 1.2
	case len(w) > 3 && !search.IsStopWord(w) && strings.Contains(q.about, w):
		score = 0.6
	}
	if away := w == "to" || w == "into"; away && q.named(fromNames) && !q.named(toNames) || w == "from" && q.named(toNames) && !q.named(fromNames) {
		score = -2
	}
	if q.labels(c.lower(to)) {
		score = max(score, 1.4)
	}
	for i := max(from-5, 0); i < before; i++ {
		if q.labels(c.lower(i)) {
			score += 0.4
			break
		}
	}
	return score
}

// lists returns a list of all values of a clause that fit the items of an array.
func (q param) lists(c clause, text string, first int) []argument {
	item := param{name: q.name, schema: q.schema.Items, typ: "string", stems: q.stems, about: q.about, examples: q.examples}
	if item.schema == nil {
		return nil
	}
	if len(item.schema.Types) > 0 {
		item.typ = item.schema.Types[0]
	}
	var best, values []any
	var at, taken span
	add := func(v any, s span) {
		joined := len(values) > 0 && listJoint.MatchString(text[at.end:max(s.start, at.end)])
		if !joined {
			values, at = nil, s
		}
		values, at.end = append(values, v), s.end
		if len(values) > len(best) {
			best, taken = slices.Clone(values), at
		}
	}
	for i := first; i < len(c.tokens); i++ {
		x := c.tokens[i]
		if v, score := item.accepts(x); score >= 1.4 {
			add(v, span{x.start, x.end})
			continue
		}
		for _, choice := range q.choices {
			if n := matches(c.tokens[i:], choice); n > 0 {
				add(choice, span{x.start, c.tokens[i+n-1].end})
			}
		}
		for _, p := range c.phrases(first) {
			if p.from == i && p.name && item.free() && len(q.choices) == 0 {
				s := span{x.start, c.tokens[p.to-1].end}
				add(text[s.start:s.end], s)
			}
		}
	}
	if len(best) == 0 {
		return nil
	}
	return []argument{{best, taken, 1.6, true}}
}

// phrase is a run of words that may name something.
type phrase struct {
	from, to int
	name     bool // every word has a capital letter
}

// phrases returns the runs of capital words, and of other words with a topic, from a token on.
func (c clause) phrases(first int) (out []phrase) {
	content := func(i int) bool {
		x := c.tokens[i]
		return x.kind == word && !search.IsStopWord(x.lower) && !risky[x.lower] && !cueWord(x.lower) && !courtesy[x.lower]
	}
	named := func(i int) bool { return c.tokens[i].capital() && (i > 0 || !c.sentenceCase()) && content(i) }
	for i := first; i < len(c.tokens); i++ {
		if !content(i) {
			continue
		}
		to, name := i+1, named(i)
		for to < len(c.tokens) && content(to) && named(to) == name {
			to++
		}
		out = append(out, phrase{i, to, name})
		if name && to < len(c.tokens) && content(to) { // "Blue room"
			out = append(out, phrase{i, to + 1, true})
		}
		i = to - 1
	}
	return out
}

// sentenceCase reports whether the first word may be capital because the clause begins there.
func (c clause) sentenceCase() bool { return c.act == command || len(c.tokens) > 3 }

func cueWord(w string) bool { return cues[w] != nil || subordinate[w] || negative[w] }

// topic is the part of a clause that a search is for: without the verb, and without "the web for".
func (c clause) topic(t *tool, whole bool, text string) span {
	from, to := 0, len(c.tokens)
	if whole && c.act == command && to > 1 {
		return span{c.tokens[1].start, c.tokens[to-1].end}
	}
	own := func(i int) bool {
		x := c.tokens[i]
		stem := search.Stem(x.lower)
		return x.kind == word && (search.IsStopWord(x.lower) || slices.Contains(t.name, stem) ||
			slices.Contains(t.full, x.lower) || stem == search.Stem(t.Server))
	}
	if c.act == command {
		for from = 1; from < to && own(from) && !cueWord(c.lower(from)); {
			from++
		}
		for from < to && (introduces[c.lower(from)] || search.IsStopWord(c.lower(from))) {
			from++
		}
		for to > from && own(to-1) {
			to--
		}
	} else {
		for from < to && (lead[c.lower(from)]) {
			from++
		}
	}
	if from >= to {
		from, to = 0, len(c.tokens)
	}
	return span{c.tokens[from].start, c.tokens[to-1].end}
}
