package router_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

// A question waits for the first server while there is nothing to plan with, longer than a list would.
func TestQueryAwaitsStart(t *testing.T) {
	const plan = `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}}]}`
	for _, row := range []struct {
		name   string
		comes  bool
		others bool // servers that never come
		want   string
	}{
		{"it comes", true, false, `a=echo{"v":1}`},
		{"it comes beside others", true, true, `a=echo{"v":1}`},
		{"none comes", false, true, "No server could be listed: never, peer."},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit(t, func(o *router.Options, d *downstream.Options) {
				d.ListDeadline = 20 * time.Millisecond
				open := d.Embedded["peer"]
				d.Embedded["peer"] = func(ctx context.Context) (io.ReadWriteCloser, error) {
					select {
					case <-time.After(10 * d.ListDeadline):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					if !row.comes {
						return nil, errors.New("gone")
					}
					return open(ctx)
				}
				if row.others {
					never := downstream.ServerConfig{Name: "never", Type: downstream.TransportStdio, ConnectTimeout: time.Second}
					d.Servers = append([]downstream.ServerConfig{never}, d.Servers...)
					d.Embedded["never"] = func(ctx context.Context) (io.ReadWriteCloser, error) { <-ctx.Done(); return nil, ctx.Err() }
				}
			}, plan)
			r := k.query(router.Query{Text: "q"})
			if got := brief(r) + r.Answer.Text; !strings.Contains(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}
