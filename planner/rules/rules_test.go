package rules

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

func tool(name, description, input string, more ...func(*plan.Tool)) plan.Tool {
	t := plan.Tool{Name: name, Server: "srv", Tool: name, Description: description, InputSchema: json.RawMessage(input)}
	for _, m := range more {
		m(&t)
	}
	return t
}

func returning(output string) func(*plan.Tool) {
	return func(t *plan.Tool) { t.OutputSchema = json.RawMessage(output) }
}

func readOnly(t *plan.Tool) {
	yes := true
	t.Annotations.ReadOnlyHint = &yes
}

func destroying(t *plan.Tool) {
	yes := true
	t.Annotations.DestructiveHint = &yes
}

// monday is when the tests plan.
func monday() time.Time { return time.Date(2025, 6, 2, 9, 0, 0, 0, time.UTC) }

// calls writes a plan as "tool{arguments} tool{arguments}".
func calls(t *testing.T, question string, tools ...plan.Tool) string {
	t.Helper()
	p, err := New(Options{Now: monday}).Plan(t.Context(), question, NewCatalog(tools))
	if err != nil {
		t.Fatalf("%q: %v", question, err)
	}
	if p.Source != plan.SourceRules || (p.Note == "") != (len(p.Steps) > 0) {
		t.Errorf("%q: source %q, note %q with %d steps", question, p.Source, p.Note, len(p.Steps))
	}
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Tool+string(s.Arguments))
	}
	return strings.Join(out, " ")
}

var (
	webSearch = tool("web_search", "Search the web for current information", `{"type":"object","properties":{"query":{"type":"string","description":"Search query"}},"required":["query"]}`)
	calculate = tool("calculate", "Evaluate a mathematical expression", `{"type":"object","properties":{"expression":{"type":"string","description":"Mathematical expression, e.g. 2 + 2"}},"required":["expression"]}`)
	weather   = tool("get_weather", "Get the weather forecast for a city", `{"type":"object","properties":{"city":{"type":"string","description":"The city"},"date":{"type":"string","format":"date"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"]}`)
)

func TestNewsAndCalculations(t *testing.T) {
	for question, want := range map[string]string{
		"What's the latest AI news and what's 15% of $2500?": `web_search{"query":"latest AI news"} calculate{"expression":"2500 * 0.15"}`,
		"latest news":                            `web_search{"query":"latest news"}`,
		"Any headlines about chess?":             `web_search{"query":"headlines about chess"}`,
		"15% of $2500":                           `calculate{"expression":"2500 * 0.15"}`,
		"How much is 12 times 7?":                `calculate{"expression":"12 * 7"}`,
		"20 percent off €80":                     `calculate{"expression":"80 * 0.8"}`,
		"increase 200 by 15%":                    `calculate{"expression":"200 * 1.15"}`,
		"what is the square root of 144":         `calculate{"expression":"sqrt(144)"}`,
		"Compute (3 + 4) * 2":                    `calculate{"expression":"(3 + 4) * 2"}`,
		"what is 10/4":                           `calculate{"expression":"10/4"}`,
		"Remind me of the meeting on 03/04/2025": ``,
		"Sing a song":                            ``,
		"":                                       ``,
		`"(((`:                                   ``,
		"现在几点？":                                  ``,
		"search the web for sourdough bread recipes": `web_search{"query":"sourdough bread recipes"}`,
	} {
		if got := calls(t, question, webSearch, calculate, weather); got != want {
			t.Errorf("%q:\n got %s\nwant %s", question, got, want)
		}
	}
}

// TestOpenCalls: what only lacks required arguments is not planned, but named, without what would be a guess.
func TestOpenCalls(t *testing.T) {
	harmless := weather
	readOnly(&harmless) // which allows guesses, but "weather" is none for a city
	for question, want := range map[string]string{
		"what will the weather be like tomorrow?": `{"date":"2025-06-03"}`,
		"What's the weather like?":                `{}`,
		"get the weather forecast for us":         `{}`, // not of the United States
		"weather in Oslo":                         ``,   // nothing is lacking
		"what is the meaning of life?":            ``,
		"qwertz uiop":                             ``,
	} {
		for _, w := range []plan.Tool{weather, harmless} {
			open(t, question, want, webSearch, calculate, w)
		}
	}
}

func open(t *testing.T, question, want string, tools ...plan.Tool) {
	t.Helper()
	p, err := New(Options{Now: monday}).Plan(t.Context(), question, NewCatalog(tools))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range p.Open {
		got += string(s.Arguments)
	}
	if got != want || len(p.Open) > 0 && len(p.Steps) > 0 {
		t.Errorf("%q: got open %s and %d steps, want %s", question, got, len(p.Steps), want)
	}
}

func TestArguments(t *testing.T) {
	schema := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`
	}
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"What is the weather in Oslo tomorrow, in celsius?", weather, `{"city":"Oslo","date":"2025-06-03","unit":"celsius"}`},
		{"i'd like the weather forecast for new york, please", weather, `{"city":"new york"}`},
		{"weather in los angeles", tool("get_weather", "Get the weather", schema(`"place":{"type":"string","description":"City, State"}`, `"place"`)), `{"place":"los angeles, CA"}`},
		{"get directions from new york to los angeles",
			tool("get_directions", "Get directions between two places", schema(`"start":{"type":"string"},"end":{"type":"string"}`, `"start","end"`)),
			`{"end":"los angeles","start":"new york"}`},
		{"weather forecast for Lima on March 3rd, 2026", weather, `{"city":"Lima","date":"2026-03-03"}`},
		{"Book a table for four people at 7:30 pm under the name 'Kim'",
			tool("book_table", "Book a table at the restaurant", schema(`"name":{"type":"string"},"people":{"type":"integer"},"time":{"type":"string","description":"Time, HH:MM"}`, `"name","people","time"`)),
			`{"name":"Kim","people":4,"time":"19:30"}`},
		{"Convert 150 euros to Canadian dollars",
			tool("convert_currency", "Convert an amount of money to another currency", schema(`"amount":{"type":"number"},"from_currency":{"type":"string","description":"Currency code"},"to_currency":{"type":"string","description":"Currency code"}`, `"amount","from_currency","to_currency"`)),
			`{"amount":150,"from_currency":"EUR","to_currency":"CAD"}`},
		{"Calculate the greatest common divisor of the two numbers 36 and 48",
			tool("gcd", "Calculate the greatest common divisor of two numbers", schema(`"num1":{"type":"integer"},"num2":{"type":"integer"}`, `"num1","num2"`)),
			`{"num1":36,"num2":48}`},
		{"Calculate the average of 4, 8 and 15.5",
			tool("average", "Calculate the average of numbers", schema(`"numbers":{"type":"array","items":{"type":"number"}}`, `"numbers"`)),
			`{"numbers":[4,8,15.5]}`},
		{"Calculate the growth of $2,000 at an interest rate of 5% over 3 years",
			tool("growth", "Calculate the growth of an investment", schema(`"principal":{"type":"number","description":"Amount invested"},"rate":{"type":"number","description":"Interest rate"},"years":{"type":"integer"}`, `"principal","rate","years"`)),
			`{"principal":2000,"rate":0.05,"years":3}`},
		{"Set a timer of 3 minutes",
			tool("set_timer", "Set a timer", schema(`"duration":{"type":"integer","description":"Duration in seconds"}`, `"duration"`)),
			`{"duration":180}`},
		{"Get directions from Vienna to Graz without tolls",
			tool("get_directions", "Get directions between two places", schema(`"start":{"type":"string","description":"Starting place"},"end":{"type":"string","description":"Destination place"},"tolls":{"type":"boolean"}`, `"start","end"`)),
			`{"end":"Graz","start":"Vienna","tolls":false}`},
		{"Delete the invoice with ID 'INV-2024-7'",
			tool("delete_invoice", "Delete an invoice", schema(`"invoice_id":{"type":"string"}`, `"invoice_id"`)),
			`{"invoice_id":"INV-2024-7"}`},
		{"Read the file /var/log/app.log",
			tool("read_file", "Read a file", schema(`"path":{"type":"string"}`, `"path"`)),
			`{"path":"/var/log/app.log"}`},
		{"Send an email to ann@example.com with subject \"Lunch\" and body \"At noon?\"",
			tool("send_email", "Send an email", schema(`"to":{"type":"string","format":"email"},"subject":{"type":"string"},"body":{"type":"string"}`, `"to","subject","body"`)),
			`{"body":"At noon?","subject":"Lunch","to":"ann@example.com"}`},
		{"Find a dentist in San Diego",
			tool("find_dentist", "Find a dentist in a city", schema(`"city":{"type":"string","description":"City, State, such as 'Austin, TX'"}`, `"city"`)),
			`{"city":"San Diego, CA"}`},
		{"Compute the distance between the points {'x': 1} and {'x': 5}", tool("distance", "Compute the distance between points", schema(`"point":{"type":"object"}`, `"point"`)), `{"point":{"x":1}}`},
		{"Show the page of orders", tool("list_orders", "Show the orders page by page", schema(`"page":{"type":"integer"}`, `"page"`)), `{"page":1}`},
		{"Run a job using the command echo %time%", tool("run_job", "Run a job", schema(`"command":{"type":"string","description":"The command"}`, `"command"`)), `{"command":"echo %time%"}`},
		{"Add a task with content go to sleep at 9 pm", tool("add_task", "Add a task", schema(`"content":{"type":"string","description":"Content of the task"}`, `"content"`)), `{"content":"go to sleep at 9 pm"}`},
		{"Find a cleaner who does ironing", tool("find_cleaner", "Find a cleaner", schema(`"service":{"type":"integer","description":"'1' represents washing, '2' represents ironing"}`, `"service"`)), `{"service":2}`},
		{"Speak the text 'Hola' in Spanish", tool("speak_text", "Speak a text", schema(`"text":{"type":"string"},"language":{"type":"string","enum":["en-US","es-ES"]}`, `"text"`)), `{"language":"es-ES","text":"Hola"}`},
		{"Show the weather at latitude 33.9 S and longitude 151.2 E", tool("show_weather", "Show the weather", schema(`"latitude":{"type":"number"},"longitude":{"type":"number"}`, `"latitude","longitude"`)), `{"latitude":-33.9,"longitude":151.2}`},
		{"Calculate the tax on $60 in San Francisco, California", tool("calculate_tax", "Calculate the tax", schema(`"amount":{"type":"number"},"city":{"type":"string"},"state":{"type":"string"}`, `"amount","state"`)), `{"amount":60,"city":"San Francisco","state":"California"}`},
		{"Play the song 'Roar' by Katy Perry", tool("play_song", "Play a song", schema(`"song":{"type":"string"},"artist":{"type":"string","description":"Who performs"}`, `"song"`)), `{"artist":"Katy Perry","song":"Roar"}`},
		{"Mail the report to a colleague", tool("mail_report", "Mail the report", schema(`"urgent":{"type":"boolean"}`, ``)), `{}`},
	} {
		if got, want := calls(t, tc.question, tc.tool), tc.tool.Name+tc.want; got != want {
			t.Errorf("%q:\n got %s\nwant %s", tc.question, got, want)
		}
	}
}

func TestOneCallForEachOfSeveralValues(t *testing.T) {
	want := `get_weather{"city":"Rome"} get_weather{"city":"Milan"}`
	if got := calls(t, "What is the weather forecast in Rome and Milan?", weather); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestResultsFeedLaterCalls(t *testing.T) {
	lyrics := tool("find_lyrics", "Find the lyrics of a song", `{"properties":{"title":{"type":"string","description":"Title of the song"}},"required":["title"]}`,
		returning(`{"properties":{"lyrics":{"type":"string"}}}`))
	translate := tool("translate_text", "Translate a text to another language", `{"properties":{"text":{"type":"string","description":"The text to translate"},"language":{"type":"string","description":"The language"}},"required":["text","language"]}`)
	want := `find_lyrics{"title":"Yesterday"} translate_text{"language":"Spanish","text":"$s1.lyrics"}`
	if got := calls(t, "Find the lyrics of the song 'Yesterday' and then translate the lyrics to Spanish", lyrics, translate); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProducersArePulledIn(t *testing.T) {
	find := tool("find_station", "Find the station of a city", `{"properties":{"city":{"type":"string","description":"Name of the city"}},"required":["city"]}`,
		returning(`{"properties":{"station_id":{"type":"string"}}}`))
	board := tool("departure_board", "Show the departure board with the next departures", `{"properties":{"station_id":{"type":"string","description":"Station of the departures"}},"required":["station_id"]}`)
	p, err := New(Options{}).Plan(t.Context(), "Show the departure board with the next departures in Graz", NewCatalog([]plan.Tool{find, board}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 2 || p.Steps[0].Tool != "find_station" || string(p.Steps[1].Arguments) != `{"station_id":"$s1.station_id"}` || len(p.Steps[1].After) != 1 || p.Steps[1].After[0] != "s1" {
		t.Errorf("got %+v", p.Steps)
	}
}

func TestWhatIsAnsweredIsNotAskedAgain(t *testing.T) {
	cost := tool("estimate_cost", "Estimate the cost of a project", `{"properties":{"project":{"type":"string","description":"Name of the project"}},"required":["project"]}`,
		returning(`{"properties":{"cost":{"type":"number"}}}`))
	report := tool("get_cost_report", "Get a cost report", `{"properties":{}}`)
	want := `estimate_cost{"project":"Bridge"}`
	if got := calls(t, "Estimate the cost of the project 'Bridge'. Then provide the cost of the project.", cost, report); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNothingIsCalledOnAGuess(t *testing.T) {
	schema := `{"properties":{"topic":{"type":"string"},"channel":{"type":"integer"}},"required":["topic","channel"]}`
	for name, tc := range map[string]struct {
		question string
		tool     plan.Tool
		want     string
	}{
		"destructive":               {"Get the weather forecast in Rome", tool(weather.Name, weather.Description, string(weather.InputSchema), destroying), ``},
		"destructive and read-only": {"Get the weather forecast in Rome", tool(weather.Name, weather.Description, string(weather.InputSchema), destroying, readOnly), ``},
		"flag guessed":              {"Post the topic 'Go'", tool("post_topic", "Post a topic", `{"properties":{"topic":{"type":"string"},"pinned":{"type":"boolean"}},"required":["topic","pinned"]}`), ``},
		"flag guessed, harmless":    {"Post the topic 'Go'", tool("post_topic", "Post a topic", `{"properties":{"topic":{"type":"string"},"pinned":{"type":"boolean"}},"required":["topic","pinned"]}`, readOnly), `post_topic{"pinned":false,"topic":"Go"}`},
		"another change asked":      {"Delete the weather forecast of Rome", weather, ``},
		"stray word":                {"Ring the bell loudly", tool("ring_bell", "Ring the bell", `{"properties":{"note":{"type":"string"}},"required":["note"]}`), ``},
		"missing number":            {"Post the topic 'Go' to the channel", tool("post_topic", "Post a topic to the channel", schema), ``},
		"text guessed":              {"Create the weekly report", tool("create_report", "Create the weekly report", `{"properties":{"body":{"type":"string"}},"required":["body"]}`), ``},
		"text guessed, harmless":    {"Create the weekly report, sales first", tool("create_report", "Create the weekly report", `{"properties":{"body":{"type":"string"}},"required":["body"]}`, readOnly), `create_report{"body":"sales"}`},
		"only the tool named":       {"Create the weekly report", tool("create_report", "Create the weekly report", `{"properties":{"body":{"type":"string"}},"required":["body"]}`, readOnly), ``},
		"unreadable schema":         {"Get the weather forecast in Rome", tool(weather.Name, weather.Description, `[`), ``},
	} {
		if got := calls(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestCancelledPlanning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Options{}).Plan(ctx, "latest news", NewCatalog([]plan.Tool{webSearch})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func FuzzPlan(f *testing.F) {
	for _, s := range []string{
		"What's the latest AI news and what's 15% of $2500?", "weather in Rome, Milan and Oslo tomorrow at 3pm", "'a' \"b\" [1, 2] {\"c\": 3}", "May 5 to May 7, 2024-13-45", "sqrt(", "$", "%",
		"1e400 9999999999999999999999", "天气", "İ ß ﬁ",
	} {
		f.Add(s, string(weather.InputSchema))
	}
	f.Add("get it", `{"properties":{"a":{"type":"integer","minimum":5},"b":{"type":"array","items":{"type":"number"}},"c":{"type":"object","properties":{"d":{"type":"boolean"}}}},"required":["a","b","c"]}`)
	f.Fuzz(func(t *testing.T, question, schema string) {
		tools := []plan.Tool{webSearch, calculate, tool("fuzz", question, schema, readOnly, returning(schema)), weather}
		p, err := New(Options{Now: monday}).Plan(t.Context(), question, NewCatalog(tools))
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, s := range p.Steps {
			var args map[string]any
			if err := json.Unmarshal(s.Arguments, &args); err != nil {
				t.Errorf("arguments %s: %v", s.Arguments, err)
			}
			for _, a := range s.After {
				if !ids[a] {
					t.Errorf("step %s comes after %s, which is none before it", s.ID, a)
				}
			}
			ids[s.ID] = true
		}
	})
}

// TestComposedSchema: parameters behind a root reference, in allOf and with alternatives are filled like others.
func TestComposedSchema(t *testing.T) {
	book := tool("book_hotel", "Book a hotel", `{"$ref":"#/$defs/Stay","$defs":{"Place":{"properties":{"city":{"$ref":"#/$defs/City"}},"required":["city"]},`+
		`"City":{"type":"string","description":"Town to sleep in","minLength":2},`+
		`"Stay":{"type":"object","allOf":[{"$ref":"#/$defs/Place"},{"properties":{"nights":{"type":"integer","minimum":1},`+
		`"class":{"oneOf":[{"const":"low","title":"Cheap"},{"const":"high","title":"Luxury"}]},"note":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["nights"]}]}}}`)
	for question, want := range map[string]string{
		"Book a hotel in Oslo for 3 nights":              `book_hotel{"city":"Oslo","nights":3}`,
		"Book a hotel in Oslo for 3 nights, class: high": `book_hotel{"city":"Oslo","class":"high","nights":3}`,
	} {
		if got := calls(t, question, book); got != want {
			t.Errorf("%q:\n got %s\nwant %s", question, got, want)
		}
	}
}

// TestExclusiveBounds: a value at an exclusive bound is not taken.
func TestExclusiveBounds(t *testing.T) {
	scale := tool("scale_image", "Scale an image by a factor", `{"properties":{"factor":{"type":"number","exclusiveMinimum":2,"exclusiveMaximum":8}},"required":["factor"]}`)
	for question, want := range map[string]string{
		"Scale the image by a factor of 3": `scale_image{"factor":3}`,
		"Scale the image by a factor of 2": ``,
		"Scale the image by a factor of 8": ``,
	} {
		if got := calls(t, question, scale); got != want {
			t.Errorf("%q:\n got %s\nwant %s", question, got, want)
		}
	}
}
