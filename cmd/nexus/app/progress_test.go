package app_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// report is the content of a progress notification.
type report struct {
	Progress float64         `json:"progress"`
	Total    json.RawMessage `json:"total"`
	Message  string          `json:"message"`
	Token    json.RawMessage `json:"progressToken"`
}

// reports reads the progress of a reply and checks what holds of all progress: its token, the total and
// that values strictly increase.
func reports(t *testing.T, r *reply, token string) (all []report) {
	t.Helper()
	last := math.Inf(-1)
	for _, m := range r.notes {
		var p report
		if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "notifications/progress" {
			t.Fatalf("got %s, want progress", m.Raw)
		}
		if string(p.Token) != token || string(p.Total) != "1.0" && string(p.Total) != "1" {
			t.Errorf("got token %s and total %s, want %s and 1.0", p.Token, p.Total, token)
		}
		if p.Progress <= last {
			t.Errorf("progress: got %v after %v, want it to increase", p.Progress, last)
		}
		last = p.Progress
		all = append(all, p)
	}
	return all
}

type at struct {
	value float64
	text  string
}

// wantReports compares progress with what is wanted, to 1e-9. The growing answer, between 0.9 and 1, is
// left out.
func wantReports(t *testing.T, got []report, want []at) {
	t.Helper()
	var fixed []at
	for _, p := range got {
		if p.Progress > 0.9+1e-9 && p.Progress < 1-1e-9 {
			continue
		}
		fixed = append(fixed, at{p.Progress, p.Message})
	}
	same := len(fixed) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = math.Abs(fixed[i].value-want[i].value) <= 1e-9 && fixed[i].text == want[i].text
	}
	if !same {
		t.Errorf("progress: got %v, want %v", fixed, want)
	}
}

// steps reports progress as its arguments say.
func stepsTool(name string) peerTool {
	return peerTool{name, object + `,"annotations":{"readOnlyHint":true}`, func(c *peerCall) (string, string) {
		var args struct{ Report []string }
		if err := json.Unmarshal([]byte(c.arguments), &args); err != nil {
			return "", `{"code":-32602,"message":"bad"}`
		}
		for _, raw := range args.Report {
			c.progress(raw)
		}
		return textResult("done " + name), ""
	}}
}

func TestProgressOfQueries(t *testing.T) {
	begin, end := at{0.1, "Planning tool calls..."}, []at{{0.8, "All tools complete"}, {0.9, "Synthesizing response..."}, {1, "Complete!"}}
	executing := func(n int) at { return at{0.2, fmt.Sprintf("Executing %d tools...", n)} }
	for _, row := range []struct {
		name  string
		plans []string
		want  []at
	}{
		{"one step", []string{`[{"tool":"one","arguments":{"report":["\"progress\":1,\"total\":4,\"message\":\"a\"","\"progress\":3,\"total\":4","\"progress\":4,\"total\":4,\"message\":\"all\""]}}]`},
			[]at{begin, executing(1), {0.35, "[one] a"}, {0.65, "[one] Working..."}}},
		{"a finished step counts 1 and sends nothing", []string{
			`{"steps":[{"id":"a","tool":"two","arguments":{"report":["\"progress\":0.5,\"message\":\"x\""]}},{"id":"b","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"y\""]},"after":["a"]}]}`},
			[]at{begin, executing(2), {0.35, "[two] x"}, {0.65, "[one] y"}}},
		{"a failed step counts 1 too", []string{
			`{"steps":[{"id":"a","tool":"nobody","arguments":{}},{"id":"b","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"y\""]}}]}`},
			[]at{begin, executing(2), {0.65, "[one] y"}}},
		{"three rounds", []string{
			`{"steps":[{"id":"a","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"x\""]}}],"more":true}`,
			`{"steps":[{"id":"b","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"y\""]}}],"more":true}`,
			`{"steps":[{"id":"c","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"z\""]}}]}`},
			[]at{begin, executing(1), {0.35, "[one] x"}, {0.575, "[one] y"}, {0.725, "[one] z"}}},
		{"a round that finds nothing more to do", []string{
			`{"steps":[{"id":"a","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"x\""]}}],"more":true}`, `[]`},
			[]at{begin, executing(1), {0.35, "[one] x"}}},
		{"a step that computes has no part", []string{
			`{"steps":[{"id":"a","tool":"one","arguments":{"report":["\"progress\":0.5,\"message\":\"x\""]}},{"id":"b","pick":"1"}]}`},
			[]at{begin, executing(1), {0.5, "[one] x"}}},
		{"a plan that only computes", []string{`{"steps":[{"id":"b","pick":"1"}]}`}, []at{begin}},
		{"an empty plan", []string{`[]`}, []at{begin}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(stepsTool("one"), stepsTool("two"), textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, ""))
			for transport, dial := range transports {
				t.Run(transport, func(t *testing.T) {
					m := scripted(t, "Done, as [a] says.", row.plans...)
					r := start(t, func(o *app.Options) {
						model(o, m)
						o.Config.Planner.MaxRounds = 3
						o.Config.Servers = append(o.Config.Servers, server("peer", p.serve(t).URL))
					})
					c := dial(t, r, "")
					got := c.call("process_query", `{"query":"do it"}`, `{"progressToken":"p"}`)
					want := row.want
					if len(want) > 1 {
						want = append(want[:len(want):len(want)], end...)
					} else {
						want = append(want[:len(want):len(want)], end[1:]...)
					}
					wantReports(t, reports(t, got, `"p"`), want)
					if got.Result == nil {
						t.Errorf("got error %s, want a result", got.Error)
					}
					quiet := c.call("process_query", `{"query":"do it"}`, "")
					if len(quiet.notes) > 0 {
						t.Errorf("without a token: got %s, want no progress", quiet.notes[0].Raw)
					}
					c.wantNoStray()
				})
			}
		})
	}
}

// 100 progress notifications in a burst × 50 rounds × 4 callers of one session: none lost, crossed or late.
func TestBursts(t *testing.T) {
	const callers, rounds, burst = 4, 20, 100
	for _, servers := range []struct {
		name   string
		config func(t *testing.T) downstream.ServerConfig
	}{
		{"http", func(t *testing.T) downstream.ServerConfig { return server("peer", newPeer(floodTool()).serve(t).URL) }},
		{"sse", func(t *testing.T) downstream.ServerConfig {
			return downstream.ServerConfig{Name: "peer", Type: downstream.TransportSSE, URL: newPeer(floodTool()).serve(t).URL + "/sse"}
		}},
		{"stdio", func(t *testing.T) downstream.ServerConfig {
			return downstream.ServerConfig{Name: "peer", Type: downstream.TransportStdio, Command: os.Args[0], Env: map[string]redact.Secret{asChild: "1"}}
		}},
	} {
		for transport, dial := range transports {
			if servers.name != "http" && transport != servers.name {
				continue // each transport of clients with a fast server, and each transport of servers once more
			}
			t.Run(transport+" to "+servers.name, func(t *testing.T) {
				r := start(t, func(o *app.Options) {
					o.Config.Servers = append(o.Config.Servers, servers.config(t))
					o.Config.Log.Level = "info"
				})
				c := dial(t, r, "")
				var wg sync.WaitGroup
				for caller := range callers {
					wg.Go(func() {
						for round := range rounds {
							token := fmt.Sprintf(`"%d-%d"`, caller, round)
							got := c.call("run", `{"tool":"flood","parameters":{"n":`+token+`}}`, `{"progressToken":`+token+`}`)
							if want := `{"content":[],"structuredContent":{"n":` + token + `}}`; string(got.Result) != want {
								t.Errorf("result: got %s, want %s", got.Result, want)
								return
							}
							if len(got.notes) != burst {
								t.Errorf("got %d progress notifications, want %d", len(got.notes), burst)
								return
							}
							for i, m := range got.notes {
								if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":100}}`, token, i+1); m.Raw != want {
									t.Errorf("notification %d: got %s, want %s", i, m.Raw, want)
									return
								}
							}
						}
					})
				}
				wg.Wait()
				c.wantNoStray()
			})
		}
	}
}
