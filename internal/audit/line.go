package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Line is a line of the log. Its members are written in this order.
type Line struct {
	Time string `json:"time"` // of the end of the call, in UTC
	Seq  uint64 `json:"seq"`  // from 1
	Prev string `json:"prev"` // SHA-256 of the line before without its end; of the first line: zeros
	Record
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Record describes a call.
type Record struct {
	Subject
	Verdict
	Outcome  string  `json:"outcome"`
	Reason   string  `json:"reason,omitempty"` // why the outcome is not ok
	Duration float64 `json:"duration_ms"`
	TraceID  string  `json:"trace_id"` // empty without a trace
}

// Subject is who calls what.
type Subject struct {
	Caller  string `json:"caller"`
	Profile string `json:"profile"`
	Surface string `json:"surface"`
	Server  string `json:"server"`
	Method  string `json:"method"`
	Tool    string `json:"tool"` // or the name of the prompt, or the URI of the resource
	Source  string `json:"source"`
}

// Verdict is the decision on a call.
type Verdict struct {
	Decision string `json:"decision"` // allow, ask or deny
	Rule     string `json:"rule,omitempty"`
	Consent  string `json:"consent,omitempty"` // user, plan or none
}

// Outcomes of a call.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"
	OutcomeDenied    = "denied"
	OutcomeDeclined  = "declined"
	OutcomeCancelled = "cancelled"
	OutcomeUnknown   = "unknown" // the call may have done its work
)

// Bytes of lines.
const (
	maxText      = 1 << 10   // of a text, before it is escaped
	maxArguments = 8 << 10   // of redacted arguments
	maxRedacted  = 64 << 10  // of the arguments that are redacted for this
	maxLine      = 256 << 10 // that Verify reads
)

// noLine is the prev of the first line.
var noLine = strings.Repeat("0", 2*sha256.Size)

// appendHash appends the SHA-256 of a line without its end, or of arguments.
func appendHash(to, content []byte) []byte {
	sum := sha256.Sum256(content)
	return hex.AppendEncode(to, sum[:])
}

// link is what a line has of the line before.
type link struct {
	seq  uint64
	hash []byte
}

// start is the link to no line.
func start() link { return link{hash: []byte(noLine)} }

// append adds the next line to lines, and becomes its link. rest is the line without its place.
func (l *link) append(lines, rest []byte) []byte {
	start := len(lines)
	l.seq++
	lines = append(lines, lineStart...)
	lines = time.Now().UTC().AppendFormat(lines, "2006-01-02T15:04:05.000000Z")
	lines = strconv.AppendUint(append(lines, `","seq":`...), l.seq, 10)
	lines = append(append(append(lines, `,"prev":"`...), l.hash...), `",`...)
	lines = append(lines, rest[1:]...)
	l.hash = appendHash(l.hash[:0], lines[start:len(lines)-1])
	return lines
}

// lineStart is how each line starts.
const lineStart = `{"time":"`

// encode returns a line without its place, in ASCII, so that no character in a name can hide or forge anything when
// people read the file. It has its end.
func encode(r Record, arguments []byte) []byte {
	var b bytes.Buffer
	b.Grow(512)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // never fails: texts, numbers, and arguments that are valid JSON
		Record
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{r, arguments})
	line := b.Bytes()
	if !slices.ContainsFunc(line, func(c byte) bool { return c >= 0x7f }) {
		return line
	}
	var out []byte
	for _, r := range string(line) { // other characters than ASCII occur in texts only
		if high, low := utf16.EncodeRune(r); r > 0xffff {
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		} else if r >= 0x7f {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, byte(r))
		}
	}
	return out
}

// cut returns the record with texts of bounded length, which others choose.
func (r Record) cut() Record {
	for _, text := range []*string{&r.Caller, &r.Profile, &r.Surface, &r.Server, &r.Method, &r.Tool, &r.Rule, &r.Reason} {
		*text = cut(*text, maxText)
	}
	return r
}

func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// shortened returns the beginning of redacted arguments: JSON if it is whole, else a text.
func shortened(arguments string) []byte {
	if len(arguments) <= maxArguments && json.Valid([]byte(arguments)) {
		return []byte(arguments)
	}
	text, _ := json.Marshal(cut(arguments, maxArguments)) // never fails for a text
	return text
}

var errNoLog = errors.New("it is not an audit log")

// parse reads a line.
func parse(line []byte) (l Line, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil || dec.More() || l.Seq == 0 || len(l.Prev) != len(noLine) {
		return l, errNoLog
	}
	return l, nil
}
