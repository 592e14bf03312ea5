package sessionid

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
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

// sealer encrypts records into session ids and decrypts them. Ids cannot be made or read without the key. An id is
// valid only on the path that it was issued for. At most 2^32 ids should be issued with one key.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

var idEncoding = base64.RawURLEncoding.Strict()

// seal returns a new id and sets r.Tag. The id holds as many members of the client's description as fit.
func (s sealer) seal(r *Record, path string) string {
	nonce := make([]byte, s.aead.NonceSize(), idBytes)
	_, _ = rand.Read(nonce)
	r.Tag = binary.BigEndian.Uint64(nonce)
	room := idBytes - len(nonce) - recordFixed - s.aead.Overhead()
	caps := fitting(r.Client.Capabilities, room)
	info := fitting(r.Client.Info, room-len(caps))
	flags := byte(0)
	if r.Unkeyed {
		flags = 1
	}
	plain := []byte{recordForm, flags, byte(slices.Index(protocol.Handshake(), r.Version))}
	plain = binary.BigEndian.AppendUint64(plain, uint64(r.Start.Unix()))
	plain = append(plain, r.Owner[:]...)
	plain = binary.BigEndian.AppendUint16(plain, uint16(len(caps)))
	plain = append(append(plain, caps...), info...)
	return idEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(path)))
}

// open returns the record of an id that was sealed with this key for the path.
func (s sealer) open(id, path string) (*Record, bool) {
	if len(id) > idEncoding.EncodedLen(idBytes) {
		return nil, false
	}
	sealed, err := idEncoding.DecodeString(id)
	n := s.aead.NonceSize()
	if err != nil || len(sealed) < n || idEncoding.EncodeToString(sealed) != id { // the decoder ignores line breaks
		return nil, false
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(path))
	versions := protocol.Handshake()
	if err != nil || len(plain) < recordFixed || plain[0] != recordForm || int(plain[2]) >= len(versions) {
		return nil, false
	}
	r := &Record{
		Tag:     binary.BigEndian.Uint64(sealed),
		Unkeyed: plain[1] == 1,
		Version: versions[plain[2]],
		Start:   time.Unix(int64(binary.BigEndian.Uint64(plain[3:])), 0),
		Owner:   Owner(plain[11:]),
	}
	members := plain[recordFixed:]
	caps := int(binary.BigEndian.Uint16(plain[recordFixed-2:]))
	if caps > len(members) {
		return nil, false
	}
	r.Client = inbound.ClientInfo{Capabilities: inbound.Object(members[:caps]), Info: inbound.Object(members[caps:])}
	return r, true
}

// fitting removes members from an object until it fits into room bytes; nil if none fits.
func fitting(raw []byte, room int) []byte {
	var b bytes.Buffer
	if inbound.Object(raw) == nil || json.Compact(&b, raw) != nil || room < len("{}") {
		return nil
	}
	if b.Len() <= room {
		return b.Bytes()
	}
	kept := []byte{'{'}
	whole := b.Bytes()
	jsonrpc.Members(whole, func(name []byte, value jsonrpc.Span) bool {
		member := append(append([]byte(jsonrpc.StringID(string(name))), ':'), value.Of(whole)...)
		if len(kept)+len(member)+len(",}") <= room {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, member...)
		}
		return true
	})
	return append(kept, '}')
}
