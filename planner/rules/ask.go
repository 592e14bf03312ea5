package rules

import (
	"maps"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
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
	writes  bool     // one of the clauses may write

	operation, otherOperations []string // stems that name tools for the calculation among the values, and for others
}

// askFor reads what the clauses ask for. all are the values of the whole question.
func askFor(text string, clauses []intent.Clause, all []values.Value) ask {
	a, files := ask{text: text, clauses: clauses}, 0
	for _, c := range clauses {
		if a.lang == "" {
			a.lang = c.Language
		}
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
		if c.Verb != "" && (c.Act.MayRead() || c.Act == intent.Conditional) && !calculation(text, c, all) {
			a.verb = append(a.verb, verbStems(c)...)
		}
		if c.Verb == "" && c.Language != "en" && len(words) > 0 && lists["changes"].any(words[0].stems) {
			a.verb = append(a.verb, words[0].stems...) // "schreib hallo in notes.txt" looks like a question
		}
		a.writes = a.writes || c.Act.MayWrite()
		for _, v := range all {
			if middle := (v.Start + v.End) / 2; middle < c.Start || middle >= c.End {
				continue
			}
			a.values = append(a.values, v)
			switch {
			case v.Kind == values.Path && strings.Contains(v.Text, "*"):
			case v.Kind == values.Path && path.Ext(v.Text) != "": // "how big is notes.txt" is about a file
				files++
				a.kinds = a.fileKinds(path.Ext(v.Text), files)
			case v.Kind == values.Path && (v.Cue == "in" && a.wantsContents() || slices.Contains(a.verb, "list")):
				// "which files are in /tmp?"
				a.kinds = kinds("list", "directory")
			case v.Kind == values.Expression:
				a.operation, a.otherOperations = operation(v.Text)
			}
		}
	}
	return a
}

// kinds are words that stand nowhere in the question.
func kinds(names ...string) []word {
	var out []word
	for _, n := range names {
		out = append(out, word{lower: n, stems: []string{search.Stem(n)}, weight: 1})
	}
	return out
}

// aboutFile reports whether the question names a file.
func (a ask) aboutFile() bool {
	return slices.ContainsFunc(a.kinds, func(w word) bool { return w.lower == "file" })
}

// fileKinds are kinds for the last of several files.
func (a ask) fileKinds(ext string, files int) []word {
	switch {
	case !a.wantsContents():
		return kinds("file")
	case files > 1:
		return kinds("read", "file")
	}
	return kinds("read", "file", medium(ext))
}

// leavesAddress reports whether an address or path is in no argument, nor in one that is only a part of it.
func (a ask) leavesAddress(fill filling) bool {
	return slices.ContainsFunc(a.values, func(v values.Value) bool {
		used := slices.ContainsFunc(slices.Collect(maps.Values(fill.chosen)), func(c choice) bool { return c.overlaps(v.Start, v.End) })
		return (v.Kind == values.Email || v.Kind == values.URL || v.Kind == values.Path) && !used
	})
}

// wantsContents reports whether nothing is said of a file or directory but that it is to be shown: "what's in notes.txt?"
func (a ask) wantsContents() bool {
	return !lists["changes"].any(a.verb) && !slices.ContainsFunc(a.words, func(w word) bool {
		inValue := slices.ContainsFunc(a.values, func(v values.Value) bool { return v.Start <= w.start && w.end <= v.End })
		return w.weight > 0 && !inValue && !lists["contents"].any(w.stems)
	})
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
	for _, w := range search.Words(c.Verb) {
		out = append(out, search.Stem(w))
	}
	stems, _ := search.StemsIn(c.Verb, c.Language)
	return append(out, stems...)
}

var toAsker = regexp.MustCompile(`(?i)^\W*\w+ (me|us)\b( to\b)?`)

// informs reports whether a clause asks to tell something to somebody else, or to the asker at another time.
func informs(c intent.Clause) bool {
	_, said, _ := strings.Cut(strings.ToLower(c.Text), c.Verb)
	to := toAsker.FindStringSubmatch(c.Verb + said)
	return c.Act.MayWrite() && lists["informing"].any(verbStems(c)) && (to == nil || to[2] != "")
}

// covers reports whether a part of the question belongs to what is asked.
func (a ask) covers(start, end int) bool {
	return slices.ContainsFunc(a.clauses, func(c intent.Clause) bool { return c.Start <= start && end <= c.End })
}

// query is what to search tools for: the words as they are, and their translations.
func (a ask) query() string {
	var b strings.Builder
	for i, c := range a.clauses {
		if i > 0 {
			b.WriteString(". ")
		}
		b.WriteString(c.Text)
	}
	for _, w := range a.kinds {
		b.WriteString(" " + w.lower)
	}
	for _, w := range a.words {
		for _, q := range questions {
			if w.has(q.word) {
				b.WriteString(" " + q.topic)
			}
		}
		if a.lang == "en" || a.lang == "" {
			break
		}
		stems, _ := search.StemsIn(w.lower, a.lang)
		b.WriteString(" " + strings.Join(stems[1:], " "))
	}
	return b.String()
}

// mayCall reports whether what is asked for allows to call a tool: a read for anything that may read, a write only for a
// command or request whose verb says what the tool does.
func (a ask) mayCall(f *profile) bool {
	if f.reads && slices.ContainsFunc(f.name, func(s string) bool { return slices.Contains(a.otherOperations, s) }) {
		return false // no sum for "10 - 4"
	}
	if f.reads {
		if a.lang == "" {
			text, name := strings.ToLower(a.text), strings.ToLower(f.tool.Tool)
			return strings.Contains(text, name) || strings.Contains(text, strings.ReplaceAll(name, "_", " "))
		}
		if slices.ContainsFunc(a.clauses, informs) {
			return slices.ContainsFunc(a.verb, func(v string) bool { return slices.Contains(f.name, v) })
		}
		return f.does(a.verb) || !slices.ContainsFunc(a.verb, func(v string) bool { return lists["changes"][v] })
	}
	if a.aboutFile() && f.isForDirectories() {
		return false
	}
	return slices.ContainsFunc(a.clauses, func(c intent.Clause) bool {
		verb := verbStems(c)
		if slices.ContainsFunc(verb, func(v string) bool { return lists["light"][v] }) &&
			slices.ContainsFunc(a.words, func(w word) bool { return c.Start <= w.start && w.end <= c.End && w.has(f.verb) }) {
			verb = []string{f.verb}
		}
		runs := usesCommand(c, verb) && f.runsCommands()
		return c.Act.MayWrite() && c.Verb != "" && (runs || f.does(verb) && !a.opposed(f, c))
	})
}

// opposites are the particles that make a verb mean its opposite: the second of a pair decides where both are said.
var opposites = [][2]string{{"on", "off"}, {"up", "down"}, {"in", "out"}}

// opposed reports whether a tool's name says "on" and a clause "off", or the other way round.
func (a ask) opposed(f *profile, c intent.Clause) bool {
	name, said := search.Words(f.tool.Tool), verbStems(c)
	for _, w := range a.words {
		if c.Start <= w.start && w.end <= c.End {
			said = append(said, w.stems...)
		}
	}
	return slices.ContainsFunc(opposites, func(pair [2]string) bool {
		on, off := slices.Contains(name, pair[0]), slices.Contains(name, pair[1])
		saysOff := slices.Contains(said, pair[1])
		return on && !off && saysOff || off && !on && !saysOff && slices.Contains(said, pair[0])
	})
}

// isForDirectories reports whether a tool is for directories and not for files, by its name.
func (f *profile) isForDirectories() bool {
	return slices.Contains(f.name, "directori") && !slices.Contains(f.name, "file")
}

// fitsAfter reports whether the word after a verb that only its place makes a verb is one that the tool knows, or a value.
func (a ask) fitsAfter(f *profile, c intent.Clause) bool {
	seen := false
	for i, w := range a.words {
		if w.start < c.Start || w.end > c.End {
			continue
		}
		if seen && a.written(i) > 0 {
			return true
		}
		if seen && w.weight > 0 {
			inValue := slices.ContainsFunc(a.values, func(v values.Value) bool { return v.Start <= w.start && w.end <= v.End })
			return inValue || w.weight < 1 || slices.ContainsFunc(w.stems, func(s string) bool {
				return f.words[s] ||
					f.labels[s]
			})
		}
		seen = seen || strings.HasPrefix(c.Verb, w.lower)
	}
	return true
}
