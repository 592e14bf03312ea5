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

// textRange is a part of the question.
type textRange struct{ start, end int }

// argument is a value for a parameter, and the part of the question that it takes.
type argument struct {
	value any
	at    textRange
	score float64
	typed bool // the value's form, or the parameter's name beside it, shows that it fits
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
		if a.at.start <= t.start && t.end <= a.at.end {
			return &a
		}
	}
	return nil
}

// typedCount counts the typed arguments.
func (f filling) typedCount() (n int) {
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

// How well a value fits a parameter is the sum of a score for its form and one for the words around it.
const (
	enough         = 0.6 // the least for a required parameter
	enoughOptional = 1.5 // the least for an optional one
	requiredBonus  = 0.3
	clearForm      = 1.4 // from here on, the form alone shows that the value fits
	clearCue       = 1.0 // from here on, the words alone do

	// The form of the value.
	formFormat  = 3.0 // a date, time, address or link for a parameter of that format
	formChoice  = 2.8 // one of the choices
	formPath    = 2.6 // a path, repository or pattern
	formID      = 2.3 // an identifier
	formExample = 2.1 // one of the examples in the description
	formMoney   = 2.0 // a number with a currency
	formText    = 2.0 // a quotation for a title or text
	formQuoted  = 1.6 // a quotation for another parameter of any text
	formList    = 1.6
	formNumber  = 1.4
	formLooseID = 1.2 // an identifier for any text, or a quotation for an identifier
	formLoose   = 0.9 // an address, link or path for any text
	formPhrase  = 0.3 // words

	// Added for a phrase or quotation.
	nameBonus        = 0.7 // a name
	personBonus      = 0.5 // a name for a parameter that takes names
	toolWordsCost    = 0.8 // all words are about the tool
	quotedOptionCost = 0.5 // a quotation for an optional parameter

	// The words around the value.
	labelBefore  = 1.6  // the name of the parameter: "city Berlin"
	labelBeside  = 1.4  // the name within or behind the phrase: "Blue room"
	cueBefore    = 1.2  // a preposition for such parameters
	aboutBefore  = 0.6  // a word of the description
	labelEarlier = 0.4  // the name a few words before
	wrongWay     = -2.0 // "to" before an origin, "from" before a destination
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
	var pairs []*pair
	for i, p := range t.params {
		if _, given := f.args[p.name]; given {
			continue
		}
		for _, a := range p.arguments(c, t, text) {
			if p.required {
				a.score += requiredBonus
			}
			pairs = append(pairs, &pair{i, a})
		}
	}
	slices.SortStableFunc(pairs, func(a, b *pair) int { return cmp.Compare(b.score, a.score) })
	for _, best := range pairs {
		p := t.params[best.param]
		_, given := f.args[p.name]
		overlaps := slices.ContainsFunc(slices.Collect(maps.Values(f.args)), func(a argument) bool {
			return a.at.start < best.at.end && best.at.start < a.at.end
		})
		if given || overlaps || !p.required && best.score < enoughOptional || best.score < enough {
			continue
		}
		f.args[p.name] = best.argument
	}
	for _, p := range t.params {
		_, given := f.args[p.name]
		switch {
		case given || !p.required:
		case p.defaultValue != nil:
			var value any
			if json.Unmarshal(p.defaultValue, &value) == nil {
				f.args[p.name] = argument{value: value}
			}
		case p.named(textNames) && p.typ == "string" || p.named(wordsNames) && p.typ == "string" && t.reads:
			if topic := c.topic(t, p.named(wordsNames), text); t.reads && topic.start < topic.end && !f.text {
				f.args[p.name] = argument{value: text[topic.start:topic.end], at: topic}
				f.text = true
				continue
			}
			f.missing = append(f.missing, p)
		default:
			f.missing = append(f.missing, p)
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
	for _, p := range t.params {
		if p.typ == "string" && p.named(sumNames) {
			f.args[p.name] = argument{value: x.text, at: textRange{x.start, x.end}, typed: true}
			f.calculated = true
			return
		}
		if p.required && p.numeric() {
			numeric = append(numeric, p)
		}
	}
	for i, p := range numeric {
		if len(numeric) == len(x.operands) && t.operates(x.operator) {
			f.args[p.name] = argument{value: number64(x.operands[i]), at: textRange{x.start, x.end}, typed: true}
			f.calculated = true
		}
	}
}

// operates reports whether a tool is named after a calculation with an operator.
func (t *tool) operates(operator byte) bool {
	return slices.ContainsFunc(t.nameWords, func(w string) bool { return strings.Contains(operations[operator], " "+w+" ") })
}

// repository gives the parts of owner/name to parameters of these names.
func (f *filling) repository(c clause, t *tool) {
	at := map[string]bool{}
	for _, p := range t.params {
		at[p.name] = p.typ == "string"
	}
	if !at["owner"] || !at["repo"] {
		return
	}
	for _, x := range c.tokens {
		owner, repo, ok := strings.Cut(x.text, "/")
		if ok && x.kind == path && owner != "" && !strings.ContainsAny(repo, "/*") {
			f.args["owner"] = argument{value: owner, at: textRange{x.start, x.end}, typed: true}
			f.args["repo"] = argument{value: repo, at: textRange{x.start, x.end}, typed: true}
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
func (p param) arguments(c clause, t *tool, text string) (out []argument) {
	first := 0
	if c.act == command {
		first = 1
	}
	if p.typ == "array" {
		return p.lists(c, text, first)
	}
	for i := first; i < len(c.tokens); i++ {
		x := c.tokens[i]
		if value, score := p.accepts(x); score > 0 {
			cue := p.cue(c, i, i+1)
			out = append(out, argument{value, textRange{x.start, x.end}, score + cue, score >= clearForm || cue >= clearCue})
		}
		for _, known := range []struct {
			values []string
			score  float64
		}{{p.choices, formChoice}, {p.examples, formExample}} {
			for _, choice := range known.values {
				if n := matches(c.tokens[i:], choice); n > 0 && (known.score > formExample || x.kind == word) {
					out = append(out, argument{p.value(choice), textRange{x.start, c.tokens[i+n-1].end}, known.score + p.cue(c, i, i+n), true})
				}
			}
		}
	}
	if !p.free() || p.named(textNames) || p.named(wordsNames) || p.identifies() {
		return out
	}
	for _, ph := range c.phrases(first) {
		from, to, label := ph.from, ph.to, 0.0
		for to-from > 1 && p.labels(c.lower(to-1)) && !c.tokens[to-1].capital() {
			to, label = to-1, labelBeside // "Blue room"
		}
		for to-from > 1 && p.labels(c.lower(from)) {
			from, label = from+1, labelBeside // "entity Project X"
		}
		for to-from > 1 && !ph.name && (slices.Contains(t.nameStems, search.Stem(c.lower(from))) || t.labels(c.lower(from))) {
			from++
		}
		if !t.reads && !ph.name && to-from > 1 {
			continue // "server alpha seems wrong"
		}
		toolWords := true
		for _, x := range c.tokens[from:to] {
			toolWords = toolWords && t.words[search.Stem(x.lower)] >= 0.8
		}
		cue := max(label, p.cue(c, from, to))
		score := formPhrase + cue
		if ph.name {
			score += nameBonus
			if p.named(personNames) {
				score += personBonus
			}
		} else if toolWords {
			score -= toolWordsCost
		}
		if s := (textRange{c.tokens[from].start, c.tokens[to-1].end}); score > 0 {
			out = append(out, argument{text[s.start:s.end], s, score, cue >= clearCue || ph.name && p.named(personNames)})
		}
	}
	return out
}

// value is a choice in the type of the parameter.
func (p param) value(choice string) any {
	var n float64
	if p.numeric() && json.Unmarshal([]byte(choice), &n) == nil {
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
func (p param) accepts(x token) (any, float64) {
	if p.numeric() {
		if x.kind != number || p.typ == "integer" && x.number != math.Trunc(x.number) {
			return nil, 0
		}
		if strings.ContainsAny(x.text, "$€£") && p.named(moneyNames) {
			return number64(x.number), formMoney
		}
		return number64(x.number), formNumber
	}
	if p.typ != "string" || len(p.choices) > 0 {
		return nil, 0
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p.about, w) })
	}
	pick := func(fits bool, well, otherwise float64) (any, float64) {
		if fits {
			return x.text, well
		}
		return x.text, otherwise
	}
	loose := 0.0
	if p.free() {
		loose = formLoose
	}
	format := p.schema.Format
	switch x.kind {
	case date:
		day, _ := time.Parse(time.DateOnly, x.text)
		return day.Format(cmp.Or(p.layout, time.DateOnly)), scoreIf(p.layout != "" || format == "date" || format == "" && p.named(dateNames), formFormat)
	case clock:
		return x.text, scoreIf(p.named(clockNames) && format != "date-time" && !p.named(dateNames) || says("hh:mm"), formFormat)
	case email:
		return pick(format == "email" || p.named(emailNames) || says("mail"), formFormat, loose)
	case address:
		return pick(format == "uri" || p.named(linkNames) || says("url"), formFormat, loose)
	case path:
		repository := strings.Contains(x.text, "/") && p.named(repoNames)
		pattern := strings.Contains(x.text, "*") && says("pattern", "glob")
		file := p.named(pathNames) && !strings.Contains(x.text, "*") || p.named(fileNames) || says("path ")
		return pick(file || repository || pattern, formPath, loose)
	case identifier:
		score := scoreIf(p.named(idNames) || says("number", " id"), formID)
		if slices.ContainsFunc(p.examples, func(e string) bool { return alike(e, x.text) }) {
			score++
		}
		return x.text, max(score, scoreIf(p.free(), formLooseID))
	case number:
		return strings.TrimRight(x.text, "%"), scoreIf(p.named(idNames), formNumber)
	case quotation:
		score := scoreIf(p.named(titleNames) || p.named(wordsNames) || p.named(textNames), formText)
		if score = max(score, scoreIf(p.free() || p.named(pathNames), formQuoted), scoreIf(p.named(idNames), formLooseID)); !p.required {
			score -= quotedOptionCost
		}
		return x.text, score
	}
	return nil, 0
}

func scoreIf(ok bool, score float64) float64 {
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
func (p param) identifies() bool { return len(p.stems) > 0 && idNames[p.stems[len(p.stems)-1]] }

// labels reports whether a word names a parameter of a tool.
func (t *tool) labels(w string) bool {
	return slices.ContainsFunc(t.params, func(p param) bool { return p.labels(w) })
}

// labels reports whether a word names the parameter.
func (p param) labels(w string) bool { return w != "" && slices.Contains(p.stems, search.Stem(w)) }

// cue says how well the words around some tokens fit a parameter.
func (p param) cue(c clause, from, to int) (score float64) {
	before := from - 1
	for before >= 0 && skipped[c.lower(before)] {
		before--
	}
	w := c.lower(before)
	switch {
	case p.labels(w), w == "titled" && p.labels("title"):
		score = labelBefore
	case p.named(cues[w]):
		score = cueBefore
	case len(w) > 3 && !search.IsStopWord(w) && strings.Contains(p.about, w):
		score = aboutBefore
	}
	if away := w == "to" || w == "into"; away && p.named(fromNames) && !p.named(toNames) || w == "from" && p.named(toNames) && !p.named(fromNames) {
		score = wrongWay
	}
	if p.labels(c.lower(to)) {
		score = max(score, labelBeside)
	}
	for i := max(from-5, 0); i < before; i++ {
		if p.labels(c.lower(i)) {
			score += labelEarlier
			break
		}
	}
	return score
}

// lists returns a list of all values of a clause that fit the items of an array.
func (p param) lists(c clause, text string, first int) []argument {
	item := param{name: p.name, schema: p.schema.Items, typ: "string", stems: p.stems, about: p.about, examples: p.examples}
	if item.schema == nil {
		return nil
	}
	if len(item.schema.Types) > 0 {
		item.typ = item.schema.Types[0]
	}
	var best, values []any
	var at, taken textRange
	add := func(v any, s textRange) {
		joined := len(values) > 0 && listJoint().MatchString(text[at.end:max(s.start, at.end)])
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
		if v, score := item.accepts(x); score >= clearForm {
			add(v, textRange{x.start, x.end})
			continue
		}
		for _, choice := range p.choices {
			if n := matches(c.tokens[i:], choice); n > 0 {
				add(choice, textRange{x.start, c.tokens[i+n-1].end})
			}
		}
		for _, ph := range c.phrases(first) {
			if ph.from == i && ph.name && item.free() && len(p.choices) == 0 {
				s := textRange{x.start, c.tokens[ph.to-1].end}
				add(text[s.start:s.end], s)
			}
		}
	}
	if len(best) == 0 {
		return nil
	}
	return []argument{{best, taken, formList, true}}
}

// phrase is a run of words that may name something.
type phrase struct {
	from, to int
	name     bool // every word has a capital letter
}

// phrases returns the runs of capitalized words, and the runs of other content words, from a token on.
func (c clause) phrases(first int) (out []phrase) {
	content := func(i int) bool {
		x := c.tokens[i]
		return x.kind == word && !search.IsStopWord(x.lower) && !risky[x.lower] && !cueWord(x.lower) && !courtesy[x.lower]
	}
	capitalized := func(i int) bool { return c.tokens[i].capital() && (i > 0 || !c.sentenceCase()) && content(i) }
	for i := first; i < len(c.tokens); i++ {
		if !content(i) {
			continue
		}
		to, name := i+1, capitalized(i)
		for to < len(c.tokens) && content(to) && capitalized(to) == name {
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

// topic is the part of a clause that a search is for: without the verb, and without "the web for". With whole, it is all
// after the verb of a command.
func (c clause) topic(t *tool, whole bool, text string) textRange {
	from, to := 0, len(c.tokens)
	if whole && c.act == command && to > 1 {
		return textRange{c.tokens[1].start, c.tokens[to-1].end}
	}
	toolWord := func(i int) bool {
		x := c.tokens[i]
		stem := search.Stem(x.lower)
		return x.kind == word && (search.IsStopWord(x.lower) || slices.Contains(t.nameStems, stem) ||
			slices.Contains(t.nameWords, x.lower) || stem == search.Stem(t.Server))
	}
	if c.act == command {
		for from = 1; from < to && toolWord(from) && !cueWord(c.lower(from)); {
			from++
		}
		for from < to && (introduces[c.lower(from)] || search.IsStopWord(c.lower(from))) {
			from++
		}
		for to > from && toolWord(to-1) {
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
	return textRange{c.tokens[from].start, c.tokens[to-1].end}
}
