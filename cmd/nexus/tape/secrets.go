package tape

import (
	"cmp"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// shortest is the length of the shortest secret that is searched for, in bytes.
const shortest = 8

// Secrets returns the secrets of a configuration: all values of type redact.Secret, without the scheme of credentials
// too, and the passwords and parameters of addresses.
func Secrets(cfg config.Config) []string { return secretsIn(reflect.ValueOf(cfg), nil) }

func secretsIn(v reflect.Value, all []string) []string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			all = secretsIn(v.Elem(), all)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				all = secretsIn(value, all)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = secretsIn(v.Index(i), all)
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			all = secretsIn(value, all)
		}
	case reflect.String:
		text := v.String()
		if v.Type() == reflect.TypeFor[redact.Secret]() {
			_, credentials, _ := strings.Cut(text, " ") // after the scheme
			return append(all, text, credentials)
		}
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			password, _ := u.User.Password()
			all = append(all, password)
			for _, values := range u.Query() {
				all = append(all, values...)
			}
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
