package jsonrpc

import "bytes"

// Names is a set of member names that occur in a message at any depth. It saves a search of most messages. A name
// with an escape sequence counts as each of them.
type Names uint8

// Names that are looked for.
const (
	NameURI Names = 1 << iota // "uri"
	NameResultType
	NameIsError

	AnyName = NameURI | NameResultType | NameIsError
)

// Has reports whether one of the names may occur.
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
