package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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

const (
	timeFormat = "2006-01-02T15:04:05.000000Z"
	maxText    = 1 << 10   // bytes of a text in a line, before it is escaped
	maxLine    = 256 << 10 // bytes of a line that Verify reads
)

// noLine is the prev of the first line.
var noLine = strings.Repeat("0", 2*sha256.Size)

// hashOf returns the SHA-256 of a line without its end.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// encode returns the line in ASCII with its end, so that no character in a name can hide or forge anything when people
// read the file.
func (l *Line) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(l) // never fails: texts, numbers, and arguments that are valid JSON
	return escaped(b.Bytes())
}

// escaped returns JSON with all characters but printable ASCII escaped. These occur in texts only.
func escaped(line []byte) []byte {
	plain := func(c byte) bool { return c < 0x7f }
	end := 0
	for end < len(line) && plain(line[end]) {
		end++
	}
	if end == len(line) {
		return line
	}
	out := append(make([]byte, 0, 2*len(line)), line[:end]...)
	for rest := line[end:]; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case plain(rest[0]):
			out = append(out, rest[0])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = unicodeEscape(unicodeEscape(out, high), low)
		default:
			out = unicodeEscape(out, r)
		}
		rest = rest[size:]
	}
	return out
}

func unicodeEscape(to []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(to, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// shortened returns the beginning of redacted arguments: JSON if it is whole, else a text.
func shortened(arguments string) []byte {
	if len(arguments) <= maxArguments && json.Valid([]byte(arguments)) {
		return []byte(arguments)
	}
	if len(arguments) > maxArguments {
		arguments = strings.ToValidUTF8(arguments[:maxArguments], "") + "…"
	}
	text, _ := json.Marshal(arguments) // never fails for a text
	return text
}
