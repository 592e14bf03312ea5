package jsonrpc

import "testing"

func TestNames(t *testing.T) {
	for result, want := range map[string]Names{
		`{"content":[{"type":"text","text":"uri"}]}`:           0,
		`{"content":[{"resource":{"uri":"a"}}]}`:               NameURI,
		`{"resultType":"complete"}`:                            NameResultType,
		`{"a":[{"b":{"uri":1}}],"resultType":"complete"}`:      NameURI | NameResultType,
		`{"\u0075ri":"a"}`:                                     AnyName,
		`{"_meta":{"meta":1},"requestState":"s"}`:              NameMeta | NameRequestState,
		`{"_Meta":1,"meta":2}`:                                 NameMeta,
		`{"content":[],"isError":false}`:                       NameIsError,
		`{"text":"\"uri\":"}`:                                  0,
		`[{"URI":1,"uris":2,"resulttype":3},"resultType"]`:     0,
		`{"structuredContent":{"deep":{"resultType":"task"}}}`: NameResultType,
	} {
		m, err := Parse(Result("1", []byte(result)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Names != want {
			t.Errorf("%s: got %b, want %b", result, m.Names, want)
		}
	}
}
