package sessionid

import (
	"crypto/sha256"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

const (
	idBytes     = 750            // size of an id before encoding; 1,000 characters encoded
	recordLife  = 24 * time.Hour // from the start of a session
	clockSkew   = 5 * time.Minute
	recordForm  = 1
	recordFixed = 3 + 8 + 16 + 2 // form, flags, version; start; owner; length of the capabilities
)

// Record is the session data sealed in a session id.
type Record struct {
	Tag     uint64 // unique per id
	Start   time.Time
	Owner   Owner
	Unkeyed bool // opened without an API key; belongs to the first key from the same address
	Version protocol.Version
	Client  inbound.ClientInfo
}

// Owner is a digest of a caller's id.
type Owner [16]byte

// OwnerOf returns the Owner of a caller id.
func OwnerOf(caller string) Owner {
	sum := sha256.Sum256([]byte(caller))
	return Owner(sum[:16])
}

// Fresh reports whether a session with the record may be revived at now.
func (r *Record) Fresh(now time.Time) bool {
	age := now.Sub(r.Start)
	return age < recordLife && age > -clockSkew
}

// Initialize returns the params of the initialize request that opened the session.
func (r *Record) Initialize() []byte {
	params := []byte(`{"protocolVersion":`)
	params = append(params, jsonrpc.StringID(string(r.Version))...)
	params = append(append(params, `,"capabilities":`...), orElse(r.Client.Capabilities, "{}")...)
	params = append(append(params, `,"clientInfo":`...), orElse(r.Client.Info, `{"name":"","version":""}`)...)
	return append(params, '}')
}

func orElse(raw []byte, other string) []byte {
	if raw == nil {
		return []byte(other)
	}
	return raw
}
