package values

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	emailShape = regexp.MustCompile(`^[\pL\d._%+-]+@[\pL\d-]+(\.[\pL\d-]+)+$`)
	urlShape   = regexp.MustCompile(`^(?i)(?:[a-z][a-z\d+.-]*://\S+|(?:[a-z\d-]+\.)+(?:com|org|net|io|dev|edu|gov|eu|app|ai|co\.uk)(?:[/:?]\S*)?)$`)
	pathShape  = regexp.MustCompile(`^(?:(?:~|\.{1,2})?/[\pL\d._~-]\S*|~/?|[A-Za-z]:\\\S*|\S+\\\S+|\S+/\S*/\S*|\S+/|\S+/\S+\.\w+|[\w.-]*\w\.(?:[a-z][a-z\d]{1,4}|[A-Z][A-Z\d]{1,3}|[a-z]))$`)
	slugShape  = regexp.MustCompile(`^[\pL\d._-]+/[\pL\d._-]+$`)
	codeShape  = regexp.MustCompile(`^[#@+]?[\pL\d]+(?:[-_.:/][\pL\d]+)*$`)
	initials   = regexp.MustCompile(`^(?:\pL\.)+\pL?$`)
)

// chunk returns the text from token i to white space or a quotation, without marks around it, and the token after it.
func (r *reader) chunk(i int) (string, int) {
	if t := r.tok(i); !t.gap && !strings.Contains("([{<=:,;", r.tok(i-1).fold) || t.kind == 'q' || t.kind == 0 {
		return "", 0
	}
	next := i + 1
	for ; !r.tok(next).gap && r.tok(next).kind != 'q'; next++ {
	}
	for next > i && strings.Contains(".,;:!?)]}>'…", r.tok(next-1).fold) {
		next--
	}
	if next > i+2 && r.tok(next-1).fold == "s" && r.tok(next-2).fold == "'" {
		next -= 2
	}
	if next == i {
		return "", 0
	}
	return r.text[r.tok(i).start:r.tok(next-1).end], next
}

// address reads e-mail addresses, URLs and paths.
func (r *reader) address(i int) int {
	s, next := r.chunk(i)
	_, rest, _ := strings.Cut(s, "/")
	switch {
	case strings.IndexFunc(s, unicode.IsLetter) < 0 && s != "~", initials.MatchString(s), r.tok(i).kind == 'd' && r.measured(i, next):
	case emailShape.MatchString(s):
		return r.add(r.value(Email, i, next))
	case urlShape.MatchString(s):
		return r.add(r.value(URL, i, next))
	case slugShape.MatchString(s) && rest != "" && !r.is(i, "unit", "article", "other", "cue") && strings.IndexFunc(rest, unicode.IsLetter) >= 0:
		return r.add(r.value(Path, i, next), r.value(Identifier, i, next))
	case pathShape.MatchString(s):
		return r.add(r.value(Path, i, next))
	}
	return 0
}

// measured reports whether an amount ends where a chunk does: 72km/h.
func (r *reader) measured(i, next int) bool {
	v, ok := r.amount(i)
	return ok && v.next >= next
}

// code reads identifiers: letters with digits, words with low lines or inner capitals, what follows "#" or "@", numbers
// with several marks.
func (r *reader) code(i int) int {
	s, next := r.chunk(i)
	if key, _, ok := strings.Cut(s, "="); ok && key != "" {
		return 0
	}
	if s == "" || !codeShape.MatchString(s) || strings.HasSuffix(s, ":") {
		return 0
	}
	letter, digit := strings.IndexFunc(s, unicode.IsLetter) >= 0, strings.ContainsAny(s, "0123456789")
	camel := false
	for j, c := range s {
		camel = camel || j > 0 && unicode.IsUpper(c) && unicode.IsLower([]rune(s)[0])
		if camel {
			break
		}
	}
	if !(letter && digit || strings.ContainsAny(s, "_#@+") || camel || digit && strings.ContainsAny(s, "-.") || digit && len(s) > maxDigits) {
		return 0
	}
	v := r.value(Identifier, i, next)
	v.Text = strings.TrimPrefix(s, "#")
	return r.add(v)
}

// keyed reads the words after "key:" and "key=", after "called", and the name of a file or folder.
func (r *reader) keyed(i int) int {
	if means, next := r.match(i, "true"); next > 0 && r.ends(next) {
		v := r.value(Boolean, i, next)
		v.Flag = means == "true"
		r.add(v)
	}
	before, t := r.tok(i-1), r.tok(i)
	switch key := r.tok(i-2).kind == 'w' && (before.fold == ":" && t.gap || before.fold == "="); {
	case key && t.kind != 'p', r.cue(i) == "named" && t.kind == 'w':
		next := i + 1
		for ; next < i+12 && !strings.Contains(".,;:!?)=", r.tok(next).fold) && !r.tok(next).stop; next++ {
			if before.fold == "=" && r.tok(next).gap || !key && !r.word(next) {
				break
			}
		}
		if r.tok(next).fold == "=" || r.tok(next).fold == ":" {
			next-- // another key
		}
		r.add(r.value(Phrase, i, max(next, i+1)))
	case r.is(i-1, "file") && r.word(i) && !t.stop && !r.word(i+1) && !(r.Language == "en" && strings.HasSuffix(t.fold, "ing")):
		return r.add(r.value(Path, i, i+1))
	}
	return 0
}

// name reads capitalised words that do not begin a sentence. German nouns are names only after a preposition or a noun.
func (r *reader) name(i int) int {
	capital := func(j int) bool {
		return r.tok(j).upper && r.tok(j).kind == 'w' && !r.is(j, "other") && (!r.is(j, "article") || r.tok(j).end-r.tok(j).start == 1)
	}
	if before := r.tok(i - 1); !capital(i) || r.tok(i).stop || !r.tok(i).gap && before.kind == 'w' ||
		r.Language == "de" && (r.is(i-1, "article") || i > 0 && r.taken[i-1] && before.kind == 'w' || before.kind == 'w' && !before.upper && !r.is(i-1, "cue")) {
		return 0
	}
	next := i + 1
	for next < i+8 && !r.tok(next).stop {
		j := next
		if t := r.tok(j); t.kind == 'p' && strings.Contains(".&-'", t.fold) && t.fold != "" && (t.fold != "." || r.tok(j-1).end-r.tok(j-1).start <= 2) {
			j++
		} else if r.is(j, "of") || strings.Contains(" of de von van der du del la ", " "+t.fold+" ") && t.kind == 'w' {
			j++
		}
		if !capital(j) || r.is(j, "weekday") || r.tok(j).kind == 0 {
			break
		}
		next = j + 1
	}
	return r.add(r.value(Name, i, next))
}

// quotation reads a quotation, and its text as another value if that is the whole of it.
func (r *reader) quotation(i int) int {
	t := r.tok(i)
	if t.kind != 'q' {
		return 0
	}
	v := r.value(Quotation, i, i+1)
	marks := []rune(v.Text)
	v.Text = strings.TrimSuffix(strings.TrimPrefix(v.Text, string(marks[0])), string(marks[len(marks)-1]))
	next := r.add(v)
	inner := newReader(v.Text, nil, r.Options)
	inner.read(0)
	for _, w := range inner.out {
		if w.Start == 0 && w.End == len(v.Text) {
			w.Start, w.End, w.at, w.next = v.Start, v.End, i, next
			r.add(w)
		}
	}
	return next
}
