package tape

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
// canonical form. hidden has the removed values.
func (t *Tape) clean(raw []byte) (cleaned, hidden []byte, err error) {
	raw, err = jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, nil, err
	}
	cleaned, err = redact.JSON(raw, func(text string) string { return redact.Text(t.secrets.Replace(text)) })
	if err != nil {
		return nil, nil, err
	}
	return cleaned, hiddenIn(string(raw), string(cleaned)), nil
}

// hiddenIn returns the parts of a text that clean replaced by marks.
func hiddenIn(raw, cleaned string) (hidden []byte) {
	if raw == cleaned {
		return nil
	}
	for i, piece := range strings.Split(cleaned, redact.Mark) {
		piece = strings.Trim(piece, `"`) // numbers and lists have none around
		at := strings.Index(raw, piece)
		if at < 0 {
			return append(hidden, raw...)
		}
		if removed := strings.Trim(raw[:at], `"`); i > 0 && removed != redact.Mark {
			hidden = append(hidden, removed...)
		}
		raw = raw[at+len(piece):]
	}
	return append(hidden, strings.Trim(raw, `"`)...)
}

// markOf returns a hash of removed values, to tell apart requests that differ only in these. Its 16 bits are too few to
// confirm a guess.
func markOf(hidden []byte) string {
	if len(hidden) == 0 {
		return ""
	}
	sum := sha256.Sum256(hidden)
	return hex.EncodeToString(sum[:2])
}
