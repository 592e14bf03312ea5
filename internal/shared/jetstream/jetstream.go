// Package jetstream keeps the state that replicas share in a key-value bucket of NATS JetStream.
//
// [Open] returns a [Store], which implements [shared.State]. It needs nats-server 2.11, for entries that expire.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

const (
	timeout  = 2 * time.Second // of an operation
	checking = 5 * time.Second // between looks at the bucket
	retrying = 500 * time.Millisecond
)

// Options are the settings of a Store.
type Options struct {
	URL           string // or several, with commas between them
	Credentials   string // file with a user's JWT and seed; "" = none, or those in the URL
	CA, Cert, Key string // PEM files for TLS; "" = the system's, and no client certificate
	Bucket        string // letters, digits, "-", "_"
	MaxBytes      int64  // of a new bucket; 0 = 256 MiB
	Log           *slog.Logger
}

// Store is a shared.State in a bucket. Its operations end within two seconds.
type Store struct {
	opts   Options
	conn   *nats.Conn
	js     jetstream.JetStream
	bucket atomic.Pointer[bucket]
	denied atomic.Pointer[error] // the last denial of a subject by the server, which is all that it says of it
	stop   context.CancelFunc
	work   sync.WaitGroup
	redone chan struct{} // has room for one: the connection is back
	closed chan struct{}
}

// bucket is the bucket between two disruptions. What follows it must look at it anew afterwards.
type bucket struct {
	kv        jetstream.KeyValue
	info      *jetstream.StreamInfo
	disrupted chan struct{}
}

// Get implements shared.State.
func (s *Store) Get(ctx context.Context, key string) (shared.Entry, error) {
	if err := shared.Check(key, []byte{0}); err != nil {
		return shared.Entry{}, err
	}
	entry := shared.Entry{Key: key}
	err := s.do(ctx, func(ctx context.Context, kv jetstream.KeyValue) error {
		e, err := kv.Get(ctx, subject(key))
		if err == nil {
			entry.Value, entry.Revision, entry.Created = e.Value(), e.Revision(), e.Created()
		} else if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		return err
	})
	return entry, err
}

// Put implements shared.State.
func (s *Store) Put(
	ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration,
) (stored uint64, err error) {
	if err := shared.Check(key, value); err != nil {
		return 0, err
	}
	ttl = (ttl + time.Second - 1).Truncate(time.Second)
	err = s.do(ctx, func(ctx context.Context, kv jetstream.KeyValue) error {
		if revision == 0 {
			stored, err = kv.Create(ctx, subject(key), value, jetstream.KeyTTL(ttl))
			return err
		}
		m := &nats.Msg{Subject: "$KV." + s.opts.Bucket + "." + subject(key), Header: nats.Header{}, Data: value}
		options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(revision)}
		if ttl > 0 {
			options = append(options, jetstream.WithMsgTTL(ttl))
		}
		ack, err := s.js.PublishMsg(ctx, m, options...) // kv.Update has no time to live
		if err == nil {
			stored = ack.Sequence
		}
		return err
	})
	return stored, err
}

// Delete implements shared.State.
func (s *Store) Delete(ctx context.Context, key string, revision uint64) error {
	if err := shared.Check(key, []byte{0}); err != nil {
		return err
	}
	if revision == 0 {
		return shared.ErrConflict
	}
	return s.do(ctx, func(ctx context.Context, kv jetstream.KeyValue) error {
		return kv.Purge(ctx, subject(key), jetstream.LastRevision(revision), jetstream.PurgeTTL(markerTTL))
	})
}

// Connected implements shared.State.
func (s *Store) Connected() bool { return s.conn.IsConnected() }

// Close ends the watches and the connection, and waits for its goroutines.
func (s *Store) Close() {
	s.stop()
	s.work.Wait()
	s.conn.Close()
	<-s.closed
}

// do performs an operation within its time and explains its error.
func (s *Store) do(ctx context.Context, operation func(context.Context, jetstream.KeyValue) error) error {
	if !s.Connected() {
		return shared.ErrUnreachable
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := operation(bounded, s.bucket.Load().kv)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case has(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return shared.ErrConflict
	case has(err, codeStore, codeAccount, codeStorage):
		return fmt.Errorf("%w: raise max_bytes of the stream %s at NATS, %s, or the limits of the account (%w)",
			shared.ErrFull, prefix+s.opts.Bucket, addresses(s.opts.URL), err)
	}
	return fmt.Errorf("%w: %w", shared.ErrUnreachable, err)
}

// Codes of errors that the client has no names for.
const (
	codeAccount     = 10002 // resource limits exceeded for account
	codeNoPeers     = 10005 // no suitable peers for placement
	codeStorage     = 10047 // insufficient storage resources available
	codeNoCluster   = 10074 // replicas > 1 not supported in non-clustered mode
	codeStore       = 10077 // such as "maximum bytes exceeded"
	codeStreamBytes = 10122 // stream max bytes exceeds account limit max stream bytes
)

// has reports whether an error has one of the codes.
func has(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// subject returns the key of an entry in the bucket.
func subject(key string) string { return strings.ReplaceAll(key, "/", ".") }
