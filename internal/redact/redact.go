// Package redact replaces credentials in text that is logged, exported, recorded or stored. It alone defines what a
// credential is.
//
// [Name] classifies a name, [Text] redacts any text, which may contain JSON, headers, assignments, command lines and
// URLs, and [JSON] redacts JSON values. Credentials are recognized by their names and formats: bearer tokens, basic
// credentials, private keys and passwords in URLs. Others remain. Redaction is idempotent. All functions take linear
// time. A [Secret] is a credential that prints as [Mark].
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Mark replaces credentials.
const Mark = "[redacted]"

var (
	bearer     = regexp.MustCompile(`(?i)\b(bearer)\s+[^\s",;'\\]+`)
	basic      = regexp.MustCompile(`(?i)\bbasic\s+[a-z0-9+/]{4,}=*`)
	userinfo   = regexp.MustCompile(`(://)[^\s/@"]+@`)
	privateKey = regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(-----END [A-Z ]{0,40}PRIVATE KEY-----|$)`)
)

// Text replaces the credentials in a text.
func Text(text string) string {
	if !suspicious(text) {
		return text
	}
	if begin := strings.TrimLeft(text, " \t\r\n"); begin != "" && strings.Contains(`{["`, begin[:1]) {
		if clean, err := JSON([]byte(text), Text); err == nil {
			return string(clean)
		}
	}
	text = privateKey.ReplaceAllString(text, `${1}`+Mark+`${2}`)
	text = assigned(text)
	text = bearer.ReplaceAllString(text, `${1} `+Mark)
	text = basic.ReplaceAllStringFunc(text, basicCredentials)
	return userinfo.ReplaceAllString(text, `${1}`+Mark+`@`)
}

// suspicious is a fast check that skips most texts.
func suspicious(text string) bool {
	return hasStem(text) || strings.Contains(text, `\u`) || strings.Contains(text, "://") && strings.Contains(text, "@")
}

// basicCredentials replaces the text after "basic" if it encodes a user and password rather than being a word.
func basicCredentials(match string) string {
	scheme, credentials := match[:len("basic")], strings.TrimSpace(match[len("basic"):])
	whole := strings.TrimRight(credentials, "=")
	decoded, err := base64.RawStdEncoding.DecodeString(whole[:len(whole)-len(whole)%4])
	if err != nil || !strings.Contains(string(decoded), ":") {
		return match
	}
	return scheme + " " + Mark
}
