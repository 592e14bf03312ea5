package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	njs "github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/internal/shared/jetstream"
	"github.com/agenticnexus/agenticnexus/tests/network"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(network.Leftover),
		goleak.IgnoreTopFunction("github.com/klauspost/compress/s2.NewWriter.func1"))
}

// start starts a NATS server that ends with the test.
func start(t testing.TB, folder string, port int, change func(*server.Options)) *server.Server {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true}
	if change != nil {
		change(opts)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func open(t testing.TB, opts jetstream.Options) *jetstream.Store {
	t.Helper()
	if opts.Bucket == "" {
		opts.Bucket = "test"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	s, err := jetstream.Open(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// states are the implementations; both keep what State promises.
func states() map[string]func(t testing.TB) shared.State {
	return map[string]func(testing.TB) shared.State{
		"memory": func(t testing.TB) shared.State {
			m := shared.NewMemory()
			t.Cleanup(m.Close)
			return m
		},
		"jetstream": func(t testing.TB) shared.State {
			return open(t, jetstream.Options{URL: start(t, t.TempDir(), -1, nil).ClientURL()})
		},
		"sealed": func(t testing.TB) shared.State {
			m := shared.NewMemory()
			t.Cleanup(m.Close)
			ring, err := shared.OpenRing(t.Context(), m, "")
			if err != nil {
				t.Fatal(err)
			}
			return shared.Sealed(m, ring)
		},
	}
}

// view is what a watch has reported.
type view struct {
	mu      sync.Mutex
	entries map[string]string
	log     []string
	begun   int
}

// watch follows a prefix until the test ends.
func watch(t testing.TB, s shared.State, prefix string) *view {
	v := &view{entries: map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = s.Watch(ctx, prefix, func(e shared.Entry) {
			v.mu.Lock()
			defer v.mu.Unlock()
			switch {
			case e.Key == "":
				v.begun++
				v.log = append(v.log, "begun")
			case e.Value == nil:
				delete(v.entries, e.Key)
				v.log = append(v.log, "-"+e.Key)
			default:
				v.entries[e.Key] = string(e.Value)
				v.log = append(v.log, e.Key+"="+string(e.Value))
			}
		})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return v
}

// has waits until the watch has begun and reported exactly these entries.
func (v *view) has(t testing.TB, want map[string]string) {
	t.Helper()
	until(t, func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.begun != 1 || !maps.Equal(v.entries, want) {
			return fmt.Errorf("got %v (begun %d), want %v", v.entries, v.begun, want)
		}
		return nil
	})
}

// until polls until check succeeds.
func until(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func put(t testing.TB, s shared.State, key, value string, revision uint64, ttl time.Duration) uint64 {
	t.Helper()
	r, err := s.Put(t.Context(), key, []byte(value), revision, ttl)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return r
}

// TestState checks what State promises.
func TestState(t *testing.T) {
	for _, row := range []struct {
		name string
		run  func(*testing.T, shared.State)
	}{
		{"compare and set", func(t *testing.T, s shared.State) {
			one := put(t, s, "a/b", "1", 0, 0)
			for _, wrong := range []uint64{0, one - 1, one + 1} {
				if _, err := s.Put(t.Context(), "a/b", []byte("2"), wrong, 0); !errors.Is(err, shared.ErrConflict) {
					t.Errorf("put with revision %d instead of %d: got %v", wrong, one, err)
				}
				if err := s.Delete(t.Context(), "a/b", wrong); !errors.Is(err, shared.ErrConflict) {
					t.Errorf("delete with revision %d instead of %d: got %v", wrong, one, err)
				}
			}
			two := put(t, s, "a/b", "2", one, 0)
			e, err := s.Get(t.Context(), "a/b")
			if err != nil || e.Key != "a/b" || string(e.Value) != "2" || e.Revision != two || two <= one ||
				time.Since(e.Created).Abs() > time.Minute {
				t.Errorf("get: got %+v, %v", e, err)
			}
			if err := s.Delete(t.Context(), "a/b", two); err != nil {
				t.Error(err)
			}
			if e, err := s.Get(t.Context(), "a/b"); err != nil || e.Revision != 0 || e.Value != nil || e.Key != "a/b" {
				t.Errorf("get after delete: got %+v, %v", e, err)
			}
			if _, err := s.Put(t.Context(), "a/b", []byte("3"), two, 0); !errors.Is(err, shared.ErrConflict) {
				t.Errorf("put after delete: got %v", err)
			}
			put(t, s, "a/b", "3", 0, 0)
		}},
		{"one of many wins", func(t *testing.T, s shared.State) {
			for round, revision := 0, uint64(0); round < 3; round++ {
				var wins atomic.Uint64
				var won atomic.Uint64
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						r, err := s.Put(t.Context(), "k", []byte("v"), revision, 0)
						if err == nil {
							wins.Add(1)
							won.Store(r)
						} else if !errors.Is(err, shared.ErrConflict) {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if wins.Load() != 1 {
					t.Fatalf("round %d: got %d winners", round, wins.Load())
				}
				if revision = won.Load(); round == 1 { // the last round creates over a deletion
					if err := s.Delete(t.Context(), "k", revision); err != nil {
						t.Fatal(err)
					}
					revision = 0
				}
			}
		}},
		{"expiry", func(t *testing.T, s shared.State) {
			v := watch(t, s, "a/")
			one := put(t, s, "a/short", "1", 0, time.Second)
			put(t, s, "a/renewed", "1", put(t, s, "a/renewed", "0", 0, time.Second), time.Hour)
			put(t, s, "a/kept", "1", put(t, s, "a/kept", "0", 0, time.Second), 0)
			v.has(t, map[string]string{"a/renewed": "1", "a/kept": "1"})
			if _, err := s.Put(t.Context(), "a/short", []byte("2"), one, 0); !errors.Is(err, shared.ErrConflict) {
				t.Errorf("renewal after the end: got %v", err)
			}
			put(t, s, "a/short", "2", 0, time.Hour)
			v.has(t, map[string]string{"a/short": "2", "a/renewed": "1", "a/kept": "1"})
		}},
		{"watch", func(t *testing.T, s shared.State) {
			gone := put(t, s, "a/gone", "1", 0, 0)
			if err := s.Delete(t.Context(), "a/gone", gone); err != nil {
				t.Fatal(err)
			}
			put(t, s, "a/b1", "1", 0, 0)
			r := put(t, s, "a/b2", "1", 0, 0)
			put(t, s, "a/c", "1", 0, 0)
			put(t, s, "ab", "1", 0, 0)
			v, all := watch(t, s, "a/b"), watch(t, s, "")
			v.has(t, map[string]string{"a/b1": "1", "a/b2": "1"})
			for i := range 50 {
				r = put(t, s, "a/b2", fmt.Sprint(i), r, 0)
			}
			put(t, s, "a/b3", "1", 0, 0)
			if err := s.Delete(t.Context(), "a/b2", r); err != nil {
				t.Fatal(err)
			}
			v.has(t, map[string]string{"a/b1": "1", "a/b3": "1"})
			all.has(t, map[string]string{"a/b1": "1", "a/b3": "1", "a/c": "1", "ab": "1"})
			got := strings.Join(v.log, " ")
			if !strings.HasPrefix(got, "a/b1=1 a/b2=1 begun ") || !strings.HasSuffix(got, "a/b3=1 -a/b2") {
				t.Errorf("got %s", got)
			}
		}},
		{"keys and values", func(t *testing.T, s shared.State) {
			for _, key := range []string{"", "/", "a/", "/a", "a//b", "a.b", "a b", "a*", "ä", strings.Repeat("a", 257)} {
				if _, err := s.Put(t.Context(), key, []byte("1"), 0, 0); err == nil {
					t.Errorf("key %q: got no error", key)
				}
			}
			for _, size := range []int{0, 256<<10 + 1} {
				if _, err := s.Put(t.Context(), "k", make([]byte, size), 0, 0); err == nil {
					t.Errorf("%d bytes: got no error", size)
				}
			}
			large := bytes.Repeat([]byte("x"), 256<<10-32)
			put(t, s, strings.Repeat("k", 256), string(large), 0, 0)
			e, err := s.Get(t.Context(), strings.Repeat("k", 256))
			if err != nil || !bytes.Equal(e.Value, large) {
				t.Errorf("got %d bytes, %v", len(e.Value), err)
			}
		}},
	} {
		for name, state := range states() {
			t.Run(row.name+"/"+name, func(t *testing.T) { row.run(t, state(t)) })
		}
	}
}

// scene is a Store that reaches its server through a network, and a watch.
type scene struct {
	*testing.T
	folder  string
	server  *server.Server
	network *network.Network
	store   *jetstream.Store
	view    *view
}

func newScene(t *testing.T) *scene {
	s := &scene{T: t, folder: t.TempDir()}
	s.server = start(t, s.folder, -1, nil)
	s.network = network.New(t, s.server.Addr().String())
	s.store = open(t, jetstream.Options{URL: "nats://" + s.network.Address()})
	s.view = watch(t, s.store, "a/")
	return s
}

// restart ends the server; the function it returns starts another with the data in a folder.
func (s *scene) restart(folder string) func() {
	port := s.server.Addr().(*net.TCPAddr).Port
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return func() { s.server = start(s, folder, port, nil) }
}

// change puts a value; an attempt that fails may have arrived.
func (s *scene) change(key, value string) {
	s.Helper()
	until(s, func() error {
		_, err := s.store.Put(s.Context(), key, []byte(value), 0, 0)
		if errors.Is(err, shared.ErrConflict) {
			err = nil
		}
		return err
	})
}

// TestDisruptions checks that operations fail quickly while NATS is away, and that watches go on afterwards.
func TestDisruptions(t *testing.T) {
	before := map[string]string{"a/1": "before", "a/2": "before", "a/3": "after"}
	for _, row := range []struct {
		name    string
		disrupt func(*scene) (mend func()) // without mend, nothing is away
		want    map[string]string
	}{
		{"connection refused", func(s *scene) func() {
			s.network.Stop()
			return func() { s.network.Restart() }
		}, before},
		{"silence", func(s *scene) func() {
			s.network.Disturb(network.Toxic{Kind: "timeout", Attributes: `"timeout":0`})
			return func() { s.network.Restart() }
		}, before},
		{"slow", func(s *scene) func() {
			s.network.Disturb(network.Toxic{Kind: "latency", Attributes: `"latency":100`})
			return nil
		}, before},
		{"restart", func(s *scene) func() { return s.restart(s.folder) }, before},
		{"restart without data", func(s *scene) func() { return s.restart(s.TempDir()) }, map[string]string{"a/3": "after"}},
		{"restart without the last data", func(s *scene) func() {
			start := s.restart(s.folder)
			older := s.TempDir()
			if err := os.CopyFS(older, os.DirFS(s.folder)); err != nil {
				s.Fatal(err)
			}
			start()
			s.change("a/last", "lost")
			s.view.has(s, map[string]string{"a/1": "before", "a/2": "before", "a/last": "lost"})
			return s.restart(older)
		}, before},
		{"bucket deleted", func(s *scene) func() {
			remove(s.T, s.server.ClientURL(), "test")
			return nil
		}, map[string]string{"a/3": "after"}},
		{"bucket deleted and created", func(s *scene) func() {
			old, _ := s.store.Get(s.Context(), "a/1")
			remove(s.T, s.server.ClientURL(), "test")
			other := open(s, jetstream.Options{URL: s.server.ClientURL()})
			if revision := put(s, other, "a/1", "after", 0, 0); revision != old.Revision {
				s.Errorf("got revision %d, want %d, that of the lost entry", revision, old.Revision)
			}
			return nil
		}, map[string]string{"a/1": "after", "a/3": "after"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			put(t, s.store, "a/1", "before", 0, 0)
			put(t, s.store, "a/2", "before", 0, 0)
			s.view.has(t, map[string]string{"a/1": "before", "a/2": "before"})
			if mend := row.disrupt(s); mend != nil {
				until(t, func() error {
					begin := time.Now()
					_, err := s.store.Put(t.Context(), "a/late", []byte("1"), 1, 0) // conflicts if it arrives
					if took := time.Since(begin); took > 5*time.Second {
						t.Errorf("an operation took %s", took)
					}
					if s.store.Connected() || !errors.Is(err, shared.ErrUnreachable) {
						return fmt.Errorf("got %v", err)
					}
					return nil
				})
				if _, err := s.store.Put(t.Context(), "a/queued", []byte("1"), 0, 0); !errors.Is(err, shared.ErrUnreachable) {
					t.Errorf("got %v", err)
				}
				mend()
			}
			s.change("a/3", "after")
			s.view.has(t, row.want)
		})
	}
}

// A watch also reports the end of an entry that was stored and removed while NATS was away: its replica may have seen it.
func TestWatch_RemovedWhileAway(t *testing.T) {
	s := newScene(t)
	s.view.has(t, map[string]string{})
	s.network.Stop()
	other := open(t, jetstream.Options{URL: s.server.ClientURL()})
	if err := other.Delete(t.Context(), "a/brief", put(t, other, "a/brief", "1", 0, 0)); err != nil {
		t.Fatal(err)
	}
	s.network.Restart()
	until(t, func() error {
		s.view.mu.Lock()
		defer s.view.mu.Unlock()
		if !slices.Contains(s.view.log, "-a/brief") {
			return fmt.Errorf("got %v", s.view.log)
		}
		return nil
	})
}

// remove deletes a bucket as an administrator would.
func remove(t *testing.T, url, bucket string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := njs.New(conn)
	if err == nil {
		err = js.DeleteKeyValue(t.Context(), bucket)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFull checks the error of a full bucket.
func TestFull(t *testing.T) {
	s := open(t, jetstream.Options{URL: start(t, t.TempDir(), -1, nil).ClientURL(), MaxBytes: 1 << 20})
	var err error
	for i := 0; err == nil && i < 10; i++ {
		_, err = s.Put(t.Context(), fmt.Sprintf("k/%d", i), make([]byte, 200<<10), 0, 0)
	}
	if !errors.Is(err, shared.ErrFull) {
		t.Errorf("got %v", err)
	}
	if e, err := s.Get(t.Context(), "k/0"); err != nil || e.Revision == 0 {
		t.Errorf("an entry was lost: got %+v, %v", e.Revision, err)
	}
}

// TestServers checks a NATS cluster of three: it keeps three copies, two replicas that start at once share them, and one
// server can go.
func TestServers(t *testing.T) {
	var servers []*server.Server
	routes := ""
	for i := range 3 {
		s := start(t, t.TempDir(), -1, func(o *server.Options) {
			o.ServerName = fmt.Sprint("s", i)
			o.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: -1}
			o.Routes = server.RoutesFromStr(routes)
		})
		servers = append(servers, s)
		routes = "nats://" + s.ClusterAddr().String()
	}
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.ClientURL())
	}
	stores := make([]*jetstream.Store, 2)
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var err error
			if stores[i], err = jetstream.Open(ctx, jetstream.Options{URL: urls[i] + "," + urls[2], Bucket: "test"}); err != nil {
				t.Error(err)
			} else {
				t.Cleanup(stores[i].Close)
			}
		})
	}
	if all.Wait(); t.Failed() {
		return
	}
	a, b := stores[0], stores[1]
	r := put(t, a, "a/1", "1", 0, 0)
	v := watch(t, b, "a/")
	v.has(t, map[string]string{"a/1": "1"})
	for _, revision := range []uint64{0, r - 1} {
		if _, err := b.Put(t.Context(), "a/1", []byte("2"), revision, 0); !errors.Is(err, shared.ErrConflict) {
			t.Errorf("put with revision %d: got %v", revision, err)
		}
	}
	leader := servers[0]
	for _, s := range servers {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "KV_test") {
			leader = s
		}
	}
	leader.Shutdown()
	leader.WaitForShutdown()
	until(t, func() error {
		_, err := a.Put(t.Context(), "a/1", []byte("2"), r, 0)
		if errors.Is(err, shared.ErrConflict) { // an earlier attempt arrived
			err = nil
		}
		return err
	})
	v.has(t, map[string]string{"a/1": "2"})
}

// TestOpenErrors checks the lines that Open fails with.
func TestOpenErrors(t *testing.T) {
	plain := start(t, t.TempDir(), -1, nil).ClientURL()
	locked := start(t, t.TempDir(), -1, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "joe", Password: "hidden"},
			{Username: "deny", Password: "hidden", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$JS.API.>"}}}},
		}
	})
	without := start(t, "", -1, func(o *server.Options) { o.JetStream = false })
	for _, row := range []struct {
		name string
		opts jetstream.Options
		want string
	}{
		{"nobody listens", jetstream.Options{URL: "nats://joe:hidden@127.0.0.1:1"},
			"NATS at 127.0.0.1:1: nothing listens there"},
		{"no user", jetstream.Options{URL: locked.ClientURL()}, "refuses the credentials"},
		{"wrong password", jetstream.Options{URL: "nats://joe:hidden2@" + locked.Addr().String()}, "refuses the credentials"},
		{"no permission", jetstream.Options{URL: "nats://deny:hidden@" + locked.Addr().String()}, "$KV.test.>"},
		{"no JetStream", jetstream.Options{URL: without.ClientURL()}, "start it with -js"},
		{"no TLS", jetstream.Options{URL: strings.Replace(plain, "nats:", "tls:", 1)}, "TLS"},
		{"no credentials file", jetstream.Options{URL: plain, Credentials: filepath.Join(t.TempDir(), "none")}, "none"},
		{"no room", jetstream.Options{URL: plain, MaxBytes: 1 << 60}, "no room for bucket test"},
		{"another bucket", jetstream.Options{URL: plain, Bucket: "other"}, "bucket other exists with other settings"},
		{"not a URL", jetstream.Options{URL: "nats://joe:hidden@:x:y"}, "is not a URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.opts.Bucket == "other" {
				conn, err := nats.Connect(plain)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				js, _ := njs.New(conn)
				if _, err := js.CreateKeyValue(t.Context(), njs.KeyValueConfig{Bucket: "other"}); err != nil {
					t.Fatal(err)
				}
			} else {
				row.opts.Bucket = "test"
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := jetstream.Open(ctx, row.opts)
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hidden") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, row.want)
			}
			t.Log(err)
		})
	}
}
