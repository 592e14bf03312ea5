package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const (
	longName  = "summarize_the_quarterly_report_of_a_department"
	longFull  = "files__" + longName
	longAlias = "files__summarize_the_quarterly_report_o_87dac7"
)

// longNames adds a server with a tool whose full name is longer than the limit for names in lists.
func longNames(_ *router.Options, o *downstream.Options) {
	files := &mcptest.Server{OnLine: func(m mcptest.Message, write func(string)) bool {
		if m.Method != "tools/call" {
			return false
		}
		write(m.Response(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Call().Name)) + "\n")
		return true
	}}
	files.SetTools(`[{"name":"` + longName + `","description":"Summarizes a report",` + anything + readOnly + `}]`)
	o.NameLimit = 46
	o.Servers = append(o.Servers, downstream.ServerConfig{Name: "files", Type: downstream.TransportStdio})
	o.Embedded["files"] = func(context.Context) (io.ReadWriteCloser, error) { return dial(files), nil }
}

// A tool with a long name is found and listed under its alias alone, and called by either name.
func TestAliasesOfFoundTools(t *testing.T) {
	s := newKit(t, longNames).session()
	call := func(tool, arguments string) string {
		lines := s.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
		return lines[len(lines)-1]
	}
	if got := call(longAlias, `{}`); !strings.Contains(got, `"text":"`+longName+`"`) {
		t.Errorf("before any list: got %s, want the tool called", got)
	}
	found := call("search_available_tools", `{"query":"summarize a report"}`)
	if strings.Contains(found, longFull) || !strings.Contains(found, `"name":"`+longAlias+`"`) || !strings.Contains(found, ": "+longAlias) {
		t.Errorf("found: got %s, want %s alone", found, longAlias)
	}
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	lines := s.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &listed); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Result.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, longAlias) || slices.Contains(names, longFull) {
		t.Errorf("listed: got %q, want %s and not the full name", names, longAlias)
	}
	for _, name := range []string{longAlias, longFull} {
		if got := call(name, `{}`); !strings.Contains(got, `"text":"`+longName+`"`) {
			t.Errorf("call %s: got %s, want the tool called", name, got)
		}
	}
	if got := call(strings.Replace(longAlias, "87dac7", "000000", 1), `{}`); !strings.Contains(got, "Unknown tool") {
		t.Errorf("no alias of any tool: got %s, want it unknown", got)
	}
}

// run, plans and calls of this process take aliases as they take full names.
func TestAliasesElsewhere(t *testing.T) {
	k := newKit(t, longNames)
	if got := k.call("run", `{"tool":"`+longAlias+`"}`); got.text() != longName {
		t.Errorf("run: got %+v, want the tool called", got)
	}
	r := k.query(router.Query{Plan: json.RawMessage(`[{"tool":"` + longAlias + `"}]`)})
	if got, want := brief(r), "s1="+longName+"{}"; got != want || r.Outcomes[0].Step.Server != "files" {
		t.Errorf("plan: got %s at %q, want %s at files", got, r.Outcomes[0].Step.Server, want)
	}
	if got, err := k.Call(t.Context(), longAlias, json.RawMessage(`{}`)); err != nil || !strings.Contains(string(got), longName) {
		t.Errorf("Call: got %s, %v, want the tool called", got, err)
	}
	hidden := func(server, tool string) bool { return tool != longName }
	r = k.query(router.Query{Plan: json.RawMessage(`[{"tool":"` + longAlias + `"}]`), Origin: execution.Origin{Visible: hidden}})
	if got := r.Outcomes[0].Err; got == nil || got.Reason != "unknown_tool" {
		t.Errorf("a tool that is hidden: got %+v, want it unknown", got)
	}
}

// A rate limit of a tool counts the calls by its alias.
func TestRateLimitByAlias(t *testing.T) {
	rate := limit.New(limit.RateConfig{Requests: 1, Per: time.Hour, Tools: []string{longFull}}, time.Now)
	k := newFrontendKit(t, longNames, router.FrontendOptions{Tools: router.DefaultTools(), Rate: rate})
	if got := k.call(longAlias, `{}`); got.IsError {
		t.Fatalf("got %+v, want the first call let through", got)
	}
	if got := k.call(longAlias, `{}`); !got.IsError || !strings.HasPrefix(got.text(), limit.Exceeded) {
		t.Errorf("got %+v, want the second call refused", got)
	}
}
