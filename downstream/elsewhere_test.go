package downstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// via sends requests to another address, as those to another replica.
type via struct{ to string }

func (v via) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	u, err := url.Parse(v.to)
	if err != nil {
		return nil, err
	}
	own.URL.Host, own.Host = u.Host, u.Host
	return http.DefaultTransport.RoundTrip(own)
}

// What another replica reports of the server that it runs reads as if the server were here, and is not repeated.
func TestElsewhere(t *testing.T) {
	far := &link.Failure{Server: "work", Reason: reason.Unavailable, Message: "the process ended"}
	for name, test := range map[string]struct {
		err  string
		want link.Failure
	}{
		"failure":   {string(downstream.Failed(far, false).Encode()), *far},
		"its own":   {`{"code":-32000,"message":"busy","data":{"reason":"unavailable"}}`, link.Failure{}},
		"forbidden": {`{"code":-32600,"message":"no"}`, link.Failure{}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := &mcptest.Server{}
			s.OnMessage = func(_ context.Context, m mcptest.Message, send func(string)) bool {
				if m.Method != "tools/call" {
					return false
				}
				calls++
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + test.err + `}`)
				return true
			}
			replica := httptest.NewServer(s)
			t.Cleanup(replica.Close)
			m := start(t, downstream.Options{Servers: []downstream.ServerConfig{{
				Name: "work", Type: downstream.TransportHTTP, URL: "http://replica.example/mcp", Replica: "r2", Via: via{replica.URL},
			}}})
			reply, err := m.Call(t.Context(), request("work", "echo"))
			if got := *failureOf(err); got != test.want || calls != 1 || test.want.Reason == "" && string(reply.Err) != test.err {
				t.Errorf("got %+v, %s (%v) after %d calls, want %+v after one", got, reply.Err, err, calls, test.want)
			}
			if got := m.Status()["work"].Replica; got != "r2" {
				t.Errorf("replica: got %q, want r2", got)
			}
		})
	}
}

// A call that another replica has decided on is not decided on again.
func TestDecided(t *testing.T) {
	m := start(t, pipes([]string{"work"}, newServer()))
	policy, err := trust.Compile([]trust.Rule{{When: "true", Then: "deny"}})
	if err != nil {
		t.Fatal(err)
	}
	m.SetPolicy(policy)
	for decided, want := range map[bool]trust.Action{true: trust.Allow, false: trust.Deny} {
		r := request("work", "echo")
		r.Decided = decided
		if d, err := m.Decide(r); err != nil || d.Action != want {
			t.Errorf("decided %v: got %+v (%v), want %s", decided, d, err, want)
		}
	}
}
