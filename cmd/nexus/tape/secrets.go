package tape

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// shortest is the length of the shortest secret that is searched for, in bytes.
const shortest = 8

// Secrets returns the secrets of a configuration: keys, headers, environments of servers, and passwords and parameters
// of addresses.
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
	headers := func(values map[string]secret.String) {
		for _, value := range values {
			_, credentials, _ := strings.Cut(value.Reveal(), " ") // after the scheme
			all = append(all, value.Reveal(), credentials)
		}
	}
	model := func(url string, key secret.String, values map[string]secret.String) {
		address(url)
		all = append(all, key.Reveal())
		headers(values)
	}
	for _, s := range cfg.Servers {
		address(s.URL)
		for _, value := range s.Env {
			all = append(all, value.Reveal())
		}
		headers(s.Headers)
	}
	if l := cfg.LLM; l != nil {
		model(l.Planner.BaseURL, l.Planner.APIKey, l.Planner.Headers)
		if own := l.Synthesizer; own != nil {
			model(own.BaseURL, own.APIKey, own.Headers)
		}
		if own := l.Embeddings; own != nil {
			model(own.BaseURL, own.APIKey, nil)
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

// clean removes from JSON the secrets of the configuration and values that look like credentials. It writes JSON in a
// canonical form.
func (t *Tape) clean(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return nil, err
	}
	return redact.JSON(raw, func(text string) string { return redact.Text(t.secrets.Replace(text)) })
}
