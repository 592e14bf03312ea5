package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/secret"
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
func (d *decoder) keys(access *auth.Config) {
	value, _ := d.env(keyVariable)
	value = strings.TrimSpace(value)
	var before []auth.KeyConfig
	if d.used != nil {
		before = slices.DeleteFunc(slices.Clone(d.used.Auth.APIKeys), func(k auth.KeyConfig) bool {
			return value != "" && k.Name == keyName
		})
	}
	d.keep = len(before) > 0
	named := make(map[string]string)    // name → path
	hashes := make(map[[32]byte]string) // key → name
	for i := range access.APIKeys {
		path := item("auth.api_keys", i)
		key := &access.APIKeys[i]
		if d.failed[path] {
			continue
		}
		switch {
		case key.Name == "":
			d.wrong(path, "needs a name")
		case named[key.Name] != "":
			d.wrong(path+".name", "%q is already the name of %s", key.Name, named[key.Name])
		}
		named[key.Name] = path
		d.patterns(path+".tools.allow", key.Tools.Allow)
		d.patterns(path+".tools.deny", key.Tools.Deny)
		d.namesServers(path+".servers", key.Servers)
		hash, ok := d.key(path, key)
		if !ok {
			continue
		}
		if other, again := hashes[hash]; again {
			d.wrong(path, "is the same key as %q", other)
		}
		hashes[hash] = key.Name
	}
	if _, given := d.places["auth.api_keys"]; !given {
		d.unknown = append(d.unknown, "auth.api_keys is not set")
	}
	if d.keep && len(d.unknown) > 0 {
		access.APIKeys = before
		d.warn(position{}, "%s: the API keys in use stay; an empty list as auth.api_keys removes them",
			strings.Join(d.unknown, ", "))
	}
	if value == "" {
		return
	}
	if path := named[keyName]; path != "" {
		d.wrong(path+".name", "%q is the name of the key in %s; choose another", keyName, keyVariable)
	}
	if other, again := hashes[sha256.Sum256([]byte(value))]; again {
		d.fail(position{}, keyVariable, "is the same key as %q", other)
	}
	access.APIKeys = append(access.APIKeys, auth.KeyConfig{Name: keyName, Key: secret.String(value)})
}

// namesServers warns about names of unknown servers in the list at path.
func (d *decoder) namesServers(path string, names []string) {
	for i, name := range names {
		if _, ok := d.servers[name]; !ok {
			d.warn(d.places[item(path, i)].at, "%s names no server", item(path, i))
		}
	}
}

// key checks and resolves one key. It returns its SHA-256.
func (d *decoder) key(path string, key *auth.KeyConfig) (hash [32]byte, ok bool) {
	sources := 0
	for _, source := range []string{key.SHA256, key.Env, key.File} {
		if source != "" {
			sources++
		}
	}
	var value string
	switch {
	case sources != 1:
		d.wrong(path, "needs exactly one of sha256, env and file")
		return hash, false
	case key.SHA256 != "":
		n, err := hex.Decode(hash[:], []byte(key.SHA256[:min(len(key.SHA256), 2*len(hash))]))
		if err != nil || n != len(hash) || len(key.SHA256) != 2*len(hash) {
			d.wrong(path+".sha256", "want 64 hexadecimal digits, the SHA-256 of the key")
			return hash, false
		}
		key.SHA256 = strings.ToLower(key.SHA256)
		return hash, true
	case key.Env != "":
		if !isVariable(key.Env) {
			d.wrong(path+".env", "want the name of an environment variable")
			return hash, false
		}
		var set bool
		if value, set = d.env(key.Env); !set {
			d.wrong(path+".env", "environment variable %s is not set", key.Env)
			return hash, false
		}
	default:
		var err error
		value, err = readKey(d.places[path+".file"].at.file, key.File)
		if value = strings.TrimSpace(value); err == nil && value == "" {
			err = errors.New("the file holds no key")
		} else if err == nil && d.cutKey(key.Name, value) {
			err = errors.New("the file has only the beginning of the key in use")
		}
		if err != nil && d.keep {
			d.unknown = append(d.unknown, fmt.Sprintf("key %q: %v", key.Name, err))
			return hash, false
		}
		if err != nil {
			d.wrong(path+".file", "%v", err)
			return hash, false
		}
	}
	if value = strings.TrimSpace(value); value == "" {
		d.wrong(path, "holds an empty key")
		return hash, false
	}
	key.Env, key.File, key.Key = "", "", secret.String(value)
	return sha256.Sum256([]byte(value)), true
}

// cutKey reports whether value is the beginning of the key in use with that name.
func (d *decoder) cutKey(name, value string) bool {
	return d.used != nil && slices.ContainsFunc(d.used.Auth.APIKeys, func(k auth.KeyConfig) bool {
		return k.Name == name && len(value) < len(k.Key.Reveal()) && strings.HasPrefix(k.Key.Reveal(), value)
	})
}

// readKey reads the key file name. A relative name is relative to the folder of the file config.
func readKey(config, name string) (string, error) {
	name, err := beside(config, name)
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", reason(err))
	}
	if len(data) > maxKeyFile {
		return "", errors.New("reading the key: the file is too large for a key")
	}
	return string(data), nil
}
