package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func tool(server, name, description string, schema ...string) Tool {
	t := Tool{ID: server + "::" + name, Server: server, Name: name, Description: description}
	if len(schema) > 0 {
		t.InputSchema = json.RawMessage(schema[0])
	}
	return t
}

func filled() *Index {
	x := New()
	x.Update("weather", []Tool{
		tool("weather", "getCurrentWeather", "Retrieve current conditions for a location", `{"properties":{"city":{"description":"Name of the town"}}}`),
		tool("weather", "get_forecast", "Forecast for the next days"),
	})
	x.Update("mail", []Tool{
		tool("mail", "send_email", "Send an email to a recipient"),
		tool("mail", "searchInbox", "Find messages", `{"properties":{"folder":{"enum":["drafts","archive"]}}}`),
	})
	x.Update("files", []Tool{tool("files", "write_file", "Write content to a file"), tool("files", "read_file", "Read a file")})
	return x
}

func ids(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

// Words behind references, in allOf and in alternatives count like others.
func TestSearchFindsComposedSchemas(t *testing.T) {
	x := filled()
	x.Update("hotel", []Tool{tool("hotel", "book", "Reserve", `{"$ref":"#/$defs/Stay","$defs":{"City":{"description":"Settlement to sleep in"},`+
		`"Stay":{"allOf":[{"properties":{"bed":{"$ref":"#/$defs/City"}}},{"properties":{"class":{"oneOf":[{"const":"low"},{"const":"high","title":"Luxury"}]}}}]}}}`)})
	for _, query := range []string{"some luxury", "sleeping in a settlement", "a bed"} {
		if hits := x.Search(query, SearchOptions{}); len(hits) == 0 || hits[0].ID != "hotel::book" {
			t.Errorf("%q: got %v, want hotel::book first", query, ids(hits))
		}
	}
}

func TestSearchFindsFirst(t *testing.T) {
	x := filled()
	for query, want := range map[string]string{
		"current weather in Rome":                   "weather::getCurrentWeather",
		"What will the forecasts be?":               "weather::get_forecast",
		"sending e-mails":                           "mail::send_email",
		"mail this to a recipient":                  "mail::send_email",
		"look through the archive":                  "mail::searchInbox",
		"save this to /tmp/notes/today.txt, please": "files::write_file",
		"which towns are there":                     "weather::getCurrentWeather",
	} {
		hits := x.Search(query, SearchOptions{})
		if len(hits) == 0 || hits[0].ID != want {
			t.Errorf("%q: got %v, want %s first", query, ids(hits), want)
		}
	}
}

// The name that says least beyond the question wins, also where the question has other words for it.
func TestSearchFindsWholeNames(t *testing.T) {
	x := New()
	x.Update("books", []Tool{
		tool("books", "total_invoices", "Of a customer"),
		tool("books", "total_invoices_printer_pages", "Invoices in total"),
	})
	for _, query := range []string{"total invoices", "the sum of the invoices"} {
		if hits := x.Search(query, SearchOptions{}); len(hits) != 2 || hits[0].Score <= hits[1].Score || hits[0].ID != "books::total_invoices" {
			t.Errorf("%q: got %v, want total_invoices first", query, hits)
		}
	}
}

// Of two tools with the words of the question, that which says less else wins.
func TestSearchPrefersToolsAboutNothingElse(t *testing.T) {
	x := New()
	x.Update("sea", []Tool{
		tool("sea", "almanac", "High and low tides", `{"properties":{"zodiac":{"description":"Sign of a birthday"},"moon":{}}}`),
		tool("sea", "harbour", "High and low tides", `{"properties":{"tide":{}}}`),
		tool("sea", "pier", "High and low tides"),
	})
	want := []string{"sea::harbour", "sea::pier", "sea::almanac"}
	if got := ids(x.Search("low tides", SearchOptions{})); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSearchCoversEveryPartOfAQuestion(t *testing.T) {
	hits := filled().Search("Get the current weather in Oslo and the forecast, then send an email about it", SearchOptions{Limit: 3})
	got := ids(hits)
	for _, want := range []string{"weather::getCurrentWeather", "weather::get_forecast", "mail::send_email"} {
		if !slices.Contains(got, want) {
			t.Errorf("got %v, want %s among them", got, want)
		}
	}
	for i := 1; i < len(hits); i++ {
		if hits[i].Score > hits[i-1].Score {
			t.Errorf("scores rise: %v", hits)
		}
	}
}

func TestHitsNameTheWordsFound(t *testing.T) {
	hits := filled().Search("please send Ann an email", SearchOptions{Limit: 1})
	if want := []string{"send", "email"}; len(hits) != 1 || !slices.Equal(hits[0].Terms, want) {
		t.Errorf("got %+v, want terms %v", hits, want)
	}
}

func TestUpdateReplacesOneServer(t *testing.T) {
	x := filled()
	x.Update("mail", []Tool{tool("mail", "delete_message", "Delete a message")})
	if got := ids(x.Search("recipients", SearchOptions{})); len(got) != 0 {
		t.Errorf("tools that are gone: got %v", got)
	}
	if got := ids(x.Search("delete message", SearchOptions{})); len(got) == 0 || got[0] != "mail::delete_message" {
		t.Errorf("new tool: got %v", got)
	}
	if got := ids(x.Search("forecast", SearchOptions{})); len(got) == 0 {
		t.Error("another server's tool is gone")
	}
	x.Update("weather", nil)
	x.Update("weather", nil)
	if got := ids(x.Search("weather forecast", SearchOptions{})); len(got) != 0 {
		t.Errorf("removed server: got %v", got)
	}
}

func TestAllowAndLimit(t *testing.T) {
	x := filled()
	hits := x.Search("file weather email forecast", SearchOptions{Allow: func(server, _ string) bool { return server == "files" }})
	if got := ids(hits); !slices.Equal(got, []string{"files::read_file", "files::write_file"}) {
		t.Errorf("allowed: got %v", got)
	}
	for _, limit := range []int{1, 2} {
		if got := x.Search("file weather email forecast", SearchOptions{Limit: limit}); len(got) != limit {
			t.Errorf("limit %d: got %d hits", limit, len(got))
		}
	}
	if got := x.Search("file", SearchOptions{Limit: 1 << 40}); len(got) != 2 {
		t.Errorf("huge limit: got %v", ids(got))
	}
	if got := x.Search("file", SearchOptions{Limit: -1}); len(got) != 2 {
		t.Errorf("negative limit: got %v", ids(got))
	}
}

func TestNamesAreFoundInOnePiece(t *testing.T) {
	x := filled()
	x.Update("PayPal", []Tool{tool("PayPal", "invoice", "")})
	x.Update("github", []Tool{tool("github", "listIssues", "")})
	x.Update("figures", []Tool{tool("figures", "draw_box_plot", ""), tool("figures", "flowchart", "")})
	for query, want := range map[string]string{"paypal": "PayPal::invoice", "PayPal": "PayPal::invoice", "GitHub": "github::listIssues",
		"listissues": "github::listIssues", "a boxplot": "figures::draw_box_plot", "a box-plot": "figures::draw_box_plot", "flow charts": "figures::flowchart",
		"flowChart": "figures::flowchart"} {
		if got := ids(x.Search(query, SearchOptions{Limit: 1})); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
}

// A tool is found by its name or id, whatever words they are of.
func TestExactNamesAreFoundFirst(t *testing.T) {
	x := filled()
	x.Update("verbs", []Tool{tool("verbs", "lookup", "Anything"), tool("verbs", "get_y", "A coordinate"), tool("verbs", "get", ""), tool("verbs", "x", ""),
		tool("verbs", "look", "Lookup of a lookup"), tool("verbs", "get_y_of_all", "Get y"), tool("verbs", "use_get", "")})
	for query, want := range map[string]string{"lookup": "lookup", "Lookup?": "lookup", "get": "get", "x": "x", "get_y": "get_y", "call `get_y` for the weather in Rome": "get_y",
		"what does verbs::get do": "get", "verbs::look": "look"} {
		if got := ids(x.Search(query, SearchOptions{Limit: 1})); !slices.Equal(got, []string{"verbs::" + want}) {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
}

// Instructions find the tools of a server, behind tools that have the word themselves, and make no word commoner.
func TestInstructionsFindTools(t *testing.T) {
	x := filled()
	before := x.Search("weather forecast", SearchOptions{})
	var many []Tool
	for i := range 50 {
		many = append(many, Tool{ID: fmt.Sprint("acme", i), Name: fmt.Sprint("number", i), Instructions: "For gadgetrons, the forecast and reading files."})
	}
	x.Update("acme", many)
	if hits := x.Search("gadgetron", SearchOptions{}); len(hits) != 10 || !strings.HasPrefix(hits[0].ID, "acme") {
		t.Errorf("got %v, want the tools of acme", ids(hits))
	}
	after := x.Search("weather forecast", SearchOptions{})
	if !slices.Equal(ids(after[:2]), ids(before[:2])) || after[0].Score < before[0].Score {
		t.Errorf("got %v, want first %v", after[:2], before[:2])
	}
	for i := range many {
		many[i].Instructions = "For parcels."
	}
	x.Update("acme", many)
	if hits := x.Search("gadgetron", SearchOptions{}); len(hits) != 0 {
		t.Errorf("former instructions: got %v", ids(hits))
	}
	if hits := x.Search("parcels", SearchOptions{}); len(hits) != 10 {
		t.Errorf("new instructions: got %v", ids(hits))
	}
}

// A question's topic, and the words of the best tools, find tools that share no word with the question; for callers that
// use hits without a further check they do not.
func TestRelatedToolsAreFound(t *testing.T) {
	x := filled()
	x.Update("economy", []Tool{tool("economy", "indicators", "By quarter")})
	var guides []Tool
	for _, town := range strings.Fields("Oslo Bergen Turku Vaasa Malmo Umea") {
		guides = append(guides, tool("guides", "museum_of_"+town, "Opening hours of a gallery"))
	}
	x.Update("guides", guides)
	x.Update("tours", []Tool{tool("tours", "gallery", "Opening hours")})
	for query, want := range map[string]string{"did inflation rise": "economy::indicators", "a museum": "tours::gallery"} {
		if got := ids(x.Search(query, SearchOptions{})); !slices.Contains(got, want) {
			t.Errorf("%s: got %v, want %s among them", query, got, want)
		}
		if got := ids(x.Search(query, SearchOptions{Literal: true})); slices.Contains(got, want) {
			t.Errorf("%s: got %v by words alone", query, got)
		}
	}
}

func TestTiesAreBrokenByID(t *testing.T) {
	x := New()
	var tools []Tool
	for _, n := range []string{"c", "a", "d", "b"} {
		tools = append(tools, Tool{ID: n, Server: "s", Name: "equal_twin"})
	}
	x.Update("s", tools)
	for range 3 {
		if got := ids(x.Search("equal twin", SearchOptions{})); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Fatalf("got %v", got)
		}
	}
}

func TestOddQuestionsAndSchemas(t *testing.T) {
	x := New()
	schemas := []string{``, `null`, `[]`, `{"properties":[]}`, `{"properties":{"a":true}}`, `{"properties":{"a":{"$ref":"#"}}}`, `{"anyOf":[{"properties":{"b":{}}},null,1]}`, `{`,
		`{"properties":{"deep":` + strings.Repeat(`{"items":`, 500) + `{}` + strings.Repeat(`}`, 500) + `}}`,
		`{"properties":{"e":{"enum":[` + strings.Repeat(`"x",`, 5000) + `1]}}}`}
	var tools []Tool
	for i, s := range schemas {
		tools = append(tools, Tool{ID: fmt.Sprint(i), Server: "s", Name: "odd", Description: "奇怪的工具 أداة غريبة 🙂", InputSchema: json.RawMessage(s)})
	}
	x.Update("s", tools)
	for _, q := range []string{"", " ", `"(((`, "🙂🙂", strings.Repeat("odd weather, and then ", 500), strings.Repeat("(", 10000), strings.Repeat("a", 10000), "\xff\xfe", "'", "the of and"} {
		start := time.Now()
		x.Search(q, SearchOptions{})
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%.20q took %v", q, d)
		}
	}
	for _, q := range []string{"工具", "غريبة"} {
		if got := x.Search(q, SearchOptions{}); len(got) != len(schemas) {
			t.Errorf("%q: got %d hits, want %d", q, len(got), len(schemas))
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	x := filled()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				x.Update(fmt.Sprint("extra", i), []Tool{tool(fmt.Sprint("extra", i), "extra_weather", "More weather")})
				x.Update(fmt.Sprint("extra", i), nil)
			}
		})
		all.Go(func() {
			for range 50 {
				if hits := x.Search("current weather", SearchOptions{}); len(hits) == 0 {
					t.Error("a search during updates found nothing")
					return
				}
			}
		})
	}
	all.Wait()
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"weather in Rome", `"((("`, "天气怎么样？", "الطقس", "🙂", "a.b/c:\\d 'e' and then f", "/root/x.md and and and"} {
		f.Add(s, `{"properties":{"a":{"description":"b"}}}`)
	}
	f.Fuzz(func(t *testing.T, query, schema string) {
		x := filled()
		x.Update("fuzz", []Tool{{ID: "fuzz", Server: "fuzz", Name: query, Description: query, InputSchema: json.RawMessage(schema)}})
		a, b := x.Search(query, SearchOptions{}), x.Search(query, SearchOptions{})
		if !slices.Equal(ids(a), ids(b)) {
			t.Errorf("two answers to %q: %v and %v", query, ids(a), ids(b))
		}
		x.Update("fuzz", nil)
		for _, h := range x.Search(query, SearchOptions{}) {
			if h.ID == "fuzz" {
				t.Errorf("found a removed tool")
			}
		}
	})
}

// A word that many tools share does not decide alone; words that few have, or that belong together, do.
func TestSearchOneCommonWord(t *testing.T) {
	x := New()
	x.Update("random", []Tool{tool("random", "random-number", "Generate a random number between a minimum and a maximum number")})
	x.Update("map", []Tool{
		tool("map", "geocode", "Convert an address to coordinates", `{"properties":{"address":{"description":"The address"}}}`),
		tool("map", "reverse_geocode", "Find the address at coordinates"),
	})
	x.Update("keep", []Tool{tool("keep", "keep-list-notes", "List the notes in Google Keep"), tool("keep", "keep-create-note", "Create a note in Google Keep")})
	x.Update("crm", []Tool{
		tool("crm", "get_supplier", "Contact data of a supplier", `{"properties":{"name":{"description":"Name of the supplier"}}}`),
		tool("crm", "count_leads", "The number of leads in a quarter"),
	})
	x.Update("shop", []Tool{
		tool("shop", "update_order", "Change an order that is not sent yet", `{"properties":{"order":{"description":"Order number"},"delivery":{"description":"Delivery address"}}}`),
		tool("shop", "cancel_order", "Cancel an order by its number"),
	})
	x.Update("pager", []Tool{tool("pager", "get_schedule", "Who is on call at a time"), tool("pager", "list_incidents", "Alerts that are paging somebody")})
	for query, want := range map[string]string{
		"What is the phone number of our supplier Miller?":                "crm::get_supplier",
		"The delivery address of order 1042 must be changed":              "shop::update_order",
		"Something keeps paging me at night, show me the incidents":       "pager::list_incidents",
		"How many leads did we get last quarter, the number alone please": "crm::count_leads",
		"Give me a random number":                                         "random::random-number",
		"Which notes are in Keep?":                                        "keep::keep-list-notes",
	} {
		if got := ids(x.Search(query, SearchOptions{})); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %v, want %s first", query, got, want)
		}
	}
}
