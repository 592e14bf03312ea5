package link_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// A server of 2025-03-26 may send several messages in an array.
func TestBatchOfServer(t *testing.T) {
	for name, target := range targets(t) {
		if name == "process" {
			continue // it speaks another version
		}
		t.Run(name, func(t *testing.T) {
			to, script := target()
			script.version = "2025-03-26"
			l := &listener{}
			s := connect(t, to, l, 1<<20)
			var reports atomic.Int64
			reply, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"name":"batch"}`),
				Progress: func([]byte) { reports.Add(1) }})
			if err != nil || jsonrpc.Text(jsonrpc.Get(reply.Result, "name")) != "batch" || reports.Load() != 1 {
				t.Errorf("got %s, %v and %d reports; want the response of the batch after one", reply.Result, err, reports.Load())
			}
			for range 1000 {
				if l.has(&l.notified, "notifications/after") {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			t.Error("got no notification from the end of the batch")
		})
	}
}

// A response that is invalid fails its call at once, and no other.
func TestInvalidResponse(t *testing.T) {
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			to, _ := target()
			s := connect(t, to, &listener{}, 1<<20)
			for _, tool := range []string{"latin-1", "both", "neither"} {
				reply, err := call(t, s, tool)
				if f := failure(err); f.Reason != reason.Protocol || !f.MaybeDelivered {
					t.Errorf("%s: got %s, %v; want a delivered call to fail with the reason protocol", tool, reply.Result, err)
				}
			}
			if _, err := call(t, s, "echo"); err != nil {
				t.Errorf("after them: got %v, want the session to live on", err)
			}
		})
	}
}

// The first message may follow a byte order mark, and the last one may lack its line end.
func TestEndsOfStream(t *testing.T) {
	s := connect(t, link.Target{Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			script, last := newScript(), false
			_, _ = io.WriteString(theirs, "\ufeff")
			script.ServeLines(theirs, writer(func(b []byte) (int, error) {
				if last = last || jsonrpc.Get(b, "result", "name") != nil; last {
					b = b[:len(b)-1]
				}
				n, err := theirs.Write(b)
				if last {
					theirs.Close()
				}
				return n, err
			}))
			theirs.Close()
		}()
		return ours, nil
	}}, &listener{}, 1<<20)
	if reply, err := call(t, s, "last"); err != nil || jsonrpc.Text(jsonrpc.Get(reply.Result, "name")) != "last" {
		t.Errorf("got %s, %v; want the response that ends the stream", reply.Result, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
