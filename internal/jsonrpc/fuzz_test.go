package jsonrpc_test

import (
	"encoding/json"
	"maps"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// FuzzSplice checks the edits of raw objects against encoding/json: the named member is as it should be, and
// every other has kept its bytes.
func FuzzSplice(f *testing.F) {
	for _, seed := range []struct{ object, name, value string }{
		{`{"name":"hr__get","arguments":{"id":9007199254740993},"_meta":{"progressToken":"t"}}`, "name", `"get"`},
		{`{"requestId":7,"reason":"changed my mind"}`, "requestId", `12`},
		{`{"progressToken":"p","progress":0.5,"total":1,"message":"half"}`, "progressToken", `3`},
		{"{ \"a\" : [ {\"b\":\"]}\\\"\"} ] ,\n\"\\u0061\":null}", "a", `{}`},
		{`{}`, "_meta", `{"x":"\\"}`}, {`{"":{}}`, "", `[]`}, {`{"uri":"a","URI":"b"}`, "uri", `"c"`},
	} {
		f.Add([]byte(seed.object), seed.name, []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, object []byte, name string, value []byte) {
		before, ok := members(object)
		if !ok || jsonrpc.Valid(value) != nil || !utf8.ValidString(name) {
			t.Skip("not what may be edited")
		}
		var compact json.RawMessage
		if json.Unmarshal(value, &compact) != nil {
			t.Skip("deeper than this check can read")
		}
		set, ok := members(jsonrpc.Set(object, name, value))
		want := maps.Clone(before)
		want[name] = string(compact)
		if !ok || !maps.Equal(set, want) {
			t.Errorf("Set(%s, %q, %s): got %v, want %v", object, name, value, set, want)
		}
		removed, ok := members(jsonrpc.Remove(object, name))
		delete(want, name)
		if !ok || !maps.Equal(removed, want) {
			t.Errorf("Remove(%s, %q): got %v, want %v", object, name, removed, want)
		}
		if got, has := before[name]; string(jsonrpc.Get(object, name)) != got || has != (jsonrpc.Get(object, name) != nil) {
			t.Errorf("Get(%s, %q): got %s, want %s", object, name, jsonrpc.Get(object, name), got)
		}
	})
}

// members reads an object as encoding/json does; not ok if it is none.
func members(object []byte) (map[string]string, bool) {
	var raw map[string]json.RawMessage
	if jsonrpc.Valid(object) != nil || json.Unmarshal(object, &raw) != nil || raw == nil {
		return nil, false
	}
	text := map[string]string{}
	for name, value := range raw {
		text[name] = string(value)
	}
	return text, true
}
