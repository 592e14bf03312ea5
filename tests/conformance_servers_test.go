package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// refusesHandshake returns the URL of a server that passes on all but initialize.
func refusesHandshake(t *testing.T, server string) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a client that has gone reads no answer
		var m mcptest.Message
		if json.Unmarshal(body, &m) == nil && m.Method == "initialize" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// unprefixed returns the URL of all servers of a router for a client that knows the names of one of them alone.
func unprefixed(t *testing.T, router, server string) string {
	t.Helper()
	to, err := url.Parse(router)
	if err != nil {
		t.Fatal(err)
	}
	prefix := server + "__"
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	pass.FlushInterval = -1
	pass.ModifyResponse = func(r *http.Response) error {
		r.Header.Del("Content-Length")
		r.ContentLength, r.Body = -1, &withoutPrefix{Closer: r.Body, lines: bufio.NewReader(r.Body), prefix: prefix}
		return nil
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a client that has gone reads no answer
		named := withPrefix(body, prefix)
		if name := r.Header.Get("Mcp-Name"); name != "" && !bytes.Equal(named, body) {
			r.Header.Set("Mcp-Name", prefix+name)
		}
		r.Body, r.ContentLength, r.URL.Path = io.NopCloser(bytes.NewReader(named)), int64(len(named)), to.Path
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// withPrefix returns a message with the prefix before the names and URIs in its params.
func withPrefix(message []byte, prefix string) []byte {
	m, invalid := jsonrpc.Parse(message)
	if invalid != nil || m.Params == nil {
		return message
	}
	text := func(object []byte, member string) []byte {
		value := jsonrpc.Get(object, member)
		if len(value) == 0 || value[0] != '"' {
			return object
		}
		return jsonrpc.Set(object, member, slices.Concat([]byte(`"`+prefix), value[1:]))
	}
	params := text(text(m.Params, "name"), "uri")
	if ref := jsonrpc.Get(params, "ref"); ref != nil {
		params = jsonrpc.Set(params, "ref", text(text(ref, "name"), "uri"))
	}
	const resources = "resourceSubscriptions"
	filter := jsonrpc.Get(params, "notifications")
	var uris []string
	if json.Unmarshal(jsonrpc.Get(filter, resources), &uris) == nil {
		for i := range uris {
			uris[i] = prefix + uris[i]
		}
		list, _ := json.Marshal(uris) // strings always marshal
		params = jsonrpc.Set(params, "notifications", jsonrpc.Set(filter, resources, list))
	}
	return jsonrpc.Splice(message, jsonrpc.Edit{Span: jsonrpc.At(message, m.Params), With: params})
}

// withoutPrefix removes the prefix from strings that begin with it, line by line.
type withoutPrefix struct {
	io.Closer
	lines  *bufio.Reader
	prefix string
	rest   []byte
}

func (w *withoutPrefix) Read(b []byte) (int, error) {
	var err error
	if len(w.rest) == 0 {
		var line []byte
		line, err = w.lines.ReadBytes('\n')
		w.rest = bytes.ReplaceAll(line, []byte(`"`+w.prefix), []byte(`"`))
	}
	n := copy(b, w.rest)
	if w.rest = w.rest[n:]; len(w.rest) > 0 {
		err = nil // it comes again
	}
	return n, err
}
