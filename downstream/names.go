package downstream

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strings"
)

// FullName is a tool's name on the proxy surface.
func FullName(server, tool string) string { return server + "__" + tool }

// SplitFull splits server__tool at the first "__". Server names cannot hold it, tool names may.
func SplitFull(name string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(name, "__")
	return server, tool, ok && server != "" && tool != ""
}

// separators stand between a server's name and a tool's.
var separators = [...]string{"__", ":", "."}

// Splits yields every reading of a name as a server's and a tool's: server__tool, server:tool (at the first colon) and
// server.tool.
func Splits(name string) iter.Seq2[string, string] {
	return func(yield func(server, tool string) bool) {
		for _, sep := range separators {
			if server, tool, ok := strings.Cut(name, sep); ok && server != "" && tool != "" && !yield(server, tool) {
				return
			}
		}
	}
}

// Alias is the name under which a tool or a prompt is listed to clients. It is the full name, unless that is longer
// than limit or has characters other than letters, digits, "_" and "-": then it is the beginning of the full name and
// six digits of its hash. limit 0 is none.
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
