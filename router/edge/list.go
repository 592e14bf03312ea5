package edge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// SessionInfo describes a client session. ID is a digest: the id itself would let its reader use the session.
type SessionInfo struct {
	ID       string      `json:"id"`
	Owner    auth.Caller `json:"-"`
	Caller   string      `json:"caller"`         // Owner.ID
	Path     string      `json:"path,omitempty"` // of streamable HTTP
	Protocol string      `json:"protocol_version"`
	Client   string      `json:"client,omitempty"` // as it names itself
	Version  string      `json:"client_version,omitempty"`
	Idle     float64     `json:"idle_seconds"`
	Attached bool        `json:"attached"` // it reads the stream of its own
	InFlight bool        `json:"in_flight"`
}

// List describes the client sessions, in no order.
func List(e *Edge) []SessionInfo {
	all := e.sessions.store.All()
	list := make([]SessionInfo, len(all))
	now := e.now()
	for i, s := range all {
		version, client := s.handshake.agreed()
		var named struct{ Name, Version string }
		_ = json.Unmarshal(client.Info, &named) // untrusted; may be missing
		digest := sha256.Sum256([]byte(s.id))
		list[i] = SessionInfo{
			ID: hex.EncodeToString(digest[:6]), Owner: s.owner, Caller: s.owner.ID, Path: s.path, Protocol: string(version),
			Client: named.Name, Version: named.Version, Idle: (now - s.LastUsed()).Truncate(time.Second).Seconds(),
			Attached: s.Attached(), InFlight: s.InFlight(),
		}
	}
	return list
}
