package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// The environment variable that adds a key, and that key's name.
const (
	keyVariable = "NEXUS_API_KEY"
	keyName     = "env"
)

// maxKeyFile bounds a file that holds a key, in bytes.
const maxKeyFile = 64 << 10

// keys checks the API keys, adds the key of the environment, and replaces env and file by their content, so that each
// key has either SHA256 or Key. At a reload, the keys in use stay if the files do not determine the keys.
func (c settingsCheck) keys(access *auth.Config) {
	value, _ := c.env(keyVariable)
	value = strings.TrimSpace(value)
	var before []auth.KeyConfig
	if c.used != nil {
		before = slices.DeleteFunc(slices.Clone(c.used.Auth.APIKeys), func(k auth.KeyConfig) bool {
			return value != "" && k.Name == keyName
		})
	}
	var unknown []string                // why the files do not determine the keys
	named := make(map[string]string)    // name → path
	hashes := make(map[[32]byte]string) // key → name
	for i := range access.APIKeys {
		path, key := at("auth.api_keys", i), &access.APIKeys[i]
		switch {
		case key.Name == "":
			c.fail(path, "needs a name")
		case named[key.Name] != "":
			c.fail(path+".name", "%q is already the name of %s", key.Name, named[key.Name])
		}
		named[key.Name] = path
		c.limits(path, key.Limits(), c.noServer)
		hash, unreadable := c.key(path, key)
		switch {
		case unreadable != nil && len(before) > 0:
			unknown = append(unknown, fmt.Sprintf("key %q: %v", key.Name, unreadable))
			continue
		case unreadable != nil:
			c.fail(path+".file", "%v", unreadable)
		}
		if other := hashes[hash]; other != "" {
			c.fail(path, "is the same key as %q", other)
		}
		hashes[hash] = key.Name
	}
	if !c.given("auth.api_keys") {
		unknown = append(unknown, "auth.api_keys is not set")
	}
	if len(before) > 0 && len(unknown) > 0 {
		access.APIKeys = before
		c.warnAt(mistake("", nil, "%s: the API keys in use stay; an empty list as auth.api_keys removes them",
			strings.Join(unknown, ", ")))
	}
	if value == "" {
		return
	}
	if path := named[keyName]; path != "" {
		c.fail(path+".name", "%q is the name of the key in %s; choose another", keyName, keyVariable)
	}
	if other := hashes[sha256.Sum256([]byte(value))]; other != "" {
		c.failAt(mistake("", nil, "%s is the same key as %q", keyVariable, other))
	}
	access.APIKeys = append(access.APIKeys, auth.KeyConfig{Name: keyName, Key: redact.Secret(value)})
}

// key checks and resolves one key. It returns its SHA-256, or why its file holds no usable key.
func (c settingsCheck) key(path string, key *auth.KeyConfig) (hash [32]byte, unreadable error) {
	sources := 0
	for _, source := range []string{key.SHA256, key.Env, key.File} {
		if source != "" {
			sources++
		}
	}
	var value string
	switch {
	case sources != 1:
		c.fail(path, "needs exactly one of sha256, env and file")
		return hash, nil
	case key.SHA256 != "":
		sum, err := hex.DecodeString(key.SHA256)
		if err != nil || len(sum) != len(hash) {
			c.fail(path+".sha256", "want 64 hexadecimal digits, the SHA-256 of the key")
		}
		key.SHA256 = strings.ToLower(key.SHA256)
		copy(hash[:], sum)
		return hash, nil
	case key.Env != "":
		var set bool
		if !isVariable(key.Env) {
			c.fail(path+".env", "want the name of an environment variable")
		} else if value, set = c.env(key.Env); !set {
			c.fail(path+".env", "environment variable %s is not set", key.Env)
		}
	default:
		doc, _, _ := c.find(path + ".file")
		name, err := beside(doc.name, key.File)
		if err != nil {
			return hash, err
		}
		content, err := readFile(name, maxKeyFile)
		switch value = strings.TrimSpace(string(content)); {
		case err != nil:
			return hash, fmt.Errorf("reading the key: %w", err)
		case len(content) > maxKeyFile:
			return hash, errors.New("reading the key: the file is too large for a key")
		case value == "":
			return hash, errors.New("the file holds no key")
		case c.cutKey(key.Name, value):
			return hash, errors.New("the file has only the beginning of the key in use")
		}
	}
	if value = strings.TrimSpace(value); value == "" {
		c.fail(path, "holds an empty key")
	}
	key.Env, key.File, key.Key = "", "", redact.Secret(value)
	return sha256.Sum256([]byte(value)), nil
}

// cutKey reports whether value is the beginning of the key in use with that name.
func (c settingsCheck) cutKey(name, value string) bool {
	return c.used != nil && slices.ContainsFunc(c.used.Auth.APIKeys, func(k auth.KeyConfig) bool {
		return k.Name == name && len(value) < len(k.Key.Reveal()) && strings.HasPrefix(k.Key.Reveal(), value)
	})
}

// oauth checks the settings for access tokens. `oauth: {}` accepts none. At a reload, the settings in use stay if the
// files have none, and so do the claims.
func (c settingsCheck) oauth(access *auth.Config) {
	const path = "auth.oauth"
	var used *auth.OAuthConfig
	if c.used != nil {
		used = c.used.Auth.OAuth
	}
	doc, n, _ := c.find(path)
	switch {
	case n == nil && used != nil:
		access.OAuth = used
		c.warnAt(mistake("", nil, "%s is not set: the access tokens in use stay; write auth: {oauth: {}} to accept none", path))
		return
	case n == nil:
		return
	case hasOnly(n, nil) && !doc.hollow[n]:
		access.OAuth = nil
		return
	}
	o := access.OAuth
	c.needs(path, "issuer", auth.CheckIssuer(o.Issuer))
	c.needs(path, "audience", auth.CheckAudience(o.Audience))
	for i, scope := range o.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			c.fail(at(path+".scopes", i), "want one scope, without spaces and quotation marks")
		}
	}
	switch given := c.given(path + ".claims"); {
	case given && len(o.Claims) == 0:
		c.fail(path+".claims", "is empty, so that no token could use anything; leave it out to let all tokens use everything")
	case !given && used != nil && len(used.Claims) > 0:
		o.Claims = used.Claims
		c.warn(path, "%s.claims is not set: those in use stay; restart to let all tokens use everything", path)
	}
	for i, claim := range o.Claims {
		item := at(path+".claims", i)
		if claim.Claim == "" || claim.Value == "" {
			c.fail(item, "needs a claim and its value")
		}
		c.limits(item, claim.Limits(), c.noServer)
	}
}

// needs records a mistake in a required member of the mapping at path.
func (c settingsCheck) needs(path, key string, err error) {
	switch {
	case err == nil:
	case c.given(join(path, key)):
		c.fail(join(path, key), "%v, got %s", err, c.got(join(path, key)))
	default:
		c.fail(path, "needs %s: %v", key, err)
	}
}

// listen checks the address to listen on.
func (c settingsCheck) listen(listen string) {
	why := checkListen(listen)
	if why == "" {
		return
	}
	if variable, _ := c.env("NEXUS_LISTEN"); variable != "" {
		c.failAt(mistake("NEXUS_LISTEN", nil, "listen: %s, got %s", why, quote(variable)))
	}
	c.fail("listen", "%s, got %s", why, c.got("listen"))
}

var hostName = pattern.New(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// checkListen returns what is wrong with an address to listen on, "" if nothing is.
func checkListen(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "want host:port, such as 127.0.0.1:8002"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "want a port from 0 to 65535 after the last colon"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName().MatchString(host) {
		return "want an IP address or host name before the port"
	}
	return ""
}

// CheckBind refuses to listen beyond loopback (localhost, 127.0.0.0/8, ::1) without API keys and access tokens, because
// everybody who reaches the router could then use all servers. An address without a host means all interfaces. The
// error is an *Error.
func CheckBind(listen string, access auth.Config) error {
	if why := checkListen(listen); why != "" {
		return mistake("", nil, "listen address %q: %s", listen, why)
	}
	if access.Anonymous || access.Required() || OnLoopback(listen) {
		return nil
	}
	return mistake("", nil, "refusing to listen on %s, beyond loopback, without API keys: set NEXUS_API_KEY, auth.api_keys "+
		"or auth.oauth, listen on 127.0.0.1, or allow everybody with auth.anonymous: true", listen)
}

// OnLoopback reports whether a listen address can be reached from this machine only.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// beside returns name as an absolute path. A relative name is relative to the folder of file.
func beside(file, name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), name))
}
