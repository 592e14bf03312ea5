package telemetry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

const redacted = "[redacted]"

// secretName matches the names of headers, JSON members and query parameters that hold a credential.
const secretName = `(?:proxy[-_]?)?authorization|(?:x[-_])?api[-_]?key|(?:set[-_])?cookie|password|passwd|secret|client[-_]?secret|(?:access|refresh|id|auth)[-_]?token|token`

var (
	jsonMember = regexp.MustCompile(`(?i)(\\?"(?:` + secretName + `)\\?"\s*:\s*)(?:\\"(?:[^"\\]|\\\\.|\\[^"\\])*(?:\\")?|"(?:[^"\\]|\\.)*"?|\[[^\]]*\]?)`)
	scheme     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s",;'\\]+`)
	assignment = regexp.MustCompile(`(?i)\b((?:` + secretName + `)\s*[=:]\s*)[^\s"&,;'\[\\]+`)
	userinfo   = regexp.MustCompile(`(://)[^\s/@"]+@`)
)

// isSecretName is a fast equivalent of secretName: it runs for every attribute of every line.
func isSecretName(name string) bool {
	var letters [20]byte
	n := 0
	for i := range len(name) {
		c := name[i]
		if c == '-' || c == '_' {
			continue
		}
		if n == len(letters) {
			return false
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		letters[n] = c
		n++
	}
	switch string(letters[:n]) {
	case "authorization", "proxyauthorization", "apikey", "xapikey", "cookie", "setcookie", "password", "passwd", "secret",
		"clientsecret", "accesstoken", "refreshtoken", "idtoken", "authtoken", "token":
		return true
	}
	return false
}

// suspicious is a quick check that avoids the regular expressions for most texts.
func suspicious(text string) bool {
	lower := strings.ToLower(text)
	for _, word := range [...]string{"auth", "key", "bearer", "basic", "cookie", "passw", "secret", "token"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return strings.Contains(lower, "://") && strings.Contains(lower, "@")
}

// Redact replaces credentials in text, which may contain JSON, URLs and headers.
func Redact(text string) string {
	if !suspicious(text) {
		return text
	}
	text = jsonMember.ReplaceAllString(text, `${1}"`+redacted+`"`)
	text = scheme.ReplaceAllString(text, `${1} `+redacted)
	text = assignment.ReplaceAllString(text, `${1}`+redacted)
	return userinfo.ReplaceAllString(text, `${1}`+redacted+`@`)
}

// redactValue converts values that may hold secrets into redacted text. Numbers and times stay.
func redactValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(Redact(v.String()))
	case slog.KindAny:
	default:
		return v
	}
	switch x := v.Any().(type) {
	case nil, *slog.Source:
		return v
	case http.Header:
		return slog.StringValue(redactHeader(x))
	case error:
		return slog.StringValue(Redact(x.Error()))
	case json.RawMessage:
		return slog.StringValue(Redact(string(x)))
	case []byte:
		return slog.StringValue(Redact(string(x)))
	case fmt.Stringer:
		return slog.StringValue(Redact(x.String()))
	}
	text, err := json.Marshal(v.Any())
	if err != nil {
		return slog.StringValue(Redact(fmt.Sprintf("%+v", v.Any())))
	}
	if clean := Redact(string(text)); clean != string(text) {
		return slog.StringValue(clean)
	}
	return v
}

func redactHeader(h http.Header) string {
	clean := make(map[string]string, len(h))
	for name, values := range h {
		if clean[name] = redacted; !isSecretName(name) {
			clean[name] = Redact(strings.Join(values, ", "))
		}
	}
	text, err := json.Marshal(clean)
	if err != nil {
		return redacted
	}
	return string(text)
}

// escape escapes characters that JSON does not but that terminals interpret: C1 controls, DEL and the marks that
// change the direction of text.
func escape(text string) string {
	dangerous := func(r rune) bool { return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }
	if !strings.ContainsFunc(text, dangerous) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if dangerous(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
