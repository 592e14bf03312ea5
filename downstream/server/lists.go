package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	maxPages = 1000      // pages of one list
	maxItems = 100_000   // items of one list
	maxBytes = 256 << 20 // of all pages of one list

	routerAge  = 30 * time.Second       // maximum age of a list without announced changes, for the router itself
	routerWait = 100 * time.Millisecond // the router's own wait for a list after a slow one
	rereadMost = 20                     // burst of requests for lists that lack an item
	rereadRate = 2                      // and their rate per second

	maxInstructions = 4 << 10 // bytes kept of a server's instructions
)

// Lists reads the lists of a connection's sessions and caches them. Connection.mu guards the fields.
type Lists struct {
	conn     *Connection
	requests map[string]*List // by method: the last request, unless its list is outdated; it may be in progress
	results  map[string]*List // by method: the last list that was read, in any session; it may be outdated
	rereads  *rate.Limiter    // limits requests for lists that lack an item
	none     List             // list of a disabled server; always the same, so that the catalog does not change
}

func newLists(c *Connection) *Lists {
	return &Lists{
		conn: c, requests: map[string]*List{}, results: map[string]*List{},
		rereads: rate.NewLimiter(rereadRate, rereadMost), none: List{contents: contents{Tools: new(catalog.List)}},
	}
}

// Get returns a cached list if it is fresh, and reads it otherwise. Concurrent callers share one request. After a slow
// list, the router itself waits only until routerWait after the next request, and then gets the failure of the slow
// one. If the server was replaced before the request, the error is admission.ErrRetired.
func (ls *Lists) Get(ctx context.Context, method string, by Reader) (*List, error) {
	if ls.conn.server.Config.Disabled || ls.conn.server.Anyones() {
		return &ls.none, nil
	}
	l, err := ls.request(method, by)
	if err != nil {
		return nil, err
	}
	var enough <-chan time.Time
	if started := l.early && ls.conn.Session() != nil; by == ForRouter && l.slowBefore != nil && !started {
		enough = time.After(time.Until(l.Requested.Add(routerWait)))
	}
	select {
	case <-l.done:
	case <-enough:
		if !l.ended() {
			return nil, l.slowBefore
		}
	case <-ctx.Done():
		return nil, ls.conn.interrupted(ctx)
	}
	return l, l.err
}

// request returns the last request of a list if it is in progress or its list is fresh, and starts one otherwise.
func (ls *Lists) request(method string, by Reader) (*List, error) {
	c, s := ls.conn, ls.conn.server
	c.mu.Lock()
	defer c.mu.Unlock()
	former := ls.requests[method]
	switch {
	case former != nil && (!former.ended() || former.Fresh(by, time.Now())):
		return former, nil
	case c.ctx.Err() != nil:
		return nil, c.unused()
	case !s.Queue.Pin():
		return nil, admission.ErrRetired
	}
	l := &List{done: make(chan struct{}), Requested: time.Now(), Number: s.lists.next()}
	if former != nil && former.slow && time.Since(former.Requested) < routerAge {
		l.slowBefore, l.early = former.err, former.session == nil
	}
	ls.requests[method] = l
	s.wg.Go(func() { ls.fill(l, method) })
	return l, nil
}

// GetWith returns a list that satisfies has, or one requested at since or later, which proves that the item does not
// exist. Requests for missing items are limited to rereadMost and rereadRate, so that unknown names cannot flood a
// server. Concurrent callers share each request.
func (ls *Lists) GetWith(
	ctx context.Context, method string, since time.Time, has func(*List) bool,
) (*List, error) {
	for {
		l, err := ls.Get(ctx, method, ForRouter)
		if err != nil || l == &ls.none || has(l) || !l.Requested.Before(since) {
			return l, err
		}
		if wait := ls.expire(method, l); wait > 0 && !sleep(ctx, wait, ls.conn.server.ctx.Done()) && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// expire discards a list that lacks an item, unless another caller has done so. It returns the wait before the next
// attempt if the limit is reached.
func (ls *Lists) expire(method string, l *List) (wait time.Duration) {
	ls.conn.mu.Lock()
	defer ls.conn.mu.Unlock()
	if ls.requests[method] != l {
		return 0
	}
	if r := ls.rereads.Reserve(); r.Delay() > 0 {
		wait = r.Delay()
		r.Cancel()
		return wait
	}
	ls.discard(method)
	return 0
}

// Cached returns a list that is fresh; ok is false if there is none.
func (ls *Lists) Cached(method string, by Reader) (l *List, ok bool) {
	l = ls.Last(method)
	return l, l != nil && l.Fresh(by, time.Now())
}

// Last returns the last list that was read, in any session of the connection; nil if there is none. It may be outdated.
func (ls *Lists) Last(method string) *List {
	ls.conn.mu.Lock()
	defer ls.conn.mu.Unlock()
	return ls.results[method]
}

// Tool returns a tool's last definition in the connection or, without one, in any session with the server, so that a
// client need not list before its first call. It is nil if the tool was never listed.
func (ls *Lists) Tool(name string) *catalog.Tool {
	if l := ls.Last("tools/list"); l != nil {
		if t := l.Tools.Tool(name); t != nil {
			return t
		}
	}
	return ls.conn.server.lists.last("tools/list").Tools.Tool(name)
}

// fill completes a request.
func (ls *Lists) fill(l *List, method string) {
	s := ls.conn.server
	defer s.Queue.Unpin() // a replaced server also finishes its lists
	late := s.failure(reason.Timeout, method+" took longer than "+s.opts.ListDeadline.String())
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.opts.ListDeadline, late)
	defer cancel()
	l.err = ls.readTwice(ctx, l, method)
	l.slow = l.err != nil && ctx.Err() != nil
	if l.err == nil {
		ls.store(l, method)
	}
	close(l.done)
	if l.err == nil && ls.conn == s.Own {
		s.Memory.keep(method)
	}
	if l.err != nil && s.ctx.Err() == nil && !errors.Is(l.err, admission.ErrRetired) {
		s.health.failed(l.err)
	}
}

// store makes a list the last one, unless a later request has been faster.
func (ls *Lists) store(l *List, method string) {
	ls.conn.mu.Lock()
	defer ls.conn.mu.Unlock()
	former := ls.results[method]
	if former != nil && former.Number > l.Number {
		return
	}
	ls.results[method] = l
	if former != nil {
		former.outdated.Store(true)
	}
}

// readTwice reads a list, and reads it again if the server no longer knows the session.
func (ls *Lists) readTwice(ctx context.Context, l *List, method string) (err error) {
	defer ls.conn.server.RecoverPanic("reading "+method, func(f *link.Failure) { err = f })
	if err = ls.read(ctx, l, method); isLost(err) {
		err = ls.read(ctx, l, method)
	}
	return err
}

// read reads a list in the current session.
func (ls *Lists) read(ctx context.Context, l *List, method string) error {
	s := ls.conn.server
	session, err := ls.conn.ConnectUnlessDown(ctx)
	if s.loggedOut(err) {
		l.untilLogin(s, method)
		return nil
	}
	if err != nil {
		return err
	}
	l.session = session
	l.Instructions = texts.Cut(texts.Visible(
		jsonrpc.Text(jsonrpc.Get(session.Initialized, "instructions"))), maxInstructions)
	l.subscription, l.capability = announcements(session, method), listMethods[method].capability
	items, err := readPages(ctx, session, method)
	switch {
	case s.loggedOut(err):
		l.untilLogin(s, method)
		return nil
	case err == nil:
		l.contents = s.lists.read(s, method, items, l.Number, session.ChecksParamHeaders())
	case ctx.Err() == nil:
		s.health.unreached(err)
	}
	return err
}

// sessionReplaced discards the lists of the session before. A list being read continues in the new session. The caller
// holds Connection.mu.
func (ls *Lists) sessionReplaced() {
	for method, l := range ls.requests {
		if l.ended() {
			ls.discard(method)
		}
	}
}

// changed discards the lists that a notification invalidates, also those being read.
func (ls *Lists) changed(notification string) {
	ls.conn.mu.Lock()
	defer ls.conn.mu.Unlock()
	for method := range ls.requests {
		if listMethods[method].changed == notification {
			ls.discard(method)
		}
	}
}

// discard makes the next get read a list again. The caller holds Connection.mu.
func (ls *Lists) discard(method string) {
	for _, l := range [...]*List{ls.requests[method], ls.results[method]} {
		if l != nil {
			l.outdated.Store(true)
		}
	}
	delete(ls.requests, method)
}

// callWithParamHeaders calls a tool of a server that compares HTTP headers with the params they repeat (MCP
// 2026-07-28). The header names come from the tool's definition, which is listed if it is unknown. A server that
// refuses the headers has not run the tool, so the tool is listed again, and called again if its headers have changed.
func (ls *Lists) callWithParamHeaders(
	ctx context.Context, session *link.Session, call *link.Call, tool string,
) (link.Reply, error) {
	if ls.Tool(tool) == nil {
		if _, err := ls.Get(ctx, "tools/list", ForRouter); err != nil && ctx.Err() != nil {
			return link.Reply{}, context.Cause(ctx)
		}
	}
	forwarded := call.Header
	call.Header = ls.Tool(tool).ParamHeaders(forwarded, call.Params)
	reply, err := session.Call(ctx, call)
	if err != nil || string(jsonrpc.Get(reply.Err, "code")) != strconv.Itoa(jsonrpc.CodeHeaderMismatch) {
		return reply, err
	}
	if _, err := ls.Get(ctx, "tools/list", ForClient); err != nil {
		return reply, nil
	}
	again := *call
	again.Header = ls.Tool(tool).ParamHeaders(forwarded, call.Params)
	if maps.EqualFunc(call.Header, again.Header, slices.Equal) {
		return reply, nil
	}
	return session.Call(ctx, &again)
}

// WithValidHeaders returns the raw result of tools/list that is passed on to a client without the tools whose schemas
// name an invalid header. The log tells which, once the router itself has read the list.
func (ls *Lists) WithValidHeaders(result []byte) []byte {
	valid := catalog.WithValidHeaders(result)
	if len(valid) < len(result) {
		_, _ = ls.request("tools/list", ForRouter) // reports its failures itself
	}
	return valid
}

// List is one request of a list, and then the list. It is immutable once done is closed, but for outdated.
type List struct {
	Requested  time.Time
	Number     int64 // increases with each request to the server
	slowBefore error // failure of the request before, if that was slow
	early      bool  // that request was slow because there was no session

	done         chan struct{} // closed when the list has been read or has failed
	err          error
	slow         bool          // the deadline ended the request
	session      *link.Session // that the list was read in; nil for a disabled server
	subscription int64         // to changes of the list, when it was requested; 0 = none
	capability   string        // that the list belongs to
	Instructions string        // of the server; at most maxInstructions
	contents

	login    *oauth.Source // without whose token nothing is listed; nil = of a session
	outdated atomic.Bool   // the list has changed, or a later one was read
}

// ended reports whether the list has been read or has failed.
func (l *List) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Reader is the party that a list is read for.
type Reader bool

const (
	ForClient Reader = false // accepts a cached list only while the server announces its changes
	ForRouter Reader = true  // also accepts a list younger than routerAge, and does not wait for a slow server
)

// Fresh reports whether a request that has ended still serves a reader. It takes no lock.
func (l *List) Fresh(by Reader, now time.Time) bool {
	switch {
	case l.err != nil || l.outdated.Load():
		return false
	case l.login != nil:
		return !l.login.Has()
	case l.session == nil: // of a disabled server
		return true
	}
	select {
	case <-l.session.Done():
		return false
	default:
	}
	if by == ForRouter && now.Sub(l.Requested) < routerAge {
		return true
	}
	return l.subscription != 0 && l.subscription == l.session.Watching(l.capability)
}

// contents are the items of a list. A server's sessions share the memory of equal contents.
type contents struct {
	Items   []json.RawMessage // nil if the method is unknown
	Tools   *catalog.List     // of tools/list: the valid and allowed items
	changed map[string]string // SHA-256 of the definitions of tools that were not approved then
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

// announcements returns the number of the session's subscription to changes of a list; 0 if the server does not
// announce them.
func announcements(s *link.Session, method string) int64 {
	capability := listMethods[method].capability
	if string(jsonrpc.Get(s.Initialized, "capabilities", capability, "listChanged")) != "true" {
		return 0
	}
	return s.Watching(capability)
}

// lastLists holds the last lists of a server, from any session. It is safe for concurrent use.
type lastLists struct {
	mu       sync.Mutex
	requests int64 // number of list requests
	byMethod map[string]lastList
}

type lastList struct {
	contents
	digest [sha256.Size]byte
	number int64 // of the request
}

// next returns the number of a new request for a list.
func (ls *lastLists) next() int64 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.requests++
	return ls.requests
}

// last returns the last contents of a list.
func (ls *lastLists) last(method string) contents {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byMethod[method].contents
}

// read reads the items of a list, or returns the last contents if they are equal. number is that of the request.
// Tools with invalid headers are quarantined if the server checks headers.
func (ls *lastLists) read(s *Server, method string, items []json.RawMessage, number int64, headers bool) contents {
	hash := sha256.New()
	fmt.Fprintln(hash, headers)
	for _, item := range items {
		hash.Write(item)
		hash.Write([]byte{'\n'})
	}
	list := lastList{contents{Items: items}, [sha256.Size]byte(hash.Sum(nil)), number}
	ls.mu.Lock()
	last := ls.byMethod[method]
	ls.mu.Unlock()
	if last.number > 0 && last.digest == list.digest {
		list.contents = last.contents
	} else if method == "tools/list" {
		if items != nil {
			list.changed = s.Pins.check(items, true)
		}
		report := func(tool string, fault error) {
			s.opts.Logger.Warn("tool quarantined", "server", s.Config.Name, "tool", tool, "error", fault)
		}
		refusal := func(t *catalog.Tool) string {
			name, fault := t.Tool.Tool, t.HeaderFault()
			switch {
			case fault != nil && headers:
				report(texts.VisibleName(name), fault)
				return fault.Error()
			case fault != nil:
				s.opts.Logger.Warn("tool hidden from clients of 2026-07-28 over HTTP", "server", s.Config.Name,
					"tool", texts.VisibleName(name), "error", fault)
			}
			return s.Pins.store.Refusal(s.Config.Name, name, list.changed[name])
		}
		list.Tools = catalog.Read(s.Config.Name, items, s.Config.TrustsAnnotations(), s.Config.Tools.Allows, refusal, report)
		list.Items = list.Tools.Items
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.byMethod[method].number < number {
		ls.byMethod[method] = list
	}
	return list.contents
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
