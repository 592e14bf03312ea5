package jetstream_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/agenticnexus/agenticnexus/internal/shared/jetstream"
)

// The permissions that docs/scaling.md shows are enough.
func TestPermissions(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) (subjects []string) {
		found := regexp.MustCompile(name + `: \[([^\]]*)\]`).FindSubmatch(guide)
		if found == nil {
			t.Fatalf("docs/scaling.md has no permissions to %s", name)
		}
		for _, quoted := range strings.Split(string(found[1]), ",") {
			subjects = append(subjects, strings.Trim(strings.TrimSpace(quoted), `"`))
		}
		return subjects
	}
	user := &server.User{Username: "nexus", Password: "secret", Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: listed("publish")},
		Subscribe: &server.SubjectPermission{Allow: listed("subscribe")},
	}}
	srv := start(t, t.TempDir(), -1, func(o *server.Options) { o.Users = []*server.User{user} })
	for range 2 { // the second opens the bucket of the first
		s := open(t, jetstream.Options{
			URL: fmt.Sprintf("nats://nexus:secret@%s", srv.Addr()), Bucket: "agenticnexus",
		})
		v := watch(t, s, "a/")
		one := put(t, s, "a/b", "1", 0, time.Hour)
		two := put(t, s, "a/b", "2", one, time.Hour)
		v.has(t, map[string]string{"a/b": "2"})
		if e, err := s.Get(t.Context(), "a/b"); err != nil || string(e.Value) != "2" {
			t.Errorf("get: got %q, %v", e.Value, err)
		}
		if err := s.Delete(t.Context(), "a/b", two); err != nil {
			t.Errorf("delete: got %v", err)
		}
		v.has(t, map[string]string{})
	}
}

// BenchmarkOperations measures changes and readings of entries of 200 bytes, the size of a session's.
func BenchmarkOperations(b *testing.B) {
	value := strings.Repeat("x", 200)
	for _, always := range []bool{false, true} {
		srv := start(b, b.TempDir(), -1, func(o *server.Options) { o.SyncAlways = always })
		s := open(b, jetstream.Options{URL: srv.ClientURL()})
		name := fmt.Sprintf("always=%t/", always)
		b.Run(name+"create", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				put(b, s, fmt.Sprint("created/", i), value, 0, time.Hour)
			}
		})
		var next atomic.Int64
		b.Run(name+"creations at once", func(b *testing.B) {
			b.SetParallelism(32) // for each core
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					put(b, s, fmt.Sprint("parallel/", next.Add(1)), value, 0, time.Hour)
				}
			})
		})
		b.Run(name+"renew", func(b *testing.B) {
			revision := put(b, s, "renewed", value, 0, time.Hour)
			for b.Loop() {
				revision = put(b, s, "renewed", value, revision, time.Hour)
			}
		})
		b.Run(name+"get", func(b *testing.B) {
			put(b, s, "got", value, 0, time.Hour)
			for b.Loop() {
				if _, err := s.Get(b.Context(), "got"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
