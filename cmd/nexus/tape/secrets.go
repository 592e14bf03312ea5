package tape

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
)

// shortest is the length of secrets from which they are looked for, in bytes.
const shortest = 8

// Secrets returns what a configuration holds that no recording may: keys, headers, environments of servers, and
// passwords and parameters of addresses.
func Secrets(cfg config.Config) []string {
	var all []string
	address := func(text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		if password, set := u.User.Password(); set {
			all = append(all, password)
		}
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	for _, s := range cfg.Servers {
		address(s.URL)
		for _, value := range s.Env {
			all = append(all, value.Reveal())
		}
		for _, value := range s.Headers {
			all = append(all, value.Reveal())
			_, credentials, _ := strings.Cut(value.Reveal(), " ") // after the scheme
			all = append(all, credentials)
		}
	}
	if l := cfg.LLM; l != nil {
		address(l.Planner.BaseURL)
		all = append(all, l.Planner.APIKey.Reveal())
		if l.Synthesizer != nil {
			address(l.Synthesizer.BaseURL)
			all = append(all, l.Synthesizer.APIKey.Reveal())
		}
		if l.Embeddings != nil {
			address(l.Embeddings.BaseURL)
			all = append(all, l.Embeddings.APIKey.Reveal())
		}
	}
	return all
}

// replacer replaces secrets, the longest first.
func replacer(secrets []string) *strings.Replacer {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		if len(s) >= shortest {
			pairs = append(pairs, s, redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

const redacted = "[redacted]"

// clean removes secrets from JSON: from all texts, and what members with names such as api_key hold. Objects under such
// names are schemas rather than secrets; only what is in them is cleaned.
func (t *Tape) clean(raw []byte) ([]byte, error) {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	in := jsontext.NewDecoder(bytes.NewReader(raw), lenient...)
	var out bytes.Buffer
	to := jsontext.NewEncoder(&out, lenient...)
	for secret := false; ; {
		next := in.PeekKind()
		if secret && (next == '"' || next == '[') {
			if err := in.SkipValue(); err != nil {
				return nil, err
			}
			if err := to.WriteToken(jsontext.String(redacted)); err != nil {
				return nil, err
			}
			secret = false
			continue
		}
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, err
		}
		within, length := in.StackIndex(in.StackDepth())
		name := within == '{' && length%2 == 1 && next == '"'
		secret = name && isSecret(token.String())
		if next == '"' {
			token = jsontext.String(telemetry.Redact(t.secrets.Replace(token.String())))
		}
		if err := to.WriteToken(token); err != nil {
			return nil, err
		}
	}
}

// isSecret reports whether a member of that name holds a credential.
func isSecret(name string) bool {
	text := `"` + name + `":"x"`
	return telemetry.Redact(text) != text
}
