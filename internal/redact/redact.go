// Package redact replaces credentials in what is logged, exported, recorded or kept. It is the only place that tells
// what a credential is.
//
// [Name] tells it of a name, [Text] cleans any text, which may have JSON, headers, assignments, command lines and
// addresses in it, and [JSON] cleans JSON values. Credentials are known by their names and by their forms: bearer
// tokens, basic credentials, private keys, and passwords of URLs. One that has neither stays. What is cleaned once
// stays as it is when it is cleaned again. All functions take linear time.
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Mark stands for what was replaced.
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

// suspicious is a quick check that spares most texts the rest.
func suspicious(text string) bool {
	return hasStem(text) || strings.Contains(text, `\u`) || strings.Contains(text, "://") && strings.Contains(text, "@")
}

// basicCredentials replaces what follows "basic" if it is a user and a password rather than a word.
func basicCredentials(match string) string {
	scheme, credentials := match[:len("basic")], strings.TrimSpace(match[len("basic"):])
	whole := strings.TrimRight(credentials, "=")
	decoded, err := base64.RawStdEncoding.DecodeString(whole[:len(whole)-len(whole)%4])
	if err != nil || !strings.Contains(string(decoded), ":") {
		return match
	}
	return scheme + " " + Mark
}
