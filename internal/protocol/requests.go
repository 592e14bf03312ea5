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
