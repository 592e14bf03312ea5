// Package redact replaces credentials in text that is logged, exported, recorded or stored. It alone defines what a
// credential is.
//
// [Name] classifies a name, [Text] redacts any text, which may contain JSON, headers, assignments, command lines and
// URLs, and [JSON] redacts JSON values. Credentials are recognized by their names and formats: bearer tokens, basic
// credentials, tokens marked by their issuer, private keys and passwords in URLs. A [Masker] also replaces the secrets
// of a configuration. Others remain. Redaction is idempotent. All functions take linear time. A [Secret] is a
// credential that prints as [Mark].
package redact

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Mark replaces credentials.
const Mark = "[redacted]"

var (
	bearer     = pattern.New(`(?i)\b(bearer)\s+[^\s",;'\\]+`)
	basic      = pattern.New(`(?i)\bbasic\s+[a-z0-9+/]{4,}=*`)
	userinfo   = pattern.New(`(://)[^\s/"?#]+@`)
	privateKey = pattern.New(`(?s)(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(-----END [A-Z ]{0,40}PRIVATE KEY-----|$)`)

	// issued matches tokens whose issuer marks them: GitHub, GitLab, AWS, Google, OpenAI and others, Stripe, Slack, npm,
	// Hugging Face, and JWTs.
	issued = pattern.New(`\b(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|A[KS]IA[A-Z0-9]{12,}\b|` +
		`AIza[\w-]{30,}|sk-[\w-]{16,}|[rs]k_(?:live|test)_\w{10,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|npm_[A-Za-z0-9]{30,}|` +
		`hf_[A-Za-z0-9]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)`)
	// issuers are what the tokens begin with.
	issuers = strings.Fields("ghp_ gho_ ghr_ ghs_ ghu_ github_pat_ glpat- AKIA ASIA AIza sk- k_live_ k_test_ xox xapp- " +
		"npm_ hf_ eyJ")
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
	text = privateKey().ReplaceAllString(text, `${1}`+Mark+`${2}`)
	return formats(assigned(text))
}

// formats replaces what has the form of a credential, whatever its name.
func formats(text string) string {
	if !suspicious(text) {
		return text
	}
	text = privateKey().ReplaceAllString(text, `${1}`+Mark+`${2}`)
	text = bearer().ReplaceAllString(text, `${1} `+Mark)
	text = basic().ReplaceAllStringFunc(text, basicCredentials)
	if isIssued(text) {
		text = issued().ReplaceAllLiteralString(text, Mark)
	}
	return userinfo().ReplaceAllString(text, `${1}`+Mark+`@`)
}

// suspicious is a fast check that skips most texts.
func suspicious(text string) bool {
	return hasStem(text) || strings.Contains(text, `\u`) || strings.Contains(text, "://") && strings.Contains(text, "@") ||
		isIssued(text)
}

// isIssued is a fast check for tokens that are marked by their issuer.
func isIssued(text string) bool {
	return slices.ContainsFunc(issuers, func(issuer string) bool { return strings.Contains(text, issuer) })
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
