package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// DataMark begins every line of a data block and no other line.
const DataMark = "| "

// Data wraps untrusted text (tool descriptions, results, conversations) in a block of a prompt that is data, not
// instructions:
//
//	<data from="step s1, tool web_search">
//	| first line
//	| second line
//	</data>
//
// Each line of the text begins with DataMark, so the text cannot forge the end of its block. The source is reduced to
// one line.
func Data(source, text string) string {
	var b strings.Builder
	b.WriteString(`<data from="`)
	b.WriteString(strings.NewReplacer(`"`, "'", "<", "(", ">", ")").Replace(texts.Line(source, maxMessage)))
	b.WriteString("\">\n")
	for line := range strings.Lines(Lines(strings.ToValidUTF8(text, "\uFFFD"))) {
		b.WriteString(DataMark)
		b.WriteString(strings.TrimSuffix(line, "\n"))
		b.WriteByte('\n')
	}
	b.WriteString("</data>")
	return b.String()
}

// Lines returns text with a line feed in place of all that may be displayed as a line break.
func Lines(text string) string { return lineEnds.Replace(text) }

var lineEnds = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

const (
	maxExcerpt = 1 << 20  // bytes read of a value
	minMasked  = 64 << 10 // bytes of a text that are masked, however short the excerpt is
)

// Excerpt returns the text of a JSON value for a model: the text of a string, compact JSON for any other value.
// Encoded binary data is left out. Text longer than limit bytes is cut and marked as cut. Numbers are unchanged. mask,
// which may be nil, removes secrets from the text before it is cut.
func Excerpt(value json.RawMessage, limit int, mask func(string) string) string {
	var text string
	v := bytes.TrimSpace(value)
	total := len(v)
	v = v[:min(total, maxExcerpt)]
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &text) != nil {
		text = compact(v)
	}
	text = WithoutBinary(text)
	if mask != nil {
		text = mask(texts.Prefix(text, max(8*limit, minMasked))) // a text rarely shrinks to an eighth
	}
	if len(v) == total {
		total = len(text)
	}
	return cut(text, total, limit)
}

// cut cuts a text, the beginning of total bytes, to limit bytes, and marks it as cut.
func cut(text string, total, limit int) string {
	if total <= limit {
		return text
	}
	shown := texts.Prefix(text, min(limit, len(text)-1))
	return fmt.Sprintf("%s… [cut: %d of %d bytes shown]", shown, len(shown), total)
}

func compact(value []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return string(value)
	}
	return out.String()
}

// Encoded data is a run of its alphabet that is longer than any word, and so are its lines.
const (
	minBinary     = 256
	minBinaryLine = 60
)

// dataURI precedes encoded data of any length in a URI.
const dataURI = ";base64,"

// WithoutBinary replaces base64 and similar data, in one piece or in lines, by a note of its size, to save tokens.
// JSON stays valid, because the data is within strings.
func WithoutBinary(text string) string {
	var out strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		if !isBase64[text[i]] {
			i++
			continue
		}
		end := binaryEnd(text, i)
		if end-i >= minBinary || strings.HasSuffix(text[:i], dataURI) {
			fmt.Fprintf(&out, "%s[%d bytes of binary data left out]", text[kept:i], end-i)
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

// binaryEnd returns the end of the run that begins at i. The run continues after a line end, also an escaped one, if
// the line before is long.
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

// isBase64 holds the bytes of the alphabets of base64.
var isBase64 = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-") {
		is[c] = true
	}
	return is
}()

// Conversation returns the newest part of a conversation as a data block of about limit bytes, "" if there is none.
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
		kept = append(kept, texts.Line(turns[i].Role, maxMessage)+": "+WithoutBinary(text))
	}
	if len(kept) == 0 {
		return ""
	}
	slices.Reverse(kept)
	return Data("the conversation", strings.Join(kept, "\n"))
}
