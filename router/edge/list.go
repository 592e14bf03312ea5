package edge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// SessionInfo describes a client session. ID is a digest, because the id itself is a credential.
type SessionInfo struct {
	ID       string  `json:"id"`
	Caller   string  `json:"caller"`
	Path     string  `json:"path,omitempty"` // of streamable HTTP
	Protocol string  `json:"protocol_version"`
	Client   string  `json:"client,omitempty"` // name given by the client
	Version  string  `json:"client_version,omitempty"`
	Idle     float64 `json:"idle_seconds"`
	Attached bool    `json:"attached"` // it reads the session's own stream
	InFlight bool    `json:"in_flight"`
}

// List describes the sessions of the callers that see selects, at most limit, most recently used first. total is
// their full number.
func List(e *Edge, see func(caller string) bool, limit int) (list []SessionInfo, total int) {
	all := slices.DeleteFunc(e.sessions.store.All(), func(s *session) bool { return !see(s.owner.ID) })
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(b.LastUsed(), a.LastUsed()), cmp.Compare(a.id, b.id))
	})
	list = make([]SessionInfo, min(len(all), limit))
	now := e.now()
	for i := range list {
		s := all[i]
		version, client := s.handshake.agreed()
		var named struct{ Name, Version string }
		_ = json.Unmarshal(client.Info, &named) // untrusted; may be missing
		digest := sha256.Sum256([]byte(s.id))
		list[i] = SessionInfo{
			ID: hex.EncodeToString(digest[:6]), Caller: s.owner.ID, Path: s.path, Protocol: string(version),
			Client: named.Name, Version: named.Version,
			Idle:     (now - s.LastUsed()).Truncate(time.Second).Seconds(),
			Attached: s.Attached(), InFlight: s.InFlight(),
		}
	}
	return list, len(all)
}
