package downstream

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Alias is how a tool or a prompt is listed to clients: its full name or, where that is longer than limit or has other
// characters than letters, digits, "_" and "-", what fits of it and six digits of its hash. limit 0 is none.
func Alias(server, name string, limit int) string {
	full := FullName(server, name)
	if (limit == 0 || len(full) <= limit) && plain(full) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:3])
	kept := strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '_'
	}, full)
	if limit > 0 {
		kept = kept[:min(len(kept), limit-len(suffix))]
	}
	return kept + suffix
}

func plain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// MayBeAlias reports whether a name could be an alias of something of the server.
func MayBeAlias(name, server string) bool {
	cut := len(name) - 7
	if cut < 0 || name[cut] != '_' {
		return false
	}
	for _, c := range name[cut+1:] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	prefix := FullName(server, "")
	return strings.HasPrefix(name[:cut], prefix) || strings.HasPrefix(prefix, name[:cut])
}

// ListedName is how a tool is listed to clients.
func (m *Manager) ListedName(server, tool string) string {
	return Alias(server, tool, m.opts.NameLimit)
}

// aliased finds the tool that is listed under an alias.
func (c *Catalog) aliased(alias string, sees func(*Tool) bool) *Tool {
	for place := range c.shelves {
		if !MayBeAlias(alias, c.configs[place].Name) {
			continue
		}
		tools := c.shelves[place].tools
		for i := range tools {
			if t := &tools[i]; Alias(t.Server, t.Tool.Tool, c.nameLimit) == alias && sees(t) {
				return t
			}
		}
	}
	return nil
}
