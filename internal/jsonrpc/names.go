package jsonrpc

import "bytes"

// Names is a set of member names that occur in a message at any depth. It makes most searches of messages
// unnecessary. A name with an escape sequence counts as each of them.
type Names uint8

// The tracked names.
const (
	NameURI Names = 1 << iota // "uri"
	NameResultType
	NameIsError

	AnyName = NameURI | NameResultType | NameIsError
)

// Has reports whether any of the names may occur.
func (n Names) Has(names Names) bool { return n&names != 0 }

// namesIn returns the Names of a quoted member name.
func namesIn(quoted []byte) Names {
	switch {
	case string(quoted) == `"uri"`:
		return NameURI
	case string(quoted) == `"resultType"`:
		return NameResultType
	case string(quoted) == `"isError"`:
		return NameIsError
	case bytes.IndexByte(quoted, '\\') >= 0:
		return AnyName
	}
	return 0
}
