package output

import (
	"net/http"
	"strings"
)

// Accept describes the kinds of response a client accepts.
type Accept struct {
	JSON, Events bool
	Named        bool // event streams are named explicitly, not by a wildcard
}

// ParseAccept reads the Accept header. A client without the header accepts both kinds; a client that names neither
// gets JSON.
func ParseAccept(h http.Header) Accept {
	values := h["Accept"]
	if len(values) == 0 {
		return Accept{JSON: true, Events: true}
	}
	var a Accept
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "", "*/*":
				a.JSON, a.Events = true, true
			case "application/json", "application/*":
				a.JSON = true
			case "text/event-stream":
				a.Events, a.Named = true, true
			case "text/*":
				a.Events = true
			}
		}
	}
	if !a.Events {
		a.JSON = true
	}
	return a
}
