package protocol

import (
	"slices"
	"strings"
)

// requests are the methods of the requests of clients, of all versions.
var requests = []string{
	"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
	"resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete",
	"logging/setLevel", "tasks/list", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update", MethodListen,
}

// Defines reports whether a version has requests of clients with the method.
func Defines(method string) bool { return slices.Contains(requests, method) }

// Imitates reports whether a method is that of a request of clients but for its case. No client needs such a method.
func Imitates(method string) bool {
	return !Defines(method) &&
		slices.ContainsFunc(requests, func(request string) bool { return strings.EqualFold(method, request) })
}

// NamedBy returns the member of the params of a request that the header Mcp-Name repeats (2026-07-28); empty for none.
func NamedBy(method string) (member string) {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case MethodTaskGet, MethodUpdate, MethodCancel:
		return "taskId"
	}
	return ""
}
