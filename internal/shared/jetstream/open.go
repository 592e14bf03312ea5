package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	defaultMaxBytes = 256 << 20
	replicas        = 3 // of the bucket, if NATS has as many servers
	markerTTL       = time.Minute
	prefix          = "KV_" // of the stream that is a bucket
)

// Open connects to NATS and opens the bucket, creating it if there is none. Until ctx ends it tries again what may
// pass by itself. The error is one line that names the address, the cause and what to do.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	for {
		s, err := open(ctx, opts)
		if err == nil {
			return s, nil
		}
		advice, lasting := explain(err, opts.Bucket)
		if !lasting {
			select {
			case <-time.After(retrying):
				continue
			case <-ctx.Done():
			}
		}
		var address *url.Error
		if errors.As(err, &address) {
			err = address.Err // without the address, which may have a password
		}
		return nil, fmt.Errorf("NATS at %s: %s (%s)", addresses(opts.URL), advice, texts.Line(err.Error(), 300))
	}
}

// open tries once.
func open(ctx context.Context, opts Options) (*Store, error) {
	s := &Store{opts: opts, redone: make(chan struct{}, 1), closed: make(chan struct{})}
	var err error
	if s.conn, err = nats.Connect(opts.URL, s.settings()...); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(timeout)); err == nil {
		err = s.openBucket(ctx)
	}
	if denied := s.denied.Load(); err != nil && denied != nil {
		err = *denied
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.work.Go(func() { s.observe(background) })
	return s, nil
}

// settings are those of the connection. Nothing is queued while it is lost: a write that comes late does harm.
func (s *Store) settings() []nats.Option {
	log := s.opts.Log
	settings := []nats.Option{
		nats.Name("nexus"), nats.Timeout(timeout), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1),
		nats.ReconnectWait(retrying), nats.ReconnectJitter(retrying, retrying), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(timeout), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("lost the connection to NATS", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			log.Info("connected to NATS again")
			select {
			case s.redone <- struct{}{}:
			default:
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(s.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				s.denied.Store(&err)
			}
			level := slog.LevelWarn
			if errors.Is(err, nats.ErrConsumerNotActive) { // of each watch while the connection is lost
				level = slog.LevelDebug
			}
			log.Log(context.Background(), level, "NATS reports an error", "error", err)
		}),
	}
	if s.opts.Credentials != "" {
		settings = append(settings, nats.UserCredentials(s.opts.Credentials))
	}
	if s.opts.CA != "" {
		settings = append(settings, nats.RootCAs(s.opts.CA))
	}
	if s.opts.Cert != "" {
		settings = append(settings, nats.ClientCert(s.opts.Cert, s.opts.Key))
	}
	return settings
}

// openBucket opens the bucket or creates it.
func (s *Store) openBucket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*timeout)
	defer cancel()
	account, err := s.js.AccountInfo(ctx)
	if err != nil {
		return err
	}
	if account.API.Level < 1 {
		return fmt.Errorf("%w: it is %s", errOld, s.conn.ConnectedServerVersion())
	}
	kv, err := s.js.KeyValue(ctx, s.opts.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		if err = s.createBucket(ctx); err == nil {
			kv, err = s.js.KeyValue(ctx, s.opts.Bucket)
		}
	}
	if err != nil {
		return err
	}
	stream, err := s.js.Stream(ctx, prefix+s.opts.Bucket)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := suitable(info.Config); err != nil {
		return err
	}
	old := s.bucket.Swap(&bucket{kv, info, make(chan struct{})})
	if old != nil {
		close(old.disrupted)
	}
	return nil
}

// createBucket creates the stream of the bucket. Other than one that the client would create, it answers reads from
// its leader alone, so they are never old.
func (s *Store) createBucket(ctx context.Context) error {
	config := jetstream.StreamConfig{
		Name: prefix + s.opts.Bucket, Subjects: []string{"$KV." + s.opts.Bucket + ".>"},
		MaxMsgsPerSubject: 1, MaxBytes: s.opts.MaxBytes, Discard: jetstream.DiscardNew, Replicas: replicas,
		AllowRollup: true, DenyDelete: true, AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerTTL,
	}
	_, err := s.js.CreateStream(ctx, config)
	if has(err, codeNoCluster, codeNoPeers) {
		s.opts.Log.Warn("NATS keeps the cluster's state in one copy, because it has less than three servers with JetStream",
			"error", err)
		config.Replicas = 1
		_, err = s.js.CreateStream(ctx, config)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
		return nil
	}
	return err
}

// suitable returns an error for a bucket that cannot keep the state.
func suitable(c jetstream.StreamConfig) error {
	switch {
	case !c.AllowMsgTTL || c.SubjectDeleteMarkerTTL == 0:
		return fmt.Errorf("%w: it has no limit marker TTL", errUnsuitable)
	case c.MaxAge != 0:
		return fmt.Errorf("%w: its entries expire after %s", errUnsuitable, c.MaxAge)
	case c.Discard != jetstream.DiscardNew:
		return fmt.Errorf("%w: it discards old entries", errUnsuitable)
	case !c.AllowRollup || c.Mirror != nil || c.Sealed:
		return fmt.Errorf("%w: it is no key-value bucket that can be written", errUnsuitable)
	}
	return nil
}

var (
	errOld        = errors.New("per-message TTL is not supported")
	errUnsuitable = errors.New("the bucket is unsuitable")
)

// observe notices disruptions: that the connection was lost meanwhile, or the bucket, or a part of it.
func (s *Store) observe(ctx context.Context) {
	ticks := time.NewTicker(checking)
	defer ticks.Stop()
	again := false // the bucket could not be opened after a disruption
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.redone:
			again = true
		case <-ticks.C:
		}
		if !s.Connected() {
			continue
		}
		if again = again || s.disrupted(ctx); again {
			err := s.openBucket(ctx)
			if again = err != nil; again {
				s.opts.Log.Warn("cannot open the bucket of NATS", "bucket", s.opts.Bucket, "error", err)
			}
		}
	}
}

// disrupted reports whether the bucket is another one, or has lost entries.
func (s *Store) disrupted(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, prefix+s.opts.Bucket)
	if err != nil {
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	b := s.bucket.Load()
	old, info := b.info, stream.CachedInfo()
	if !info.Created.Equal(old.Created) || info.State.LastSeq < old.State.LastSeq {
		return true
	}
	b.info = info // this goroutine alone uses it
	return false
}

// explain returns the cause of an error and what to do, and whether it lasts until somebody does it.
func explain(err error, bucket string) (advice string, lasting bool) {
	var address *url.Error
	switch {
	case errors.As(err, &address):
		return "it is not a URL such as nats://host:4222", true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return "a file cannot be read", true
	case strings.Contains(err.Error(), "nkeys: "):
		return "the credentials file has no key: use one as nsc or the operator of NATS makes it", true
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return "it refuses the credentials: check the credentials file, or the user in the URL", true
	case errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Sprintf("the user lacks a permission: allow it to publish on $JS.API.> and $KV.%s.>, "+
			"and to subscribe to _INBOX.>", bucket), true
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted),
		strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "certificate"): // alerts have no type
		return "no TLS connection: check tls:// in the URL, and the CA and certificate files", true
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "it has no JetStream: start it with -js, and enable it for the account", true
	case errors.Is(err, errOld):
		return "it is too old: use nats-server 2.11 or later", true
	case errors.Is(err, errUnsuitable):
		return fmt.Sprintf("bucket %s exists with other settings: delete it (nats kv rm %[1]s), or use another name", bucket), true
	case has(err, codeAccount, codeStorage, codeStreamBytes):
		return fmt.Sprintf("it has no room for bucket %s: raise its limits, or create the bucket with a smaller size", bucket), true
	case errors.Is(err, nats.ErrNoServers):
		return "nothing listens there: check the address, and that NATS runs", false
	}
	return "it cannot be reached", false
}

// addresses returns a URL, or several, without users and passwords.
func addresses(urls string) string {
	var names []string
	for text := range strings.SplitSeq(urls, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil {
			return "an unreadable address"
		}
		names = append(names, u.Host)
	}
	return strings.Join(names, ",")
}

var _ shared.State = (*Store)(nil)
