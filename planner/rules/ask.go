package rules

import (
	"cmp"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// ask is what one call may serve: a clause, or several that belong together.
type ask struct {
	text    string // the whole question
	clauses []intent.Clause
	words   []word
	kinds   []word // what the values say that no word says
	values  []values.Value
	lang    string
	verb    []string // stems of the verbs

	calculation bool
	operators   string // of the calculation
}

// askFor reads what the clauses ask for. all are the values of the whole question.
func askFor(text string, clauses []intent.Clause, all []values.Value) ask {
	a, files := ask{text: text, clauses: clauses}, 0
	for _, c := range clauses {
		a.lang = cmp.Or(a.lang, c.Language)
		words := readWords(text, c.Start, c.End, c.Language)
		at := slices.IndexFunc(words, func(w word) bool { return w.lower == c.Verb })
		if c.Act == intent.Request && c.Language == "en" && at > 0 {
			words = words[at:] // "would you mind" is no topic
		}
		if n := len(words); c.Language == "de" && n > 2 && strings.HasPrefix(c.Verb, words[n-1].lower) {
			words = words[:n-1] // the "neu" of "starte … neu"
		}
		if len(a.words) < maxWords {
			a.words = append(a.words, words...)
		}
		v, counts := calculated(c, all)
		adds := counts && strings.HasPrefix(strings.ToLower(text[v.Start:v.End]), c.Verb) // "add 3 and 4" adds nothing anywhere
		if c.Verb != "" && (c.Act.MayRead() || c.Act == intent.Conditional) && !adds {
			a.verb = append(a.verb, verbStems(c)...)
		}
		if c.Verb == "" && c.Language != "en" && len(words) > 0 && list("changes").any(words[0].stems) {
			a.verb = append(a.verb, words[0].stems...) // "schreib hallo in notes.txt" looks like a question
		}
		if counts {
			a.calculation, a.operators = true, operators(v.Text)
		}
		for _, v := range all {
			middle := (v.Start + v.End) / 2
			if middle < c.Start || middle >= c.End {
				continue
			}
			a.values = append(a.values, v)
			switch ext := path.Ext(v.Text); {
			case v.Kind != values.Path:
			case strings.Contains(v.Text, "*"):
				a.kinds = kinds("file")
			case ext != "": // "how big is notes.txt" is about a file
				a.kinds = kinds("file")
				if files++; a.wantsContents() && files > 1 {
					a.kinds = kinds("read", "file")
				} else if a.wantsContents() {
					a.kinds = kinds("read", "file", medium(ext))
				}
			case files == 0 && a.lists(v):
				a.kinds = kinds("list", "directory")
			case list("reading").any(a.verb) && strings.HasPrefix(v.Text, "/"): // "acme/web" may be a repository
				a.kinds = kinds("read", "file", "text")
			}
		}
	}
	return a
}

// kinds are words that stand nowhere in the question.
func kinds(names ...string) (out []word) {
	for _, n := range names {
		out = append(out, word{lower: n, stems: []string{search.Stem(n)}, weight: 1})
	}
	return out
}

// aboutFile reports whether the question names a file.
func (a ask) aboutFile() bool {
	return slices.ContainsFunc(a.kinds, func(w word) bool { return w.lower == "file" })
}

// holds reports whether a word is a part of a value.
func (a ask) holds(w word) bool {
	return slices.ContainsFunc(a.values, func(v values.Value) bool { return v.Start <= w.start && w.end <= v.End })
}

// leavesAddress reports whether an address or path is in no argument.
func (a ask) leavesAddress(fill filling) bool {
	return slices.ContainsFunc(a.values, func(v values.Value) bool {
		address := v.Kind == values.Email || v.Kind == values.URL || v.Kind == values.Path
		return address && !fill.overlaps(v.Start, v.End)
	})
}

// wantsContents reports whether nothing is said of a file or directory but that it is to be shown: "what's in notes.txt?"
func (a ask) wantsContents() bool {
	return !list("changes").any(a.verb) && !slices.ContainsFunc(a.words, func(w word) bool {
		return w.weight > 0 && !a.holds(w) && !list("contents").any(w.stems)
	})
}

// lists reports whether the files of a directory are asked for: "ls /tmp", "which files are in /tmp?"
func (a ask) lists(directory values.Value) bool {
	file := func(w word) bool { return w.has("file") }
	return list("listing").any(slices.Concat(a.words[0].stems, a.verb)) || // "ls" does not look like a verb
		directory.Cue == "in" && (a.wantsContents() || len(a.verb) == 0 && !list("query").any(a.words[0].stems) &&
			slices.ContainsFunc(a.words, file))
}

// medium is what a file with this extension holds.
func medium(ext string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(ext)), "/")
	if kind == "image" || kind == "audio" || kind == "video" {
		return kind
	}
	return "text"
}

// verbStems are what the verb of a clause may be called in a catalog.
func verbStems(c intent.Clause) []string {
	var out []string
	for _, w := range segment.Words(c.Verb) {
		out = append(out, search.Stem(w))
	}
	stems, _ := search.StemsIn(c.Verb, c.Language)
	return append(out, stems...)
}

var toAsker = lazy(`(?i)^\W*\w+ (me|us)\b( to\b)?`)

// informs reports whether a clause asks to tell something to somebody else, or to the asker at another time.
func informs(c intent.Clause) bool {
	_, said, _ := strings.Cut(strings.ToLower(c.Text), c.Verb)
	to := toAsker().FindStringSubmatch(c.Verb + said)
	return c.Act.MayWrite() && list("informing").any(verbStems(c)) && (to == nil || to[2] != "")
}

// covers reports whether a part of the question belongs to what is asked.
func (a ask) covers(start, end int) bool {
	return slices.ContainsFunc(a.clauses, func(c intent.Clause) bool { return c.Start <= start && end <= c.End })
}

// query is what to search tools for: the words as they are, but for the names of files, and their translations.
func (a ask) query() string {
	var parts []string
	for i, c := range a.clauses {
		at := c.Start
		for _, v := range a.values {
			named := v.Kind == values.Path && strings.HasPrefix(v.Text, "/")
			if named && at <= v.Start && v.End <= c.End {
				parts = append(parts, a.text[at:v.Start])
				at = v.End
			}
		}
		if parts = append(parts, a.text[at:c.End]); i+1 < len(a.clauses) {
			parts = append(parts, ". ")
		}
	}
	for _, w := range a.kinds {
		parts = append(parts, w.lower)
	}
	for i, w := range a.words {
		if i == 0 && w.has("who") {
			parts = append(parts, "person")
		} else if i == 0 && w.has("when") {
			parts = append(parts, "date")
		}
		if a.lang != "en" && a.lang != "" {
			stems, _ := search.StemsIn(w.lower, a.lang)
			parts = append(parts, stems[1:]...)
		}
	}
	return strings.Join(parts, " ")
}

// mayCall reports whether what is asked for allows to call a tool: a read for anything that may read, a write only for a
// command or request whose verb says what the tool does.
func (a ask) mayCall(f *profile) bool {
	switch {
	case f.reads && a.calculatesOther(f):
		return false
	case f.reads && a.lang == "":
		text, name := strings.ToLower(a.text), strings.ToLower(f.tool.Tool)
		return strings.Contains(text, name) || strings.Contains(text, strings.ReplaceAll(name, "_", " "))
	case f.reads && slices.ContainsFunc(a.clauses, informs):
		return slices.ContainsFunc(a.verb, f.named)
	case f.reads:
		return f.does(a.verb) || !list("changes").any(a.verb)
	case a.aboutFile() && f.isForDirectories():
		return false
	}
	return slices.ContainsFunc(a.clauses, func(c intent.Clause) bool {
		verb := verbStems(c)
		if list("light").any(verb) &&
			slices.ContainsFunc(a.words, func(w word) bool { // not "give me instructions to cancel it"
				return c.Start <= w.start && w.end <= c.End && w.has(f.verb) && !strings.HasSuffix(a.text[:w.start], " to ")
			}) {
			verb = []string{f.verb}
		}
		runs := f.runsCommands() && a.givesCommand(c, verb)
		return c.Act.MayWrite() && c.Verb != "" && (runs || f.does(verb) && !a.opposed(f, c))
	})
}

// opposed reports whether a tool's name has a particle such as "on" and a clause its opposite. Of both "off" decides.
func (a ask) opposed(f *profile, c intent.Clause) bool {
	name, said := segment.Words(f.tool.Tool), verbStems(c)
	for _, w := range a.words {
		if c.Start <= w.start && w.end <= c.End {
			said = append(said, w.stems...)
		}
	}
	return slices.ContainsFunc([][2]string{{"on", "off"}, {"up", "down"}, {"in", "out"}}, func(pair [2]string) bool {
		on, off := slices.Contains(name, pair[0]), slices.Contains(name, pair[1])
		saysOff := slices.Contains(said, pair[1])
		return on && !off && saysOff || off && !on && !saysOff && slices.Contains(said, pair[0])
	})
}

// fitsAfter reports whether the word after a verb that only its place makes a verb is one that the tool knows, or a value.
func (a ask) fitsAfter(f *profile, c intent.Clause) bool {
	seen := false
	for i, w := range a.words {
		if w.start < c.Start || w.end > c.End {
			continue
		}
		if seen && (w.weight > 0 || a.written(i) > 0) {
			known := func(s string) bool { return f.words[s] || f.labels[s] }
			return a.holds(w) || w.weight < 1 || a.written(i) > 0 || slices.ContainsFunc(w.stems, known)
		}
		seen = seen || strings.HasPrefix(c.Verb, w.lower)
	}
	return true
}
