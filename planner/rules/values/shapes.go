package values

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const domains = `com|org|net|io|dev|edu|gov|eu|app|ai|co\.uk` // without a scheme

var (
	emailShape = Lazy(`^[\pL\d._%+-]+@[\pL\d-]+(\.[\pL\d-]+)+$`)
	urlShape   = Lazy(`^(?i)(?:[a-z][a-z\d+.-]*://\S+|(?:[a-z\d-]+\.)+(?:` + domains + `)(?:[/:?]\S*)?)$`)
	pathShape  = Lazy(`^(?:(?:~|\.{1,2})?/[\pL\d._~-]\S*|~/?|[A-Za-z]:\\\S*|\S+\\\S+|` +
		`\S+/\S*/\S*|\S+/|\S+/\S+\.\w+)$`)
	fileShape = Lazy(`^[\pL\d_.*-]*[\pL\d_*]\.(?:[a-z][a-z\d]{1,4}|[A-Z][A-Z\d]{1,3}|[a-z])$`)
	slugShape = Lazy(`^[\pL\d._-]+/[\pL\d._-]+$`)
	codeShape = Lazy(`^[#@+]?[\pL\d]+(?:[-_.:/][\pL\d]+)*$`)
	initials  = Lazy(`^(?:\pL\.)+\pL?$`)
)

// Lazy compiles a pattern when it is first used, so that programs that never plan do not hold it.
func Lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

func letters(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

// maxChunk bounds the tokens of an address or identifier.
const maxChunk = 200

// chunk returns the text from token i to white space or a quotation, without marks around it, and the token after it.
func (r *scanner) chunk(i int) (string, int) {
	if t := r.tok(i); !t.gap && !strings.Contains("([{<=:,;", r.tok(i-1).fold) || t.kind == 'q' || t.kind == 0 {
		return "", 0
	}
	next := i + 1
	for ; !r.tok(next).gap && r.tok(next).kind != 'q'; next++ {
		if next > i+maxChunk {
			return "", 0
		}
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

// filesOf are the words after an extension that stand for all files with it: "txt files".
var (
	filesOf    = strings.Fields("files dateien fichiers archivos ficheros")
	extensions = strings.Fields("txt md pdf csv json xml yaml yml html doc docx xls xlsx ppt pptx png jpg jpeg gif svg zip log")
)

// address reads e-mail addresses, URLs and paths.
func (r *reader) address(i int) int {
	if ext := r.tok(i).fold; slices.Contains(filesOf, r.tok(i+1).fold) && slices.Contains(extensions, ext) {
		v := r.value(Path, i, i+1)
		v.Text = "**/*." + ext
		return r.add(v)
	}
	s, next := r.chunk(i)
	_, rest, _ := strings.Cut(s, "/")
	switch {
	case !letters(s) && s != "~", initials().MatchString(s), r.tok(i).kind == 'd' && r.measured(i, next):
	case emailShape().MatchString(s):
		return r.add(r.value(Email, i, next))
	case urlShape().MatchString(s):
		return r.add(r.value(URL, i, next))
	case slugShape().MatchString(s) && letters(rest) && !r.is(i, "unit", "article", "other", "cue"):
		return r.add(r.value(Path, i, next), r.value(Identifier, i, next))
	case pathShape().MatchString(s) || fileShape().MatchString(s):
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
	if s == "" || !codeShape().MatchString(s) || strings.HasSuffix(s, ":") {
		return 0
	}
	digit := strings.ContainsAny(s, "0123456789")
	camel := !r.tok(i).upper && strings.IndexFunc(s, unicode.IsUpper) > 0
	coded := digit && (letters(s) || strings.ContainsAny(s, "-.") || len(s) > maxDigits)
	if !coded && !camel && !strings.ContainsAny(s, "_#@+") {
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
	case r.is(i-1, "file") && r.word(i) && !t.stop && !r.word(i+1) && !strings.HasSuffix(t.fold, "ing") &&
		r.cue(i+2) != "of": // "the directory tree of /tmp"
		return r.add(r.value(Path, i, i+1))
	}
	return 0
}

// name reads capitalised words that do not begin a sentence. German nouns are names only after a preposition or a noun.
func (r *reader) name(i int) int {
	capital := func(j int) bool {
		t := r.tok(j)
		if r.mark(j+1, "-") && !r.tok(j+1).gap && r.tok(j+2).kind == 'd' && !r.tok(j+2).gap {
			return false // C-90
		}
		initial := !t.gap && t.size() == 1 && r.mark(j-1, ".") // U.S
		return t.upper && t.kind == 'w' && (initial || !r.is(j, "other")) && (!r.is(j, "article") || t.size() == 1)
	}
	titled := r.is(i, "article") && r.tok(i).upper && r.Language == "en" && capital(i+1) // The Hague
	before := r.tok(i - 1)
	noun := r.Language == "de" && before.kind == 'w' &&
		(r.is(i-1, "article") || r.taken[i-1] || !before.upper && !r.is(i-1, "cue"))
	if !capital(i) && !titled || r.is(i, "file") || r.tok(i).stop || !r.tok(i).gap && before.kind == 'w' || noun {
		return 0
	}
	next := i + 1
	for next < i+8 && !r.tok(next).stop {
		j := next
		if r.mark(j, "&-'") || r.mark(j, ".") && r.tok(j-1).size() <= 2 || r.Language != "de" && r.is(j, "of", "particle") {
			j++
		}
		ended := r.tok(j).stop && !r.tok(j-2).gap // Liverpool F.C. Then
		if !capital(j) || ended || r.is(j, "weekday") || r.tok(j).kind == 0 {
			break
		}
		next = j + 1
	}
	if t := r.tok(next); t.kind == 'd' && t.gap && t.size() < 5 && r.ends(next+1) && !r.word(next+1) && r.cue(next+1) == "" {
		r.add(r.value(Name, i, next+1)) // Windows 10
	}
	return r.add(r.value(Name, i, next))
}

// unquoted returns the text of a quotation without its marks.
func (r *scanner) unquoted(i int) string {
	text := r.text[r.tok(i).start:r.tok(i).end]
	opening, size := utf8.DecodeRuneInString(text)
	text = text[size:]
	if last, size := utf8.DecodeLastRuneInString(text); strings.ContainsRune(quoteMarks[opening], last) {
		text = text[:len(text)-size]
	}
	return text
}

// quotation reads a quotation, and its text as another value if that is the whole of it.
func (r *reader) quotation(i int) int {
	t := r.tok(i)
	if t.kind != 'q' {
		return 0
	}
	v := r.value(Quotation, i, i+1)
	v.Text = r.unquoted(i)
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
