package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// DataMark begins every line of a data block, and no line outside of one.
const DataMark = "| "

// Data wraps text that others wrote (tool descriptions, results, conversations) as a block that a prompt can
// declare to be no instruction:
//
//	<data from="step s1, tool web_search">
//	| first line
//	| second line
//	</data>
//
// Whatever the text contains, each of its lines begins with DataMark, so it cannot forge the end of its block.
// The source is cut to one line.
func Data(source, text string) string {
	var b strings.Builder
	b.WriteString(`<data from="`)
	b.WriteString(strings.NewReplacer(`"`, "'", "<", "(", ">", ")").Replace(short.Line(source, maxMessage)))
	b.WriteString("\">\n")
	for line := range strings.Lines(lineEnds.Replace(strings.ToValidUTF8(text, "\uFFFD"))) {
		b.WriteString(DataMark)
		b.WriteString(strings.TrimSuffix(line, "\n"))
		b.WriteByte('\n')
	}
	b.WriteString("</data>")
	return b.String()
}

// lineEnds makes one kind of line end out of everything that may be shown as one.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n",
	"\u2029", "\n")

// maxExcerpt bounds how much of a value is looked at.
const maxExcerpt = 1 << 20

// Excerpt is what a model gets to read of a JSON value: a string as its text, anything else as compact JSON;
// encoded binary data is left out, and beyond limit bytes the rest is cut and said to be. Numbers stay as they are
// written.
func Excerpt(value json.RawMessage, limit int) string {
	var text string
	v := bytes.TrimSpace(value)
	total := len(v)
	v = v[:min(total, maxExcerpt)]
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &text) != nil {
		text = compact(v)
	}
	text = WithoutBinary(text)
	if len(v) == total {
		total = len(text)
	}
	if total <= limit {
		return text
	}
	shown := short.Prefix(text, min(limit, len(text)-1))
	return fmt.Sprintf("%s… [cut: %d of %d bytes shown]", shown, len(shown), total)
}

func compact(value []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return string(value)
	}
	return out.String()
}

// Encoded data is a run of its alphabet that no word reaches; lines of it have a width that no word reaches either.
const (
	minBinary     = 256
	minBinaryLine = 60
)

// dataURI is what stands before encoded data of any length in a URI.
const dataURI = ";base64,"

// WithoutBinary replaces base64 and its like, whole or in lines, by a note of its size: models can only waste tokens
// on it. In JSON it does so within strings, so that JSON stays JSON. It skips text that can hold no run, so that it
// looks at few bytes of ordinary text.
func WithoutBinary(text string) string {
	var out strings.Builder
	kept := 0
	uri := afterURI(text, 0)
	for i := 0; i < len(text); {
		if i > uri {
			uri = afterURI(text, i)
		}
		if next := min(noRunBefore(text, i), uri); next > i {
			i = next
			continue
		}
		if !isBase64[text[i]] {
			i++
			continue
		}
		end := binaryEnd(text, i)
		if end-i >= minBinary || i == uri {
			out.WriteString(text[kept:i])
			fmt.Fprintf(&out, "[%d bytes of binary data left out]", end-i)
			kept = end
		}
		i = end
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// afterURI is where the data of the next data URI begins, or the end of the text.
func afterURI(text string, from int) int {
	from = max(0, from-len(dataURI))
	if i := strings.Index(text[from:], dataURI); i >= 0 {
		return from + i + len(dataURI)
	}
	return len(text)
}

// noRunBefore returns a place at or after i before which no run begins that is long enough to be encoded data: such a
// run begins with minBinaryLine bytes of its alphabet or of an escaped slash.
func noRunBefore(text string, i int) int {
	if i+minBinaryLine > len(text) {
		return len(text)
	}
	for j := i + minBinaryLine - 1; j >= i; j-- {
		if !isBase64[text[j]] && text[j] != '\\' {
			return j + 1
		}
	}
	return i
}

// binaryEnd is where the run ends that begins at i. A line end, also one escaped in JSON, continues the run if
// the line before it is long.
func binaryEnd(text string, i int) int {
	for line := i; i < len(text); {
		switch {
		case isBase64[text[i]]:
			i++
		case strings.HasPrefix(text[i:], `\/`):
			i += 2
		default:
			n := lineEndAt(text[i:])
			if n == 0 || i-line < minBinaryLine {
				return i
			}
			i += n
			line = i
		}
	}
	return i
}

func lineEndAt(text string) int {
	for _, end := range []string{"\r\n", "\n", `\r\n`, `\n`} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	return 0
}

// isBase64 has the bytes of the alphabets of base64.
var isBase64 = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-") {
		is[c] = true
	}
	return is
}()

// Conversation is the newest part of a conversation as a data block of about limit bytes at most, or "" if there was
// none.
func Conversation(turns []Message, limit int) string {
	var kept []string
	for i := len(turns) - 1; i >= 0 && limit > 0; i-- {
		text := turns[i].Content
		if len(text) > limit {
			start := len(text) - limit
			for start < len(text) && !utf8.RuneStart(text[start]) {
				start++
			}
			text = "…" + text[start:]
		}
		limit -= len(text)
		kept = append(kept, short.Line(turns[i].Role, maxMessage)+": "+WithoutBinary(text))
	}
	if len(kept) == 0 {
		return ""
	}
	slices.Reverse(kept)
	return Data("the conversation", strings.Join(kept, "\n"))
}
