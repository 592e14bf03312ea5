package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// headerMember names, in the schema of an argument, the HTTP header that repeats the argument (MCP 2026-07-28).
const headerMember = "x-mcp-header"

// headerSchema is what an input schema says about headers.
type headerSchema struct {
	Type       string                   `json:"type,omitempty"`
	Header     string                   `json:"x-mcp-header,omitempty"`
	Properties map[string]*headerSchema `json:"properties,omitempty"`
}

// readHeaders returns the arguments that are repeated in headers; nil if there are none. The error tells which rule of
// the specification a header of the schema breaks.
func readHeaders(schema []byte) (*mcp.Tool, error) {
	if !bytes.Contains(schema, []byte(`"`+headerMember+`"`)) {
		return nil, nil
	}
	root, err := headerReader{}.read(schema, "", true)
	if root == nil || err != nil {
		return nil, err
	}
	raw, err := json.Marshal(root)
	return &mcp.Tool{RawInputSchema: raw}, err
}

// headerReader holds the names of the headers that were read, in lower case.
type headerReader map[string]bool

// read reads a schema and those within it. path tells where it is. reachable means that only "properties" lead to it,
// as they must to an argument with a header.
func (r headerReader) read(schema []byte, path string, reachable bool) (out *headerSchema, err error) {
	out = new(headerSchema)
	within := func(schema []byte, name string, reachable bool) (s *headerSchema) {
		if err == nil {
			s, err = r.read(schema, strings.TrimPrefix(path+"."+name, "."), reachable)
		}
		return s
	}
	jsonrpc.Members(schema, func(name []byte, at jsonrpc.Span) bool {
		switch keyword, value := string(name), at.Of(schema); keyword {
		case headerMember:
			out.Header, out.Type = jsonrpc.Text(value), jsonrpc.Text(jsonrpc.Get(schema, "type"))
			if fault := r.fault(out, path != "" && reachable); fault != "" {
				err = fmt.Errorf("%s of %q %s", headerMember, path, fault)
			}
		case "properties":
			jsonrpc.Members(value, func(name []byte, at jsonrpc.Span) bool {
				if s := within(at.Of(value), string(name), reachable); s != nil {
					if out.Properties == nil {
						out.Properties = map[string]*headerSchema{}
					}
					out.Properties[string(name)] = s
				}
				return err == nil
			})
		case "patternProperties", "dependentSchemas", "$defs", "definitions": // schemas by name
			jsonrpc.Members(value, func(name []byte, at jsonrpc.Span) bool {
				within(at.Of(value), string(name), false)
				return err == nil
			})
		case "items", "prefixItems", "contains", "unevaluatedItems", "additionalProperties", "unevaluatedProperties",
			"propertyNames", "oneOf", "anyOf", "allOf", "not", "if", "then", "else":
			within(value, keyword, false)
			for _, one := range jsonrpc.Elements(value) {
				within(one, keyword, false)
			}
		}
		return err == nil
	})
	if out.Header == "" && out.Properties == nil {
		out = nil
	}
	return out, err
}

// fault returns which rule a header breaks; empty if none.
func (r headerReader) fault(s *headerSchema, reachable bool) string {
	name := strings.ToLower(s.Header)
	token := func(c rune) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}
	switch {
	case !reachable:
		return `is not reached by "properties" alone`
	case name == "":
		return "is empty or no text"
	case strings.ContainsFunc(name, func(c rune) bool { return !token(c) }):
		return fmt.Sprintf("is %q, which is no name of a header", s.Header)
	case !slices.Contains([]string{"string", "integer", "boolean"}, s.Type):
		return "needs the type string, integer or boolean"
	case r[name]:
		return fmt.Sprintf("is %q, which another argument has", s.Header)
	}
	r[name] = true
	return ""
}

// WithValidHeaders returns the raw result of tools/list without the tools whose schemas name an invalid header, which
// the specification excludes for clients over HTTP.
func WithValidHeaders(result []byte) []byte {
	if !bytes.Contains(result, []byte(`"`+headerMember+`"`)) {
		return result
	}
	list := jsonrpc.Get(result, "tools")
	tools := jsonrpc.Elements(list)
	valid := slices.DeleteFunc(slices.Clone(tools), func(tool []byte) bool { return !HasValidHeaders(tool) })
	if len(valid) == len(tools) {
		return result
	}
	with := append(append([]byte{'['}, bytes.Join(valid, []byte{','})...), ']')
	return jsonrpc.Splice(result, jsonrpc.Edit{Span: jsonrpc.At(result, list), With: with})
}

// HasValidHeaders reports whether the schema of a raw definition of a tool names no invalid header.
func HasValidHeaders(tool []byte) bool {
	_, err := readHeaders(jsonrpc.Get(tool, "inputSchema"))
	return err == nil
}

// HeaderFault returns why the tool cannot be used over HTTP in 2026-07-28: its schema names an invalid header. It is
// nil for other tools; t may be nil.
func (t *Tool) HeaderFault() error {
	if t == nil {
		return nil
	}
	return t.headerFault
}

// ParamHeaders returns others with the headers for a call of the tool added; t may be nil.
func (t *Tool) ParamHeaders(others http.Header, params []byte) http.Header {
	if t == nil || t.mirrored == nil {
		return others
	}
	h := http.Header{}
	maps.Copy(h, others)
	for name, value := range mcp.GenerateParamHeaders(t.mirrored, params) {
		h.Set(name, value)
	}
	return h
}

// CheckParamHeaders compares the headers of a call with the arguments that they repeat. It returns nil if they agree;
// t may be nil.
func (t *Tool) CheckParamHeaders(h http.Header, params []byte) *jsonrpc.Error {
	if t == nil || t.mirrored == nil {
		return nil
	}
	err := mcp.ValidateParamHeadersLookup(func(name string) (string, bool) {
		sent := h.Values(name)
		return strings.Join(sent, ", "), len(sent) > 0
	}, t.mirrored, params)
	var mismatch mcp.HeaderMismatchError
	if !errors.As(err, &mismatch) {
		return nil
	}
	message := "Header mismatch: " + mismatch.Header + ": " + mismatch.Reason
	return &jsonrpc.Error{Code: jsonrpc.CodeHeaderMismatch, Message: message}
}
