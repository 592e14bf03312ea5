package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const (
	lookAgain   = time.Second     // between checks for a token stored by another process
	tryAgain    = 5 * time.Second // after the authorization server was unreachable
	askAgain    = time.Minute     // after a refusal that no person can fix
	renewWithin = time.Minute     // limit of one renewal, including the wait for other processes
	maxWaits    = 2               // renewals that one request waits for
)

// Source provides the token of one server. Close ends it.
type Source struct {
	server Server
	store  Store
	mask   *redact.Masker
	logger *slog.Logger
	owner  string // of the tokens, for the Masker: the server; of a caller, the Source, because its successor has them too

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the current renewal

	mu      sync.Mutex
	token   *Token    // nil = none
	version version   // of token as it was kept when last read
	looked  time.Time // when the store was last checked
	renewal *renewal  // the current renewal; nil = none
	trouble           // with token, or with getting one
}

// trouble is what keeps the router from a token that the server takes.
type trouble struct {
	why     error     // why the last attempt got no token; nil if it did
	again   time.Time // when to retry after why; zero = when another token is stored
	useless string    // a token refused by the server
	short   shortage
}

// renewal is one request for a new token, shared by all waiting requests.
type renewal struct{ done chan struct{} }

// NewSource returns the Source of a server. mask, which may be nil, learns its tokens.
func NewSource(s Server, store Store, mask *redact.Masker, logger *slog.Logger) *Source {
	src := &Source{server: s, store: store, mask: mask, logger: logger, owner: s.Name}
	if s.Caller != "" {
		src.owner = rand.Text()
	}
	src.ctx, src.cancel = context.WithCancel(context.Background())
	return src
}

// Close cancels a renewal and waits for its end.
func (s *Source) Close() {
	s.cancel()
	s.wg.Wait()
	if s.server.Caller != "" { // callers come and go
		s.mask.Forget(s.owner)
	}
}

// Has reports whether a token is kept, which may be useless.
func (s *Source) Has() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(time.Now(), true)
	return s.token != nil
}

// Lacks returns the scopes that the server asked for and the token lacks, at most maxScopes.
func (s *Source) Lacks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.short.scopes)
}

// ExpiresIn returns the remaining lifetime of the current token; false if there is no token or its expiry is unknown.
func (s *Source) ExpiresIn() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == nil || s.token.Expires.IsZero() {
		return 0, false
	}
	return max(0, time.Until(s.token.Expires)), true
}

// Changed reports whether another token was stored, or the token was deleted, since the Source last checked.
func (s *Source) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.looked.IsZero() && !s.version.same(s.store.look(s.server.Name))
}

// get returns a token other than the denied one, with the scopes that it lacks. A token that is due for renewal but
// still valid is returned at once and renewed in the background. Otherwise get waits for the renewal within ctx. The
// error is a *link.Unauthorized if a person has to act.
func (s *Source) get(ctx context.Context, no denial) (string, error) {
	s.mu.Lock()
	now := time.Now()
	s.look(now, no.token != "")
	for waited := 0; ; waited++ {
		t := s.token
		good := t != nil && !t.Expired(now) && t.Access != no.token && t.Access != s.useless && covers(t.Scopes, no.scopes)
		if no.lacks && !good && (waited == maxWaits || !s.canWiden(no, now)) {
			defer s.mu.Unlock()
			return "", s.lacking(no)
		}
		if good && !t.due(now) {
			s.mu.Unlock()
			return t.Access, nil
		}
		if s.why != nil && (s.again.IsZero() || now.Before(s.again)) {
			err := s.why
			s.mu.Unlock()
			if good {
				return t.Access, nil
			}
			return "", err
		}
		if waited == maxWaits {
			s.mu.Unlock()
			return "", s.person("it refuses every new token" + no.said)
		}
		if s.renewal == nil {
			s.begin(no)
		}
		wait := s.renewal
		s.mu.Unlock()
		if good {
			return t.Access, nil
		}
		select {
		case <-wait.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		s.mu.Lock()
		now = time.Now()
	}
}

// look reads the token if another is kept. The caller holds s.mu.
func (s *Source) look(now time.Time, atOnce bool) {
	if !atOnce && s.token != nil && s.why == nil && now.Sub(s.looked) < lookAgain {
		return
	}
	s.looked = now
	if kept := s.store.look(s.server.Name); s.token == nil && s.why == nil || !s.version.same(kept) {
		s.read(kept)
	}
}

// read takes over the token that is kept. The caller holds s.mu.
func (s *Source) read(kept version) {
	t, err := s.store.Load(s.server.Name)
	s.version, s.token, s.trouble = kept, nil, trouble{}
	switch {
	case err == nil && t != nil && t.Of(s.server):
		s.hold(t)
	case err != nil && !s.knowsIssuer():
		s.why = s.person(err.Error())
	case s.server.byCredentials(): // a new token can be requested
	case t != nil:
		s.why = s.person("its configuration has changed since somebody logged in")
	default:
		s.why = s.person(nobody(s.server))
	}
}

// nobody tells that there is no token.
func nobody(s Server) string {
	if s.Caller != "" {
		return "this caller is not logged in"
	}
	return "nobody is logged in"
}

// hold makes t the current token, whose secrets no failure may show. The caller holds s.mu.
func (s *Source) hold(t *Token) {
	s.token = t
	s.mask.Learn(s.owner, t.Access, t.Refresh, t.Client.Secret)
}

// knowsIssuer reports whether the router can request a token without the stored one, which names the issuer that gets
// client_secret.
func (s *Source) knowsIssuer() bool { return s.server.byCredentials() && s.server.Issuer != "" }

// person returns an error that tells a person what to do. A caller who logs in itself is told where with the call.
func (s *Source) person(why string) error {
	if s.server.Caller != "" {
		return &link.Unauthorized{Why: why}
	}
	if s.server.byCredentials() {
		return &link.Unauthorized{Why: why + "; check the client_id, client_secret or private_key, and scopes of its auth"}
	}
	return &link.Unauthorized{Why: why + "; run: " + LoginCommand(s.server.Name)}
}

// begin starts a renewal because of a denial or, without one, before or after the end of the token. The caller holds
// s.mu.
func (s *Source) begin(no denial) {
	r := &renewal{make(chan struct{})}
	s.renewal = r
	old := s.token
	s.wg.Go(func() {
		var next *Token
		var kept version
		err := errors.New("the renewal failed")
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.token == old || next != nil && s.token != nil && s.token.Access == next.Access {
				s.settle(next, kept, err, no) // else another token was read
			}
			s.renewal = nil
			close(r.done)
		}()
		defer safe.Recover(s.logger, "renewing the token of server "+s.server.Name, nil)
		next, kept, err = s.renew(old, no)
	})
}

// settle stores the result of a renewal. The caller holds s.mu.
func (s *Source) settle(next *Token, kept version, err error, no denial) {
	var refused *refusal
	if no.lacks && (err != nil || !covers(next.Scopes, no.scopes)) {
		s.short.add(no.scopes, cmp.Or(next, s.token), time.Now())
	}
	switch {
	case err == nil:
		s.hold(next)
		s.version, s.why, s.again = kept, nil, time.Time{}
		return
	case no.lacks: // the token is as good as before
		if s.ctx.Err() == nil {
			s.logger.Warn("no further scopes for the token of a server", "server", s.server.Name, "scopes", no.scopes, "error", err)
		}
		return
	case errors.As(err, &refused):
		s.why, s.again = s.person(fmt.Sprintf("its token cannot be renewed: %v", err)), time.Time{}
		if s.server.byCredentials() {
			s.again = time.Now().Add(askAgain)
		}
	case errors.As(err, new(*link.Unauthorized)):
		s.why, s.again = err, time.Time{}
	default:
		s.why, s.again = fmt.Errorf("cannot get a token: %w", err), time.Now().Add(tryAgain)
	}
	if s.ctx.Err() == nil {
		s.logger.Warn("no token for a server", "server", s.server.Name, "error", s.why)
	}
}

// renew gets and stores the next token, or takes over one that another process has just stored.
func (s *Source) renew(old *Token, no denial) (*Token, version, error) {
	ctx, cancel := context.WithTimeout(s.ctx, renewWithin)
	defer cancel()
	held, unlock, err := s.store.lock(ctx, s.server.Name)
	switch {
	case err == nil:
		defer unlock()
		ctx = held
	case ctx.Err() != nil || !s.server.byCredentials(): // client credentials work without a store
		return nil, version{}, fmt.Errorf("tokens cannot be kept: %w", err)
	}
	kept := s.store.look(s.server.Name)
	stored, err := s.store.Load(s.server.Name)
	if err != nil && !s.knowsIssuer() {
		return nil, version{}, s.person(err.Error())
	}
	switch {
	case stored != nil && stored.Of(s.server) && (old == nil || stored.Access != old.Access):
		if !stored.due(time.Now()) {
			return stored, kept, nil
		}
		old = stored
	case stored == nil && !s.server.byCredentials() && s.store.keeps():
		return nil, version{}, s.person(nobody(s.server))
	}
	next, err := s.request(ctx, old, cmp.Or(stored, old), no)
	if err != nil {
		return nil, version{}, err
	}
	if err := s.store.write(ctx, next); err != nil {
		s.logger.Warn("a token is not stored and ends with this process", "error", err)
	}
	return next, s.store.look(s.server.Name), nil
}

// request requests the next token after old. The router got known, which may be of another configuration, before.
func (s *Source) request(ctx context.Context, old, known *Token, no denial) (*Token, error) {
	switch {
	case s.server.byCredentials():
		if more := no.scopes; len(more) > 0 && old != nil {
			no.scopes = union(old.Scopes, more)
		}
		return byCredentials(ctx, s.server, s.server.issuer(known), no.scopes)
	case old == nil || !old.Renewable() && old.Expired(time.Now()):
		return nil, s.person("its token has expired and cannot be renewed")
	case !old.Renewable():
		return nil, s.person("it refuses its token, which cannot be renewed" + no.said)
	}
	return old.renew(ctx, s.server, no.scopes)
}

// reject records that the server refuses a token that was just renewed, to prevent endless renewals.
func (s *Source) reject(no denial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if no.lacks {
		s.short.add(no.scopes, s.token, time.Now())
		return s.lacking(no)
	}
	why := s.person("it refuses its token" + no.said)
	if s.token != nil && s.token.Access == no.token {
		s.useless, s.again, s.why = no.token, time.Now().Add(askAgain), why
	}
	return cmp.Or(s.why, why)
}

// Transport returns a RoundTripper that adds the token to each request of base. A request that the server refuses for
// its token was not handled and is sent once more with a new one: once after 401, once after 403 for lack of scopes.
func (s *Source) Transport(base http.RoundTripper) http.RoundTripper { return &transport{s, base} }

type transport struct {
	source *Source
	base   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The error is a *link.Unauthorized if a person has to act.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var last denial
	var refused, lacked bool // already
	for {
		token, err := t.source.get(req.Context(), last)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		resp, err := t.base.RoundTrip(withToken(req, token))
		if err != nil {
			return nil, err
		}
		no := denied(resp, token)
		if no == nil {
			return resp, nil
		}
		discard(resp)
		before := &refused
		if no.lacks {
			before = &lacked
		}
		if *before || req.Body != nil && req.GetBody == nil {
			return nil, t.source.reject(*no)
		}
		last, *before = *no, true
		if req.Body != nil {
			next := *req
			if next.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
			req = &next
		}
	}
}

// withToken returns a copy of a request with a token. It is a copy because requests may share headers.
func withToken(req *http.Request, token string) *http.Request {
	own := *req
	own.Header = req.Header.Clone()
	own.Header["Authorization"] = []string{"Bearer " + token}
	return &own
}

// discard drains a body so that the connection can be reused.
func discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<10))
	resp.Body.Close()
}
