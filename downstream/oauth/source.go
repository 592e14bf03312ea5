package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const (
	lookAgain   = time.Second     // at the file, for a token that another process has stored
	tryAgain    = 5 * time.Second // after an authorization server could not be asked
	askAgain    = time.Minute     // after it, or the server, refused what no person can mend
	renewWithin = time.Minute     // for one renewal, the wait for other processes included
	maxWaits    = 2               // of one request, for renewals
)

// Source has the token of one server. Close ends it.
type Source struct {
	server Server
	store  Store
	logger *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the renewal under way

	mu      sync.Mutex
	token   *Token      // nil = none
	file    os.FileInfo // of token, as it was last read
	looked  time.Time   // at the file
	renewal *renewal    // under way; nil = none
	why     error       // why there was no token the last time; nil if there was one
	again   time.Time   // when to try again after why; zero = when another token is stored
	useless string      // a token that the server has refused
}

// renewal is one request for another token, which all wait for who need it.
type renewal struct{ done chan struct{} }

// NewSource makes the Source of a server.
func NewSource(s Server, store Store, logger *slog.Logger) *Source {
	src := &Source{server: s, store: store, logger: logger}
	src.ctx, src.cancel = context.WithCancel(context.Background())
	return src
}

// Close ends a renewal and waits for it.
func (s *Source) Close() {
	s.cancel()
	s.wg.Wait()
}

// ExpiresIn returns how long the current token lasts; false if there is none or nobody knows.
func (s *Source) ExpiresIn() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == nil || s.token.Expires.IsZero() {
		return 0, false
	}
	return max(0, time.Until(s.token.Expires)), true
}

// Changed reports whether another token was stored, or the token deleted, since the Source last looked.
func (s *Source) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.looked.IsZero() && !same(s.file, s.store.look(s.server.Name))
}

// get returns a token other than refused. While the current one is still good for a moment, it is returned at once and
// renewed meanwhile. Otherwise get waits for the renewal within ctx. The error is a *link.Unauthorized if a person has
// to do something.
func (s *Source) get(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	now := time.Now()
	s.look(now, refused != "")
	for waited := 0; ; waited++ {
		t := s.token
		good := t != nil && !t.Expired(now) && t.Access != refused && t.Access != s.useless
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
			return "", s.person("the tokens that it gets are of no use")
		}
		if s.renewal == nil {
			s.begin()
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

// look reads the file if it has changed. s.mu is held.
func (s *Source) look(now time.Time, atOnce bool) {
	if !atOnce && s.token != nil && s.why == nil && now.Sub(s.looked) < lookAgain {
		return
	}
	s.looked = now
	if file := s.store.look(s.server.Name); s.token == nil && s.why == nil || !same(s.file, file) {
		s.read(file)
	}
}

// read takes over the token of the file. s.mu is held.
func (s *Source) read(file os.FileInfo) {
	t, err := s.store.Load(s.server.Name)
	s.file, s.token, s.why, s.again, s.useless = file, nil, nil, time.Time{}, ""
	switch {
	case err == nil && t != nil && t.Of(s.server):
		s.token = t
	case s.server.byCredentials(): // another one can be had
	case err != nil:
		s.why = s.person(err.Error())
	case t != nil:
		s.why = s.person("its configuration has changed since somebody logged in")
	default:
		s.why = s.person("nobody is logged in")
	}
}

// person returns the error for what a person has to do.
func (s *Source) person(why string) error {
	if s.server.byCredentials() {
		return &link.Unauthorized{Why: why + "; check the client_id, client_secret and scopes of its auth"}
	}
	return &link.Unauthorized{Why: why + "; run: " + LoginCommand(s.server.Name)}
}

// begin starts a renewal. s.mu is held.
func (s *Source) begin() {
	r := &renewal{make(chan struct{})}
	s.renewal = r
	old := s.token
	s.wg.Go(func() {
		var next renewed
		err := errors.New("the renewal failed")
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.token == old { // else another one was read from the file since
				s.settle(next, err)
			}
			s.renewal = nil
			close(r.done)
		}()
		defer safe.Recover(s.logger, "renewing the token of server "+s.server.Name, nil)
		next, err = s.renew(old)
	})
}

// settle takes over what a renewal has brought. s.mu is held.
func (s *Source) settle(next renewed, err error) {
	var refused *refusal
	switch {
	case err == nil:
		s.token, s.file, s.why, s.again = next.token, next.file, nil, time.Time{}
		return
	case errors.As(err, &refused):
		s.why, s.again = s.person(fmt.Sprintf("its token cannot be renewed: %v", err)), time.Time{}
		if s.server.byCredentials() {
			s.again = time.Now().Add(askAgain)
		}
	case errors.As(err, new(*link.Unauthorized)):
		s.why, s.again = err, time.Time{}
	default:
		s.why, s.again = fmt.Errorf("no token for it: %w", err), time.Now().Add(tryAgain)
	}
	if s.ctx.Err() == nil {
		s.logger.Warn("no token for a server", "server", s.server.Name, "error", s.why)
	}
}

// renewed is a token, and its file as it was then.
type renewed struct {
	token *Token
	file  os.FileInfo
}

// renew gets the next token and stores it, or takes over the one that another process has stored meanwhile.
func (s *Source) renew(old *Token) (renewed, error) {
	ctx, cancel := context.WithTimeout(s.ctx, renewWithin)
	defer cancel()
	unlock, err := s.store.lock(ctx, s.server.Name)
	switch {
	case err == nil:
		defer unlock()
	case ctx.Err() != nil || !s.server.byCredentials(): // a secret gets tokens without a folder, too
		return renewed{}, fmt.Errorf("the state folder cannot be used: %w", err)
	}
	file := s.store.look(s.server.Name)
	stored, err := s.store.Load(s.server.Name)
	if err != nil && !s.server.byCredentials() {
		return renewed{}, err
	}
	switch {
	case stored != nil && stored.Of(s.server) && (old == nil || stored.Access != old.Access):
		if !stored.due(time.Now()) {
			return renewed{stored, file}, nil
		}
		old = stored
	case stored == nil && !s.server.byCredentials() && s.store.folder != "":
		return renewed{}, s.person("nobody is logged in")
	}
	next, err := s.request(ctx, old)
	if err != nil {
		return renewed{}, err
	}
	if err := s.store.write(next); err != nil {
		s.logger.Warn("a token ends with this process", "error", err)
	}
	return renewed{next, s.store.look(s.server.Name)}, nil
}

func (s *Source) request(ctx context.Context, old *Token) (*Token, error) {
	switch {
	case s.server.byCredentials():
		return byCredentials(ctx, s.server)
	case old == nil || !old.Renewable():
		return nil, s.person("its token has ended and cannot be renewed")
	}
	return old.renew(ctx, s.server)
}

// reject records that the server refuses a token that was just renewed, so that nobody renews it again and again.
func (s *Source) reject(token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != nil && s.token.Access == token {
		s.useless, s.again = token, time.Now().Add(askAgain)
		s.why = s.person("it refuses its token")
	}
	if s.why != nil {
		return s.why
	}
	return s.person("it refuses its token")
}
