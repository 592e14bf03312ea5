package bearer

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	freshFor  = 15 * time.Minute // then the keys are fetched again
	usableFor = time.Hour        // then keys are invalid if they cannot be fetched again
	fetchTime = 5 * time.Second  // for one attempt
)

// keyring holds the keys of the issuer and says when to fetch them.
type keyring struct {
	issuer   string
	retry    time.Duration
	now      func() time.Time
	log      *slog.Logger
	fetching chan struct{} // full while keys are fetched
	state    *atomic.Pointer[ringState]
}

// ringState is the result of the last attempts to fetch keys. It never changes.
type ringState struct {
	keys    *keySet   // nil if there never were any
	fetched time.Time // when they came
	tried   time.Time // the last attempt
	failed  string    // why it failed; empty if it did not
}

func newKeyring(o Options) keyring {
	r := keyring{issuer: o.Issuer, retry: o.Retry, now: o.Now, log: o.Logger, fetching: make(chan struct{}, 1),
		state: &atomic.Pointer[ringState]{}}
	r.state.Store(&ringState{})
	return r
}

// get returns the keys and fetches them if they are due. While the keys are valid, it does not wait for a fetch by
// another request.
func (r *keyring) get(ctx context.Context) (*keySet, error) {
	s := r.state.Load()
	if s.keys == nil || r.now().Sub(s.fetched) >= freshFor {
		s = r.fetch(ctx, s, r.usable(s))
	}
	if !r.usable(s) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, ErrUnavailable
	}
	return s.keys, nil
}

// renew returns keys newer than seen. It fetches them unless the last attempt was recent, and otherwise returns seen.
func (r *keyring) renew(ctx context.Context, seen *keySet) *keySet {
	s := r.state.Load()
	if s.keys == seen {
		s = r.fetch(ctx, s, false)
	}
	if !r.usable(s) {
		return seen
	}
	return s.keys
}

func (r *keyring) usable(s *ringState) bool {
	return s.keys != nil && r.now().Sub(s.fetched) < usableFor
}

// fetch returns the state after seen. It fetches keys, unless another does or the last attempt was lately. hurried is
// for those that do not wait for another.
func (r *keyring) fetch(ctx context.Context, seen *ringState, hurried bool) *ringState {
	if r.now().Sub(seen.tried) < r.retry {
		return seen
	}
	if hurried {
		select {
		case r.fetching <- struct{}{}:
		default:
			return seen
		}
	} else {
		select {
		case r.fetching <- struct{}{}:
		case <-ctx.Done():
			return seen
		}
	}
	defer func() { <-r.fetching }()
	if s := r.state.Load(); s != seen {
		return s
	}
	next := &ringState{keys: seen.keys, fetched: seen.fetched, tried: r.now()}
	// A client that leaves does not end the attempt: others wait for it, and the next one must be later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	keys, err := fetchKeys(ctx, r.issuer)
	switch {
	case err != nil:
		if next.failed = err.Error(); next.failed != seen.failed {
			r.log.Warn("the keys of the token issuer cannot be fetched; without keys all tokens are refused",
				"issuer", r.issuer, "error", err, "former_keys_count", r.usable(next))
		}
	case seen.failed != "":
		r.log.Info("the keys of the token issuer are fetched again", "issuer", r.issuer, "keys", len(keys.keys))
		fallthrough
	default:
		next.keys, next.fetched = keys, next.tried
	}
	r.state.Store(next)
	return next
}
