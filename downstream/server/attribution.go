package server

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// plainHost matches ASCII names of hosts.
var plainHost = regexp.MustCompile(`^[a-z0-9._-]+$`)

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"

	codeURLElicitation = -32042 // an error that asks the user to open addresses
)

// Attributed returns the request with the name of its server before what the user reads, so that no server can ask in
// the name of another or of the router. A sampling request gets no context of the client's other servers. All other
// bytes are unchanged. The error is for the server: the message or the address cannot be read without doubt.
func (q ServerRequest) Attributed() (ServerRequest, *jsonrpc.Error) {
	params, err := attributed(q.Server, q.Method, q.Params)
	if err != nil {
		return q, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + err.Error()}
	}
	q.Params = params
	return q, nil
}

// AttributedReply is Attributed for the requests in a reply: an input_required result, or an error that asks the user
// to open addresses. Other replies are unchanged.
func AttributedReply(server string, r link.Reply) (link.Reply, error) {
	var err error
	switch {
	case AsksURL(r.Err):
		r.Err, err = attributedError(server, r.Err)
	case r.Names.Has(jsonrpc.NameResultType):
		r.Result, err = attributedInput(server, r.Result)
	}
	return r, err
}

// attributedInput adds the server's name to the requests of an input_required result.
func attributedInput(server string, result []byte) ([]byte, error) {
	requests, ok := single(result, "inputRequests")
	if !ok {
		return nil, errors.New("inputRequests must appear once")
	}
	var edits []jsonrpc.Edit
	var err error
	jsonrpc.Members(requests, func(_ []byte, v jsonrpc.Span) bool {
		request := v.Of(requests)
		method, known := single(request, "method")
		params, found := single(request, "params")
		if !known || !found {
			err = errors.New("method and params of a request must appear once")
			return false
		}
		var own []byte
		if own, err = attributed(server, jsonrpc.Text(method), params); err == nil && params != nil {
			edits = append(edits, jsonrpc.Edit{Span: jsonrpc.At(result, params), With: own})
		}
		return err == nil
	})
	return jsonrpc.Splice(result, edits...), err
}

// attributedError adds the server's name to the requests of an error that asks the user to open addresses.
func attributedError(server string, rpcErr []byte) ([]byte, error) {
	data, once := single(rpcErr, "data")
	list, ok := single(data, "elicitations")
	if !once || !ok {
		return nil, errors.New("elicitations must appear once")
	}
	var edits []jsonrpc.Edit
	for _, params := range jsonrpc.Elements(list) {
		if message, ok := single(params, "message"); ok && message == nil {
			continue // it says nothing
		}
		own, err := attributedElicitation(server, params, true)
		if err != nil {
			return nil, err
		}
		edits = append(edits, jsonrpc.Edit{Span: jsonrpc.At(rpcErr, params), With: own})
	}
	return jsonrpc.Splice(rpcErr, edits...), nil
}

// AsksURL reports whether an error asks the user to open addresses.
func AsksURL(rpcErr []byte) bool {
	code, err := strconv.ParseFloat(string(jsonrpc.Get(rpcErr, "code")), 64) // clients read -32042.0 as the same number
	return err == nil && code == codeURLElicitation
}

// Asked returns the methods of the requests in a reply: those of an input_required result, or an elicitation in an
// error.
func Asked(reply link.Reply) (methods []string) {
	if AsksURL(reply.Err) {
		return []string{methodElicit}
	}
	if !reply.Names.Has(jsonrpc.NameResultType) {
		return nil
	}
	jsonrpc.Members(reply.Result, func(name []byte, v jsonrpc.Span) bool {
		if string(name) == "inputRequests" {
			requests := v.Of(reply.Result)
			jsonrpc.Members(requests, func(_ []byte, v jsonrpc.Span) bool {
				methods = append(methods, jsonrpc.Text(jsonrpc.Get(v.Of(requests), "method")))
				return true
			})
		}
		return true
	})
	return methods
}

// single returns the value of a member; false if it occurs twice or also in another case, because parsers may disagree
// about which counts. Without the member, the value is nil.
func single(object []byte, name string) (value []byte, ok bool) {
	span, ambiguous := jsonrpc.Find(object, name)
	return span.Of(object), !ambiguous
}

// attributed returns the params of a request of a server with its name.
func attributed(server, method string, params []byte) ([]byte, error) {
	switch {
	case strings.EqualFold(method, methodSample):
		var edits []jsonrpc.Edit
		jsonrpc.Members(params, func(name []byte, v jsonrpc.Span) bool {
			if strings.EqualFold(string(name), "includeContext") {
				edits = append(edits, jsonrpc.Edit{Span: v, With: []byte(`"none"`)})
			}
			return true
		})
		return jsonrpc.Splice(params, edits...), nil
	case strings.EqualFold(method, methodElicit):
		return attributedElicitation(server, params, false)
	}
	return params, nil
}

// attributedElicitation returns the params of an elicitation with the server's name; opens means the URL mode, whatever
// they say.
func attributedElicitation(server string, params []byte, opens bool) ([]byte, error) {
	mode, known := single(params, "mode")
	message, readable := single(params, "message")
	switch {
	case !known:
		return nil, errors.New("mode must appear once")
	case !readable || message != nil && message[0] != '"':
		return nil, errors.New("message must be a string and appear once")
	}
	prefix := "Server " + server + " asks: "
	if opens || strings.EqualFold(jsonrpc.Text(mode), "url") {
		host := ""
		if address, ok := single(params, "url"); ok {
			host = hostOf(jsonrpc.Text(address))
		}
		if host == "" {
			return nil, errors.New("url must be an http or https URL with a host, and appear once")
		}
		prefix = "Server " + server + " asks you to open " + host + ": "
	}
	if message == nil {
		return jsonrpc.Set(params, "message", []byte(jsonrpc.StringID(prefix))), nil
	}
	at := jsonrpc.At(params, message).Start + 1 // after the quotation mark; nothing in prefix needs an escape
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: jsonrpc.Span{Start: at, End: at}, With: []byte(prefix)}), nil
}

// hostOf returns the host that a browser opens for an address, in ASCII; empty if that is in doubt.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || !slices.Contains([]string{"http", "https"}, u.Scheme) ||
		strings.ContainsAny(address, `\`) {
		return ""
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Zone() == "" {
		return ip.String()
	}
	if host := strings.ToLower(u.Hostname()); plainHost.MatchString(host) && !strings.Contains(host, "xn--") {
		return host // idna refuses some names that are in use
	}
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil {
		return ""
	}
	return host
}
