package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const takesTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// tasker is a handler all of whose calls become tasks, if the client takes them.
type tasker struct {
	release chan struct{}    // lets "hold" go on
	ends    chan error       // why "hang" ended
	held    chan func() bool // Gone of "hold"
}

func newTasker() *tasker {
	return &tasker{make(chan struct{}), make(chan error, 1), make(chan func() bool, 1)}
}

func (*tasker) Ended(string) {}

func (s *tasker) Serve(ctx context.Context, x *edge.Exchange) {
	switch {
	case protocol.OfTasks(x.Message.Method):
		edge.ServeTask(x)
		return
	case x.Message.Method == protocol.MethodListen:
		edge.ListenTasks(ctx, x)
		return
	}
	if jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name")) == "late" { // cancelled before it is a task
		s.held <- x.Gone
		<-ctx.Done()
	}
	if err := edge.AsTask(x); err != nil {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
		return
	}
	if report := x.Progress(); report != nil {
		report(0.5, "half\ndone")
	}
	x.Notify(logMessage(1, 1)) // a task has none
	switch jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name")) {
	case "echo":
		x.Reply([]byte(`{"content":[],"big":9007199254740993}`))
	case "errs":
		x.Reply([]byte(`{"isError":true}`))
	case "fail":
		x.Fail(&jsonrpc.Error{Code: -32099, Message: "no luck"})
	case "panic":
		panic("oops")
	case "large":
		x.Reply([]byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`))
	case "hold":
		s.held <- x.Gone
		<-s.release
		x.Reply([]byte(`{}`))
	case "yields":
		edge.Yield(x)("files") // it waits for nobody
		s.held <- func() bool { edge.Yield(x)("files"); return true }
		_, err := x.Request(ctx, "elicitation/create", []byte(`{"message":"a"}`))
		s.ends <- err
	case "ask":
		var answers sync.Map
		var both sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			both.Go(func() {
				m, err := x.Request(ctx, "elicitation/create", []byte(`{"message":"`+name+`"}`))
				answers.Store(name, fmt.Sprintf("%s%s%v", m.Result, m.Err, err))
			})
		}
		both.Wait()
		a, _ := answers.Load("a")
		b, _ := answers.Load("b")
		x.Reply([]byte(`{"a":` + string(jsonrpc.StringID(a.(string))) + `,"b":` + string(jsonrpc.StringID(b.(string))) + `}`))
	default:
		<-ctx.Done()
		s.ends <- context.Cause(ctx)
	}
}

// tasks is a client that takes tasks of an edge that is served without a network.
type tasks struct {
	t    *testing.T
	http http.Handler
	h    header
}

func newTasks(t *testing.T, o edge.Options) (*edge.Edge, *tasker, *tasks) {
	s, e := newTasker(), edge.New(o)
	t.Cleanup(func() {
		stop(t, e)
		equal(t, "bytes held in the end", e.Held(), 0)
	})
	return e, s, &tasks{t, e.Streamable(s, nil), nil}
}

// as returns the client with another header.
func (c *tasks) as(name, value string) *tasks { return &tasks{c.t, c.http, with(c.h, name, value)} }

// do returns the result, or the code of the error and its message.
func (c *tasks) do(method, member, value, more, capabilities string) string {
	c.t.Helper()
	h := modernHeader(method, value)
	for k, v := range c.h {
		h[k] = v
	}
	body := modern("1", method, `"`+member+`":"`+value+`",`+more)
	body = strings.Replace(body, `{"x":1}`, capabilities, 1)
	answer := last(direct(c.http, "POST", body, h).Body.String())
	if result := jsonrpc.Get(answer, "result"); result != nil {
		return string(result)
	}
	return string(jsonrpc.Get(answer, "error", "code")) + " " + jsonrpc.Text(jsonrpc.Get(answer, "error", "message"))
}

// begin begins a task and returns its id.
func (c *tasks) begin(tool string) string {
	c.t.Helper()
	result := c.do("tools/call", "name", tool, "", takesTasks)
	id := jsonrpc.Text(jsonrpc.Get([]byte(result), "taskId"))
	if jsonrpc.Text(jsonrpc.Get([]byte(result), "resultType")) != "task" || id == "" {
		c.t.Fatalf("%s: got %s, want a task", tool, result)
	}
	return id
}

func (c *tasks) get(id string) string { return c.do("tasks/get", "taskId", id, "", takesTasks) }

func (c *tasks) cancel(id string) string { return c.do("tasks/cancel", "taskId", id, "", takesTasks) }

func (c *tasks) update(id, responses string) string {
	return c.do("tasks/update", "taskId", id, `"inputResponses":`+responses+`,`, takesTasks)
}

const acknowledged = `{"resultType":"complete"}`

func status(task string) string { return jsonrpc.Text(jsonrpc.Get([]byte(task), "status")) }

// A task ends with what the call would have been answered with.
func TestTasks_End(t *testing.T) {
	for tool, want := range map[string]string{
		"echo":  `"status":"completed","statusMessage":"half done",…"result":{"resultType":"complete","content":[],"big":9007199254740993}}`,
		"errs":  `"status":"completed","statusMessage":"half done",…"result":{"resultType":"complete","isError":true}}`,
		"fail":  `"status":"failed","statusMessage":"no luck",…"error":{"code":-32099,"message":"no luck"}}`,
		"panic": `"status":"failed",…"error":{"code":-32603,`,
		"ask":   `"status":"input_required","statusMessage":"half done",…"inputRequests":{"q`,
		"hang":  `"status":"working","statusMessage":"half done",…"ttlMs":1800000,"pollIntervalMs":500}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			_, _, c := newTasks(t, edge.Options{})
			id := c.begin(tool)
			synctest.Wait()
			got := c.get(id)
			contains(t, tool, got, append(strings.Split(want, "…"), `"resultType":"complete"`, `"taskId":"`+id+`"`)...)
			if tool != "ask" && strings.Contains(got, "inputRequests") || strings.Contains(got, "requestState") {
				t.Errorf("%s: got %s, want neither requests nor a requestState", tool, got)
			}
		})
	}
}

// Without the extension, calls are answered as ever, and requests about tasks are refused.
func TestTasks_NeedTheExtension(t *testing.T) {
	_, _, c := newTasks(t, edge.Options{})
	id := c.begin("echo")
	equal(t, "a call", c.do("tools/call", "name", "echo", "", "{}"), `{"resultType":"complete","content":[],"big":9007199254740993}`)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		contains(t, method, c.do(method, "taskId", id, "", `{"extensions":{}}`), "-32021")
		contains(t, method+" with another name", c.as("Mcp-Name", "other").do(method, "taskId", id, "", takesTasks), "-32020")
	}
	answer := direct(c.http, "POST", modern("1", "tasks/get", `"taskId":"x",`), modernHeader("tasks/get", "x"))
	equal(t, "status", answer.Code, 400)
	equal(t, "required", string(jsonrpc.Get(answer.Body.Bytes(), "error", "data")),
		`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)
}

// Requests to the client are those of the task until they are answered, whatever else an update says.
func TestTasks_Input(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, c := newTasks(t, edge.Options{})
		id := c.begin("ask")
		synctest.Wait()
		asked := jsonrpc.Get([]byte(c.get(id)), "inputRequests")
		keys := []string{}
		jsonrpc.Members(asked, func(name []byte, v jsonrpc.Span) bool {
			keys = append(keys, string(name))
			equal(t, "method", jsonrpc.Text(jsonrpc.Get(v.Of(asked), "method")), "elicitation/create")
			return true
		})
		if len(keys) != 2 || keys[0] == keys[1] {
			t.Fatalf("got the requests %s, want two", asked)
		}
		equal(t, "unknown keys", c.update(id, `{"q9":{},"":{}}`), acknowledged)
		contains(t, "no object", c.update(id, `[]`), "-32602", "inputResponses must be an object")
		equal(t, "one answer", c.update(id, `{"`+keys[0]+`":{"n":1}}`), acknowledged)
		if got := string(jsonrpc.Get([]byte(c.get(id)), "inputRequests")); !strings.Contains(got, keys[1]) || strings.Contains(got, keys[0]) {
			t.Errorf("after one answer: got %s, want the other request", got)
		}
		equal(t, "the same again", c.update(id, `{"`+keys[0]+`":{"n":2}}`), acknowledged)
		equal(t, "the other answer", c.update(id, `{"`+keys[1]+`":7}`), acknowledged)
		synctest.Wait()
		got := c.get(id)
		contains(t, "in the end", got, `"status":"completed"`, `{\"n\":1}<nil>`, `the response is not an object`)
		equal(t, "too late", c.update(id, `{"`+keys[0]+`":{}}`), acknowledged)
		equal(t, "in the end, again", c.get(id), got)
	})
}

func TestTasks_Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, c := newTasks(t, edge.Options{})
		id := c.begin("hang")
		equal(t, "cancel", c.cancel(id), acknowledged)
		if err := <-s.ends; !errors.As(err, new(*edge.Cancelled)) {
			t.Errorf("the call ended with %v, want that its client cancelled it", err)
		}
		synctest.Wait()
		equal(t, "cancelled", status(c.get(id)), "cancelled")
		equal(t, "cancel again", c.cancel(id), acknowledged)
		id = c.begin("echo")
		synctest.Wait()
		done := c.get(id)
		equal(t, "cancel when it is done", c.cancel(id), acknowledged)
		equal(t, "done", c.get(id), done)
		id = c.begin("ask")
		synctest.Wait()
		c.cancel(id)
		synctest.Wait()
		equal(t, "cancelled while it asks", status(c.get(id)), "cancelled")
	})
}

// Another caller's task is answered like one that never was, also where it is on another path.
func TestTasks_AreTheCallersOwn(t *testing.T) {
	for name, row := range map[string]struct {
		o        edge.Options
		ann, bob header
	}{
		"keys":      {edge.Options{Keys: keys(t)}, header{"X-API-Key": "key-ann"}, header{"X-API-Key": "key-bob"}},
		"addresses": {edge.Options{}, header{"Remote": "203.0.113.7:1"}, header{"Remote": "203.0.113.8:1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, _, c := newTasks(t, row.o)
			ann, bob := &tasks{t, c.http, row.ann}, &tasks{t, c.http, row.bob}
			id := ann.begin("ask")
			synctest.Wait()
			for _, do := range []func(*tasks, string) string{(*tasks).get, (*tasks).cancel, func(c *tasks, id string) string { return c.update(id, `{"q1":{}}`) }} {
				equal(t, name+": another's task", do(bob, id), do(bob, "nexus-"+strings.Repeat("A", 26)))
				equal(t, name+": a forged id", do(ann, id[:len(id)-1]), do(ann, ""))
				contains(t, name, do(bob, id), "-32602")
			}
			equal(t, name+": untouched", status(ann.get(id)), "input_required")
		})
	}
	_, _, c := newTasks(t, edge.Options{})
	id := c.begin("echo")
	r := httptest.NewRequest("POST", "http://127.0.0.1/other", strings.NewReader(
		strings.Replace(modern("1", "tasks/get", `"taskId":"`+id+`",`), `{"x":1}`, takesTasks, 1)))
	for k, v := range modernHeader("tasks/get", id) {
		r.Header.Set(k, v)
	}
	answer := httptest.NewRecorder()
	c.http.ServeHTTP(answer, r)
	contains(t, "on another path", answer.Body.String(), "unknown or expired")
}

// A client that leaves cancels nothing that has become a task, and it is never taken for gone.
func TestTasks_OutliveTheirClient(t *testing.T) {
	_, s, c := newTasks(t, edge.Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	body := strings.Replace(modernCall("hold"), `{"x":1}`, takesTasks, 1)
	answer := directly(ctx, c.http, "POST", body, modernHeader("tools/call", "hold")).Body.Bytes()
	id := jsonrpc.Text(jsonrpc.Get(answer, "result", "taskId"))
	hangUp()
	gone := <-s.held
	equal(t, "Gone", gone(), false)
	equal(t, "before the end", status(c.get(id)), "working")
	close(s.release)
	for status(c.get(id)) != "completed" {
		if t.Context().Err() != nil {
			t.Fatal("the task does not complete")
		}
	}
}

// What is kept is bounded: more is refused, large results are charged to the caller, and all is forgotten in time.
func TestTasks_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, c := newTasks(t, edge.Options{})
		first := c.begin("large")
		synctest.Wait()
		if held := e.Held(); held < 1<<20 {
			t.Errorf("a large result is kept: got %d bytes held, want its size", held)
		}
		n := 1
		for ; n <= 10_000; n++ {
			if got := c.do("tools/call", "name", "echo", "", takesTasks); !strings.Contains(got, `"taskId"`) {
				contains(t, "the refusal", got, "-32603", "too many tasks", "30 minutes")
				break
			}
		}
		if n < 1_000 || n > 10_000 {
			t.Errorf("got %d tasks, want a bound of thousands", n)
		}
		other := c.as("Remote", "203.0.113.8:1")
		other.begin("echo")
		contains(t, "a call without the extension", c.do("tools/call", "name", "echo", "", "{}"), `"big"`)
		hangs := other.begin("hang")
		time.Sleep(30*time.Minute - time.Second)
		equal(t, "kept", status(c.get(first)), "completed")
		time.Sleep(3 * time.Second)
		contains(t, "forgotten", c.get(first)+other.get(hangs), "-32602 Invalid params: unknown or expired taskId", "expired")
		equal(t, "bytes held", e.Held(), 0)
		c.begin("echo")
	})
}

// The end of the process ends its tasks.
func TestTasks_EndWithTheEdge(t *testing.T) {
	e, s, c := newTasks(t, edge.Options{})
	c.begin("hang")
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	equal(t, "Stop", e.Stop(ctx), nil)
	if err := <-s.ends; !errors.Is(err, edge.ErrStopped) || time.Since(began) > time.Minute/2 {
		t.Errorf("the task ended with %v after %v, want ErrStopped at once", err, time.Since(began))
	}
}

// Ids of tasks cannot be guessed: they differ in more than a counter.
func TestTasks_IDs(t *testing.T) {
	_, _, c := newTasks(t, edge.Options{})
	var ids []string
	for range 20 {
		id := c.begin("echo")
		if len(id) < 26 || slices.Contains(ids, id) {
			t.Errorf("got the id %q after %q, want another of 26 random letters", id, ids)
		}
		ids = append(ids, id)
	}
}

// Those who listen to a task of their own are told its state at once and whenever it changes; the ids of others are left
// out.
func TestTasks_Listen(t *testing.T) {
	_, _, c := newTasks(t, edge.Options{Keys: keys(t)})
	h := httptest.NewServer(c.http)
	t.Cleanup(h.Close)
	ann, bob := c.as("X-API-Key", "key-ann"), c.as("X-API-Key", "key-bob")
	id, others := ann.begin("ask"), bob.begin("hang")
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	body := strings.Replace(modern("7", "subscriptions/listen", `"notifications":{"taskIds":["`+id+`","`+others+`","no","`+id+`"]},`), `{"x":1}`, takesTasks, 1)
	r, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range modernHeader("subscriptions/listen", "") {
		r.Header.Set(k, v)
	}
	r.Header.Set("X-API-Key", "key-ann")
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := readEvents(t, resp.Body)
	const subscription = `"_meta":{"io.modelcontextprotocol/subscriptionId":7}`
	contains(t, "first", stream.message(), `"method":"notifications/subscriptions/acknowledged"`, subscription, `"taskIds":["`+id+`"]`)
	answered := ""
	for answered == "" || !strings.Contains(answered, `"status":"completed"`) {
		said := stream.message()
		contains(t, "then", said, `"method":"notifications/tasks"`, subscription, `"taskId":"`+id+`"`)
		if strings.Contains(said, `"q2"`) {
			equal(t, "answers", ann.update(id, `{"q1":{},"q2":{}}`), acknowledged)
		}
		answered = said
	}
	contains(t, "last", answered, `"result":{"resultType":"complete"`)
	equal(t, "as it was", string(jsonrpc.Get([]byte(ann.get(id)), "result")), string(jsonrpc.Get([]byte(answered), "params", "result")))
	for want, row := range map[string][2]string{
		"-32021":                          {`{"taskIds":[]}`, "{}"},
		"taskIds must be a list of ids":   {`{"taskIds":"x"}`, takesTasks},
		"at most 100 ids":                 {`{"taskIds":[` + strings.Repeat(`"x",`, 100) + `"x"]}`, takesTasks},
		"a list of at most 100 ids":       {`{"taskIds":[7]}`, takesTasks},
		"needs Accept: application/json,": {`{"taskIds":["x"]}`, takesTasks},
	} {
		got := ann.as("Accept", "application/json").do("subscriptions/listen", "x", "y", `"notifications":`+row[0]+`,`, row[1])
		contains(t, want, got, want)
	}
}

// A task that waits for its user ends a minute after it began to, once another client waits to be asked.
func TestTasks_Yield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, c := newTasks(t, edge.Options{})
		id := c.begin("yields")
		yield := <-s.held
		time.Sleep(5 * time.Minute)
		equal(t, "nobody waits", status(c.get(id)), "input_required")
		yield()
		if err := <-s.ends; err == nil || !edge.Ended(err) {
			t.Errorf("another client waits: got %v, want that the task ends", err)
		}
		synctest.Wait()
		contains(t, "then", c.get(id), `"status":"failed"`, "another client waits to be asked")
		time.Sleep(31 * time.Second) // the turn of others
		id = c.begin("yields")
		yield = <-s.held
		synctest.Wait()
		yield()
		time.Sleep(59 * time.Second)
		equal(t, "an answer", c.update(id, `{"q1":{}}`), acknowledged)
		equal(t, "in time", <-s.ends, nil)
	})
}

// A client on stdio gets and polls its tasks like any other.
func TestTasks_Stdio(t *testing.T) {
	e := edge.New(edge.Options{})
	t.Cleanup(func() { stop(t, e) })
	c := newStdio(t, e, newTasker())
	c.send(strings.Replace(modernCall("ask"), `{"x":1}`, takesTasks, 1))
	id := string(jsonrpc.Get([]byte(c.line()), "result", "taskId"))
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) // of no request any more
	for _, step := range []struct{ method, more, want string }{
		{"tasks/get", "", `"taskId":` + id}, {"tasks/cancel", "", acknowledged}, {"tasks/get", "", `"status":"cancelled"`},
	} {
		c.send(strings.Replace(modern("1", step.method, `"taskId":`+id+`,`+step.more), `{"x":1}`, takesTasks, 1))
		contains(t, step.method, c.line(), `"id":1`, step.want)
	}
	c.finish()
}

// A call that its client has cancelled in the meantime is no task, and has no response.
func TestTasks_CancelledBefore(t *testing.T) {
	e, s := edge.New(edge.Options{}), newTasker()
	t.Cleanup(func() { stop(t, e) })
	c := newStdio(t, e, s)
	c.send(strings.Replace(modernCall("late"), `{"x":1}`, takesTasks, 1))
	<-s.held
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-s.ends
	c.send(strings.Replace(modern("2", "tasks/get", `"taskId":"no",`), `{"x":1}`, takesTasks, 1))
	contains(t, "the next line", c.line(), `"id":2`, "-32602")
	c.finish()
}

// The end of stdin ends tasks, whose replies nobody can fetch any more.
func TestTasks_EndWithStdin(t *testing.T) {
	e, s := edge.New(edge.Options{}), newTasker()
	t.Cleanup(func() { stop(t, e) })
	c := newStdio(t, e, s)
	c.send(strings.Replace(modernCall("hang"), `{"x":1}`, takesTasks, 1))
	contains(t, "a task", c.line(), `"taskId"`)
	c.finish()
	if err := <-s.ends; !errors.Is(err, edge.ErrSessionEnded) {
		t.Errorf("the task ended with %v, want ErrSessionEnded", err)
	}
}
