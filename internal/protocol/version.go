// Package protocol has the versions of the Model Context Protocol that the router speaks, the methods of its requests,
// and the names of subscriptions/listen and of the tasks extension, which it receives and sends.
//
// [Versions] is the list of all, [Version.AtLeast] orders them and [Negotiate] answers initialize.
package protocol

import (
	"slices"
	"strconv"
)

// Version is a protocol version: the date of a revision of the specification.
type Version string

// The versions that the router speaks.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26" // the only one with batches, and assumed where a client names none
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25" // the newest with sessions, and the first whose streams can be resumed
	V20260728 Version = "2026-07-28" // without sessions and handshake
)

// Versions returns all versions, the oldest first.
func Versions() []Version { return append(Handshake(), V20260728) }

// Handshake returns the versions whose clients begin with initialize, the oldest first. Sealed session ids hold an
// index into this list, so its order never changes.
func Handshake() []Version { return []Version{V20241105, V20250326, V20250618, V20251125} }

// AtLeast reports whether v is other or newer.
func (v Version) AtLeast(other Version) bool { return v >= other }

// IsHandshake reports whether clients of v begin with initialize.
func (v Version) IsHandshake() bool {
	switch v {
	case V20241105, V20250326, V20250618, V20251125:
		return true
	}
	return false
}

// Negotiate returns the version to answer initialize with: the one that the client asks for if it has the handshake, or
// else the newest that has.
func Negotiate(asked Version) Version {
	if asked.IsHandshake() {
		return asked
	}
	return V20251125
}

// JSON returns versions as a JSON array, the last of them first.
func JSON(versions []Version) []byte {
	b := []byte{'['}
	for i, v := range slices.Backward(versions) {
		b = strconv.AppendQuote(b, string(v))
		if i > 0 {
			b = append(b, ',')
		}
	}
	return append(b, ']')
}
