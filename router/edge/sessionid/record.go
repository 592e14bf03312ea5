package sessionid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

const (
	idBytes     = 750            // size of an id before encoding; 1,000 characters encoded
	recordLife  = 24 * time.Hour // from the start of a session
	clockSkew   = time.Hour      // by which the clock of a replica that opens a session may be ahead
	recordForm  = 2
	recordFixed = 3 + 8 + 16 + 8 + 2 // form, flags, version; start; owner; home; length of the capabilities
	homeBytes   = 8                  // in form 1 there is no home
)

// Record is the session data sealed in a session id.
type Record struct {
	Tag     uint64 // unique per id
	Home    uint64 // the replica that opened the session, see edge.Directory; 0 = none
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

// Ends returns when a session with the record can no longer be revived.
func (r *Record) Ends() time.Time { return r.Start.Add(recordLife) }

var idEncoding = base64.RawURLEncoding.Strict()

// Issue returns a new id for a session with record r, valid on one path, and sets r.Tag. The id holds as many members
// of the client's description as fit.
func (i *IDs) Issue(r *Record, path string) string {
	sealed, aead := i.newest()
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	r.Tag = binary.BigEndian.Uint64(nonce)
	room := idBytes - len(sealed) - len(nonce) - recordFixed - aead.Overhead()
	client := r.Client.Fit(room)
	flags := byte(0)
	if r.Unkeyed {
		flags = 1
	}
	plain := []byte{recordForm, flags, byte(slices.Index(protocol.Handshake(), r.Version))}
	plain = binary.BigEndian.AppendUint64(plain, uint64(r.Start.Unix()))
	plain = append(plain, r.Owner[:]...)
	plain = binary.BigEndian.AppendUint64(plain, r.Home)
	plain = binary.BigEndian.AppendUint16(plain, uint16(len(client.Capabilities)))
	plain = append(append(plain, client.Capabilities...), client.Info...)
	return idEncoding.EncodeToString(aead.Seal(append(sealed, nonce...), nonce, plain, []byte(path)))
}

// Open returns the record of an id that was issued with a key of these IDs for the path.
func (i *IDs) Open(id, path string) (*Record, bool) {
	if len(id) > idEncoding.EncodedLen(idBytes) {
		return nil, false
	}
	whole, err := idEncoding.DecodeString(id)
	if err != nil || idEncoding.EncodeToString(whole) != id { // the decoder ignores line breaks
		return nil, false
	}
	aead, sealed := i.cipherOf(whole)
	if aead == nil || len(sealed) < aead.NonceSize() {
		return nil, false
	}
	n := aead.NonceSize()
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], []byte(path))
	if err != nil {
		return nil, false
	}
	if len(plain) >= recordFixed-homeBytes && plain[0] == 1 { // without a home
		plain = slices.Insert(plain, recordFixed-homeBytes-2, make([]byte, homeBytes)...)
		plain[0] = recordForm
	}
	versions := protocol.Handshake()
	if len(plain) < recordFixed || plain[0] != recordForm || int(plain[2]) >= len(versions) {
		return nil, false
	}
	r := &Record{
		Tag:     binary.BigEndian.Uint64(sealed),
		Unkeyed: plain[1] == 1,
		Version: versions[plain[2]],
		Start:   time.Unix(int64(binary.BigEndian.Uint64(plain[3:])), 0),
		Owner:   Owner(plain[11:]),
		Home:    binary.BigEndian.Uint64(plain[27:]),
	}
	members := plain[recordFixed:]
	caps := int(binary.BigEndian.Uint16(plain[recordFixed-2:]))
	if caps > len(members) {
		return nil, false
	}
	r.Client = inbound.ClientInfo{Capabilities: inbound.Object(members[:caps]), Info: inbound.Object(members[caps:])}
	return r, true
}
