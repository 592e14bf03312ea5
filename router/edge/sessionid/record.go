package sessionid

import (
	"crypto/cipher"
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

// Owner is a digest of auth.Caller.Owner.
type Owner [16]byte

// OwnerOf returns the Owner for an auth.Caller.Owner.
func OwnerOf(owner string) Owner {
	sum := sha256.Sum256([]byte(owner))
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
	sealed, nonce, aead := i.begin()
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

// Seal returns a text encrypted for Unseal with the same use, which is not secret. Uses must differ from the paths of
// Issue.
func (i *IDs) Seal(text, use string) string {
	sealed, nonce, aead := i.begin()
	return idEncoding.EncodeToString(aead.Seal(append(sealed, nonce...), nonce, []byte(text), []byte(use)))
}

// begin returns the cipher to seal with, the beginning of what it seals, and a nonce.
func (i *IDs) begin() (prefix, nonce []byte, aead cipher.AEAD) {
	prefix, aead = i.newest()
	nonce = make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return prefix, nonce, aead
}

// Unseal returns the text that Seal has encrypted, with a key of these IDs.
func (i *IDs) Unseal(sealed, use string) (text string, ok bool) {
	plain, _, ok := i.open(sealed, use)
	return string(plain), ok
}

// open decrypts what is sealed for a use. tag tells it from all else that is sealed.
func (i *IDs) open(sealed, use string) (plain []byte, tag uint64, ok bool) {
	whole, err := idEncoding.DecodeString(sealed)
	if err != nil || idEncoding.EncodeToString(whole) != sealed { // the decoder ignores line breaks
		return nil, 0, false
	}
	aead, rest := i.cipherOf(whole)
	if aead == nil || len(rest) < aead.NonceSize() {
		return nil, 0, false
	}
	n := aead.NonceSize()
	plain, err = aead.Open(nil, rest[:n], rest[n:], []byte(use))
	return plain, binary.BigEndian.Uint64(rest), err == nil
}

// Open returns the record of an id that was issued with a key of these IDs for the path.
func (i *IDs) Open(id, path string) (*Record, bool) {
	if len(id) > idEncoding.EncodedLen(idBytes) {
		return nil, false
	}
	plain, tag, ok := i.open(id, path)
	if !ok {
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
		Tag:     tag,
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
