package rules_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// filled asks a question of one tool and returns its arguments, "" where it is not called.
func filled(t *testing.T, question string, tool plan.Tool) string {
	t.Helper()
	p := planned(t, question, tool)
	if len(p.Steps) == 0 {
		return ""
	}
	if len(p.Steps) > 1 {
		return calls(p)
	}
	return string(p.Steps[0].Arguments)
}

func TestFill_Texts(t *testing.T) {
	search := tool("search_books", "Search books by author and genre", object("*author:string:Name of the author", "genre:string:Genre such as mystery or romance"))
	lookup := tool("lookup_word", "Look up the meaning of a word", object("*word:string:The word"))
	note := tool("get_note", "Get a note by its title", object("*title:string:Title of the note"))
	web := tool("web_search", "Search the web", object("*query:string:What to search for"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"Search books by the author Jane Austen", search, `{"author":"Jane Austen"}`},
		{"search mystery books by Agatha Christie", search, `{"author":"Agatha Christie","genre":"mystery"}`},
		{"look up the meaning of the word serendipity", lookup, `{"word":"serendipity"}`},
		{`get the note titled "Plans for May"`, note, `{"title":"Plans for May"}`},
		{"search the web for cheap solar panels", web, `{"query":"cheap solar panels"}`},
		{"Search the web for \"go 1.30 release\"", web, `{"query":"go 1.30 release"}`},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

// TestFill_Announced checks texts and commands that no quotation marks delimit.
func TestFill_Announced(t *testing.T) {
	todo := tool("add_todo", "Add a todo to a list", object("*content:string:What is to be done", "list:string:Name of the list"))
	run := tool("execute_command", "Execute a command of the system", object("*command:string:The command"))
	patients := tool("find_patients", "Find patients by their temperature", object("*temperature:number:Least body temperature"))
	play := tool("play_song", "Play a song", object("*song_id:string:Identifier of the song", "device_id:string:Identifier of the device"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"add a todo with content go to sleep at 9 pm", todo, `{"content":"go to sleep at 9 pm"}`},
		{"add a todo with the content - call Ann. Thanks!", todo, `{"content":"call Ann"}`},
		{"add a todo with the content 'call Ann' to my list", todo, `{"content":"call Ann"}`},
		{"add a todo with content call Ann and delete the others", todo, ``},
		{"shut down the computer, using the exact command shutdown /s /t 0", run, `{"command":"shutdown /s /t 0"}`},
		{"show me the date using the echo %date% command", run, `{"command":"echo %date%"}`},
		{"do not shut down the computer using the command shutdown /s", run, ``},
		{"should I shut down the computer using the command shutdown /s?", run, ``},
		{"shut down the computer", run, ``},
		{"show me how to delete files using the command rm -rf /", run, ``},
		{"explain the deletion of files using the command rm -rf /", run, ``},
		{"show ways of deleting files using the command rm -rf /", run, ``},
		{"write a tutorial on using the grep -r command", run, ``},
		{"remove the files using the rm command", run, ``},
		{"remove the files using the command that Bob sent", run, ``},
		{"execute the command ls -la", run, `{"command":"ls -la"}`},
		{"add a todo with content don't forget milk", todo, `{"content":"don't forget milk"}`},
		{"what does the computer do using the command shutdown /s", run, ``},
		{"find patients with body temperature above 38", patients, `{"temperature":38}`},
		{"Play the song. The song_id is roar_1.", play, `{"song_id":"roar_1"}`},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

func TestFill_Numbers(t *testing.T) {
	gcd := tool("calculate_gcd", "Calculate the greatest common divisor of two numbers", object("*number1:integer:First number", "*number2:integer:Second number"))
	loan := tool("calculate_loan", "Calculate the payment of a loan", object("*principal:number:Amount of the loan", "*interest_rate:number:Rate as a decimal, such as 0.05", "*years:integer:Term in years"))
	area := tool("calculate_area", "Calculate the area of a rectangle", object("*width:number:Width", "*height:number:Height"))
	elevation := tool("get_elevation", "Get the elevation of a place", object("*coordinates:list of number:Latitude and longitude"))
	climate := tool("get_climate", "Get the climate of a place", object("*latitude:number:Latitude", "*longitude:number:Longitude"))
	stats := tool("calculate_mean", "Calculate the mean of a list of numbers", object("*numbers:list of number:The numbers"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"Calculate the greatest common divisor of 36 and 48", gcd, `{"number1":36,"number2":48}`},
		{"Calculate the greatest common divisor of two numbers, 36 and 48", gcd, `{"number1":36,"number2":48}`},
		{"Calculate the payment of a loan of $20,000 at 5% over 10 years", loan, `{"interest_rate":0.05,"principal":20000,"years":10}`},
		{"Calculate the payment of a loan with an interest rate of 5% over 10 years and a principal of 20000", loan, `{"interest_rate":0.05,"principal":20000,"years":10}`},
		{"Calculate the area of a rectangle with height 3 and width 4.5", area, `{"height":3,"width":4.5}`},
		{"Calculate the area of a rectangle with a width of 4 and a height of 3", area, `{"height":3,"width":4}`},
		{"Calculate the mean of 3, 4, 5 and 6", stats, `{"numbers":[3,4,5,6]}`},
		{"Calculate the mean of [200,300,400]", stats, `{"numbers":[200,300,400]}`},
		{"get the elevation at latitude 37.5 and longitude -122.25", elevation, `{"coordinates":[37.5,-122.25]}`},
		{"get the climate of the next 10 days at 37.5 N, 122.25 W", climate, `{"latitude":37.5,"longitude":-122.25}`},
		{"Calculate the area of a rectangle", area, ``},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

func TestFill_ChoicesAndFlags(t *testing.T) {
	weather := tool("get_weather", "Get the current weather of a city", object("*city:string:The city", "unit:one of celsius fahrenheit:Unit of temperature"))
	files := tool("list_files", "List the files of a folder", object("*folder:string:Path of the folder", "include_hidden:boolean:Whether hidden files are listed", "limit:integer:How many files at most"))
	convert := tool("convert_mass", "Convert a mass between units", object("*amount:number:Amount", "*from:one of kg lb g:Source unit", "*to:one of kg lb g:Target unit"))
	greeting := tool("get_greeting", "Get a greeting", object("*language:one of en-US es-ES zh-CN:Language of the greeting"))
	clock := tool("get_time", "Get the time in a zone", object("*zone:one of UTC Europe/London America/New_York:Time zone"))
	helpers := tool("find_helpers", "Find helpers for a service", object("*service:integer:1 for cleaning service, 2 for ironing service, 3 for big cleaning service", "province:integer:1 represents Bangkok, 2 represents Chiang Mai"))
	servers := tool("list_servers", "List the servers of a kind", object("*kind:one of postgres mysql redis:Kind of server"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"What is the current weather in Oslo in Celsius?", weather, `{"city":"Oslo","unit":"celsius"}`},
		{"What's the weather in Oslo? Tell me the temperature in fahrenheit.", weather, `{"city":"Oslo","unit":"fahrenheit"}`},
		{"list the files of /tmp and include hidden files", files, `{"folder":"/tmp","include_hidden":true}`},
		{"list the files of /tmp without hidden files", files, `{"folder":"/tmp","include_hidden":false}`},
		{"list 5 files of /tmp", files, `{"folder":"/tmp","limit":5}`},
		{"convert 5 kg to lb", convert, `{"amount":5,"from":"kg","to":"lb"}`},
		{"list the PostgreSQL servers", servers, `{"kind":"postgres"}`},
		{"get the greeting in Spanish", greeting, `{"language":"es-ES"}`},
		{"get the time in New York", clock, `{"zone":"America/New_York"}`},
		{"find helpers for ironing", helpers, `{"service":2}`},
		{"find helpers for big cleaning in the province of Chiang Mai", helpers, `{"province":2,"service":3}`},
		{"find helpers for gardening", helpers, ``},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

func TestFill_DatesAndPlaces(t *testing.T) {
	rain := tool("get_rain", "Get the rain of a city on a day", object("*city:string:City and state, such as Denver, CO", "*date:string:Day, YYYY-MM-DD"))
	report := tool("get_report", "Get the sales report of a period", object("*start_date:string:First day, YYYY-MM-DD", "*end_date:string:Last day, YYYY-MM-DD"))
	movies := tool("list_movies", "List movies in a city", object("*city:string:The city where the cinema is located, in the form 'City Name'", "date:string:Day, YYYY-MM-DD. Default is the current date"))
	tax := tool("get_tax", "Get the tax in a state", object("*state:string:State as an abbreviation, such as 'CA'"))
	ride := tool("get_ride", "Get a ride from an address", object("*address:string:Where it starts: street, city"))
	forecast := tool("get_forecast", "Get the forecast for some days", object("*city:string:The city", "*days:integer:Number of days"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"How much rain was in Denver on March 3, 2026?", rain, `{"city":"Denver, CO","date":"2026-03-03"}`},
		{"get the rain in Naples, Florida on 2026-03-03", rain, `{"city":"Naples, FL","date":"2026-03-03"}`},
		{"get the sales report from 2025-01-01 to 2025-03-31", report, `{"end_date":"2025-03-31","start_date":"2025-01-01"}`},
		{"get the sales report from April 22 until April 27, 2023", report, `{"end_date":"2023-04-27","start_date":"2023-04-22"}`},
		{"get the sales report of last week", report, `{"end_date":"2026-03-08","start_date":"2026-03-02"}`},
		{"list movies in Mumbai", movies, `{"city":"Mumbai"}`},
		{"What movies are in Mumbai today? Thanks.", movies, `{"city":"Mumbai"}`},
		{"list movies of tomorrow in Mumbai", movies, `{"city":"Mumbai","date":"2026-03-11"}`},
		{"list movies, please. San Francisco", movies, `{"city":"San Francisco"}`},
		{"list movies in Rome, the city where Mr. Gates lives", movies, `{"city":"Rome"}`},
		{"get the tax in Naples, Florida", tax, `{"state":"FL"}`},
		{"get a ride from 221B Baker Street, London", ride, `{"address":"221B Baker Street, London"}`},
		{"get the forecast of Oslo for the next 5 days", forecast, `{"city":"Oslo","days":5}`},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

func TestFill_Paths(t *testing.T) {
	makeFolder := tool("create_directory", "Create a new directory", object("*path:string:Path of the directory"))
	find := tool("search_files", "Search files that match a pattern in a directory", object("*path:string:Directory", "*pattern:string:Glob pattern"))
	move := tool("move_file", "Move or rename a file", object("*source:string:Path from", "*destination:string:Path to"))
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"create the folder reports in /tmp/fs", makeFolder, `{"path":"/tmp/fs/reports"}`},
		{"create a folder /tmp/new", makeFolder, `{"path":"/tmp/new"}`},
		{"find all *.md files in /tmp/fs", find, `{"path":"/tmp/fs","pattern":"*.md"}`},
		{"find all txt files in /tmp/fs", find, `{"path":"/tmp/fs","pattern":"**/*.txt"}`},
		{"move /tmp/a.txt to /tmp/b.txt", move, `{"destination":"/tmp/b.txt","source":"/tmp/a.txt"}`},
		{"rename /tmp/a.txt to /tmp/b.txt", move, `{"destination":"/tmp/b.txt","source":"/tmp/a.txt"}`},
	} {
		if got := filled(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.question, got, tc.want)
		}
	}
}

func TestFill_Objects(t *testing.T) {
	add := tool("create_contact", "Create a contact", `{"type":"object","properties":{"contact":{"type":"object","properties":{
		"name":{"type":"string","description":"Name"},"email":{"type":"string","format":"email"}},"required":["name","email"]}},"required":["contact"]}`)
	if got, want := filled(t, "create a contact for Bob Stone, bob@stone.io", add), `{"contact":{"email":"bob@stone.io","name":"Bob Stone"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFill_Defaults checks that a required parameter that the question does not mention takes its default or only choice.
func TestFill_Defaults(t *testing.T) {
	for name, schema := range map[string]string{
		`{"city":"Oslo","unit":"metric"}`: `{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","default":"metric"}},"required":["city","unit"]}`,
		`{"city":"Oslo","mode":"fast"}`:   `{"type":"object","properties":{"city":{"type":"string"},"mode":{"type":"string","enum":["fast"]}},"required":["city","mode"]}`,
		`{"city":"Oslo","days":3}`:        `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","description":"Days, default is 3"}},"required":["city","days"]}`,
	} {
		if got := filled(t, "Get the weather in Oslo", tool("get_weather", "Get the weather of a city", schema)); got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
}

// TestFill_NothingTwice checks that no part of a question is given to two parameters.
func TestFill_NothingTwice(t *testing.T) {
	flights := tool("find_flights", "Find flights between two cities", object("*origin:string:City of departure", "*destination:string:City of arrival"))
	p := planned(t, "find flights to Oslo", flights)
	if len(p.Steps) > 0 {
		t.Fatalf("got %s, want no call without an origin", calls(p))
	}
	for _, s := range p.Open {
		var args map[string]string
		if err := json.Unmarshal(s.Arguments, &args); err != nil || args["origin"] != "" {
			t.Errorf("got the open call %s, want the destination alone", s.Arguments)
		}
	}
	if !strings.Contains(p.Note, "origin") {
		t.Errorf("got the note %q, want one that names the origin", p.Note)
	}
}
