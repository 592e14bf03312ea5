package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// Prefixes of the keys of the entries that replicas share; the name of a server follows, and "/" and a caller where it
// has tokens of its own.
const (
	tokenPrefix = "token/"
	leasePrefix = "renewing/" // exists while a replica renews or replaces the token
)

// SharedPrefixes begin the keys of a SharedStore.
func SharedPrefixes() []string { return []string{tokenPrefix, leasePrefix} }

const (
	leaseTime = 30 * time.Second // after which a lease of a replica that has died ends
	holdTime  = 25 * time.Second // of a lease, from the request for it
	lookLease = time.Second      // at a lease whose end was not reported
	storeGap  = 200 * time.Millisecond
)

// entries keeps tokens in entries that replicas share.
type entries struct{ mirror *shared.Mirror }

func (entries) where(string) string { return "the shared state" }

func (e entries) read(server string) ([]byte, error) {
	entry := e.mirror.Entry(tokenPrefix + server)
	if entry.Value == nil && entry.Revision != 0 {
		return nil, shared.ErrUnreadable
	}
	return entry.Value, nil
}

// write tries again while the state cannot be reached: the others know nothing of a refresh token that is lost. A
// conflict is with an old copy, as nobody else writes.
func (e entries) write(ctx context.Context, server string, text []byte) error {
	return retry(ctx, func() error {
		entry := e.mirror.Entry(tokenPrefix + server)
		if bytes.Equal(entry.Value, text) { // by an attempt that seemed to fail
			return nil
		}
		_, err := e.mirror.Put(ctx, entry.Key, text, entry.Revision, 0)
		return err
	}, shared.ErrConflict, shared.ErrUnreachable)
}

func (e entries) remove(ctx context.Context, server string) error {
	entry := e.mirror.Entry(tokenPrefix + server)
	if entry.Revision == 0 {
		return nil
	}
	return e.mirror.Delete(ctx, entry.Key, entry.Revision)
}

// lock takes the lease of a server. It also stores the token again as it is: a read may be old, and a refresh token
// that was used before must not be used again.
func (e entries) lock(ctx context.Context, server string) (held context.Context, unlock func(), err error) {
	lease := leasePrefix + server
	for {
		began := time.Now()
		revision, err := e.mirror.Put(ctx, lease, []byte{1}, 0, leaseTime)
		if err == nil {
			held, cancel := context.WithDeadlineCause(ctx, began.Add(holdTime), errors.New("it takes too long"))
			unlock := func() {
				cancel()
				_ = e.mirror.Delete(context.WithoutCancel(ctx), lease, revision) // else it expires
			}
			if err := e.confirm(held, tokenPrefix+server); err != nil {
				unlock()
				return nil, nil, err
			}
			return held, unlock, nil
		}
		if !errors.Is(err, shared.ErrConflict) {
			return nil, nil, err
		}
		look, cancel := context.WithTimeout(ctx, lookLease)
		_ = e.mirror.Wait(look, lease, e.mirror.Entry(lease).Revision)
		cancel()
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("another replica replaces the token of server %s: %w", server, context.Cause(ctx))
		}
	}
}

// confirm makes the Mirror hold the present entry of a key.
func (e entries) confirm(ctx context.Context, key string) error {
	if err := e.mirror.Refresh(ctx, key); err != nil {
		return err
	}
	return retry(ctx, func() error {
		entry := e.mirror.Entry(key)
		if entry.Value == nil {
			return nil
		}
		_, err := e.mirror.Put(ctx, key, entry.Value, entry.Revision, 0)
		return err
	}, shared.ErrConflict)
}

// retry calls attempt until it returns none of the errors, at most until ctx ends.
func retry(ctx context.Context, attempt func() error, errs ...error) error {
	for {
		err := attempt()
		if !slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) }) {
			return err
		}
		select {
		case <-time.After(storeGap):
		case <-ctx.Done():
			return err
		}
	}
}

func (e entries) look(server string) version {
	entry := e.mirror.Entry(tokenPrefix + server)
	if entry.Value == nil && entry.Revision != 0 {
		return version{text: fmt.Sprint(entry.Revision)}
	}
	return version{text: string(entry.Value)}
}

func (e entries) ofCallers() (keeper, string) { return e, "/" }

func (e entries) names(prefix string) (names []string) {
	for _, entry := range e.mirror.Entries(tokenPrefix + prefix) {
		names = append(names, strings.TrimPrefix(entry.Key, tokenPrefix))
	}
	return names
}

// NewLogin returns whose token of which server a changed entry has, if that is of another login than before, or gone.
// Renewals do not count.
func (st Store) NewLogin(before, now shared.Entry) (server, caller string, changed bool) {
	name, isToken := strings.CutPrefix(now.Key, tokenPrefix)
	server, caller, isCallers := strings.Cut(name, "/")
	if !isToken || !isCallers || st.aead == nil || bytes.Equal(before.Value, now.Value) {
		return "", "", false
	}
	k := ofCaller{suffix: "/" + caller, aead: st.aead}
	since := func(sealed []byte) (since string) {
		var t Token
		if text, err := k.open(server, sealed); err == nil && json.Unmarshal(text, &t) == nil {
			since = t.Since.String()
		}
		return since
	}
	return server, caller, since(before.Value) != since(now.Value)
}
