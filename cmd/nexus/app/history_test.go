package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// What cannot be read in a question to the history is refused by its name. It would otherwise select everything.
func TestHistoryRefusesMalformedFilters(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	r.dial("", nil).query(`{"query":"15% of $2500"}`)
	r.history("", nil, 1)
	for _, row := range []struct{ name, values string }{
		{"since", "yesterday 1d 2026-13-45T00:00:00Z"}, {"until", "tomorrow 2026-11-23"}, {"longer", "abc -5 NaN 1e400"},
		{"limit", "-1 abc 99999999999999999999"}, {"before", "abc -1 18446744073709551616"}, {"failed", "maybe"},
	} {
		for value := range strings.FieldsSeq(row.values) {
			var got struct{ Error string }
			status := r.get("queries?"+url.Values{row.name: {value}}.Encode(), nil, &got)
			if status != http.StatusBadRequest || !strings.HasPrefix(got.Error, row.name+": want ") || !strings.HasSuffix(got.Error, fmt.Sprintf("got %q", value)) {
				t.Errorf("%s=%s: got %d %q, want 400 and the name of the parameter", row.name, value, status, got.Error)
			}
		}
	}
	for _, fine := range []string{"since=1h&until=", "until=-1h", "since=2026-01-02T15:04:05%2B01:00", "longer=0", "limit=0", "limit=9000", "before=0", "failed=0"} {
		r.history(fine, nil, 1)
	}
	r.history("failed=1", nil, 0)
}

// The entry of a query that was not answered has the trace of the query, too.
func TestHistoryOfCancelledQueries(t *testing.T) {
	started, cancelled := make(chan string, 1), make(chan string, 1)
	r, _ := withPeer(t, scripted(t, "Never.", `[{"tool":"hang","arguments":{}}]`), nil, hangTool("hang", started, cancelled))
	c := r.dial("", nil)
	_, id := c.start("tools/call", callParams("process_query", `{"query":"hang"}`, `{"traceparent":"`+parent+`"}`))
	<-started
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id), nil)
	<-cancelled
	var page struct {
		Entries []struct {
			Outcome string
			Trace   string `json:"trace_id"`
		}
	}
	r.history("outcome=cancelled", nil, 1)
	r.get("queries", nil, &page)
	if got := page.Entries[0]; got.Trace != parentTrace {
		t.Errorf("got %+v, want the trace %s", got, parentTrace)
	}
}

// Session ids are credentials: the log has only their ends, at every level.
func TestLogLacksSessionIDs(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Config.Log.Level, o.Demo = "trace", true })
	resp, _ := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, nil)
	session := resp.Header.Get("Mcp-Session-Id")
	header := map[string]string{"Mcp-Session-Id": session}
	r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, header)
	r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}`, header)
	r.stop(deadline)
	if log := r.logs.String(); session == "" || strings.Contains(log, session) || !strings.Contains(log, `"session":"`+session[len(session)-8:]+`"`) {
		t.Errorf("log: got %s, want nothing of the session %q but its end", log, session)
	}
}
