package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// patience bounds every call: the longest time limit of a server or a query, and some.
const patience = 60 * time.Second

// load is what clients do, and what came of it.
type load struct {
	s     *stage
	calls atomic.Int64

	mu     sync.Mutex
	writes map[string]string // outcome by key
	counts map[string]int    // calls by what they were and their outcome
	lost   int               // calls that got no answer, or none that is defined
}

func newLoad(s *stage) *load {
	return &load{s: s, writes: map[string]string{}, counts: map[string]int{}}
}

// defined are the outcomes that a call may have. A call that its own client gave up may have none.
var defined = map[string]bool{
	"result": true, "-32000 unavailable": true, "-32000 disconnected": true, "-32000 outcome_unknown": true, "-32000 timeout": true,
}

// run has callers call until ctx ends, and waits for their calls.
func (l *load) run(ctx context.Context, callers int) {
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { l.caller(ctx) })
	}
	wg.Wait()
}

// caller is one client, in one session after another.
func (l *load) caller(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(context.Background(), patience)
		c, err := mcptest.Dial(life, l.s.http, l.s.url+"/proxy/mcp")
		end()
		if err != nil {
			l.s.t.Errorf("opening a session: %v", err)
			return
		}
		for range 20 + rand.IntN(100) {
			if ctx.Err() != nil {
				break
			}
			l.act(c)
		}
		life, end = context.WithTimeout(context.Background(), patience)
		if err := c.Close(life); err != nil {
			l.s.t.Errorf("closing a session: %v", err)
		}
		end()
	}
}

// act does one of the things that clients do.
func (l *load) act(c *mcptest.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server := servers[rand.IntN(len(servers))]
	call := func(tool, arguments string) mcptest.Reply { return c.Call(ctx, server+"__"+tool, arguments) }
	switch n := rand.IntN(100); {
	case n < 35:
		l.note("read", call("echo", `{"n":9007199254740993}`))
	case n < 60:
		l.write("write", func(arguments string) mcptest.Reply { return call("write", arguments) })
	case n < 70:
		l.write("slow write", func(arguments string) mcptest.Reply { return call("slow", arguments) })
	case n < 80:
		l.note("read that asks the client", call("ask", "{}"))
	case n < 86:
		l.note("list", c.Do(ctx, "tools/list", "{}"))
	case n < 92:
		router := mcptest.Client{URL: l.s.url + "/mcp", HTTP: l.s.http}
		l.note("query", router.Call(ctx, "process_query", `{"query":"return the arguments of echo","servers":["steady"]}`))
	case n < 96:
		l.write("write that is cancelled", func(arguments string) mcptest.Reply { return l.cancelled(ctx, c, server, arguments) })
	default:
		l.write("write whose client is gone", func(arguments string) mcptest.Reply {
			ctx, leave := context.WithTimeout(ctx, time.Duration(rand.IntN(10))*time.Millisecond)
			defer leave()
			r := c.Call(ctx, server+"__slow", arguments)
			if ctx.Err() != nil {
				r = mcptest.Reply{} // whatever came, nobody saw it
			}
			return r
		})
	}
}

// cancelled cancels a write soon after it has begun.
func (l *load) cancelled(ctx context.Context, c *mcptest.Client, server, arguments string) mcptest.Reply {
	id := strconv.Quote("c" + strconv.FormatInt(rand.Int64(), 36))
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
		if resp, err := c.Post(ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`); err == nil {
			resp.Body.Close()
		}
	})
	r := c.DoAs(ctx, id, "tools/call", fmt.Sprintf(`{"name":"%s__slow","arguments":%s}`, server, arguments))
	wg.Wait()
	return r
}

// write calls a tool that writes a key of its own.
func (l *load) write(what string, call func(arguments string) mcptest.Reply) {
	key := strconv.FormatInt(rand.Int64(), 36)
	r := call(fmt.Sprintf(`{"key":%q,"ms":%d}`, key, rand.IntN(20)))
	l.note(what, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[key] = r.Outcome()
}

// note counts a call.
func (l *load) note(what string, r mcptest.Reply) {
	l.calls.Add(1)
	o := r.Outcome()
	givenUp := what == "write that is cancelled" || what == "write whose client is gone"
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what+": "+o]++
	if !defined[o] && (!givenUp || o != "no answer") {
		if l.lost++; l.lost <= 10 {
			l.s.t.Errorf("%s: got %s %s (%v), want one of the defined outcomes", what, o, r.Error, r.Err)
		}
	}
}

// account compares what clients were told with what was written. A write is lost if a result says that it was
// done and it was not.
func (l *load) account() (lost, duplicated int) {
	written, err := l.s.ledger.Writes()
	if err != nil {
		l.s.t.Fatal(err)
	}
	lost = l.lost
	for key, outcome := range l.writes {
		switch n := written[key]; {
		case n > 1:
			duplicated++
		case n == 0 && outcome == "result":
			lost++
		case n > 0 && (outcome == "-32000 unavailable" || outcome == "-32000 disconnected"):
			l.s.t.Errorf("a write that was said not to have begun (%s) was done", outcome)
		}
	}
	return lost, duplicated
}

// outcomes are lines that say how often each outcome came.
func (l *load) outcomes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		lines = append(lines, fmt.Sprintf("%7d %s", l.counts[what], what))
	}
	return lines
}
