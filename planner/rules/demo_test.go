package rules

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/demo"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// demoTools are the tools of the demo servers as they list them.
func demoTools(t *testing.T) []plan.Tool {
	t.Helper()
	var tools []plan.Tool
	for _, s := range demo.Servers() {
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
		var out bytes.Buffer
		if err := s.Serve(t.Context(), in, &out); err != nil {
			t.Fatalf("serving %s: %v", s.Name, err)
		}
		for line := range strings.Lines(out.String()) {
			var reply struct {
				Result struct{ Tools []plan.Tool }
			}
			if err := json.Unmarshal([]byte(line), &reply); err != nil {
				t.Fatalf("reading %s: %v in %s", s.Name, err, line)
			}
			for _, tool := range reply.Result.Tools {
				tool.Server, tool.Tool = s.Name, tool.Name
				tools = append(tools, tool)
			}
		}
	}
	if len(tools) != 4 {
		t.Fatalf("the demo servers list %d tools, want 4: %v", len(tools), tools)
	}
	return tools
}

func TestDemoQuestions(t *testing.T) {
	tools := demoTools(t)
	for _, tc := range []struct{ question, want string }{
		// The question of the README, and other ways to ask it.
		{"What's the latest AI news and what's 15% of $2500?", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`},
		{"Could you please find me the latest news about AI, and also work out 15 percent of 2500 dollars?", `web_search calculate{"expression":"2500 * 0.15"}`},
		{"Calculate 15% of $2500 and search for the latest AI news.", `calculate{"expression":"2500 * 0.15"} web_search`},
		{"I'd like to know what is new in AI. Also, how much is 15% of $2,500?", `web_search{"query":"new in AI"} calculate{"expression":"2500 * 0.15"}`},
		// Two requests in one breath, where the second opens none.
		{"latest AI news and 15% of $2500", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`},
		{"Give me the latest AI news and 15% of $2500", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`},
		{"15% of $2500 and the latest AI news", `calculate{"expression":"2500 * 0.15"} web_search{"query":"latest AI news"}`},
		{"15% of $2500, plus the latest AI news please", `calculate{"expression":"2500 * 0.15"} web_search{"query":"latest AI news"}`},
		{"Could you give me the latest AI news & 15 percent of 2,500?", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`},
		{"latest AI news; 15% of $2500", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`},
		{"find engineers in Lisbon and the latest AI news", `query_hr web_search{"query":"latest AI news"}`},
		{"latest AI news, 15% of $2500 and all engineers in Berlin", `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"} query_hr{"query":"engineers in Berlin"}`},
		{"the latest AI news, engineers in Berlin and 15% of $2500", `web_search{"query":"latest AI news"} query_hr{"query":"engineers in Berlin"} calculate{"expression":"2500 * 0.15"}`},
		{"news about AI, the sum of 3 and 4 and everyone in Lisbon", `web_search{"query":"news about AI"} calculate{"expression":"3 + 4"} query_hr{"location":"Lisbon"}`},
		{"latest news about cars, planes and trains", `web_search{"query":"latest news about cars, planes and trains"}`},
		{"What is 15% of $2500 and 20% of $300?", `calculate{"expression":"2500 * 0.15"} calculate{"expression":"300 * 0.2"}`},
		{"the latest news on Ford and Chrysler", `web_search{"query":"latest news on Ford and Chrysler"}`},
		{"the news about Berlin and finance", `web_search{"query":"news about Berlin and finance"}`},
		{"find articles about finance and marketing", `web_search{"query":"finance and marketing"}`},
		// News and searches.
		{"latest news", `web_search{"query":"latest news"}`},
		{"What's in the news today?", `web_search`},
		{"Please show me today's headlines", `web_search`},
		{"any breaking news?", `web_search`},
		{"Could you tell me the latest news, please?", `web_search`},
		{"search the web for solar panels", `web_search{"query":"solar panels"}`},
		{"Can you look up electric cars on the web?", `web_search`},
		{"find articles about quantum computing", `web_search`},
		{"find 3 articles about climate change", `web_search`},
		{"give me 3 articles about climate change", `web_search{"query":"climate change"}`},
		{"Could I have two articles on solar power, please?", `web_search{"query":"solar power"}`},
		// Sums.
		{"15% of $2500", `calculate{"expression":"2500 * 0.15"}`},
		{"what is 15 percent of 2500?", `calculate{"expression":"2500 * 0.15"}`},
		{"Please tell me how much 15% of $2,500 is", `calculate{"expression":"2500 * 0.15"}`},
		{"hey, what's 20% off 80?", `calculate{"expression":"80 * 0.8"}`},
		{"how much is 12 times 7", `calculate{"expression":"12 * 7"}`},
		{"Could you add 17 and 25?", `calculate{"expression":"17 + 25"}`},
		{"what is the sum of 3, 4 and 5", `calculate{"expression":"3 + 4 + 5"}`},
		{"divide 144 by 12", `calculate{"expression":"144 / 12"}`},
		{"What's 2+2?", `calculate{"expression":"2+2"}`},
		{"compute sqrt(16) + 3", `calculate{"expression":"sqrt(16) + 3"}`},
		// The directory.
		{"who works in finance?", `query_hr`},
		{"Who works in Berlin?", `query_hr{"location":"Berlin"}`},
		{"list all employees", `query_hr{}`},
		{"Please show me the engineers in Lisbon", `query_hr`},
		{"Which employees are in the Marketing department?", `query_hr{"department":"Marketing"}`},
		{"How many people work in sales?", `query_hr`},
		{"find the email address of our support staff", `query_hr`},
		{"Who are the people in engineering?", `query_hr{"department":"Engineering"}`},
		{"who is on the engineering team?", `query_hr{"department":"Engineering"}`},
		{"Who's on the marketing team?", `query_hr{"department":"Marketing"}`},
		{"what do we know about the support team?", `query_hr{"department":"Support"}`},
		{"show me the people on the sales team", `query_hr{"department":"Sales"}`},
		// What nobody can do, or must not do unasked.
		{"hello", ``},
		{"Hi there, how are you?", ``},
		{"thanks!", ``},
		{"tell me a joke", ``},
		{"sing me a song", ``},
		{"give me 3 reasons to smile", ``},
		{"who is on the phone?", ``},
		{"who is the president of France?", ``},
		{"turn off the lights", ``},
		{"book a flight to Rome", ``},
		{"send an email to bob@example.com saying hi", ``},
		{"Please email ann@example.com with the subject 'Lunch' and the body 'At noon?'", ``},
		{"mail bob@example.com the latest news", `-send_email`},
		{"delete all employees", ``},
		{"what is the weather in Berlin", ``},
		{"flights from Toronto to Lisbon", ``},
	} {
		got := calls(t, tc.question, tools...)
		if refused, ok := strings.CutPrefix(tc.want, "-"); ok {
			if strings.Contains(got, refused) {
				t.Errorf("%q:\n got %s\nwant no %s", tc.question, got, refused)
			}
			continue
		}
		if !planned(got, tc.want) {
			t.Errorf("%q:\n got %s\nwant %s", tc.question, got, tc.want)
		}
	}
}

// planned reports whether calls are the wanted ones, where a call without arguments stands for any.
func planned(got, want string) bool {
	g, w := strings.SplitAfter(got, "} "), strings.Fields(want)
	if want == "" || len(w) == 0 {
		return got == ""
	}
	// Arguments hold blanks: join what belongs to one call again.
	var wants []string
	for _, part := range w {
		if n := len(wants); n > 0 && strings.Contains(wants[n-1], "{") && !strings.HasSuffix(wants[n-1], "}") {
			wants[n-1] += " " + part
			continue
		}
		wants = append(wants, part)
	}
	if len(g) != len(wants) {
		return false
	}
	for i := range g {
		call := strings.TrimSpace(g[i])
		if name, _, _ := strings.Cut(call, "{"); call != wants[i] && name != wants[i] {
			return false
		}
	}
	return true
}
