// Package intent decides what each clause of a question asks for: an action, information, or nothing. It knows function
// words and word order of English, German, French and Spanish, and no content verbs, so it decides the shape of a clause
// and never which tool fits.
//
// Doubt is resolved against writing. A clause is a Command only if its verb comes first and looks like an imperative or
// infinitive. "Don't forget to X" is a Command; "why don't you X" and "X?" are not. A condition, hypothesis or report
// covers the rest of its sentence, and a condition at the end also covers the commands before it. Negation covers verbs
// joined by "and" or "or". Quotations, and what follows a colon after a verb, are data.
//
// The language of a sentence is the one with most function words in it. A sentence without any, such as "cancel order
// 4711", has the language of the question, else English if it is ASCII. If another language has as many or the script
// is not Latin, the sentence is one Unknown clause.
//
// All functions are pure and safe for concurrent use. Split takes time linear in its input.
package intent

import "slices"

// Act is what a clause does.
type Act uint8

// The acts of clauses.
const (
	Unknown        Act = iota // the language is not known
	Command                   // "cancel order 5"
	Request                   // "could you cancel order 5", "I'd like to cancel it", "let's …"
	Question                  // asks for information: "who works in Berlin", "weather in Paris", "tell me …"
	ActionQuestion            // asks about an action: "should I cancel it?", "how do I …", "did you …"
	Negated                   // "do not cancel it", "never …", "instead of cancelling it", "before you cancel it"
	Conditional               // a condition, or what is asked for under one; then Verb is set
	Hypothetical              // "what if I …", "suppose …", "I might …"
	Reported                  // "Bob said to cancel it"
	Quoted                    // the words of a quotation
	Past                      // "I cancelled it"
	Statement                 // any other statement
)

func (a Act) String() string {
	return [...]string{"Unknown", "Command", "Request", "Question", "ActionQuestion", "Negated", "Conditional", "Hypothetical",
		"Reported", "Quoted", "Past", "Statement"}[a]
}

// MayWrite reports whether a clause of this act may change something: by its Verb only.
func (a Act) MayWrite() bool { return a == Command || a == Request }

// MayRead reports whether a clause of this act may look something up. A Conditional with a Verb may read, too, where the
// caller takes its verb for one of reading ("calculate the area if the radius is 5").
func (a Act) MayRead() bool { return a == Command || a == Request || a == Question }

// Clause is a part of a question with one act. Quotations inside of a clause belong to it.
type Clause struct {
	Text       string // question[Start:End]
	Start, End int    // byte offsets
	Act        Act
	Language   string // "en", "de", "fr", "es", or "" if unknown
	// Verb is the verb that the clause asks for or is about, as written, in lower case; a separable German verb has its
	// particle in front ("sag … ab": "absag"). It is "" if the clause has none or it was not found.
	Verb string
	// Bare tells that nothing but word order makes Verb a verb: a plain noun, name or preposition follows, as in "cancel
	// order 5", but also in "release candidates for May". Before it writes, a caller requires that the word after Verb
	// fits as well. A Bare clause after the first may also continue the previous one ("apples and orange juice").
	Bare bool
}

// Split returns the clauses of a question in order. Only space, punctuation and conjunctions lie between them.
func Split(question string) []Clause {
	tokens := tokenize(question)
	var fallback []*lexicon
	if plain(tokens) {
		fallback = lexicons()[:1]
	}
	fallback = languagesOf(tokens, fallback)
	var out []Clause
	var before scope
	done := 0 // clauses that were taken back or may not be any more
	for start := 0; start < len(tokens); {
		end := sentenceEnd(tokens, start)
		s, clauses := read(question, tokens[start:end], fallback, before)
		if s.retracted {
			for ; done < len(out); done++ {
				if out[done].Act.MayWrite() {
					out[done].Act = Negated
				}
			}
		}
		out = append(out, clauses...)
		before = s.scope
		start = end
	}
	return out
}

// read reads one sentence. Where languages are equally likely, it takes one in which nothing is written, if there is one.
func read(text string, tokens []token, fallback []*lexicon, before scope) (s sentence, clauses []Clause) {
	languages := languagesOf(tokens, fallback)
	for k := range max(len(languages), 1) {
		other := sentence{text: text, line: line{t: tokens}, scope: before}
		if len(languages) > 0 {
			other.lex = languages[k]
			for i, t := range tokens {
				if tokens[i].class = 0; t.kind == word {
					tokens[i].class = other.lex.words[t.lower]
				}
			}
		}
		found := other.clauses()
		writes := slices.ContainsFunc(found, func(c Clause) bool { return c.Act.MayWrite() })
		if k == 0 || !writes {
			s, clauses = other, found
		}
		if !writes {
			break
		}
	}
	return s, clauses
}
