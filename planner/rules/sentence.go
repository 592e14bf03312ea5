package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// act is what a clause asks for, by its form.
type act int

const (
	nothing   act = iota // small talk, a statement, or something that is not to be done
	inform               // a question, or the name of a thing: "latest news"
	command              // an imperative or a polite request
	unclear              // a condition, a supposition, or a form that the rules do not know
	abilities            // what can be done here
)

// clause is a part of the question that may have a call of its own.
type clause struct {
	act        act
	tokens     []token // without polite words
	start, end int     // in the question
	verb       string  // of a command, in lower case
	asked      bool    // a command in the form of a question: "can you …"
	foreign    bool    // in another language than English
	sentence   int
	plain      bool // a command of nothing but words that a plain command has
}

func (c clause) lower(i int) string {
	if i < 0 || i >= len(c.tokens) {
		return ""
	}
	return c.tokens[i].lower
}

// words are the tokens of a clause that are words with a topic.
func (c clause) words() (out []token) {
	for _, t := range c.tokens {
		if t.kind == word && !search.IsStopWord(t.lower) && !courtesy[t.lower] {
			out = append(out, t)
		}
	}
	return out
}

// message is a question split into clauses.
type message struct {
	text    string
	clauses []clause

	// plain reports whether every sentence is small talk, a plain question, or plain commands alone. Nothing is
	// written for any other message: what the rules do not understand may take the consent back.
	plain bool
}

// parse splits a question. verbs are further words that may begin a command.
func parse(text string, tokens []token, verbs map[string]bool) message {
	p := parser{verbs: verbs}
	m := message{text: text, plain: len(tokens) < maxTokens}
	var sentence []token
	number := 0
	flush := func(question bool) {
		if len(sentence) > 0 {
			number++
			clauses, plain := p.sentence(sentence, question)
			for i := range clauses {
				clauses[i].sentence = number
			}
			m.clauses = append(m.clauses, clauses...)
			m.plain = m.plain && plain
		}
		sentence = nil
	}
	for i, t := range tokens {
		if t.kind != mark || !strings.Contains(".!?;\n", t.lower) {
			sentence = append(sentence, t)
			continue
		}
		flush(t.lower == "?")
		if i > 0 && t.lower != "\n" && tokens[i-1].kind == mark && strings.Contains(".!?;", tokens[i-1].lower) {
			m.plain = false // "cancel it..." or "cancel it?!"
		}
	}
	flush(false)
	return m
}

type parser struct {
	verbs map[string]bool
}

// verb reports whether a word may be an imperative.
func (p parser) verb(w string) bool {
	third := strings.HasSuffix(w, "s") && plan.Acts(strings.TrimSuffix(w, "s"))
	return search.RequestVerb(w) || readingVerbs[w] || p.verbs[w] || plan.Acts(w) && !third
}

// sentence splits a sentence into clauses. It reports whether the sentence is plain.
func (p parser) sentence(tokens []token, question bool) (out []clause, plain bool) {
	tokens = trimCourtesy(tokens)
	if len(tokens) == 0 {
		return nil, true
	}
	from, whole := 0, true
	for i := 1; i <= len(tokens); i++ {
		next := i
		for next < len(tokens) && joining(tokens[next].lower, next == i) {
			next++
		}
		if i < len(tokens) && (next == i || next == len(tokens) || !p.begins(tokens, next, i)) {
			continue
		}
		if i > from {
			c := p.clause(tokens[from:i], question && i == len(tokens))
			if len(out) > 0 && out[len(out)-1].act == unclear && c.act != nothing && subordinate[out[len(out)-1].lower(0)] {
				c.act = unclear // "if it is late, cancel it"
				if leading[out[len(out)-1].lower(0)] {
					c.act = inform
				}
			}
			out = append(out, c)
		}
		if from = next; next > i {
			whole = whole && !slices.ContainsFunc(tokens[i:next], func(t token) bool { return !plainJoints[t.lower] })
			i = next
		}
	}
	commands, questions := true, question && len(out) == 1
	for _, c := range out {
		commands = commands && c.act == command && c.plain
		questions = questions && c.plain
	}
	return out, len(out) > 0 && whole && (questions || commands && (!question || out[0].asked))
}

// joining reports whether a word may stand between two clauses, or at the beginning of what stands there.
func joining(w string, first bool) bool { return joints[w] || !first && afterJoints[w] }

// begins reports whether a clause begins at a token, after words that join it at i.
func (p parser) begins(tokens []token, at, i int) bool {
	t := tokens[at]
	switch {
	case t.kind == calculation || tokens[i-1].kind == calculation && at == i+1 && tokens[i].lower == "and":
		return tokens[i].lower == "and"
	case t.kind != word:
		return false
	case asking[t.lower] || negative[t.lower], requests[t.lower] && tokens[min(at+1, len(tokens)-1)].lower == "you":
		return at+1 < len(tokens)
	}
	return p.verb(t.lower) && (at+1 < len(tokens) || tokens[i].lower != ",")
}

// trimCourtesy removes polite words from both ends of a sentence.
func trimCourtesy(tokens []token) []token {
	tokens = trimClosing(tokens)
	for len(tokens) > 0 && (courtesy[tokens[0].lower] || tokens[0].lower == ",") {
		tokens = tokens[1:]
	}
	return tokens
}

func trimClosing(tokens []token) []token {
	for n := len(tokens); n > 0; n = len(tokens) {
		switch {
		case closing[tokens[n-1].lower]:
			tokens = tokens[:n-1]
		case n > 1 && tokens[n-2].lower == "thank" && tokens[n-1].lower == "you":
			tokens = tokens[:n-2]
		case n > 2 && tokens[n-2].lower == "for" && (tokens[n-1].lower == "me" || tokens[n-1].lower == "us"),
			n > 2 && tokens[n-2].lower == "right" && tokens[n-1].lower == "now":
			tokens = tokens[:n-2]
		case n > 1 && tokens[n-1].lower == "now":
			tokens = tokens[:n-1]
		default:
			return tokens
		}
	}
	return tokens
}

// clause decides what a clause asks for.
func (p parser) clause(tokens []token, question bool) clause {
	c := clause{tokens: trimCourtesy(tokens)}
	if len(c.tokens) == 0 {
		return clause{}
	}
	c.start, c.end = c.tokens[0].start, c.tokens[len(c.tokens)-1].end
	c.foreign = foreignText(c)
	first, second := c.lower(0), c.lower(1)
	switch {
	case aboutHere(c, question):
		c.act = abilities
	case len(c.tokens) == 1 && help[first]:
		c.act = abilities
	case requests[first] && (second == "you" || second == "u") && len(c.tokens) > 2:
		c.asked = true
		at := 2
		for at < len(c.tokens) && courtesy[c.lower(at)] {
			at++
		}
		polite := at > 2 || first == "can" || first == "could"
		if c.tokens = c.tokens[at:]; len(c.tokens) == 0 || !p.verb(c.lower(0)) {
			c.act = unclear
			return c
		}
		p.imperative(&c)
		c.plain = c.plain && polite
	case wishes(c) > 0: // "I would like to know", "I want you to": read, not written
		c.tokens = c.tokens[wishes(c):]
		if p.imperative(&c); c.act != command {
			c.act = inform
		}
		c.plain = false
	case subordinate[first] && !(question && questionWords[first]):
		c.act = unclear
	case negated(c):
		c.act = nothing
	case questionWords[first]:
		c.act = inform
		odd := func(t token) bool {
			return supposing[t.lower] || t.kind == mark && t.lower != "'s" && t.lower != ","
		}
		c.plain = question && !slices.ContainsFunc(c.tokens, odd)
		if (first == "should" || first == "shall" || first == "must" || first == "would" || first == "may") && second != "" {
			c.act = unclear
		}
	case (p.verb(first) || p.verbs[first+second]) && c.tokens[0].kind == word && !question:
		p.imperative(&c)
	case pronouns[first] && !question:
		c.act = nothing
	case c.tokens[0].kind == mark && c.tokens[0].lower != "(",
		!question && slices.ContainsFunc(c.tokens, func(t token) bool { return t.lower == ":" }):
		c.act = unclear
	case !question && slices.ContainsFunc(c.tokens, func(t token) bool { return t.kind == word && finite[t.lower] }):
		c.act = nothing // a statement
	default:
		c.act = inform
	}
	return c
}

// imperative makes a command of a clause whose first token is a verb.
func (p parser) imperative(c *clause) {
	if !p.verb(c.lower(0)) && !p.verbs[c.lower(0)+c.lower(1)] {
		return
	}
	c.act, c.verb = command, c.lower(0)
	for _, t := range c.tokens[1:min(4, len(c.tokens))] {
		if asking[t.lower] || t.lower == "if" || t.lower == "whether" { // "tell me how …", "find out who …"
			c.act = inform
			return
		}
	}
	c.plain = len(c.tokens) > 1 && p.plainCommand(c.tokens) // not "stop"
}

// plainCommand reports whether a command has nothing but words that do not change what is asked for. It is a list of
// what may be there: function words that are not on it, and words about time, doubt and exceptions, make it unclear.
func (p parser) plainCommand(tokens []token) bool {
	for i, t := range tokens[1:] {
		before, after := tokens[i], token{kind: mark}
		if i+2 < len(tokens) {
			after = tokens[i+2]
		}
		switch {
		case t.value():
			if t.kind == number && (before.lower == "in" || before.lower == "within") && timeUnits[strings.TrimSuffix(after.lower, "s")] {
				return false // "in 5 minutes" is later
			}
		case t.kind == mark:
			if !(t.lower == "," || t.lower == ":" && after.value()) {
				return false
			}
		case i == 0 && t.lower == "of": // "shutdown of the server" is no command
			return false
		case before.lower == "in" && inDoubt[t.lower]:
			return false
		case t.lower == "me" || t.lower == "us":
			if i > 0 {
				return false
			}
		case search.IsStopWord(t.lower) && !plainWords[t.lower], risky[t.lower], strings.HasSuffix(t.lower, "n't"):
			return false
		case before.lower == "to" && p.verb(t.lower) && !after.value() && after.kind == word:
			return false // "a plan to delete everything"
		}
	}
	return true
}

// wishes returns where the verb of "I'd like you to …" begins, 0 if a clause is no wish.
func wishes(c clause) int {
	if first := c.lower(0); first != "i" && first != "we" && first != "i'd" && first != "i'm" && first != "we'd" {
		return 0
	}
	wish := false
	for i := 1; i < min(len(c.tokens), 7); i++ {
		switch w := c.lower(i); {
		case w == "want" || w == "need" || w == "like" || w == "looking" || w == "trying":
			wish = true
		case wish && (w == "to" || w == "for"):
			return min(i+1, len(c.tokens)-1)
		case wish && (w == "a" || w == "the" || w == "some"):
			return i
		case !wishWords[w]:
			return 0
		}
	}
	return 0
}

// negated reports whether a clause says what is not to be done.
func negated(c clause) bool {
	for i := range min(3, len(c.tokens)) {
		if w := c.lower(i); (negative[w] || strings.HasSuffix(w, "n't")) && !(i > 0 && questionWords[c.lower(0)] && c.lower(0) != "do") {
			return true
		}
	}
	return false
}

// aboutHere reports whether a clause asks what can be done here, or who is there.
func aboutHere(c clause, question bool) bool {
	asked := false
	for _, t := range c.tokens {
		if !aboutWords[t.lower] {
			return false
		}
		asked = asked || aboutTopics[t.lower]
	}
	return asked && (question || questionWords[c.lower(0)])
}

// foreignText reports whether a clause is in another language: it has function words of one, or other letters.
func foreignText(c clause) bool {
	known := 0
	for _, t := range c.tokens {
		if t.kind != word {
			continue
		}
		if foreignWords[t.lower] {
			known++
		}
		if t.text[0] >= 0x80 && !t.capital() {
			known++
		}
	}
	return known > 1 || known == 1 && len(c.tokens) < 8
}

// Command is a command in a question.
type Command struct {
	Text string
	Verb string // in lower case
}

// Commands returns the English commands of a question. It misses commands rather than to report what is none.
func Commands(question string) (out []Command) {
	question = clip(question, maxText)
	m := parse(question, scan(question, time.Time{}), nil)
	for _, c := range m.clauses {
		switch c.act {
		case command:
			out = append(out, Command{question[c.start:c.end], c.verb})
		case nothing, unclear:
			return nil // it may take a command back
		}
	}
	return out
}
