package llm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const apiKey = "sk-very-secret-1234567890"

var schema = &llm.Schema{
	Name:   "answer",
	Strict: []byte(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}`),
	Loose:  []byte(`{"type":"object","properties":{"z":{},"a":{}}}`),
}

type fixture struct {
	*llmtest.Server
	cfg  llm.Config
	log  bytes.Buffer
	http *http.Client
	llm  *llm.Client
}

// connect starts a scripted model and a client for it that waits little.
func connect(t *testing.T, change func(*llm.Config)) *fixture {
	t.Helper()
	f := &fixture{Server: llmtest.New(t)}
	f.cfg = llm.Config{BaseURL: f.BaseURL, APIKey: redact.Secret(apiKey), Model: "stub", Timeout: 40 * time.Second}
	if change != nil {
		change(&f.cfg)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f.llm = llm.New(f.cfg, llm.Options{
		Logger:     slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		HTTPClient: f.http,
		RetryDelay: time.Millisecond,
	})
	return f
}

func ask(text string) llm.Request {
	return llm.Request{System: "Be brief.", Messages: []llm.Message{{Role: llm.RoleUser, Content: text}}}
}

// apis runs a test over all APIs.
func apis(t *testing.T, test func(t *testing.T, api func(*llm.Config))) {
	openAI(t, test)
	t.Run(llm.APIAnthropic, func(t *testing.T) { test(t, func(c *llm.Config) { c.API = llm.APIAnthropic }) })
}

// openAI runs a test over the APIs of OpenAI.
func openAI(t *testing.T, test func(t *testing.T, api func(*llm.Config))) {
	for _, api := range []string{llm.APIChat, llm.APIResponses} {
		t.Run(api, func(t *testing.T) { test(t, func(c *llm.Config) { c.API = api }) })
	}
}

func TestAnswerIsStreamed(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		f := connect(t, api)
		f.Answer(llmtest.Reply{Text: "Grüße aus dem Süden, 你好!", Chunk: 3})
		var pieces []string
		req := ask("hello")
		req.OnDelta = func(s string) { pieces = append(pieces, s) }
		got, err := f.llm.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Grüße aus dem Süden, 你好!"; got.Text != want || strings.Join(pieces, "") != want || len(pieces) < 5 {
			t.Errorf("got %q in %d pieces %q, want %q in several", got.Text, len(pieces), pieces, want)
		}
		if got.Usage.Calls != 1 || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 || got.Usage.Model != "stub" {
			t.Errorf("got usage %+v, want one call with tokens", got.Usage)
		}
		r := f.Requests()[0]
		if got := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); strings.TrimPrefix(got, "Bearer ") != apiKey {
			t.Errorf("got headers %v, want the key in one", r.Header)
		}
		if r.System != "Be brief." || len(r.Users) != 1 || r.Users[0] != "hello" || !r.Stream {
			t.Errorf("got request %s", r.Body)
		}
		status := f.llm.Status()
		if status.Model != "stub" || status.LastOK == nil || status.LastError != "" {
			t.Errorf("got status %+v, want a success", status)
		}
	})
}

func TestParameters(t *testing.T) {
	for model, temperature := range map[string]bool{
		"llama3": true, "gpt-4o": true, "openai/gpt-4.1": true, "gpt-5": false, "gpt-5-mini": false, "openai/gpt-5.1": false, "o3-mini": false, "o1": false, "olmo": false, "stub": false, "meta-llama/Llama-3.3-70B": true,
	} {
		openAI(t, func(t *testing.T, api func(*llm.Config)) {
			f := connect(t, func(c *llm.Config) { api(c); c.Model = model })
			f.Answer(llmtest.Reply{Text: "yes"})
			if _, err := f.llm.Complete(t.Context(), ask("?")); err != nil {
				t.Fatal(err)
			}
			r := f.Requests()[0]
			if got := strings.Contains(string(r.Body), `"temperature":0`); got != temperature {
				t.Errorf("%s: got temperature 0 sent %t, want %t: %s", model, got, temperature, r.Body)
			}
			if r.Has("max_tokens") {
				t.Errorf("%s: got max_tokens, want none: %s", model, r.Body)
			}
		})
	}
}

// TestFaults: each way of failing has a clear outcome within bounded time.
func TestFaults(t *testing.T) {
	long := strings.Repeat("text ", 20)
	for _, row := range []struct {
		name    string
		replies []llmtest.Reply
		want    llm.Kind // "" is an answer
		status  int
		calls   int
	}{
		{"429 then fine", []llmtest.Reply{{Status: 429, Text: "slow down"}, {Text: long}}, "", 0, 2},
		{"429 for good", []llmtest.Reply{{Status: 429, Text: "slow down"}}, llm.RateLimited, 429, 3},
		{"quota used up", []llmtest.Reply{{Status: 429, Text: "pay", Code: "insufficient_quota"}}, llm.RateLimited, 429, 1},
		{"500 twice then fine", []llmtest.Reply{{Status: 500}, {Status: 503}, {Text: long}}, "", 0, 3},
		{"500 for good", []llmtest.Reply{{Status: 502, Text: "bad gateway"}}, llm.Server, 502, 3},
		{"401", []llmtest.Reply{{Status: 401, Text: "Incorrect API key provided: " + apiKey}}, llm.Refused, 401, 1},
		{"404", []llmtest.Reply{{Status: 404, Text: "no such model"}}, llm.Refused, 404, 1},
		{"redirect", []llmtest.Reply{{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}}, llm.Refused, 307, 1},
		{"stall", []llmtest.Reply{{Text: long, Fault: llmtest.Stall}}, llm.Timeout, 0, 3},
		{"stall at first", []llmtest.Reply{{Fault: llmtest.StallFirst}}, llm.Timeout, 0, 3},
		{"stall then fine", []llmtest.Reply{{Text: long, Fault: llmtest.Stall}, {Text: long}}, "", 0, 2},
		{"connection lost", []llmtest.Reply{{Text: long, Fault: llmtest.Drop}}, llm.Cut, 0, 3},
		{"no answer", []llmtest.Reply{{Fault: llmtest.DropFirst}}, llm.Unreachable, 0, 3},
		{"stream ends early", []llmtest.Reply{{Text: long, Fault: llmtest.End}}, llm.Cut, 0, 3},
		{"cut then fine", []llmtest.Reply{{Text: long, Fault: llmtest.Drop}, {Text: long}}, "", 0, 2},
		{"page", []llmtest.Reply{{Fault: llmtest.HTML}}, llm.Invalid, 0, 1},
		{"error frame", []llmtest.Reply{{Text: long, Fault: llmtest.ErrorFrame}}, llm.Server, 0, 3},
		{"error event", []llmtest.Reply{{Text: long, Fault: llmtest.ErrorEvent}}, llm.Server, 0, 3},
		{"128 MiB line", []llmtest.Reply{{Text: long, Fault: llmtest.LongLine}}, llm.Invalid, 0, 1},
		{"not streamed", []llmtest.Reply{{Text: long, Fault: llmtest.Whole}}, "", 0, 1},
		{"not streamed, cut short", []llmtest.Reply{{Text: long, Fault: llmtest.Whole, Finish: "length"}}, llm.Truncated, 0, 1},
		{"comments", []llmtest.Reply{{Text: long, Fault: llmtest.Comments}}, "", 0, 1},
		{"length limit", []llmtest.Reply{{Text: long, Finish: "length"}}, llm.Truncated, 0, 1},
		{"content filter", []llmtest.Reply{{Text: long, Finish: "content_filter"}}, llm.Refused, 0, 1},
		{"empty", []llmtest.Reply{{Text: ""}}, llm.Empty, 0, 1},
		{"JSON of something else", []llmtest.Reply{{Raw: `{"hello":"world"}`, RawType: "application/json"}}, llm.Invalid, 0, 1},
		{"error with status 200", []llmtest.Reply{{Raw: `{"error":{"message":"busy","code":503}}`, RawType: "application/json"}}, llm.Server, 503, 3},
		{"broken frame", []llmtest.Reply{{Raw: "data: {\"choices\":[\n\ndata: [DONE]\n\n", RawType: "text/event-stream"}}, llm.Invalid, 0, 1},
		{"nothing", []llmtest.Reply{{Raw: "\n", RawType: "text/plain"}}, llm.Invalid, 0, 1},
		{"text too large", []llmtest.Reply{{Text: strings.Repeat("x", 3<<20), Chunk: 64 << 10}}, llm.Invalid, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			apis(t, func(t *testing.T, api func(*llm.Config)) {
				t.Parallel()
				f := connect(t, func(c *llm.Config) {
					api(c)
					switch row.replies[0].Fault {
					case llmtest.Stall: // a quarter of the time without data is a stall
						c.Timeout = 2 * time.Second
					case llmtest.StallFirst:
						c.Timeout = 500 * time.Millisecond
					}
				})
				f.Answer(row.replies...)
				req := ask("?")
				var partial strings.Builder
				req.OnDelta = func(s string) { partial.WriteString(s) }
				req.OnRestart = partial.Reset
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				got, err := f.llm.Complete(ctx, req)
				if ctx.Err() != nil {
					t.Fatalf("took more than 30 s: %v", err)
				}
				if row.want == "" {
					if err != nil || got.Text != long || partial.String() != long {
						t.Errorf("got %q, pieces %q, error %v, want %q", got.Text, partial.String(), err, long)
					}
				} else {
					f.expect(t, got, err, row.want, row.status)
				}
				if got.Usage.Calls != row.calls || len(f.Requests()) != row.calls {
					t.Errorf("got %d calls counted and %d made, want %d", got.Usage.Calls, len(f.Requests()), row.calls)
				}
			})
		})
	}
}

// expect checks a failure: its kind, that there is no half answer, one line, and no key anywhere.
func (f *fixture) expect(t *testing.T, got llm.Response, err error, kind llm.Kind, status int) {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v (%T), want an *llm.Error", err, err)
	}
	if e.Kind != kind || e.Status != status {
		t.Errorf("got kind %q status %d (%v), want %q %d", e.Kind, e.Status, e, kind, status)
	}
	if got.Text != "" {
		t.Errorf("got text %q with the error, want none", got.Text)
	}
	if s := f.llm.Status(); s.LastError != e.Error() || s.LastOK != nil {
		t.Errorf("got status %+v, want the error %q", s, e)
	}
	for _, text := range []string{e.Error(), f.log.String(), f.llm.Status().LastError} {
		if strings.Contains(text, apiKey) {
			t.Errorf("the API key is in %q", text)
		}
	}
	if strings.ContainsAny(e.Error(), "\r\n") || len(e.Error()) > 500 {
		t.Errorf("got error %q, want one short line", e)
	}
}

// TestUnreachableIsRemembered: clients of one endpoint share that it is not there; no other failure is shared.
func TestUnreachableIsRemembered(t *testing.T) {
	f := connect(t, nil)
	breaker := llm.NewBreaker()
	first := llm.New(f.cfg, llm.Options{HTTPClient: f.http, RetryDelay: time.Millisecond, Breaker: breaker})
	second := llm.New(f.cfg, llm.Options{HTTPClient: f.http, RetryDelay: time.Millisecond, Breaker: breaker})
	for fault, reply := range map[string]llmtest.Reply{"500": {Status: 500}, "lost": {Fault: llmtest.DropFirst}, "refused": {Status: 401}} {
		f.Reset()
		f.Answer(reply)
		if _, err := first.Complete(t.Context(), ask("?")); err == nil {
			t.Errorf("%s: got an answer, want an error", fault)
		}
		if got, _ := second.Complete(t.Context(), ask("?")); got.Usage.Calls == 0 {
			t.Errorf("%s: got no request of the other client, want some: the endpoint is there", fault)
		}
	}
	f.Close()
	f.http.CloseIdleConnections()
	for _, row := range []struct {
		client *llm.Client
		calls  int
	}{{first, 3}, {second, 0}, {first, 0}} {
		got, err := row.client.Complete(t.Context(), ask("?"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Unreachable || got.Usage.Calls != row.calls {
			t.Errorf("got %v after %d calls, want unreachable after %d", err, got.Usage.Calls, row.calls)
		}
	}
	if err := second.Status().LastError; !strings.Contains(err, "not sent") {
		t.Errorf("got last error %q, want it to say that nothing was sent", err)
	}
}

// TestKeyIsGoneBeforeTheCut: not even a part of the key is left where a long message is cut.
func TestKeyIsGoneBeforeTheCut(t *testing.T) {
	for _, at := range []int{0, 280, 290, 299, 2390, 5000} {
		for _, gap := range []string{"x", " ", "\n"} {
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Status: 401, Text: strings.Repeat(gap, at) + apiKey})
			_, err := f.llm.Complete(t.Context(), ask("?"))
			if err == nil || strings.Contains(err.Error(), apiKey[:8]) {
				t.Errorf("after %d of %q: got error %q, want one without any of the key", at, gap, err)
			}
		}
	}
}

// cutting answers with headers and loses the connection before the first byte of the body.
type cutting struct{}

func (cutting) RoundTrip(req *http.Request) (*http.Response, error) {
	body := io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: req}, nil
}

// TestCutBeforeTheFirstByte: a lost connection is no empty answer, and is tried again.
func TestCutBeforeTheFirstByte(t *testing.T) {
	c := llm.New(llm.Config{BaseURL: "http://x/v1", Model: "m"}, llm.Options{HTTPClient: &http.Client{Transport: cutting{}}, RetryDelay: time.Nanosecond})
	got, err := c.Complete(t.Context(), ask("?"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Cut || got.Usage.Calls != 3 {
		t.Errorf("got %v after %d calls, want it cut after 3", err, got.Usage.Calls)
	}
}

// TestRetryAfter: the pause is as long as the endpoint asks, else short.
func TestRetryAfter(t *testing.T) {
	for header, most := range map[string]time.Duration{"1": 9 * time.Second, "soon": 500 * time.Millisecond} {
		f := connect(t, nil)
		f.Answer(llmtest.Reply{Status: 429, Header: http.Header{"Retry-After": {header}}}, llmtest.Reply{Text: "yes"})
		began := time.Now()
		got, err := f.llm.Complete(t.Context(), ask("?"))
		if err != nil || got.Text != "yes" {
			t.Fatalf("%s: got %q, %v", header, got.Text, err)
		}
		if took := time.Since(began); took > most || header == "1" && took < time.Second {
			t.Errorf("%s: took %v", header, took)
		}
	}
}

// TestNoWaitBeyondTheDeadline: what cannot succeed in time fails at once, so that a fallback has the time.
func TestNoWaitBeyondTheDeadline(t *testing.T) {
	f := connect(t, nil)
	f.Answer(llmtest.Reply{Status: 429, Header: http.Header{"Retry-After": {"3600"}}})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	began := time.Now()
	got, err := f.llm.Complete(ctx, ask("?"))
	f.expect(t, got, err, llm.RateLimited, 429)
	if took := time.Since(began); took > 12*time.Second || got.Usage.Calls != 1 {
		t.Errorf("took %v and %d calls, want one call and no wait", took, got.Usage.Calls)
	}
}

// A caller who goes away gets the cause of that, and nothing of it is held against the model.
func TestCancellation(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"while the model answers":           {Text: "a long story", Chunk: 1, Fault: llmtest.Stall},
		"while waiting for another attempt": {Status: 503, Header: http.Header{"Retry-After": {"20"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t, nil)
			f.Answer(reply)
			cause := errors.New("the user went home")
			ctx, cancel := context.WithCancelCause(t.Context())
			req := ask("?")
			req.OnDelta = func(string) { cancel(cause) }
			req.OnRestart = func() { cancel(cause) }
			_, err := f.llm.Complete(ctx, req)
			if !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause", err)
			}
			if got := f.llm.Status().LastError; got != "" {
				t.Errorf("got last error %q, want none: the model did nothing wrong", got)
			}
		})
	}
}

// TestOwnHTTPClient: without one of the caller's, the key and the prompt go nowhere but to the configured address.
func TestOwnHTTPClient(t *testing.T) {
	elsewhere, f := connect(t, nil), connect(t, nil)
	elsewhere.Answer(llmtest.Reply{Text: "gotcha"})
	c := llm.New(f.cfg, llm.Options{})
	defer c.Close()
	f.Answer(llmtest.Reply{Text: "ok"}, llmtest.Reply{Status: 308, Header: http.Header{"Location": {elsewhere.BaseURL + "/chat/completions"}}})
	if got, err := c.Complete(t.Context(), ask("?")); err != nil || got.Text != "ok" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if got, err := c.Complete(t.Context(), ask("?")); err == nil || len(elsewhere.Requests()) > 0 {
		t.Errorf("got %q, %v and %d requests elsewhere, want the redirect refused", got.Text, err, len(elsewhere.Requests()))
	}
}

// TestConcurrentQuestions: one Client serves many at once, and each gets its own answer.
func TestConcurrentQuestions(t *testing.T) {
	f := connect(t, nil)
	var wait sync.WaitGroup
	for i := range 20 {
		word := fmt.Sprintf("word%dx", i)
		f.When(llmtest.Contains(word), llmtest.Reply{Text: word, Chunk: 1, Refuse: []string{"temperature"}})
		wait.Go(func() {
			req := ask(word)
			req.Schema = schema
			if got, err := f.llm.Complete(t.Context(), req); err != nil || got.Text != word {
				t.Errorf("got %q, %v, want %q", got.Text, err, word)
			}
			f.llm.Status()
		})
	}
	wait.Wait()
}
