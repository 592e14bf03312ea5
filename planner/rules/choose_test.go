package rules_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// TestChoose_Parts checks how the clauses of a question become calls.
func TestChoose_Parts(t *testing.T) {
	weather := tool("get_weather", "Get the current weather of a city", object("*city:string:The city", "unit:one of celsius fahrenheit:Unit of temperature"))
	read := tool("read_file", "Read the text of a file", object("*path:string:Path of the file"))
	event := tool("create_event", "Create an event in the calendar", object("*title:string:Title", "end:string:Time of the end, HH:MM"))
	rounding := tool("convert_mass", "Convert a mass between units", object("*amount:number:Amount", "*from:one of kg lb:Source unit", "*to:one of kg lb:Target unit", "round:boolean:Whether to round the result"))
	for _, tc := range []struct {
		name, question string
		tools          []plan.Tool
		want           string
	}{
		{"two tools", "Show order A-99812 and add 3 and 4", []plan.Tool{getOrder, getSum}, `get_order{"order_id":"A-99812"}; get_sum{"a":3,"b":4}`},
		{"one tool twice", "Show order A-1 and show order B-2", []plan.Tool{getOrder}, `get_order{"order_id":"A-1"}; get_order{"order_id":"B-2"}`},
		{"the same again", "Show order A-1. Please show order A-1.", []plan.Tool{getOrder}, `get_order{"order_id":"A-1"}`},
		{"more about it", "What's the weather in Oslo? Give me the temperature in celsius.", []plan.Tool{weather}, `get_weather{"city":"Oslo","unit":"celsius"}`},
		{"an argument in a sentence of its own", "Convert 5 kg to lb. Round the result, please.", []plan.Tool{rounding}, `convert_mass{"amount":5,"from":"kg","round":true,"to":"lb"}`},
		{"another command gives a write nothing", "Create an event titled \"Lunch\". Remind Bob at 17:00.", []plan.Tool{event}, `create_event{"title":"Lunch"}`},
		{"a change gives a read nothing", "What's the weather in Oslo? Delete the celsius column.", []plan.Tool{weather}, `get_weather{"city":"Oslo"}`},
		{"a statement first", "My order is A-99812. Show it.", []plan.Tool{getOrder}, `get_order{"order_id":"A-99812"}`},
		{"only the read", "Don't cancel order A-1, only show the order", []plan.Tool{getOrder, cancelOrder}, `get_order{"order_id":"A-1"}`},
		{"a write and a read", "Cancel order A-1 and read /tmp/a.txt", []plan.Tool{cancelOrder, read}, `cancel_order{"order_id":"A-1"}; read_file{"path":"/tmp/a.txt"}`},
		{"a calculation", "square root of 144", []plan.Tool{calculate, webSearch}, `calculate{"expression":"sqrt(144)"}`},
	} {
		if got := calls(planned(t, tc.question, tc.tools...)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestChoose_ByItsMeans checks that a verb asks for a tool that is described to do so, but for none that changes otherwise.
func TestChoose_ByItsMeans(t *testing.T) {
	control := tool("lamp_control", "Controls a lamp by setting its colour", object("*colour:one of red green:Colour"))
	remove := tool("delete_user", "Deletes a user by sending a request", object("*name:string:Name of the user"))
	if got, want := calls(planned(t, "set the lamp to red", control)), `lamp_control{"colour":"red"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := calls(planned(t, "send a request to the user named Bob", remove)); got != "" {
		t.Errorf("got %s, want no call", got)
	}
}

// TestChoose_Opposite checks that a particle which means the opposite asks for no tool.
func TestChoose_Opposite(t *testing.T) {
	on := tool("turn_on_light", "Turn on the light in a room", object("*room:string:Room"))
	off := tool("turn_off_light", "Turn off the light in a room", object("*room:string:Room"))
	for question, want := range map[string]string{
		"Turn off the light in the kitchen":           "",
		"turn the light in the kitchen off":           "",
		"Schalte das Licht im Bad aus":                "",
		"¿Puedes apagar la luz en la cocina?":         "",
		"Turn on the light in the kitchen":            `turn_on_light{"room":"kitchen"}`,
		"Peux-tu allumer la lumière dans le garage ?": `turn_on_light{"room":"garage"}`,
	} {
		if got := calls(planned(t, question, on)); got != want {
			t.Errorf("%s: got %s, want %q", question, got, want)
		}
	}
	if got, want := calls(planned(t, "please turn the light in the attic off", on, off)), `turn_off_light{"room":"attic"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChoose_LastOne checks that what is left of a command fills the only argument left, if nothing else is.
func TestChoose_LastOne(t *testing.T) {
	deploy := tool("deploy_service", "Deploy a service", object("*service:string:Service", "*environment:one of staging production:Environment"))
	remove := tool("delete_message", "Delete a message", object("*message_id:string:Id"))
	move := tool("move_event", "Move an event", object("*event_id:string:Id of the event", "*date:string:New ISO date"))
	read := tool("read_event", "Show an event", object("*event_id:string:Id of the event"), harmless)
	list := tool("list_directory", "List a directory", object("*path:string"), harmless)
	write := tool("write_file", "Create a file or overwrite it", object("*path:string", "*content:string"))
	for question, want := range map[string]string{
		"Deploy billing to staging":                               `deploy_service{"environment":"staging","service":"billing"}`,
		"Deploy keys to staging do not work":                      "",
		"deploy to staging":                                       "",
		"delete the file":                                         "",
		"Don't delete event ev-31 but move it to 2026-12-14":      `move_event{"date":"2026-12-14","event_id":"ev-31"}`,
		"Don't delete event ev-31 but move another to 2026-12-14": "",
		"Don't delete event ev-31, read it":                       `read_event{"event_id":"ev-31"}`,
		"Instead of moving event ev-31, show it to me":            `read_event{"event_id":"ev-31"}`,
		"Don't deploy event ev-31, delete the event":              "",
		"I moved event ev-31, just check its date":                `read_event{"event_id":"ev-31"}`,
		"Deploy billing to staging tomorrow":                      "",
		"Deploy billing to staging at 5 pm":                       "",
		"Deploy billing to staging in an hour":                    "",
		"Give me instructions to delete message M-17":             "",
		"Deploy billing to staging or production":                 "",
		"delete message M-1 or M-2":                               "",
		"Delete Message M-17":                                     `delete_message{"message_id":"M-17"}`,
		"Yes, delete message M-17":                                `delete_message{"message_id":"M-17"}`,
		"Lösche Message M-17":                                     `delete_message{"message_id":"M-17"}`,
		`Explain the phrase "list directory"`:                     "",
	} {
		if got := calls(planned(t, question, deploy, remove, move, read, list)); got != want {
			t.Errorf("%s: got %s, want %q", question, got, want)
		}
	}
	if got := calls(planned(t, `file a report in srv/cli: "It is slow"`, write)); got != "" {
		t.Errorf("got %s, want no file written", got)
	}
}

// TestChoose_RunsCommands checks that a command runs for another verb only where it is what to use.
func TestChoose_RunsCommands(t *testing.T) {
	shell := tool("execute", "Run a command in the shell", object("*command:string:Command to run"))
	for question, want := range map[string]string{
		"stop the server using the command halt /t 0":                            `execute{"command":"halt /t 0"}`,
		"remove the entry with the command rm -r /srv":                           "",
		"remove the old entry. If you run the command rm -r /srv, it is lost.":   "",
		"remove the old entry. I stopped it using the command halt /t 0":         "",
		"show me how to remove the old entries using the command rm -r /srv/old": "",
	} {
		if got := calls(planned(t, question, shell)); got != want {
			t.Errorf("%s: got %s, want %q", question, got, want)
		}
	}
}

// TestChoose_DaysOfARange checks that both ends of a range of days are given, each to its side.
func TestChoose_DaysOfARange(t *testing.T) {
	sales := tool("list_sales", "List sales", object("*start_date:string:First day, YYYY-MM-DD", "*end_date:string:Last day, YYYY-MM-DD"))
	want := `list_sales{"end_date":"2026-03-08","start_date":"2026-03-02"}`
	if got := calls(planned(t, "list the sales of last week", sales)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChoose_Places checks what of a path, a graph or a calculation says where to look, and what to look for.
func TestChoose_Places(t *testing.T) {
	tools := []plan.Tool{
		tool("list_directory", "List the files and directories in a path", object("*path:string"), harmless),
		tool("directory_tree", "Get a tree of files and directories", object("*path:string"), harmless),
		tool("read_text_file", "Read the contents of a file as text", object("*path:string", "head:integer:Only the first N lines",
			"tail:integer:Only the last N lines"), harmless),
		tool("search_files", "Find files by a glob pattern", object("*path:string", "*pattern:string"), harmless),
		tool("read_many_files", "Read several files", object("*paths:list of string"), harmless),
		tool("move_file", "Move or rename files", object("*source:string", "*destination:string")),
		tool("create_directory", "Create a directory", object("*path:string")),
		tool("write_file", "Create a file or overwrite it", object("*path:string", "*content:string")),
		tool("search_nodes", "Search for nodes in the knowledge graph", object("*query:string"), harmless),
		tool("toggle_log", "Toggle the log of old files", object("on:boolean")),
	}
	for question, want := range map[string]string{
		"search for files called report in /srv":  `search_files{"path":"/srv","pattern":"report"}`,
		"Mueve /srv/a.log a /srv/b.log":           `move_file{"destination":"/srv/b.log","source":"/srv/a.log"}`,
		"ls /srv/data":                            `list_directory{"path":"/srv/data"}`,
		"list /srv/data":                          `list_directory{"path":"/srv/data"}`,
		"which is the biggest file in /srv/data?": `list_directory{"path":"/srv/data"}`,
		"show the directory tree of /srv/data":    `directory_tree{"path":"/srv/data"}`,
		"read /srv/LICENSE":                       `read_text_file{"path":"/srv/LICENSE"}`,
		"search the knowledge graph for Ann Lee":  `search_nodes{"query":"Ann Lee"}`,
		"save the text hello world in /srv/a.txt": `write_file{"content":"hello world","path":"/srv/a.txt"}`,
		"mv /srv/old.log to /srv/new.log":         `move_file{"destination":"/srv/new.log","source":"/srv/old.log"}`,
		"what is 12 * 7":                          "",
		"rm /srv/old.log":                         "",
		"make a folder called backup in /srv":     `create_directory{"path":"/srv/backup"}`,
		"Was steht in /srv/notes.txt?":            `read_text_file{"path":"/srv/notes.txt"}`,
		"mueve /srv/a.txt a /srv/b.txt":           `move_file{"destination":"/srv/b.txt","source":"/srv/a.txt"}`,
		"read the first 3 lines of /srv/a.txt":    `read_text_file{"head":3,"path":"/srv/a.txt"}`,
		"lee las últimas 3 líneas de /srv/a.txt":  `read_text_file{"path":"/srv/a.txt","tail":3}`,
		"read the frist 3 lines of /srv/a.txt":    `read_text_file{"path":"/srv/a.txt"}`, // not the last 3
		"find *.md in /srv":                       `search_files{"path":"/srv","pattern":"*.md"}`,
		"rename a.txt to b.txt in /srv":           `move_file{"destination":"/srv/b.txt","source":"/srv/a.txt"}`,
		"move a.txt and b.txt to /srv":            "",
		"move everything in /srv to /tmp":         "",
		"write the sum of 3 and 4 to /srv/a.txt":  "",
		"write a poem to /srv/a.txt":              "",
		"wipe the directory tree of /srv":         "",
		"no muevas /srv/a.txt a /srv/b.txt":       "",
		`put "hi" into /srv/a.txt and show me /srv/a.txt`: `write_file{"content":"hi","path":"/srv/a.txt"}; ` +
			`read_text_file{"path":"/srv/a.txt"}`,
	} {
		if got := calls(planned(t, question, tools...)); got != want {
			t.Errorf("%s: got %s, want %q", question, got, want)
		}
	}
}

// TestChoose_Described checks that the values that descriptions name are not taken for anything else, and that a value alone
// makes no call.
func TestChoose_Described(t *testing.T) {
	tools := []plan.Tool{
		tool("query_staff", "Find people by name, department or location, with their manager", object("location:string:City: Berlin or Toronto",
			"department:string:Department: Engineering, Sales or People", "name:string:Part of the name", "query:string:Free question"), harmless),
		tool("web_search", "Search the web", object("*query:string:What to search for"), harmless),
		tool("calculate", "Calculate an expression", object("*expression:string:Such as sqrt(2)"), harmless),
		tool("echo", "Echoes back the input", object("*message:string:Message to echo"), harmless),
	}
	for question, want := range map[string]string{
		"weather in Berlin":                   "",
		"who works in berlin":                 `query_staff{"location":"berlin"}`,
		"who works in Madrid":                 `query_staff{"location":"Madrid"}`,
		"how many people work in Engineering": `query_staff{"department":"Engineering"}`,
		"who is the manager of Tom":           `query_staff{"name":"Tom"}`,
		"search for the 1.24 release notes":   `web_search{"query":"1.24 release notes"}`,
		"sqrt of 144":                         "",
		"echo hello there":                    `echo{"message":"hello there"}`,
	} {
		if got := calls(planned(t, question, tools...)); got != want {
			t.Errorf("%s: got %s, want %q", question, got, want)
		}
	}
}

// TestChoose_LeavesNoAddress checks that no tool writes that has no use for a path or an address in the command.
func TestChoose_LeavesNoAddress(t *testing.T) {
	todo := tool("add_todo", "Add a todo to a list", object("*content:string:What is to be done"))
	for _, question := range []string{"create a file /tmp/a.txt with content hello world", "make ann@x.io a page with content hello"} {
		if got := calls(planned(t, question, todo)); got != "" {
			t.Errorf("%s: got %s, want no call", question, got)
		}
	}
}

// TestChoose_OfNearTwins checks that of tools whose arguments fit alike the one is called that does what is asked for.
func TestChoose_OfNearTwins(t *testing.T) {
	info := tool("get_file_info", "Get the size, owner and times of a file", object("*path:string:Path of the file"))
	read := tool("read_text_file", "Read the text of a file", object("*path:string:Path of the file"))
	list := tool("list_directory", "List what is in a directory", object("*path:string:Path of the directory"))
	makeIt := tool("create_directory", "Create a directory", object("*path:string:Path of the directory"))
	tools := []plan.Tool{info, read, list, makeIt}
	for question, want := range map[string]string{
		"how big is /srv/notes.txt?":    "get_file_info",
		"what does /srv/notes.txt say?": "read_text_file",
		"read /srv/notes.txt":           "read_text_file",
		"list the directory /srv":       "list_directory",
		"create the directory /srv/new": "create_directory",
		"Lies die Datei /srv/notes.txt": "read_text_file",
		"Wie groß ist /srv/notes.txt?":  "get_file_info",
		"Crée le dossier /srv/nouveau":  "create_directory",
		"Crea la carpeta /srv/nueva":    "create_directory",
	} {
		if got := calls(planned(t, question, tools...)); !strings.HasPrefix(got, want+"{") || strings.Contains(got, ";") {
			t.Errorf("%s: got %s, want %s", question, got, want)
		}
	}
}

// TestChoose_AVerbOfChangeIsNotServedByARead checks that a command to change something calls no tool that only reads.
func TestChoose_AVerbOfChangeIsNotServedByARead(t *testing.T) {
	read := tool("read_file", "Read the text of a file", object("*path:string:Path of the file"))
	for _, question := range []string{"copy /tmp/a.txt to /tmp/b.txt", "delete /tmp/a.txt", "replace foo by bar in /tmp/a.txt", "rename /tmp/a.txt to /tmp/b.txt"} {
		p := planned(t, question, read)
		if len(p.Steps) > 0 || len(p.Unmet) == 0 {
			t.Errorf("%s: got %s and %+v, want no call and an unmet part", question, calls(p), p.Unmet)
		}
	}
}

func TestChoose_Bounds(t *testing.T) {
	question := strings.Repeat("Show order A-1 and show order B-2. ", 200) + strings.Repeat("word ", 4000)
	if p := planned(t, question, getOrder, getSum, webSearch); len(p.Steps) > 12 {
		t.Errorf("got %d calls, want at most 12", len(p.Steps))
	}
}

// TestChains_ByNamesOfFields checks which results of other calls an open argument takes.
func TestChains_ByNamesOfFields(t *testing.T) {
	find := tool("find_city", "Find a city by name", object("*name:string:Name of the city"), returning("latitude:number", "longitude:number", "city_id:string"))
	sun := tool("get_sunrise", "Get the sunrise at coordinates", object("*latitude:number:Latitude", "*longitude:number:Longitude"))
	people := tool("count_city_people", "Count the people of a city", object("*city_id:string:Id of the city"))
	for question, tc := range map[string]struct {
		tools []plan.Tool
		want  string
	}{
		"Get the sunrise at the coordinates of the city Oslo": {[]plan.Tool{find, sun}, `find_city{"name":"Oslo"}; get_sunrise{"latitude":"$s1.latitude","longitude":"$s1.longitude"}`},
		"Count the people of the city Oslo":                   {[]plan.Tool{find, people}, `find_city{"name":"Oslo"}; count_city_people{"city_id":"$s1.city_id"}`},
		"Get the sunrise at latitude 3 and longitude 4":       {[]plan.Tool{find, sun}, `get_sunrise{"latitude":3,"longitude":4}`},
	} {
		if got := calls(planned(t, question, tc.tools...)); got != tc.want {
			t.Errorf("%s: got %s, want %s", question, got, tc.want)
		}
	}
}
