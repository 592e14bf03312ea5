package downstream

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Rights are what a caller may use of the servers, by their own names; auth.Caller implements them.
type Rights interface {
	MaySee(server string) bool
	MaySeeAny(kind, server string) bool // kind is tools, resources or prompts
	MayUse(server, tool string) bool
	MayRead(server, uri string) bool
	MayPrompt(server, prompt string) bool
	MayAll(server string) bool // also methods of its own
}

// forbidden returns an error for a request that its caller may not send. Names that are missing or ambiguous are
// nobody's.
func (r *Request) forbidden() error {
	if r.Visible == nil || r.calledTool() != "" {
		return nil
	}
	switch {
	case r.Rights == nil:
		return &UnknownError{unknownMethod, r.Method}
	case r.Rights.MayAll(r.Server):
		return nil
	}
	text := func(object []byte, member string) string {
		if value, ambiguous := jsonrpc.Find(object, member); !ambiguous {
			return jsonrpc.Text(value.Of(object))
		}
		return ""
	}
	what, name, may := "", "", false
	resource := func(object []byte) {
		what, name = "resource", text(object, "uri")
		may = name != "" && r.Rights.MayRead(r.Server, name)
	}
	prompt := func(object []byte) {
		what, name = "prompt", text(object, "name")
		may = name != "" && r.Rights.MayPrompt(r.Server, name)
	}
	switch r.Method {
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		resource(r.Params)
	case "prompts/get":
		prompt(r.Params)
	case "completion/complete":
		ref, ambiguous := jsonrpc.Find(r.Params, "ref")
		switch object := ref.Of(r.Params); {
		case ambiguous:
		case text(object, "type") == "ref/resource":
			resource(object)
		case text(object, "type") == "ref/prompt":
			prompt(object)
		}
		what = "reference"
	case "ping", "logging/setLevel":
		what, name, may = "server", r.Server, r.Rights.MaySee(r.Server)
	default:
		what, name = unknownMethod, r.Method
	}
	switch {
	case may:
		return nil
	case what == "resource" || what == "prompt":
		name = catalog.FullName(r.Server, name)
	}
	return &UnknownError{what, name}
}

// Hears reports whether a caller may receive a notification of a server. What names or announces something else than
// the caller may use is not for it; methods of the server's own may say anything.
func Hears(rights Rights, server string, m jsonrpc.Message) bool {
	switch m.Method {
	case "notifications/resources/updated":
		return rights.MayRead(server, jsonrpc.Text(jsonrpc.Get(m.Params, "uri")))
	case "notifications/message", "notifications/progress", "notifications/cancelled",
		"notifications/elicitation/complete":
		return rights.MaySee(server)
	}
	if rest, ok := strings.CutSuffix(m.Method, "/list_changed"); ok {
		if kind, ok := strings.CutPrefix(rest, "notifications/"); ok {
			return rights.MaySeeAny(kind, server)
		}
	}
	return rights.MayAll(server)
}
