package tape

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/redact"
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
			pairs = append(pairs, s, redact.Mark)
		}
	}
	return strings.NewReplacer(pairs...)
}

// clean removes secrets from JSON: those of the configuration, and what looks like a credential. It writes all JSON in
// one form.
func (t *Tape) clean(raw []byte) ([]byte, error) {
	clean, err := redact.JSON(raw, func(text string) string { return redact.Text(t.secrets.Replace(text)) })
	if err != nil {
		return nil, err
	}
	return jsontext.AppendFormat(nil, clean, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
