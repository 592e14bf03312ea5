package downstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

const (
	maxPages = 1000      // pages of one list
	maxItems = 100_000   // items of one list
	maxBytes = 256 << 20 // of all pages of one list
)

// listing is one request of a list, and then the list. It is immutable once done is closed, but for outdated.
type listing struct {
	requested  time.Time
	turn       int64 // increases with each request to the server
	slowBefore error // failure of the request before, if that was slow

	done         chan struct{} // closed when the list has been read or has failed
	err          error
	slow         bool          // the deadline ended the request
	session      *link.Session // that the list was read in; nil for a disabled server
	subscription int64         // to changes of the list, when it was requested; 0 = none
	capability   string        // that the list belongs to
	instructions string        // of the server
	contents

	outdated atomic.Bool // the list has changed, or a later one was read
}

// ended reports whether the list has been read or has failed.
func (l *listing) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// reader is the party that a list is read for.
type reader bool

const (
	forClient reader = false // accepts a cached list only while the server announces its changes
	forRouter reader = true  // also accepts a list younger than routerAge, and does not wait for a slow server
)

// routerAge is the maximum age of a list without announced changes, for the router itself.
const routerAge = 30 * time.Second

// fresh reports whether a request that has ended still serves a reader. It does not lock the slot.
func (l *listing) fresh(by reader, now time.Time) bool {
	switch {
	case l.err != nil || l.outdated.Load():
		return false
	case l.session == nil: // of a disabled server
		return true
	}
	select {
	case <-l.session.Done():
		return false
	default:
	}
	if by == forRouter && now.Sub(l.requested) < routerAge {
		return true
	}
	return l.subscription != 0 && l.subscription == l.session.Watching(l.capability)
}

// contents are the items of a list. A server's sessions share the memory of equal contents.
type contents struct {
	items []json.RawMessage // nil if the method is unknown
	tools *catalog.List     // of tools/list: the valid and allowed items
}

// listMethods describes the lists of MCP by method.
var listMethods = map[string]struct {
	member     string // of the result, that holds the items
	capability string
	changed    string // notification of changes
}{
	"tools/list":               {"tools", "tools", "notifications/tools/list_changed"},
	"prompts/list":             {"prompts", "prompts", "notifications/prompts/list_changed"},
	"resources/list":           {"resources", "resources", "notifications/resources/list_changed"},
	"resources/templates/list": {"resourceTemplates", "resources", "notifications/resources/list_changed"},
}

// Member returns the member of a list result that holds the items; empty for other methods.
func Member(method string) string { return listMethods[method].member }

// subscription returns the number of the session's subscription to changes of a list; 0 if the server does not
// announce them.
func subscription(s *link.Session, method string) int64 {
	capability := listMethods[method].capability
	if string(jsonrpc.Get(s.Initialized, "capabilities", capability, "listChanged")) != "true" {
		return 0
	}
	return s.Watching(capability)
}

// maxInstructions limits the stored bytes of a server's instructions.
const maxInstructions = 4 << 10

// instructions returns a server's instructions.
func instructions(s *link.Session) string {
	return short.Text(jsonrpc.Text(jsonrpc.Get(s.Initialized, "instructions")), maxInstructions)
}

// known holds the last lists of a server, from any session. It is safe for concurrent use.
type known struct {
	mu       sync.Mutex
	asked    int64 // number of list requests
	byMethod map[string]knownList
}

type knownList struct {
	digest   [sha256.Size]byte
	contents contents
	turn     int64
}

// next returns the turn of a new request for a list.
func (k *known) next() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	return k.asked
}

// last returns the last contents of a list.
func (k *known) last(method string) contents {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byMethod[method].contents
}

// intern reads the items of a list, or returns the last contents if they are equal. turn is the turn of the request.
func (k *known) intern(of *identity, method string, items []json.RawMessage, turn int64) contents {
	sum := sha256.New()
	for _, item := range items {
		sum.Write(item)
		sum.Write([]byte{'\n'})
	}
	digest := [sha256.Size]byte(sum.Sum(nil))
	k.mu.Lock()
	last := k.byMethod[method]
	k.mu.Unlock()
	c := last.contents
	if last.turn == 0 || last.digest != digest {
		c = contents{items: items}
		if method == "tools/list" {
			c.tools = of.readTools(items)
			c.items = c.tools.Items
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byMethod[method].turn < turn {
		k.byMethod[method] = knownList{digest, c, turn}
	}
	return c
}

// readTools reads the definitions of the server's tools.
func (i *identity) readTools(items []json.RawMessage) *catalog.List {
	return catalog.Read(i.config.Name, items, i.config.TrustsAnnotations(), i.config.Tools.allows,
		func(tool string, fault error) {
			i.logger.Warn("tool quarantined", "server", i.config.Name, "tool", tool, "error", fault)
		})
}

// readPages requests all pages of a list.
func readPages(ctx context.Context, s *link.Session, method string) (items []json.RawMessage, err error) {
	var cursor []byte
	seen := map[string]bool{}
	size := 0
	for page := range maxPages {
		var params []byte
		if cursor != nil {
			params = jsonrpc.Set(nil, "cursor", cursor)
		}
		reply, err := s.Call(ctx, &link.Call{Method: method, Params: params})
		if err != nil {
			return nil, err
		}
		if reply.Err != nil {
			if page == 0 && string(jsonrpc.Get(reply.Err, "code")) == "-32601" {
				return nil, nil
			}
			return nil, fmt.Errorf("%s was refused: %s", method, jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
		}
		if page == 0 {
			items = []json.RawMessage{}
		}
		for _, item := range jsonrpc.Elements(jsonrpc.Get(reply.Result, listMethods[method].member)) {
			items = append(items, item)
		}
		cursor = jsonrpc.Get(reply.Result, "nextCursor")
		size += len(reply.Result)
		switch {
		case jsonrpc.Text(cursor) == "":
			return items, nil
		case len(items) > maxItems:
			return nil, fmt.Errorf("%s has more than %d items", method, maxItems)
		case size > maxBytes:
			return nil, fmt.Errorf("%s has more than %d bytes", method, maxBytes)
		case seen[string(cursor)]:
			return nil, fmt.Errorf("%s repeats a cursor", method)
		}
		seen[string(cursor)] = true
	}
	return nil, fmt.Errorf("%s has more than %d pages", method, maxPages)
}
