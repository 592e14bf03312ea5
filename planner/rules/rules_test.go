package rules_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

var (
	getSum       = tool("get_sum", "Returns the sum of two numbers", object("*a:number:First number", "*b:number:Second number"))
	webSearch    = tool("web_search", "Search the web for the latest news, facts and articles", object("*query:string:What to search for"))
	calculate    = tool("calculate", "Calculate the value of an arithmetic expression", object("*expression:string:Arithmetic expression"))
	getWeather   = tool("get_weather", "Get the weather forecast for a city", object("*city:string:The city", "date:string:Day, YYYY-MM-DD"))
	cancelOrder  = tool("cancel_order", "Cancel an order", object("*order_id:string:Id of the order"), destroying)
	getOrder     = tool("get_order", "Get the state of an order", object("*order_id:string:Id of the order"))
	convertUnits = tool("convert_units", "Convert a mass between units", object("*amount:number:Amount", "*from:one of kg lb g:Source unit", "*to:one of kg lb g:Target unit"))
	convertMoney = tool("convert_currency", "Convert money from one currency to another", object("*amount:number:Amount", "*from_currency:string:Source currency", "*to_currency:string:Target currency"))
	eventDate    = tool("get_event_date", "Retrieve the date of a historical event", object("*event:string:The event"))
	findRecipe   = tool("find_recipe", "Find a recipe", object("*diet:string:Diet, e.g. vegetarian, vegan or none"))
	bookRoom     = tool("book_room", "Book a room in a hotel", object("*hotel:string:Name of the hotel", "*location:string:Location of the hotel"))
	moveFile     = tool("move_file", "Move or rename a file", object("*source:string:Path from", "*destination:string:Path to"))
	findFlights  = tool("find_flights", "Find flights between two cities", object("*origin:string:City of departure", "*destination:string:City of arrival", "date:string:Day, YYYY-MM-DD"))
	sendEmail    = tool("send_email", "Send an e-mail message", object("*to:string:E-mail address", "*subject:string:Subject line", "*body:string:Text"))
	echo         = tool("echo", "Echoes back the input string", object("*message:string:Message to echo"), harmless)
	searchNodes  = tool("search_nodes", "Search for nodes in the knowledge graph based on a query", object("*query:string:The search query"), of("memory"))
	listIssues   = tool("list_issues", "List the issues of a repository", object("*owner:string:Owner", "*repo:string:Repository", "state:one of open closed all:Which issues"))
)

// files are tools for files.
var files = []plan.Tool{
	tool("read_text_file", "Read the complete contents of a file from the file system as text", object("*path:string"), returning("content:string")),
	tool("read_media_file", "Read an image or audio file", object("*path:string"), returning("content:string")),
	tool("read_multiple_files", "Read the contents of multiple files simultaneously", object("*paths:list of string:Paths of files"), returning("content:string")),
	tool("write_file", "Create a new file or completely overwrite an existing file with new content", object("*path:string", "*content:string")),
	tool("create_directory", "Create a new directory or ensure a directory exists", object("*path:string")),
	tool("list_directory", "Get a detailed listing of all files and directories in a specified path", object("*path:string"), returning("content:string")),
	tool("search_files", "Recursively search for files and directories matching a pattern", object("*path:string", "*pattern:string"), returning("content:string")),
	tool("get_file_info", "Retrieve detailed metadata about a file or directory, with its size and last modified time", object("*path:string"), returning("content:string")),
}

func TestPlan_Calls(t *testing.T) {
	for _, tc := range []struct {
		question string
		tools    []plan.Tool
		want     string
	}{
		{"add 3 and 4", []plan.Tool{getSum, webSearch}, `get_sum{"a":3,"b":4}`},
		{"17 + 25", []plan.Tool{getSum, webSearch}, `get_sum{"a":17,"b":25}`},
		{"what is 10 - 4?", []plan.Tool{getSum, webSearch}, ``},
		{"echo hello world", []plan.Tool{echo, webSearch}, `echo{"message":"hello world"}`},
		{"search my memory for Berlin", []plan.Tool{searchNodes, echo}, `search_nodes{"query":"Berlin"}`},
		{"what is 3.5 plus 1,200?", []plan.Tool{getSum, webSearch}, `get_sum{"a":3.5,"b":1200}`},
		{"What is 15% of $2500?", []plan.Tool{calculate, webSearch}, `calculate{"expression":"2500 * 0.15"}`},
		{"Add 3, 4 and 5", []plan.Tool{calculate, webSearch, sendEmail}, `calculate{"expression":"3 + 4 + 5"}`},
		{"latest news and 15% of $2500", []plan.Tool{calculate, webSearch},
			`web_search{"query":"latest news"}; calculate{"expression":"2500 * 0.15"}`},
		{"15% of $2500 and latest news", []plan.Tool{calculate, webSearch},
			`calculate{"expression":"2500 * 0.15"}; web_search{"query":"latest news"}`},
		{"10 plus 5 minus 3", []plan.Tool{calculate, webSearch}, `calculate{"expression":"10 + 5 - 3"}`},
		{"5 times 3 plus 2", []plan.Tool{calculate, webSearch}, `calculate{"expression":"5 * 3 + 2"}`},
		{"subtract 4 from 10", []plan.Tool{calculate, webSearch}, `calculate{"expression":"10 - 4"}`},
		{"what is 12 times 48?", []plan.Tool{webSearch, calculate}, `calculate{"expression":"12 * 48"}`},
		{"addiere 3 und 4", []plan.Tool{webSearch, calculate}, `calculate{"expression":"3 + 4"}`},
		{"latest news about open models", []plan.Tool{calculate, webSearch}, `web_search{"query":"latest news about open models"}`},
		{"What's the weather in Oslo on 2026-03-12?", []plan.Tool{getWeather, webSearch}, `get_weather{"city":"Oslo","date":"2026-03-12"}`},
		{"weather in Oslo tomorrow", []plan.Tool{getWeather}, `get_weather{"city":"Oslo","date":"2026-03-11"}`},
		{"convert 150 euros to Canadian dollars", []plan.Tool{convertMoney}, `convert_currency{"amount":150,"from_currency":"EUR","to_currency":"CAD"}`},
		{"what are 150 euros in US dollars?", []plan.Tool{convertMoney}, `convert_currency{"amount":150,"from_currency":"EUR","to_currency":"USD"}`},
		{"When was the Treaty of Lisbon?", []plan.Tool{eventDate}, `get_event_date{"event":"Treaty of Lisbon"}`},
		{"find a vegetarian pasta recipe", []plan.Tool{findRecipe}, `find_recipe{"diet":"vegetarian"}`},
		{"Book a room in Hotel Paradise, Las Vegas", []plan.Tool{bookRoom}, `book_room{"hotel":"Hotel Paradise","location":"Las Vegas"}`},
		{"convert 5 kg to lb", []plan.Tool{convertUnits}, `convert_units{"amount":5,"from":"kg","to":"lb"}`},
		{"convert 5 lb to kg", []plan.Tool{convertUnits}, `convert_units{"amount":5,"from":"lb","to":"kg"}`},
		{"move /tmp/a.txt to /tmp/b.txt", []plan.Tool{moveFile}, `move_file{"destination":"/tmp/b.txt","source":"/tmp/a.txt"}`},
		{"find flights from Rome to Oslo", []plan.Tool{findFlights}, `find_flights{"destination":"Oslo","origin":"Rome"}`},
		{"find flights to Oslo from Rome", []plan.Tool{findFlights}, `find_flights{"destination":"Oslo","origin":"Rome"}`},
		{"list the closed issues of acme/web", []plan.Tool{listIssues}, `list_issues{"owner":"acme","repo":"web","state":"closed"}`},
		{"Show order A-99812", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"where's order A-99812 right now", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"Cancel order A-99812", []plan.Tool{getOrder, cancelOrder}, `cancel_order{"order_id":"A-99812"}`},
		{"what's in notes.txt?", files, `read_text_file{"path":"notes.txt"}`},
		{"show me notes.txt", files, `read_text_file{"path":"notes.txt"}`},
		{"what does notes.txt say?", files, `read_text_file{"path":"notes.txt"}`},
		{"zeig mir notes.txt", files, `read_text_file{"path":"notes.txt"}`},
		{"open logo.png", files, `read_media_file{"path":"logo.png"}`},
		{"read a.txt and b.txt", files, `read_multiple_files{"paths":["a.txt","b.txt"]}`},
		{"how big is notes.txt?", files, `get_file_info{"path":"notes.txt"}`},
		{"what's in /tmp/out?", files, `list_directory{"path":"/tmp/out"}`},
		{"which files are in /tmp/out?", files, `list_directory{"path":"/tmp/out"}`},
		{"find notes.txt in /tmp/out", files, `search_files{"path":"/tmp/out","pattern":"notes.txt"}`},
		{"write hello world to notes.txt", files, `write_file{"content":"hello world","path":"notes.txt"}`},
		{"write notes.txt", files, ``},
		{"create notes.txt", files, ``},
		{"schreib hallo in notes.txt", files, ``},
		{"should I write hello to notes.txt?", files, ``},
		{"hello", []plan.Tool{getOrder, cancelOrder, webSearch}, ``},
		{"thanks a lot!", []plan.Tool{getOrder, cancelOrder, webSearch}, ``},
		{"", []plan.Tool{getOrder}, ``},
		{"Zeige mir die Bestellung A-99812", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-99812"}`},
		{"Annule la commande A-99812", []plan.Tool{getOrder, cancelOrder}, `cancel_order{"order_id":"A-99812"}`},
		{"Cancela el pedido A-99812", []plan.Tool{getOrder, cancelOrder}, `cancel_order{"order_id":"A-99812"}`},
		{"Storniere die Bestellung A-99812", []plan.Tool{getOrder, cancelOrder}, `cancel_order{"order_id":"A-99812"}`},
	} {
		if got := calls(planned(t, tc.question, tc.tools...)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

// TestPlan_ActsOnlyWhenAsked checks that the verb has to ask for what a tool does.
func TestPlan_ActsOnlyWhenAsked(t *testing.T) {
	tools := []plan.Tool{cancelOrder, sendEmail, moveFile}
	for _, question := range []string{
		"Do not cancel order 4711", "Should I cancel order 4711?", "where's order A-99812 right now", "show order 4711", "order 4711", "Refund order 4711",
		"cancel culture", "I cancelled order 4711", "Cancel order 4711 if it is late", "Please tell me about order 4711", "取消订单 4711", "Отмени заказ 4711",
	} {
		p := planned(t, question, tools...)
		if w := writes(p, tools); len(w) > 0 || len(p.Open) > 0 {
			t.Errorf("%s: got the writes %q and the open calls %+v, want none", question, w, p.Open)
		}
	}
}

func TestPlan_UnknownLanguageReadsWhatItNames(t *testing.T) {
	if got := calls(planned(t, "покажи get_order A-99812", getOrder, cancelOrder)); got != `get_order{"order_id":"A-99812"}` {
		t.Errorf("a tool that is named: got %s, want the read", got)
	}
	if got := calls(planned(t, "cancel_order A-99812 пожалуйста", getOrder, cancelOrder)); strings.Contains(got, "cancel") {
		t.Errorf("a write that is named: got %s, want no write", got)
	}
}

func TestPlan_Unmet(t *testing.T) {
	staff := tool("query_staff", "Find people by location", object("location:string:City: Berlin or Lisbon"), harmless)
	mail := tool("send_email", "Send an e-mail message", `{"type":"object","required":["to","subject","body"],"properties":{
		"to":{"type":"string","format":"email"},"subject":{"type":"string"},"body":{"type":"string"}}}`)
	find := tool("find_files", "Find files by a glob pattern", object("*path:string", "*pattern:string", "exclude:string:Names to leave out"), harmless)
	for name, tc := range map[string]struct {
		question string
		tools    []plan.Tool
		steps    string
		unmet    []plan.Unmet // Text is a part of the text
	}{
		"nothing fits":           {"play some jazz", []plan.Tool{getOrder}, ``, []plan.Unmet{{Text: "play some jazz", Reason: plan.UnmetNoTool}}},
		"a part has no tool":     {"Show order A-99812 and bake a cake", []plan.Tool{getOrder}, `get_order{"order_id":"A-99812"}`, []plan.Unmet{{Text: "bake a cake", Reason: plan.UnmetNoTool}}},
		"an argument is open":    {"Cancel my order", []plan.Tool{cancelOrder}, ``, []plan.Unmet{{Text: "Cancel my order", Reason: plan.UnmetMissingArgument, Tool: "cancel_order", Missing: []string{"order_id"}}}},
		"about an action":        {"Should I cancel order 4711?", []plan.Tool{cancelOrder}, ``, []plan.Unmet{{Text: "cancel order 4711", Reason: plan.UnmetUnclear, Tool: "cancel_order"}}},
		"a read serves no write": {`put "5" into order 4711 and show order 4711`, []plan.Tool{getOrder}, `get_order{"order_id":"4711"}`, []plan.Unmet{{Text: `put "5" into order 4711`, Reason: plan.UnmetNoTool, Tool: "get_order"}}},
		"a value is left":        {"cancel order 4711 and 4712", []plan.Tool{cancelOrder}, `cancel_order{"order_id":"4711"}`, []plan.Unmet{{Text: "4712", Reason: plan.UnmetUnclear}}},
		"values are left":        {"cancel order 4711, 4712 and 4713", []plan.Tool{cancelOrder}, `cancel_order{"order_id":"4711"}`, []plan.Unmet{{Text: "4712", Reason: plan.UnmetUnclear}, {Text: "4713", Reason: plan.UnmetUnclear}}},
		"the first is left":      {"who works in Berlin and Lisbon", []plan.Tool{staff}, `query_staff{"location":"Lisbon"}`, []plan.Unmet{{Text: "Berlin", Reason: plan.UnmetUnclear}}},
		"one is taken out":       {"who works in Berlin except Lisbon", []plan.Tool{staff}, `query_staff{"location":"Berlin"}`, []plan.Unmet{{Text: "except Lisbon", Reason: plan.UnmetUnclear}}},
		"one is excluded":        {"find *.go in /srv except vendor", []plan.Tool{find}, `find_files{"path":"/srv","pattern":"*.go"}`, []plan.Unmet{{Text: "except vendor", Reason: plan.UnmetUnclear}}},
		"two addresses":          {"email ann@x.io and tom@x.io saying hi", []plan.Tool{mail}, ``, []plan.Unmet{{Text: "email ann@x.io and tom@x.io saying hi", Reason: plan.UnmetNoTool, Tool: "send_email"}}},
		"you in one letter":      {"can u cancel order 4711", []plan.Tool{cancelOrder, getOrder}, `cancel_order{"order_id":"4711"}`, nil},
		"about what none does":   {"Should I show order 4711?", []plan.Tool{getOrder}, ``, []plan.Unmet{{Text: "show order 4711", Reason: plan.UnmetNoTool, Tool: "get_order"}}},
		"conditional":            {"If it is late, cancel order 4711", []plan.Tool{cancelOrder}, ``, []plan.Unmet{{Text: "cancel order 4711", Reason: plan.UnmetUnclear, Tool: "cancel_order"}}},
		"negated is no part":     {"Do not cancel order 4711", []plan.Tool{cancelOrder}, ``, nil},
		"reported is no part":    {"Tom said to cancel order 4711.", []plan.Tool{cancelOrder}, ``, nil},
		"a greeting is none":     {"hello", []plan.Tool{cancelOrder}, ``, nil},
		"nor is a German one":    {"Guten Morgen! Danke.", []plan.Tool{cancelOrder}, ``, nil},
		"all is served":          {"Show order A-99812", []plan.Tool{getOrder}, `get_order{"order_id":"A-99812"}`, nil},
		"somebody is told":       {"Show order A-99812 and tell Ann about order A-99813", []plan.Tool{getOrder}, `get_order{"order_id":"A-99812"}`, []plan.Unmet{{Text: "tell Ann about order A-99813", Reason: plan.UnmetNoTool, Tool: "get_order"}}},
		"neither part has one":   {"bake a cake and play some jazz", []plan.Tool{getOrder}, ``, []plan.Unmet{{Text: "bake a cake", Reason: plan.UnmetNoTool}, {Text: "play some jazz", Reason: plan.UnmetNoTool}}},
	} {
		p := planned(t, tc.question, tc.tools...)
		same := slices.EqualFunc(p.Unmet, tc.unmet, func(got, want plan.Unmet) bool {
			return strings.Contains(got.Text, want.Text) && got.Reason == want.Reason && got.Tool == want.Tool && slices.Equal(got.Missing, want.Missing)
		})
		if got := calls(p); got != tc.steps || !same {
			t.Errorf("%s: got %s and the unmet parts %+v, want %s and %+v", name, got, p.Unmet, tc.steps, tc.unmet)
		}
	}
}

func TestPlan_Open(t *testing.T) {
	p := planned(t, "What's the weather like?", getWeather)
	if len(p.Steps) != 0 || len(p.Open) != 1 || p.Open[0].Tool != "get_weather" || string(p.Open[0].Arguments) != `{}` {
		t.Errorf("got the steps %+v and the open calls %+v, want get_weather without a city", p.Steps, p.Open)
	}
	if want := "An argument is missing: `get_weather` (needs `city`)."; p.Note != want {
		t.Errorf("note: got %q, want %q", p.Note, want)
	}
}

func TestPlan_NamesTheNearestTools(t *testing.T) {
	p := planned(t, "print order 4711 on paper", getOrder, cancelOrder, webSearch)
	if len(p.Steps) > 0 || !strings.HasPrefix(p.Note, "No tool matches. Closest: `") || !strings.Contains(p.Note, "order`") {
		t.Errorf("got %s and the note %q, want no call and the tools for orders", calls(p), p.Note)
	}
	if p := planned(t, "do not cancel order 4711", cancelOrder); p.Note !=
		"No tool is called, because nothing was asked that a tool could do." || len(p.Unmet) > 0 {
		t.Errorf("got note %q and %d unmet parts, want that nothing was asked", p.Note, len(p.Unmet))
	}
	if p := planned(t, "qwertz uiop", getOrder); p.Note != "No tool matches." {
		t.Errorf("nothing in common: got the note %q, want none of the tools", p.Note)
	}
}

func TestPlan_About(t *testing.T) {
	for question, want := range map[string]bool{
		"what can you do?": true, "What can you help me with?": true, "which tools do you have?": true, "Was kannst du?": true, "Que peux-tu faire ?": true, "¿Qué puedes hacer?": true, "help": true, "Who are you?": true, "Wer bist du?": true, "Hilfe!": true,
		"what can you do about order 4711?": false, "hello": false, "help me with order 4711": false, "What do you know about Rome?": false, "Do not do what you can": false,
	} {
		if p := planned(t, question, getOrder); p.About != want || want && (len(p.Unmet) > 0 || len(p.Steps) > 0) {
			t.Errorf("%s: got About %v, %s and %+v; want About %v", question, p.About, calls(p), p.Unmet, want)
		}
	}
}

func TestPlan_Chains(t *testing.T) {
	find := tool("find_customer", "Find a customer by name", object("*name:string:Name of the customer"), returning("customer_id:string", "email:string"))
	orders := tool("list_customer_orders", "List the orders of a customer", object("*customer_id:string:Id of the customer"))
	p := planned(t, "List the orders of the customer Jane Porter", find, orders)
	if want := `find_customer{"name":"Jane Porter"}; list_customer_orders{"customer_id":"$s1.customer_id"}`; calls(p) != want {
		t.Fatalf("got %s, want %s", calls(p), want)
	}
	if !slices.Equal(p.Steps[1].After, []string{"s1"}) {
		t.Errorf("the second step runs after %q, want s1", p.Steps[1].After)
	}
	remove := tool("remove_customer", "Remove a customer and return its id", object("*name:string:Name of the customer"), returning("customer_id:string"))
	if p := planned(t, "List the orders of the customer Jane Porter", remove, orders); strings.Contains(calls(p), "remove_customer") {
		t.Errorf("got %s, want no write for the sake of its result", calls(p))
	}
}

func TestPlan_Ambiguity(t *testing.T) {
	events := tool("list_events", "List the events of a day", object("*date:string:Day, YYYY-MM-DD"))
	p := planned(t, "list the events of 03/04/2025", events)
	if strings.Contains(calls(p), "2025") {
		t.Errorf("a date that may be two days: got %s, want none of them", calls(p))
	}
	if len(p.Unmet) != 1 || p.Unmet[0].Reason == plan.UnmetNoTool {
		t.Errorf("got the unmet parts %+v, want one that names the date", p.Unmet)
	}
}

func TestPlan_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rules.New(rules.Options{}).Plan(ctx, "add 3 and 4", rules.NewCatalog([]plan.Tool{getSum})); err == nil {
		t.Error("got a plan after the context had ended, want its error")
	}
}

// TestPlan_IsDeterministic plans the same again.
func TestPlan_IsDeterministic(t *testing.T) {
	_, catalog := everyday(t, "office.catalog.jsonl")
	planner := rules.New(rules.Options{Now: today})
	for _, q := range []string{"show me the deals we won over 10000", "list open issues of acme/web and convert 250 dollars to euros"} {
		first, _ := planner.Plan(t.Context(), q, catalog)
		for range 10 {
			if again, _ := planner.Plan(t.Context(), q, catalog); calls(again) != calls(first) {
				t.Fatalf("%s: got %s, then %s", q, calls(first), calls(again))
			}
		}
	}
}
