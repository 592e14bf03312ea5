package edge

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

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

const (
	keyBytes    = 32             // AES-256
	idBytes     = 750            // of an id before it is encoded; 1,000 characters after
	recordLife  = 24 * time.Hour // from the start of a session
	clockSkew   = 5 * time.Minute
	recordForm  = 1
	recordFixed = 3 + 8 + 16 + 2 // form, flags, version; start; owner; length of the capabilities
)

// record is what the id of a session tells the router that sealed it.
type record struct {
	tag     uint64 // differs from id to id
	start   time.Time
	owner   ownerTag
	unkeyed bool // opened without a key: it belongs to the first key from the same address
	version protocol.Version
	client  inbound.ClientInfo
}

// ownerTag stands for a caller.
type ownerTag [16]byte

func tagOf(c auth.Caller) ownerTag {
	sum := sha256.Sum256([]byte(c.ID))
	return ownerTag(sum[:16])
}

// fresh reports whether a session with the record may still be revived.
func (r *record) fresh(now time.Time) bool {
	age := now.Sub(r.start)
	return age < recordLife && age > -clockSkew
}

// sealer turns records into session ids and back. Nobody else can make such an id or read one. An id counts only
// on the path that it was made for. At most 2^32 ids should be made with one key.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

// temporarySealer seals with a key that lives as long as the process.
func temporarySealer() sealer {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:])  // never fails
	s, _ := newSealer(key[:]) // the key has the right length
	return s
}

var idEncoding = base64.RawURLEncoding.Strict()

// seal returns a new id and completes r with what the id does not have of it. Of what the client says about itself
// the id holds as many members as fit.
func (s sealer) seal(r *record, path string) string {
	nonce := make([]byte, s.aead.NonceSize(), idBytes)
	_, _ = rand.Read(nonce)
	r.tag = binary.BigEndian.Uint64(nonce)
	room := idBytes - len(nonce) - recordFixed - s.aead.Overhead()
	caps := fitting(r.client.Capabilities, room)
	info := fitting(r.client.Info, room-len(caps))
	flags := byte(0)
	if r.unkeyed {
		flags = 1
	}
	plain := []byte{recordForm, flags, byte(slices.Index(protocol.Handshake(), r.version))}
	plain = binary.BigEndian.AppendUint64(plain, uint64(r.start.Unix()))
	plain = append(plain, r.owner[:]...)
	plain = binary.BigEndian.AppendUint16(plain, uint16(len(caps)))
	plain = append(append(plain, caps...), info...)
	return idEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(path)))
}

// open returns what an id holds, if it was sealed here for the path.
func (s sealer) open(id, path string) (*record, bool) {
	if len(id) > idEncoding.EncodedLen(idBytes) {
		return nil, false
	}
	sealed, err := idEncoding.DecodeString(id)
	n := s.aead.NonceSize()
	if err != nil || len(sealed) < n || idEncoding.EncodeToString(sealed) != id { // the decoder skips line ends
		return nil, false
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(path))
	versions := protocol.Handshake()
	if err != nil || len(plain) < recordFixed || plain[0] != recordForm || int(plain[2]) >= len(versions) {
		return nil, false
	}
	r := &record{
		tag:     binary.BigEndian.Uint64(sealed),
		unkeyed: plain[1] == 1,
		version: versions[plain[2]],
		start:   time.Unix(int64(binary.BigEndian.Uint64(plain[3:])), 0),
		owner:   ownerTag(plain[11:]),
	}
	said := plain[recordFixed:]
	caps := int(binary.BigEndian.Uint16(plain[recordFixed-2:]))
	if caps > len(said) {
		return nil, false
	}
	r.client = inbound.ClientInfo{Capabilities: inbound.Object(said[:caps]), Info: inbound.Object(said[caps:])}
	return r, true
}

// fitting returns an object without the members that do not fit into so many bytes; nil if there is none.
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

// introductionOf returns the params of the initialize that the record stands for.
func (r *record) introduction() []byte {
	params := []byte(`{"protocolVersion":`)
	params = append(params, jsonrpc.StringID(string(r.version))...)
	params = append(append(params, `,"capabilities":`...), orElse(r.client.Capabilities, "{}")...)
	params = append(append(params, `,"clientInfo":`...), orElse(r.client.Info, `{"name":"","version":""}`)...)
	return append(params, '}')
}

func orElse(raw []byte, other string) []byte {
	if raw == nil {
		return []byte(other)
	}
	return raw
}
