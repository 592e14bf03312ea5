package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Masker replaces known secrets, in every form in which a server may repeat them, and what looks like a credential. The
// nil Masker and the zero value know no secrets. A Masker is safe for concurrent use.
type Masker struct {
	known atomic.Pointer[known]

	mu      sync.Mutex
	secrets map[string][2][]string // by owner: the current ones, and those before
}

// known finds secrets in one pass.
type known struct {
	long  *strings.Replacer
	short *regexp.Regexp // whole words; nil = none
}

// Lengths of secrets in bytes.
const (
	shortest = 4  // shorter ones are parts of ordinary words
	long     = 8  // shorter ones are replaced as whole words only
	longLine = 16 // shorter lines of a secret, such as "}", are no secrets of their own

	longest = 64 << 10 // longer ones are not learned
)

// NewMasker returns a Masker that knows the secrets of a configuration.
func NewMasker(secrets []string) *Masker {
	m := &Masker{}
	m.Set(secrets)
	return m
}

// Set replaces the secrets of the configuration. Those before stay known until the next change, because servers of the
// former configuration may still fail.
func (m *Masker) Set(secrets []string) { m.learn("", secrets) }

// Learn replaces the secrets that the router was issued for a server, such as tokens. Those before stay known until the
// next change.
func (m *Masker) Learn(server string, secrets ...string) {
	if m != nil {
		m.learn(server, slices.DeleteFunc(secrets, func(s string) bool { return len(s) > longest }))
	}
}

func (m *Masker) learn(owner string, secrets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, has := m.secrets[owner]
	if has && slices.Equal(before[0], secrets) {
		return
	}
	if m.secrets == nil {
		m.secrets = map[string][2][]string{}
	}
	m.secrets[owner] = [2][]string{slices.Clone(secrets), before[0]}
	m.rebuild()
}

// Forget removes the secrets that the router was issued for a server.
func (m *Masker) Forget(server string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.secrets[server]; has {
		delete(m.secrets, server)
		m.rebuild()
	}
}

// rebuild makes all secrets known. The caller holds m.mu.
func (m *Masker) rebuild() {
	var all []string
	for _, of := range m.secrets {
		all = append(append(all, of[0]...), of[1]...)
	}
	m.known.Store(newKnown(all))
}

func newKnown(secrets []string) *known {
	k := &known{}
	var forms, words []string
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= longLine && line != s {
				forms = append(forms, formsOf(line)...)
			}
		}
		switch {
		case len(s) < shortest || strings.Contains(Mark, s): // the mark of a mark would grow
		case len(s) < long:
			words = append(words, wholeWord(s))
		default:
			forms = append(forms, formsOf(s)...)
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, Mark)
	}
	k.long = strings.NewReplacer(pairs...)
	if len(words) > 0 {
		k.short = regexp.MustCompile(strings.Join(words, "|"))
	}
	return k
}

// wholeWord returns a pattern of a text that is not part of a longer word.
func wholeWord(s string) string {
	pattern := regexp.QuoteMeta(s)
	if isLetter(s[0]) && s[0] < 0x80 {
		pattern = `\b` + pattern
	}
	if last := s[len(s)-1]; isLetter(last) && last < 0x80 {
		pattern += `\b`
	}
	return pattern
}

var percentEscape = pattern.New(`%[0-9A-F]{2}`)

// again escapes JSON once more, for a text in a JSON value.
var again = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// formsOf returns a secret as it is and escaped for URLs, JSON, JSON within JSON, Go and HTML, and what base64 of any
// text with the secret in it has in common.
func formsOf(s string) []string {
	quoted, _ := json.Marshal(s)
	forms := []string{s, string(quoted[1 : len(quoted)-1]), strings.Trim(strconv.Quote(s), `"`), html.EscapeString(s)}
	forms = append(forms, strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(forms[1]))
	forms = append(forms, again.Replace(forms[1]), again.Replace(forms[4]))
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s), url.User(s).String()} {
		forms = append(forms, escaped, percentEscape().ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			encoded := alphabet.EncodeToString(append(make([]byte, shift), s...))
			// The first and the last character also encode bits of their neighbours.
			begin, end := (shift*8+5)/6, (shift+len(s))*8/6
			forms = append(forms, encoded[begin:end])
		}
	}
	return slices.DeleteFunc(forms, func(form string) bool { return len(form) < long })
}

// Known replaces the known secrets in a text.
func (m *Masker) Known(text string) string {
	if m == nil {
		return text
	}
	k := m.known.Load()
	if k == nil {
		return text
	}
	text = k.long.Replace(text)
	if k.short != nil {
		text = k.short.ReplaceAllLiteralString(text, Mark)
	}
	return text
}

// KnownJSON replaces the known secrets in the texts of a JSON value. Without any, it returns raw itself.
func (m *Masker) KnownJSON(raw []byte) []byte {
	if m == nil || m.known.Load() == nil || len(raw) == 0 ||
		!bytes.Contains(raw, []byte(`\`)) && m.Known(string(raw)) == string(raw) {
		return raw // without escapes, raw has all texts as they are
	}
	return mapTexts(raw, m.Known)
}

// Text replaces the known secrets and the credentials in a text, see [Text].
func (m *Masker) Text(text string) string { return Text(m.Known(text)) }

// JSON replaces the known secrets and the credentials in a JSON value, see [JSON]. Invalid JSON becomes a string.
func (m *Masker) JSON(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	clean, err := JSON(raw, m.Text)
	if err != nil {
		clean, _ = json.Marshal(m.Text(string(raw)))
	}
	return clean
}

// Prompt replaces the known secrets and what has the form of a credential. Unlike Text it keeps the values of
// credential names, which prompts describe: "password: string" is the parameter of a tool.
func (m *Masker) Prompt(text string) string { return formats(m.Known(text)) }
