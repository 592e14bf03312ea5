package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// An unauthenticated client has sent no key although one is needed. The edge answers it without the handler and
// stores only the data in the session id, so that a key may follow in _meta.api_key.

// serveUnauthenticated answers a message without a key over streamable HTTP. id is its session id.
func (t *streamable) serveUnauthenticated(w http.ResponseWriter, src source, id string, in *inbound.Message) {
	e := t.edge
	s := t.current(src, id)
	if s == nil && id != "" {
		if _, ok := e.sessions.sealed(src, id); !ok {
			t.reply.sessionNotFound(w, in.ID)
			return
		}
	}
	switch {
	case !in.IsRequest():
		if s != nil {
			s.handshake.unserved.add(nil, true) // it is notifications/initialized
		}
		w.WriteHeader(http.StatusAccepted)
		return
	case e.life.stopping.Load():
		t.reply.unavailable(w, in.ID, e.noRoom(in.DeclaredVersion()))
		return
	case in.Method == "initialize":
		client, err := inbound.ReadClientInfo(in.Params)
		if err != nil {
			t.reply.error(w, http.StatusBadRequest, in.ID, err)
			return
		}
		record := newRecord(src, inbound.Negotiate(in.Params), client)
		w.Header()["Mcp-Session-Id"] = []string{e.sessions.ids.Issue(&record, src.path)}
	}
	t.reply.message(w, http.StatusOK, t.unauthenticated(in))
}

// serveUnauthenticated answers a message without a key on the stream of a session that was opened with one.
func (t *sse) serveUnauthenticated(w http.ResponseWriter, s *session, in *inbound.Message) {
	switch {
	case !in.IsRequest():
		s.handshake.unserved.add(nil, true)
	case in.Method == "initialize":
		client, err := inbound.ReadClientInfo(in.Params)
		if err != nil {
			s.respond(output.Error(in.ID, err))
			break
		}
		r := sessionid.Record{Version: inbound.Negotiate(in.Params), Client: client}
		switch first, ok := s.agreeFirst(r.Version, client, client.Kept(in.Params)); {
		case !ok:
			s.respond(output.Error(in.ID, t.edge.noRoom("")))
			accepted(w)
			return
		case first:
			s.handshake.unserved.add(r.Initialize(), false)
		}
		fallthrough
	default:
		s.respond(t.unauthenticated(in))
	}
	accepted(w)
}

// unauthenticated returns the response to a request without a key. Its capabilities name only tools, which every
// surface has.
func (f *surface) unauthenticated(in *inbound.Message) output.Message {
	info := jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(f.edge.version)))
	info = jsonrpc.Set(info, "name", []byte(jsonrpc.StringID(f.edge.name)))
	var body []byte
	switch in.Method {
	case "initialize":
		body = append(append([]byte(`{"protocolVersion":`), jsonrpc.StringID(string(inbound.Negotiate(in.Params)))...),
			`,"capabilities":{"tools":{"listChanged":true}},"serverInfo":`...)
		body = append(append(body, info...), '}')
	case "server/discover":
		body = append([]byte(`{"resultType":"complete","supportedVersions":`), protocol.JSON(protocol.Versions())...)
		body = append(body, `,"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":`...)
		body = append(append(body, info...), "}}"...)
	default: // ping
		body = []byte("{}")
	}
	return output.Result(in.ID, body)
}
