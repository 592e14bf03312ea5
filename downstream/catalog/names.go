package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strings"
)

// FullName returns a tool's name on the proxy surface.
func FullName(server, tool string) string { return server + "__" + tool }

// SplitFull splits server__tool at the first "__". Server names cannot contain it; tool names may.
func SplitFull(name string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(name, "__")
	return server, tool, ok && server != "" && tool != ""
}

// Splits yields each way to split a qualified name: server__tool, server:tool (at the first colon) and server.tool.
func Splits(name string) iter.Seq2[string, string] {
	return func(yield func(server, tool string) bool) {
		for _, sep := range [...]string{"__", ":", "."} {
			if server, tool, ok := strings.Cut(name, sep); ok && server != "" && tool != "" && !yield(server, tool) {
				return
			}
		}
	}
}

// Alias returns the name under which clients see a tool or prompt. It is the full name, unless that is longer than
// limit or has characters other than letters, digits, "_" and "-". Then it is a prefix of the full name followed by
// six hexadecimal digits of its hash. A limit of 0 means none.
func Alias(server, name string, limit int) string {
	full := FullName(server, name)
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, full)
	if kept == full && (limit == 0 || len(full) <= limit) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:3])
	if limit > 0 {
		kept = kept[:min(len(kept), limit-len(suffix))]
	}
	return kept + suffix
}

// MayBeAlias reports whether a name could be the alias of a tool or a prompt of the server.
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
