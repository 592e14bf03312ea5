package config

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// Secrets returns the secrets of a configuration, for a [redact.Masker]: the values of type redact.Secret with the
// credentials inside them, the arguments of servers that are credentials, and the user information and parameters of
// addresses.
func (c Config) Secrets() []string {
	var all secrets
	all.in(reflect.ValueOf(c), "")
	for _, s := range c.Servers {
		for _, arg := range CredentialArgs(s.Args) {
			all.secret("", arg)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type secrets []string

// in adds the secrets in a value. name is that of the field or member which holds it.
func (all *secrets) in(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			all.in(v.Elem(), name)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				all.in(value, field.Name)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			all.in(v.Index(i), name)
		}
	case reflect.Map:
		environment := name == "Env"
		for key, value := range v.Seq2() {
			if environment && value.Kind() == reflect.String && len(value.String()) < minVariable && !redact.Name(key.String()) {
				continue
			}
			all.in(value, key.String())
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[redact.Secret]() {
			all.secret(name, v.String())
		}
		all.addresses(v.String())
	}
}

// minVariable is the least length of a variable of a child process that is a secret whatever its name.
const minVariable = 8

// secret adds a secret value, and the credentials that it consists of.
func (all *secrets) secret(name, value string) {
	if ordinary(value) && !redact.Name(name) {
		return
	}
	*all = append(*all, value)
	for _, m := range assignment().FindAllStringSubmatch(value, -1) {
		*all = append(*all, m[1])
	}
	scheme, credentials, _ := strings.Cut(value, " ")
	if credentials == "" {
		return
	}
	*all = append(*all, credentials)
	if strings.EqualFold(scheme, "basic") {
		decoded, err := base64.StdEncoding.DecodeString(credentials)
		if _, password, ok := strings.Cut(string(decoded), ":"); err == nil && ok {
			*all = append(*all, string(decoded), password)
		}
	}
}

var (
	// assignment matches a password in a connection string, such as "host=db password=x".
	assignment = pattern.New(`(?i)(?:password|passwd|pwd|secret|token|key)=([^\s;&'"]{4,})`)
	// authority matches the user information of an address.
	authority = pattern.New(`://([^\s/?#"]+)@`)
	// everyday matches values that are words, numbers or dates, such as "production" and "2025-06-18".
	everyday = pattern.New(`^(?:[a-z]+|[A-Z]?[a-z]+|[A-Z]+|[\d.:-]*)$`)
)

// ordinary reports whether a value occurs in texts that have nothing to do with the configuration.
func ordinary(value string) bool { return everyday().MatchString(value) }

// addresses adds the user information and the parameters of the addresses in a text, as written and decoded.
func (all *secrets) addresses(text string) {
	add := func(s string) {
		*all = append(*all, s)
		if decoded, err := url.PathUnescape(s); err == nil && decoded != s {
			*all = append(*all, decoded)
		}
	}
	for _, m := range authority().FindAllStringSubmatch(text, -1) {
		user, password, ok := strings.Cut(m[1], ":")
		if ok {
			add(m[1])
			add(password)
		}
		if !ordinary(user) {
			add(user)
		}
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		for name, values := range u.Query() {
			for _, value := range values {
				if len(value) >= minVariable && !ordinary(value) || redact.Name(name) {
					add(value)
				}
			}
		}
	}
}
