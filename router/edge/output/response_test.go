package output_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// broken is a connection that has ended, which shows only in writes.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A response that could not be written is unread until its client has had the time to resume it.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output.Outputs{
			Budget: limit.NewBudget(limit.Bounds{Total: 1 << 20, Own: 1 << 20}, nil),
			Bound:  1 << 20, Heartbeat: time.Hour, Spawn: func(_ string, f func()) { go f() }, Stopping: func() bool { return false },
		}
		var session output.SessionStream
		session.Init(out.Budget, true, "caller")
		var response output.Response
		response.Begin(out, broken{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "/mcp", nil), nil, &session)
		response.Open()
		response.Send(output.Result("1", []byte(`{}`)), true)
		response.Finish()
		synctest.Wait()
		if !session.Unread() {
			t.Error("just after the failure: got nothing unread, want the response")
		}
		time.Sleep(2 * time.Second)
		if session.Unread() {
			t.Error("2 s later: got the response unread, want it to be given up")
		}
	})
}
