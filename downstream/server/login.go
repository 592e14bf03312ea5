package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
)

// Login is how a server gets its tokens, and whose they are.
type Login struct {
	server *Server
	caller string        // whose login all sessions have; empty = the router's
	tokens *oauth.Source // nil = none needed, or callers have their own
	asking atomic.Bool   // a call of the caller asks for the login

	mu     sync.Mutex
	failed chan struct{} // closed when a login fails
	why    error         // of the last that has failed
}

// anyones is why a server without a caller has no session.
const anyones = "each caller logs in to it, and this one has neither an API key nor an access token"

// Anyones reports whether callers log in to the server themselves and it is of none of them. It then has no sessions.
func (l *Login) Anyones() bool { return l.server.Config.PerCaller() && l.caller == "" }

// Key is the server's name, which callers with sessions of their own do not share.
func (l *Login) Key() string {
	if l.caller == "" {
		return l.server.Config.Name
	}
	return l.server.Config.Name + "\x00" + l.caller
}

// Caller returns whose login all sessions of the server have; empty = the router's.
func (l *Login) Caller() string { return l.caller }

// For returns a server of the same configuration for one caller, who shares nothing with others: sessions, lists,
// token, queue, health. It has to be stopped, too.
func For(s *Server, caller string) *Server {
	own := *s.opts
	own.OnReturn = func(string) {} // its clients ask for the lists
	own.Lists = ""
	return newServer(s.Config, &own, caller)
}

// loggedOut reports whether an error means that the server's caller has to log in.
func (l *Login) loggedOut(err error) bool {
	var f *link.Failure
	return l.caller != "" && errors.As(err, &f) && f.NoToken
}

// LoginTool is the tool that a server lists until its caller has logged in.
const LoginTool = "login"

// UntilLogin reports whether l is the list of a caller who has not logged in.
func (l *List) UntilLogin() bool { return l.login != nil }

// untilLogin makes l the list of a caller who has not logged in.
func (l *List) untilLogin(s *Server, method string) {
	l.login, l.session = s.tokens, nil
	l.contents = contents{Items: []json.RawMessage{}}
	if method != "tools/list" {
		return
	}
	tool, _ := json.Marshal(map[string]any{ // always marshals
		"name": LoginTool,
		"description": "Logs the user in to the server " + s.Config.Name + ", in a browser. " +
			"Its other tools are listed after that.",
		"inputSchema": map[string]any{"type": "object"},
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false},
	})
	allowed := func(*catalog.Tool) string { return "" }
	l.Tools = catalog.Read(s.Config.Name, []json.RawMessage{tool}, true, s.Config.Tools.Allows, allowed,
		func(string, error) {})
	l.Items = l.Tools.Items
}

// lookForLogin is the interval at which a call looks for a login by another process with the same state folder.
const lookForLogin = time.Second

// ErrNotAsked is the error of a call whose client cannot ask its user to log in.
var ErrNotAsked = errors.New("the client cannot be asked")

// AskForLogin calls ask, unless another call of the same caller does that, and waits for the login. ask shows the user
// where to log in; if it fails with ErrNotAsked or the end of ctx, another call that waits asks. The error is that of
// ask, that of the login, or the cause of ctx.
func (l *Login) AskForLogin(ctx context.Context, ask func() error) error {
	ticks := time.NewTicker(lookForLogin)
	defer ticks.Stop()
	for asked := false; ; {
		l.mu.Lock()
		failed := l.failed
		l.mu.Unlock()
		if !asked && l.asking.CompareAndSwap(false, true) {
			asked = true
			err := ask()
			l.asking.Store(false)
			switch {
			case err == nil:
			case ctx.Err() != nil:
				l.LoginFailed(ErrNotAsked)
				return context.Cause(ctx)
			default:
				l.LoginFailed(err)
				return err
			}
		}
		select {
		case <-l.server.Queue.Retired(): // also after a login
			return nil
		case <-failed:
			l.mu.Lock()
			why := l.why
			l.mu.Unlock()
			if !errors.Is(why, ErrNotAsked) {
				return why
			}
		case <-ticks.C:
			if l.tokens.Changed() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// LoginFailed ends the calls that wait for a login.
func (l *Login) LoginFailed(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
	close(l.failed)
	l.failed = make(chan struct{})
}

// HasToken reports whether the server's caller has logged in. The token may be useless.
func (l *Login) HasToken() bool { return l.tokens != nil && l.tokens.Has() }

// Lacks returns the scopes that the server has asked for and the caller's token lacks.
func (l *Login) Lacks() []string { return l.tokens.Lacks() }
