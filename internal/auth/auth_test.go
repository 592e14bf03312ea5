package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func sum(key string) string {
	digest := sha256.Sum256([]byte(key))
	return hex.EncodeToString(digest[:])
}

func mustNew(t testing.TB, keys ...KeyConfig) *Keys {
	t.Helper()
	k, err := New(Config{APIKeys: keys}, Options{})
	if err != nil {
		t.Fatalf("New: got %v, want no error", err)
	}
	return k
}

func TestKeySources(t *testing.T) {
	k := mustNew(t,
		KeyConfig{Name: "hash", SHA256: strings.ToUpper(sum("from-hash"))},
		KeyConfig{Name: "key", Key: " from-key\n"},
	)
	for _, name := range []string{"hash", "key"} {
		c, ok := k.Identify("from-" + name)
		if !ok || c.Name != name || c.ID != "key:"+name || c.Anonymous {
			t.Errorf("the key of %s: got %+v, %t, want that caller", name, c, ok)
		}
	}
	for _, wrong := range []string{"", "from-nowhere", " from-key", sum("from-hash"), strings.Repeat("x", maxKey+1)} {
		if c, ok := k.Identify(wrong); ok {
			t.Errorf("key %.20q: got %+v, want it refused", wrong, c)
		}
	}
	if !k.Required() || mustNew(t).Required() {
		t.Error("Required: want true with keys and false without")
	}
}

func TestNewRefuses(t *testing.T) {
	const value = "very-secret-value"
	for _, row := range []struct {
		name string
		keys []KeyConfig
		want string
	}{
		{"no name", []KeyConfig{{Key: value}}, "api_keys[0] has no name"},
		{"the same name", []KeyConfig{{Name: "a", Key: value}, {Name: "a", Key: "other"}}, `two keys called "a"`},
		{"the same key", []KeyConfig{{Name: "a", Key: value}, {Name: "b", SHA256: sum(value)}}, `"b": it is the same as "a"`},
		{"no source", []KeyConfig{{Name: "a"}}, "exactly one"},
		{"a source that is not resolved", []KeyConfig{{Name: "a", Env: "X"}}, "exactly one"},
		{"an empty key", []KeyConfig{{Name: "a", Key: " "}}, "it is empty"},
		{"two sources", []KeyConfig{{Name: "a", Key: value, Env: "X"}}, "exactly one"},
		{"a short hash", []KeyConfig{{Name: "a", SHA256: "abcd"}}, "64 hexadecimal"},
		{"a long hash", []KeyConfig{{Name: "a", SHA256: sum(value) + "00"}}, "64 hexadecimal"},
		{"no hexadecimal", []KeyConfig{{Name: "a", SHA256: strings.Repeat("x", 64)}}, "64 hexadecimal"},
		{"a huge key", []KeyConfig{{Name: "a", Key: redact.Secret(strings.Repeat("x", maxKey+1))}}, "longer than"},
		{"a bad pattern", []KeyConfig{{Name: "a", Key: value, Tools: Filter{Deny: []string{"ok", "a__[x"}}}}, `"a__[x" is malformed`},
	} {
		_, err := New(Config{APIKeys: row.keys}, Options{})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), value) {
			t.Errorf("%s: got %v, want an error with %q and without the key", row.name, err, row.want)
		}
	}
}

func TestAuthenticate(t *testing.T) {
	k := mustNew(t, KeyConfig{Name: "a", Key: "A"}, KeyConfig{Name: "b", Key: "B"})
	for _, row := range []struct {
		name    string
		header  http.Header
		present bool
		want    string // name of the caller; "" = refused
	}{
		{"nothing", http.Header{}, false, ""},
		{"bearer", http.Header{"Authorization": {"Bearer A"}}, true, "a"},
		{"bearer, other case and spaces", http.Header{"Authorization": {"  bearer   A "}}, true, "a"},
		{"X-API-Key", http.Header{"X-Api-Key": {" B "}}, true, "b"},
		{"wrong bearer", http.Header{"Authorization": {"Bearer C"}}, true, ""},
		{"empty bearer", http.Header{"Authorization": {"Bearer"}}, true, ""},
		{"empty X-API-Key", http.Header{"X-Api-Key": {""}}, true, ""},
		{"another scheme", http.Header{"Authorization": {"Basic QTpB"}}, false, ""},
		{"another scheme and X-API-Key", http.Header{"Authorization": {"Basic QTpB"}, "X-Api-Key": {"A"}}, true, "a"},
		{"both the same", http.Header{"Authorization": {"Bearer A"}, "X-Api-Key": {"A"}}, true, "a"},
		{"both valid, different callers", http.Header{"Authorization": {"Bearer A"}, "X-Api-Key": {"B"}}, true, ""},
		{"one wrong", http.Header{"Authorization": {"Bearer A"}, "X-Api-Key": {"C"}}, true, ""},
		{"the other wrong", http.Header{"Authorization": {"Bearer C"}, "X-Api-Key": {"A"}}, true, ""},
		{"twice", http.Header{"X-Api-Key": {"A", "B"}}, true, ""},
	} {
		c, present, refused := k.Authenticate(t.Context(), row.header, "/mcp")
		if present != row.present || (present && refused == nil) != (row.want != "") || c.Name != row.want {
			t.Errorf("%s: got present %t and caller %q, want %t and %q", row.name, present, c.Name, row.present, row.want)
		}
	}
}

func FuzzAuthenticate(f *testing.F) {
	k := mustNew(f, KeyConfig{Name: "a", Key: "A"})
	f.Add("Bearer A", "A")
	f.Add("Bearer ", "")
	f.Add("bearer\tA", "B")
	f.Fuzz(func(t *testing.T, authorization, apiKey string) {
		c, present, refused := k.Authenticate(t.Context(), http.Header{"Authorization": {authorization}, "X-Api-Key": {apiKey}}, "/mcp")
		if !present {
			t.Fatal("got no key, want one: X-API-Key is there")
		}
		if refused == nil && c.Name != "a" {
			t.Fatalf("got caller %+v, want a", c)
		}
	})
}

// Callers know what their keys stand for after a replacement.
func TestNow(t *testing.T) {
	key := func(name, value string, deny ...string) KeyConfig {
		return KeyConfig{Name: name, Key: redact.Secret(value), Tools: Filter{Deny: deny}}
	}
	keys := mustNew(t, key("same", "1", "s__x"), key("changed", "2"), key("renamed", "3"), key("rotated", "4"), key("gone", "5"))
	before := map[string]Caller{}
	for _, value := range []string{"1", "2", "3", "4", "5"} {
		c, _ := keys.Identify(value)
		before[c.Name] = c
	}
	changed := keys.Replace(mustNew(t, key("same", "1", "s__x"), key("changed", "2", "s__y"), key("another", "3"), key("rotated", "6")))
	want := Changes{Added: []string{"another"}, Removed: []string{"gone", "renamed"}, Changed: []string{"changed", "rotated"}, Rights: []string{"key:changed"}}
	if !reflect.DeepEqual(changed, want) {
		t.Errorf("got %+v, want %+v", changed, want)
	}
	for name, want := range map[string]struct{ valid, x, y bool }{
		"same": {true, false, true}, "changed": {true, true, false}, "renamed": {}, "rotated": {}, "gone": {},
	} {
		now, valid := before[name].Now()
		if valid != want.valid || now.MayUse("s", "x") != want.x || now.MayUse("s", "y") != want.y {
			t.Errorf("%s: got valid %t, x %t, y %t, want %+v", name, valid, now.MayUse("s", "x"), now.MayUse("s", "y"), want)
		}
		if before[name].MayUse("s", "x") != (name != "same") {
			t.Errorf("%s: got its earlier rights changed, want them to stay", name)
		}
	}
	if _, ok := keys.Identify("4"); ok || !keys.Required() {
		t.Error("the former key of rotated: got it accepted, want it refused")
	}
	if c, _ := keys.Identify("2"); c.MayUse("s", "y") {
		t.Error("a new request with the changed key: got the old rights, want the new ones")
	}
	if done := keys.Replace(mustNew(t, key("changed", "2"))); done.None() {
		t.Error("got no changes, want some")
	}
	if done := keys.Replace(mustNew(t, key("changed", "2"))); !done.None() {
		t.Errorf("the same keys: got %+v, want no changes", done)
	}
	if now, valid := before["changed"].Now(); !valid || !now.MayUse("s", "y") {
		t.Errorf("changed once more: got valid %t and the rights of before, want the newest", valid)
	}
	if c, valid := Anonymous("a").Now(); !valid || !c.Anonymous {
		t.Errorf("anonymous: got %+v, %t, want it as it is", c, valid)
	}
}

// Callers without a key are told apart by address, and by the /64 of an IPv6 address.
func TestAnonymous(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7":            "addr:192.0.2.7",
		"::ffff:192.0.2.7":     "addr:::ffff:192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "addr:2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1": "addr:2001:db8:1:2::/64",
		"fe80::1%eth0":         "addr:fe80::/64",
		"::1":                  "addr:::1",
		"local":                "addr:local",
	} {
		if got := Anonymous(addr); got.ID != want || !got.Anonymous {
			t.Errorf("%s: got %s, want %s", addr, got.ID, want)
		}
	}
}
