package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

var (
	webSearch   = tool("web_search", "Search the web for the latest news, facts and articles", "*query:string:What to search for")
	calculate   = tool("calculate", "Calculate the value of an arithmetic expression", "*expression:string:Arithmetic expression")
	getSum      = tool("get_sum", "Returns the sum of two numbers", "*a:number:First number", "*b:number:Second number")
	getOrder    = tool("get_order", "Get the state of an order", "*order_id:string:Id of the order")
	cancelOrder = tool("cancel_order", "Cancel an order", "*order_id:string:Id of the order")
	getWeather  = tool("get_weather", "Get the weather forecast for a city", "*city:string:The city", "date:string:Day, YYYY-MM-DD", "time:string:HH:MM")
	findFlights = tool("find_flights", "Find flights between two cities", "*origin:string:City of departure", "*destination:string:City of arrival", "date:string:Day, MM/DD/YYYY", "passengers:integer:Number of passengers")
	convert     = tool("convert_units", "Convert a mass between units", "*amount:number:Amount", "*from:one of kg lb g:Source unit", "*to:one of kg lb g:Target unit")
	listIssues  = tool("list_issues", "List the issues of a repository", "*owner:string:Owner", "*repo:string:Repository", "state:one of open closed all:Which issues")
	readFile    = tool("read_file", "Read the contents of a file", "*path:string:Path of the file")
	readFiles   = tool("read_files", "Read several files at once", "*paths:list of string:Paths of the files")
	fetchPage   = tool("fetch_page", "Fetch a web page", "*url:string:Address of the page")
	findStaff   = tool("find_staff", "Find people of the staff", "email:string:E-mail address", "department:string:Department: Sales, Support or Finance")
	sendEmail   = tool("send_email", "Send an e-mail message", "*to:string:E-mail address", "*subject:string:Subject line", "*body:string:Text")
)

// TestPlan_Calls checks which values of a question go where.
func TestPlan_Calls(t *testing.T) {
	for _, tc := range []struct {
		question string
		tools    []plan.Tool
		want     string
	}{
		{"latest news", []plan.Tool{calculate, webSearch}, `web_search{"query":"latest news"}`},
		{"What's the latest AI news and what's 15% of $2500?", []plan.Tool{calculate, webSearch}, `web_search{"query":"latest AI news"}; calculate{"expression":"2500 * 0.15"}`},
		{"15% of $2500 and latest news", []plan.Tool{calculate, webSearch}, `calculate{"expression":"2500 * 0.15"}; web_search{"query":"latest news"}`},
		{"search the web for heat pumps", []plan.Tool{calculate, webSearch}, `web_search{"query":"heat pumps"}`},
		{"17 + 25", []plan.Tool{getSum, webSearch}, `get_sum{"a":17,"b":25}`},
		{"what is 10 - 4?", []plan.Tool{getSum, webSearch}, ``}, // no difference is a sum
		{"what is 3.5 plus 1,200?", []plan.Tool{getSum, webSearch}, `get_sum{"a":3.5,"b":1200}`},
		{"what is 3 plus 1,5?", []plan.Tool{calculate}, ``}, // the comma may be decimal
		{"Add 3, 4 and 5", []plan.Tool{calculate, webSearch}, `calculate{"expression":"3 + 4 + 5"}`},
		{"subtract 4 from 10", []plan.Tool{calculate}, `calculate{"expression":"10 - 4"}`},
		{"5 times 3 plus 2", []plan.Tool{calculate}, `calculate{"expression":"5 * 3 + 2"}`},
		{"what is (2+3)*4 divided by 2?", []plan.Tool{calculate}, `calculate{"expression":"(2 + 3) * 4 / 2"}`},
		{"the square root of 144", []plan.Tool{calculate}, `calculate{"expression":"sqrt(144)"}`},
		{"weather in Oslo tomorrow", []plan.Tool{getWeather}, `get_weather{"city":"Oslo","date":"2026-03-11"}`},
		{"What's the weather in Oslo on 2026-03-12?", []plan.Tool{getWeather}, `get_weather{"city":"Oslo","date":"2026-03-12"}`},
		{"weather in New York City on March 3rd at 3pm", []plan.Tool{getWeather}, `get_weather{"city":"New York City","date":"2027-03-03","time":"15:00"}`},
		{"weather in Oslo on Friday at 9:05", []plan.Tool{getWeather}, `get_weather{"city":"Oslo","date":"2026-03-13","time":"09:05"}`},
		{"find flights from Rome to Oslo on 5 May 2026", []plan.Tool{findFlights}, `find_flights{"date":"05/05/2026","destination":"Oslo","origin":"Rome"}`},
		{"find flights to Oslo from Rome for 2 passengers", []plan.Tool{findFlights}, `find_flights{"destination":"Oslo","origin":"Rome","passengers":2}`},
		{"convert 5 lb to kg", []plan.Tool{convert}, `convert_units{"amount":5,"from":"lb","to":"kg"}`},
		{"list the closed issues of acme/web", []plan.Tool{listIssues}, `list_issues{"owner":"acme","repo":"web","state":"closed"}`},
		{"Show order A-99812", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"show order #4711", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"4711"}`},
		{"read /srv/a.txt", []plan.Tool{readFile, webSearch}, `read_file{"path":"/srv/a.txt"}`},
		{"read the files /srv/a.txt and b.md", []plan.Tool{readFile, readFiles}, `read_files{"paths":["/srv/a.txt","b.md"]}`},
		{"fetch the page https://example.com/a?b=1.", []plan.Tool{fetchPage, webSearch}, `fetch_page{"url":"https://example.com/a?b=1"}`},
		{"find the staff of the sales department", []plan.Tool{findStaff}, `find_staff{"department":"Sales"}`},
		{"which staff has ann@example.com", []plan.Tool{findStaff}, `find_staff{"email":"ann@example.com"}`},
		{"Don't cancel order 4711, show it to me", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"4711"}`},
		{"Get the state of order 4711 without cancelling order 4711", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"4711"}`},
		{"покажи get_order A-99812", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"Zeig mir bitte peer__get_order mit A-99812", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"Zeig mir bitte die Order A-99812", []plan.Tool{getOrder, cancelOrder}, ``},
		{"cancel_order A-99812 пожалуйста", []plan.Tool{getOrder, cancelOrder}, ``},
		{"hello", []plan.Tool{getOrder, cancelOrder, webSearch}, ``},
		{"", []plan.Tool{getOrder}, ``},
	} {
		if got := calls(planned(t, tc.question, rules.NewCatalog(tc.tools)).Steps); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

// TestPlan_References checks that a result goes one step further.
func TestPlan_References(t *testing.T) {
	findCity := tool("find_city", "Find a city by name", "*name:string:Name of the city")
	findCity.OutputSchema = json.RawMessage(`{"type":"object","properties":{"cities":{"type":"array","items":{"type":"object","properties":{"city_id":{"type":"string"}}}}}}`)
	air := tool("get_air_quality", "Get the air quality of a city", "*city_id:string:Id of the city")
	p := planned(t, "What is the air quality of the city Berlin?", rules.NewCatalog([]plan.Tool{air, findCity}))
	if got, want := calls(p.Steps), `find_city{"name":"Berlin"}; get_air_quality{"city_id":"$s1.cities.0.city_id"}`; got != want || !slices.Equal(p.Steps[1].After, []string{"s1"}) {
		t.Errorf("got %s, want %s after s1", got, want)
	}
}

func TestPlan_Unmet(t *testing.T) {
	for _, tc := range []struct {
		question string
		tools    []plan.Tool
		steps    string
		unmet    string // text, reason, tool and what is missing
		note     string
	}{
		{"play some jazz", []plan.Tool{getOrder}, ``, `play some jazz|no_tool||`, "No tool matches."},
		{"Show order A-99812 and bake a cake", []plan.Tool{getOrder}, `get_order{"order_id":"A-99812"}`, `bake a cake|no_tool||`, ""},
		{"Cancel my order", []plan.Tool{cancelOrder}, ``, `Cancel my order|missing_argument|cancel_order|order_id`, "An argument is missing: `cancel_order` (needs `order_id`)."},
		{"can you cancel orders?", []plan.Tool{cancelOrder}, ``, `can you cancel orders|unclear|cancel_order|`, "No tool is called, because nothing is asked for plainly."},
		{"what will the weather be like tomorrow?", []plan.Tool{getWeather}, ``, `what will the weather be like tomorrow|missing_argument|get_weather|city`, "An argument is missing: `get_weather` (needs `city`)."},
		{"Should I cancel order 4711?", []plan.Tool{cancelOrder}, ``, `Should I cancel order 4711|unclear|cancel_order|`, "No tool is called, because nothing is asked for plainly."},
		{"cancel order 4711 tomorrow", []plan.Tool{cancelOrder, getOrder}, ``, `cancel order 4711 tomorrow|unclear|cancel_order|`, "No tool is called, because nothing is asked for plainly."},
		{"Buy an order of pizza", []plan.Tool{cancelOrder, getOrder}, ``, `Buy an order of pizza|no_tool|*|`, "No tool matches. Closest: "},
		{"Do not cancel order 4711", []plan.Tool{cancelOrder}, ``, ``, "No tool is called, because nothing was asked that a tool could do."},
		{"Good morning! Thank you.", []plan.Tool{cancelOrder}, ``, ``, "No tool is called, because nothing was asked that a tool could do."},
		{"Cancel order 4711. Cancel order 4712.", []plan.Tool{cancelOrder}, `cancel_order{"order_id":"4711"}; cancel_order{"order_id":"4712"}`, ``, ""},
	} {
		p := planned(t, tc.question, rules.NewCatalog(tc.tools))
		var unmet []string
		for _, u := range p.Unmet {
			name := u.Tool
			if strings.Contains(tc.unmet, "|*|") && name != "" {
				name = "*"
			}
			unmet = append(unmet, strings.Join([]string{u.Text, u.Reason, name, strings.Join(u.Missing, ",")}, "|"))
		}
		if got := strings.Join(unmet, "; "); calls(p.Steps) != tc.steps || got != tc.unmet || !strings.HasPrefix(p.Note, tc.note) || tc.note == "" && p.Note != "" {
			t.Errorf("%s: got %s, unmet %s and note %q, want %s, %s and %q", tc.question, calls(p.Steps), got, p.Note, tc.steps, tc.unmet, tc.note)
		}
	}
	for _, question := range []string{"what can you do?", "help", "which tools are there?"} {
		if p := planned(t, question, rules.NewCatalog([]plan.Tool{getOrder})); !p.About || len(p.Steps)+len(p.Unmet) > 0 {
			t.Errorf("%s: got %+v, want a plan that is about the tools", question, p)
		}
	}
	p := planned(t, "Cancel my order", rules.NewCatalog([]plan.Tool{cancelOrder}))
	if got := calls(p.Incomplete); got != `cancel_order{}` {
		t.Errorf("got the open calls %s, want cancel_order", got)
	}
	longer := "cancel order 4711 " + strings.Repeat("and then ", 4000)
	if p := planned(t, longer, rules.NewCatalog([]plan.Tool{cancelOrder})); len(p.Steps) > 0 {
		t.Errorf("a question beyond the bound: got %s, want no write", calls(p.Steps))
	}
}

func TestPlan_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rules.New(rules.Options{}).Plan(ctx, "show order 4711", rules.NewCatalog([]plan.Tool{getOrder})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestCommands(t *testing.T) {
	for question, want := range map[string]string{
		"Send the report to Ann and delete the draft.": "send delete", "Do not send the report": "", "Should I send it?": "",
		"If it is late, send the report": "", "Who is Ann?": "", "Please send it to them": "send",
	} {
		var got []string
		for _, c := range rules.Commands(question) {
			got = append(got, c.Verb)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
}

// answer checks what holds for every plan: steps refer to earlier ones and have arguments that the schemas accept; without
// steps the plan says why.
func answer(t *testing.T, question string, tools []plan.Tool) {
	t.Helper()
	p := planned(t, question, rules.NewCatalog(tools))
	lookup := func(name string) (plan.Tool, *plan.Error) {
		if i := slices.IndexFunc(tools, func(t plan.Tool) bool { return t.Name == name }); i >= 0 {
			return tools[i], nil
		}
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool}
	}
	if problems := plan.Check(&p, plan.NewValidator(), lookup, nil); len(problems) > 0 {
		t.Errorf("%q: got the problems %+v in %s, want none", question, problems, calls(p.Steps))
	}
	if len(p.Steps) == 0 && p.Note == "" && !p.About {
		t.Errorf("%q: got neither a step nor a note", question)
	}
}

// oddTools have schemas that are hardly usable.
func oddTools() (out []plan.Tool) {
	for i, schema := range []string{``, `null`, `{"properties":{"date":true}}`, `{"$ref":"#"}`, `{"properties":{"n":{"type":["null","integer"],"maximum":3},"d":{"type":"string","pattern":"^x$"},"l":{"type":"array","items":{"type":"number"},"maxItems":1}},"required":["n","d","l"]}`} {
		out = append(out, plan.Tool{Name: fmt.Sprint("get_odd_", i), Tool: fmt.Sprint("get_odd_", i), Server: "odd", Description: "Get the schedule of 5 days", InputSchema: json.RawMessage(schema)})
	}
	return out
}

func allTools() []plan.Tool {
	return []plan.Tool{webSearch, calculate, getOrder, cancelOrder, getWeather, findFlights, convert, listIssues, readFile, readFiles, fetchPage, findStaff, sendEmail}
}

// TestPlan_AnyQuestion makes up questions of words that mean something to the rules.
func TestPlan_AnyQuestion(t *testing.T) {
	words := strings.Fields(`cancel show send find and then , . ? ! not don't if the order 4711 A-17 "text 'it' “x” ( ) 5 5% of 1,5 + - / * plus sqrt tomorrow May 3 31 February 2026-02-30 25:99 3pm
		noon a@b.c https://x.y /etc/passwd *.go acme/web Berlin New York kg lb to from in me please can you what how 's İstanbul 東京 😀 #12 : ; > get_order -5 $ 1e9 99999999999999999999 odd schedule days`)
	r := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		var question []string
		for range 1 + r.IntN(14) {
			w := words[r.IntN(len(words))]
			question = append(question, w[:len(w)-r.IntN(2)*r.IntN(len(w)+1)])
		}
		answer(t, strings.Join(question, []string{" ", " ", ""}[r.IntN(3)]), [][]plan.Tool{allTools(), oddTools(), nil}[r.IntN(3)])
	}
	start := time.Now()
	for _, long := range []string{`"`, "(", "“", "5 + ", "a/", "Berlin ", "cancel order 4711 and ", "'s ", "5% of "} {
		answer(t, strings.Repeat(long, 10_000/len(long)), allTools())
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("long questions took %v", took)
	}
}

func FuzzPlan(f *testing.F) {
	for _, q := range []string{"Email me tomorrow's schedule", "today's", "April", "3rd of", "15% of $2500", `say "hi`, "O'", "cancel order 4711 and show it", "add 3 and"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		if len(q) > 10_000 || !utf8.ValidString(q) {
			return // the router refuses such questions
		}
		answer(t, q, allTools())
		answer(t, q, oddTools())
	})
}
