package sessionid_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// keyring is the keys of replicas, the newest last.
type keyring []uint32

func key(id uint32) []byte { return slices.Repeat([]byte{byte(id)}, 32) }

func (k *keyring) Newest(string) (uint32, []byte) {
	newest := (*k)[len(*k)-1]
	return newest, key(newest)
}

func (k *keyring) Key(_ string, id uint32) ([]byte, bool) { return key(id), slices.Contains(*k, id) }

func record() *sessionid.Record {
	return &sessionid.Record{
		Start: time.Now(), Owner: sessionid.OwnerOf("ann"), Version: protocol.V20251125, Home: 1 << 63,
		Client: inbound.ClientInfo{Capabilities: []byte(`{"sampling":{}}`),
			Info: []byte(`{"name":"c","version":"` + strings.Repeat("1", 400) + `"}`)},
	}
}

func TestReplicasOpenEachOthersIDs(t *testing.T) {
	shared := &keyring{7}
	a, b := sessionid.New(), sessionid.New()
	a.Share(shared)
	b.Share(shared)
	r := record()
	id := a.Issue(r, "/mcp")
	*shared = append(*shared, 9)
	next := b.Issue(record(), "/mcp")
	for name, ids := range map[string]*sessionid.IDs{"a": a, "b": b} {
		got, ok := ids.Open(id, "/mcp")
		if !ok || got.Home != r.Home || got.Tag != r.Tag || got.Owner != r.Owner || got.Version != r.Version ||
			string(got.Client.Info) != string(r.Client.Info) {
			t.Errorf("%s opens an id: got %+v, want %+v", name, got, r)
		}
		if _, ok := ids.Open(next, "/mcp"); !ok {
			t.Errorf("%s opens an id of the next key: got nothing, want a record", name)
		}
	}
	if len(id) > 1000 {
		t.Errorf("got an id of %d characters, want at most 1000", len(id))
	}
	c := sessionid.New()
	c.Share(&keyring{9})
	for what, refused := range map[string]struct{ id, path string }{
		"key unknown": {id, "/mcp"}, "another path": {next, "/other"}, "short": {"AAAA", "/mcp"}, "empty": {"", "/mcp"},
		"another key id": {base64.RawURLEncoding.EncodeToString(append([]byte{0, 0, 0, 9}, make([]byte, 99)...)), "/mcp"},
	} {
		if _, ok := c.Open(refused.id, refused.path); ok {
			t.Errorf("%s: got a record, want none", what)
		}
	}
}

// Ids of versions without replicas have no home.
func TestFirstFormOpens(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "session.key"), key(3), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := sessionid.New()
	if err := ids.Keep(folder); err != nil {
		t.Fatal(err)
	}
	block, _ := aes.NewCipher(key(3))
	aead, _ := cipher.NewGCM(block)
	owner := sessionid.OwnerOf("ann")
	plain := binary.BigEndian.AppendUint64([]byte{1, 1, 0}, uint64(time.Now().Unix()))
	plain = binary.BigEndian.AppendUint16(append(plain, owner[:]...), 2)
	nonce := []byte("twelve bytes")
	sealed := aead.Seal(nonce, nonce, append(plain, `{}{"name":"c"}`...), []byte("/mcp"))
	got, ok := ids.Open(base64.RawURLEncoding.EncodeToString(sealed), "/mcp")
	if !ok || got.Home != 0 || got.Owner != owner || !got.Unkeyed || got.Version != protocol.Handshake()[0] ||
		string(got.Client.Capabilities) != "{}" || string(got.Client.Info) != `{"name":"c"}` || !got.Fresh(time.Now()) {
		t.Errorf("got %+v, %t, want the record without a home", got, ok)
	}
}

// A session that a replica has opened whose clock is ahead is valid at the others.
func TestFresh(t *testing.T) {
	now := time.Now()
	for age, want := range map[time.Duration]bool{
		0: true, -5 * time.Minute: true, -59 * time.Minute: true, -2 * time.Hour: false, 23 * time.Hour: true, 25 * time.Hour: false,
	} {
		if got := (&sessionid.Record{Start: now.Add(-age)}).Fresh(now); got != want {
			t.Errorf("at the age of %v: got %t, want %t", age, got, want)
		}
	}
}
