package jsonrpc

import "bytes"

// Names is a set of member names that occur somewhere in a message, at any depth. It spares most messages a search
// for what few of them have. A name with an escape sequence counts as each of them.
type Names uint8

// Names that are looked for.
const (
	NameURI Names = 1 << iota // "uri"
	NameResultType
)

// Has reports whether one of the names may occur.
func (n Names) Has(names Names) bool { return n&names != 0 }

// namesIn returns what the quoted name of a member is.
func namesIn(quoted []byte) Names {
	switch {
	case string(quoted) == `"uri"`:
		return NameURI
	case string(quoted) == `"resultType"`:
		return NameResultType
	case bytes.IndexByte(quoted, '\\') >= 0:
		return NameURI | NameResultType
	}
	return 0
}
