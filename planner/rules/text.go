package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// kind is what a token is by its form alone.
type kind int

const (
	word kind = iota
	mark
	quotation
	email
	address // a URL
	path    // of a file, a pattern such as *.go, or owner/name
	identifier
	number
	date
	clock
	calculation
)

// token is a word, a mark or a value of the question.
type token struct {
	kind       kind
	text       string // a value in normal form: a quotation without its marks, a date as YYYY-MM-DD, a time as HH:MM
	lower      string // of a word or mark
	start, end int    // in the question
	number     float64
	operands   []float64 // of a calculation
	operator   byte      // of a calculation, '?' if it has several
}

func (t token) value() bool   { return t.kind >= quotation }
func (t token) capital() bool { return t.kind == word && unicode.IsUpper([]rune(t.text)[0]) }

const months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// forms are the patterns of values, in the order in which they are tried. They are compiled with the first question.
var forms = sync.OnceValue(func() (out []form) {
	add := func(k kind, pattern string) {
		out = append(out, form{k, regexp.MustCompile(`^(?:` + pattern + `)`)})
	}
	add(email, `[\pL\d._%+-]+@[\pL\d-]+(?:\.[\pL\d-]+)+`)
	add(address, `(?i)(?:https?|ftp|wss?)://[^\s"'<>]+|www\.[^\s"'<>]+|(?:[a-z\d-]+\.)+(?:com|org|net|io|dev|edu|gov)(?:/[^\s"'<>]*)?`)
	add(date, `\d{4}[-/]\d{1,2}[-/]\d{1,2}`)
	add(date, `(?i)(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:`+months+`)|(?:`+months+`) \d{1,2}(?:st|nd|rd|th)?)(?:,? \d{4})?`)
	add(date, `(?i)(?:today|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)day)`)
	add(clock, `(?i)\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight`)
	add(path, `[A-Za-z]:\\\S+|~?(?:\.{1,2})?(?:/[\pL\d._*~@+-]+)+/?|[\pL\d._*-]+(?:/[\pL\d._*-]+)+`)
	add(path, `[\pL\d_*][\pL\d_*.-]*\.[A-Za-z][A-Za-z\d]{0,4}|\.[a-z]{3,}`)
	add(identifier, `#?[\pL\d]+(?:[-_.:][\pL\d]+)*`)
	add(number, `#?[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?`)
	add(word, `[\pL\d]+(?:['’_-][\pL\d]+)*`)
	return out
})

type form struct {
	kind    kind
	pattern *regexp.Regexp
}

// quotes maps opening to closing quotation marks.
var quotes = map[rune]string{'"': `"`, '“': `”`, '„': `“`, '«': `»`, '`': "`", '\'': "'", '‘': "’"}

// scan splits a question into tokens.
func scan(text string, now time.Time) []token {
	var out []token
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if unicode.IsSpace(r) && r != '\n' {
			at += size
			continue
		}
		t := next(text, at, r, size, now)
		if len(out) == maxTokens {
			return out
		}
		out = append(out, t)
		at = t.end
	}
	return calculations(out, text)
}

func next(text string, at int, r rune, size int, now time.Time) token {
	rest := text[at:]
	for _, ending := range []string{"'s", "’s"} {
		if after, ok := strings.CutPrefix(rest, ending); ok && (after == "" || !unicode.IsLetter([]rune(after[:1])[0])) {
			return token{kind: mark, text: "'s", lower: "'s", start: at, end: at + len(ending)}
		}
	}
	if quoted, n := unquote(rest, r); n > 0 {
		return token{kind: quotation, text: quoted, start: at, end: at + n}
	}
	operator := (r == '+' || r == '-') && at > 0 && strings.ContainsAny(text[at-1:at], "0123456789)")
	for _, f := range forms() {
		if operator {
			break
		}
		found := f.pattern.FindString(rest)
		if f.kind != word {
			found = strings.TrimRight(found, ".,;:!?)")
		}
		if found == "" {
			continue
		}
		if after, _ := utf8.DecodeRuneInString(rest[len(found):]); unicode.IsLetter(after) || unicode.IsDigit(after) {
			if f.kind != number || unicode.IsDigit(after) { // 5kg is a number and a unit
				continue
			}
		}
		t := token{kind: f.kind, text: found, lower: strings.ToLower(strings.ReplaceAll(found, "’", "'")), start: at, end: at + len(found)}
		if t.normalize(now) {
			return t
		}
	}
	return token{kind: mark, text: string(r), lower: string(r), start: at, end: at + size}
}

// unquote returns a quotation at the start of a text and its length, 0 if there is none.
func unquote(text string, open rune) (string, int) {
	closing := quotes[open]
	size := utf8.RuneLen(open)
	end := strings.Index(text[min(size, len(text)):], closing)
	if closing == "" || end <= 0 {
		return "", 0
	}
	quoted := text[size : size+end]
	after, _ := utf8.DecodeRuneInString(text[size+end+len(closing):])
	if open == '\'' && (unicode.IsLetter(after) || strings.Contains(quoted, "\n")) {
		return "", 0
	}
	return quoted, size + end + len(closing)
}

func hasLetter(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

// numberWithUnit reports whether a text is digits and one to three letters, such as 5km.
func numberWithUnit(text string) bool {
	unit := strings.TrimLeft(text, "0123456789")
	letters := utf8.RuneCountInString(unit)
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	return unit != text && letters >= 1 && letters <= 3 && !strings.ContainsFunc(unit, notLetter)
}

// normalize reads the value of a token. It reports whether the token has the form.
func (t *token) normalize(now time.Time) bool {
	switch t.kind {
	case path:
		return hasLetter(t.text) && len(t.text) > 2 && !slices.Contains(alternatives, t.lower) || t.text == "/"
	case identifier:
		t.text = strings.TrimPrefix(t.text, "#")
		coded := hasLetter(t.text) || strings.ContainsAny(t.text, "-_:") || strings.Count(t.text, ".") > 1
		return strings.ContainsAny(t.text, "0123456789") && coded && !numberWithUnit(t.text)
	case number:
		digits := strings.NewReplacer(",", "", "$", "", "€", "", "£", "", "%", "", "+", "", "#", "").Replace(t.text)
		n, err := strconv.ParseFloat(digits, 64)
		t.number, t.text = n, strings.TrimPrefix(t.text, "#")
		return err == nil
	case date:
		day, ok := readDate(t.lower, now)
		t.text = day
		return ok
	case clock:
		return t.readClock()
	case word:
		if n, ok := spelled[t.lower]; ok {
			t.kind, t.number = number, float64(n)
		} else if head, is := strings.CutSuffix(t.lower, "'s"); is {
			t.text, t.lower = t.text[:len(head)], head
			t.end = t.start + len(head) // the ending is a mark
		}
	}
	return true
}

// alternatives have the form of a path.
var alternatives = []string{"and/or", "km/h", "he/she", "yes/no", "n/a", "e.g", "i.e", "a.m", "p.m", "u.s", "u.k"}

var spelled = map[string]int{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12}

var dayMonth = pattern.New(`^(?:(\d{1,2})\w{0,2}(?: of)? )?([a-z]{3})[a-z]*(?: (\d{1,2})(?:st|nd|rd|th)?)?(?:,? (\d{4}))?$`)

// readDate returns a day as YYYY-MM-DD. Without a year it is the next such day; a weekday is the next one.
func readDate(lower string, now time.Time) (string, bool) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, now.Location())
	for i, name := range []string{"yesterday", "today", "tomorrow"} {
		if lower == name {
			return today.AddDate(0, 0, i-1).Format(time.DateOnly), true
		}
	}
	if strings.HasSuffix(lower, "day") {
		for ahead := 1; ahead <= 7; ahead++ {
			if day := today.AddDate(0, 0, ahead); strings.ToLower(day.Weekday().String()) == lower {
				return day.Format(time.DateOnly), true
			}
		}
	}
	if day, err := time.Parse("2006-1-2", strings.ReplaceAll(lower, "/", "-")); err == nil {
		return day.Format(time.DateOnly), true
	}
	m := dayMonth().FindStringSubmatch(lower)
	if m == nil {
		return "", false
	}
	year := m[4]
	if year == "" {
		year = strconv.Itoa(today.Year())
	}
	day, err := time.ParseInLocation("2006 Jan 2 15", year+" "+m[2]+" "+m[1]+m[3]+" 13", now.Location())
	if err == nil && m[4] == "" && day.Before(today) {
		day = day.AddDate(1, 0, 0)
	}
	return day.Format(time.DateOnly), err == nil
}

func (t *token) readClock() bool {
	named := map[string]string{"noon": "12:00", "midnight": "00:00"}
	if at, ok := named[t.lower]; ok {
		t.text = at
		return true
	}
	compact := strings.ToUpper(strings.ReplaceAll(t.lower, " ", ""))
	for _, layout := range []string{"3PM", "3:04PM", "15:04"} {
		if at, err := time.Parse(layout, compact); err == nil {
			t.text = at.Format("15:04")
			return true
		}
	}
	return false
}

// calculations replaces the tokens of each calculation by one token.
func calculations(in []token, text string) (out []token) {
	for i := 0; i < len(in); {
		r := arithmetic{tokens: in, text: text, at: i}
		if c, ok := r.read(); ok {
			out = append(out, c)
			i = r.at
			continue
		}
		out = append(out, in[i])
		i++
	}
	return out
}

// arithmetic reads a calculation from tokens.
type arithmetic struct {
	tokens    []token
	text      string
	at        int
	depth     int
	operands  []float64
	operators string
}

// commands are calculations that begin with a word: the operator, and the words between the operands.
var commands = map[string]struct {
	operator byte
	joints   string
}{
	"add": {'+', " and , to "}, "sum": {'+', " and , "}, "subtract": {'-', " from "}, "multiply": {'*', " by and with "},
	"divide": {'/', " by "}, "product": {'*', " and "}, "difference": {'-', " and "},
}

func (r *arithmetic) peek(n int) token {
	if r.at+n < len(r.tokens) {
		return r.tokens[r.at+n]
	}
	return token{kind: mark}
}

// share returns the number of tokens of "15%", "15 percent" or "15 per cent", 0 if none is next.
func (r *arithmetic) share() int {
	switch n := r.peek(0); {
	case n.kind != number:
		return 0
	case strings.HasSuffix(n.text, "%"):
		return 1
	case r.peek(1).lower == "percent":
		return 2
	case r.peek(1).lower == "per" && r.peek(2).lower == "cent":
		return 3
	}
	return 0
}

func (r *arithmetic) read() (token, bool) {
	first := r.peek(0)
	written, ok := r.command()
	if !ok {
		written, ok = r.sum()
		ok = ok && r.operators != ""
	}
	after := r.peek(0)
	if !ok || after.lower == "," && r.peek(1).kind == number && r.peek(1).start == after.end { // a decimal comma
		return token{}, false
	}
	operator := r.operators[0]
	if strings.Trim(r.operators, r.operators[:1]) != "" {
		operator = '?'
	}
	end := r.tokens[r.at-1].end
	return token{kind: calculation, text: written, start: first.start, end: end, lower: r.text[first.start:end],
		operands: r.operands, operator: operator}, true
}

// command reads "add 3 and 4", "the sum of 3 and 4" or "subtract 4 from 10".
func (r *arithmetic) command() (string, bool) {
	c, ok := commands[r.peek(0).lower]
	from := r.at
	if r.at++; r.peek(0).lower == "of" {
		r.at++
	}
	var parts []string
	for ok {
		n := r.peek(0)
		if n.kind != number || r.share() > 0 {
			break
		}
		r.operands = append(r.operands, n.number)
		parts = append(parts, plain(n.number))
		r.at++
		skip := 0
		for strings.Contains(c.joints, " "+r.peek(skip).lower+" ") && skip < 2 {
			skip++
		}
		if skip == 0 || r.peek(skip).kind != number {
			break
		}
		r.at += skip
	}
	if len(parts) < 2 || r.peek(0).lower == "%" {
		r.at, r.operands = from, nil
		return "", false
	}
	if r.operators = string(c.operator); r.tokens[from].lower == "subtract" {
		slices.Reverse(parts)
		slices.Reverse(r.operands)
	}
	return strings.Join(parts, " "+r.operators+" "), true
}

// infix are the operators between operands.
var infix = map[string]string{"+": "+", "-": "-", "–": "-", "*": "*", "×": "*", "/": "/", "÷": "/", "^": "^",
	"plus": "+", "minus": "-", "times": "*",
	"divided by": "/", "multiplied by": "*"}

// sum reads operands with operators between them.
func (r *arithmetic) sum() (string, bool) {
	written, ok := r.operand()
	if !ok {
		return "", false
	}
	for {
		here, two := r.peek(0).lower, r.peek(0).lower+" "+r.peek(1).lower
		operator, width := infix[here], 1
		if operator == "" {
			operator, width = infix[two], 2
		}
		before := r.at
		if r.at += width; operator == "" {
			r.at = before
			return written, true
		}
		r.operators += operator
		right, ok := r.operand()
		if !ok {
			r.at = before
			r.operators = strings.TrimSuffix(r.operators, operator)
			return written, true
		}
		written += " " + operator + " " + right
	}
}

// operand reads a number, "15% of" an operand, a root, or a calculation in parentheses.
func (r *arithmetic) operand() (string, bool) {
	t := r.peek(0)
	if r.depth++; r.depth > 20 {
		return "", false
	}
	defer func() { r.depth-- }()
	switch {
	case r.share() > 0:
		if r.at += r.share(); r.peek(0).lower != "of" {
			return "", false
		}
		r.at++
		of, ok := r.operand()
		r.operands, r.operators = append(r.operands, t.number/100), r.operators+"*"
		share, _ := strconv.ParseFloat(strconv.FormatFloat(t.number/100, 'g', 15, 64), 64)
		return of + " * " + plain(share), ok
	case t.kind == number:
		r.at++
		r.operands = append(r.operands, t.number)
		return plain(t.number), true
	case t.lower == "(":
		r.at++
		inner, ok := r.sum()
		if !ok || r.peek(0).lower != ")" {
			return "", false
		}
		r.at++
		return "(" + inner + ")", true
	case t.lower == "sqrt" || t.lower == "square" && r.peek(1).lower == "root" && r.peek(2).lower == "of":
		if r.at++; t.lower == "square" {
			r.at += 2
		}
		inner, ok := r.operand()
		r.operators += "r"
		return "sqrt(" + strings.Trim(inner, "()") + ")", ok
	}
	return "", false
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
