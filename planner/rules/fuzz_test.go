package rules_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Words that generated questions are made of, by what the rules look for.
var (
	verbs = []string{"Email", "show", "Remind", "book", "what is", "What's", "convert", "send", "find", "don't delete", "calculate", "cancel",
		"schedule", "list", "compare", "Could you please check", "if I", "and then", "translate", "Get", "every", "how many"}
	dateWords = []string{"tomorrow", "tomorrow's", "today", "Today's", "today’s date is", "current date:", "next Friday", "last", "this Monday's", "the 3rd of April",
		"April 3rd, 2023", "May", "march", "2023-04-03", "03/04/2025", "3 April", "April 31", "Feb. 30th", "2024-13-45", "at 5pm", "noon", "4:30 PM", "25:61", "12 a.m.",
		"the day after tomorrow", "day after", "from Monday to Friday", "every 2 weeks", "2023", "1999-", "the 1st", "31st of", "by", "in 3 days", "tonight's", "Sept. 9"}
	numberWords = []string{"15%", "$2500", "of", "-3.5", "1,000,000", "9007199254740993", "12 times 7", "(3 + 4) * 2", "1e309", "½", "10/4", "sqrt(144)", "0x1F", "€80", "two hundred",
		"twenty-", "3.", "+", "^", "−5", "٣", "1/0", "99999999999999999999999999", "20 percent off", "5 km to miles", "72°F", "1.2.3"}
	texts = []string{`"quoted`, `"quoted text"`, "'", "''", "'s", "’s", "O'Brien's", "“curly”", "(", ")]", "{}", "…", "--", "a@b.c", "https://x.y/z?q=1#", "/etc/passwd", "#tag", "@me",
		"C.J.", "Mr.", "東京", "Zürich", "مرحبا", "😀", "e\u0301", "\u200b", "\x00", "\xff\xfe", "ẞ", "İstanbul", "ﬁ", "Paris", "New York City", "san", "USD", "EUR", ",", ";", ".", "?!", "and", "or", "not",
		"it", "them", "his", "the first one", "schedule", "weather", "in", "to", "from", "employees", "named", "celsius", "John Smith", "id: 42", "AB-1234"}
)

// question makes up a question; some words are cut off in the middle, even in the middle of a character.
func question(r *rand.Rand) string {
	groups := [][]string{verbs, dateWords, numberWords, texts, dateWords}
	var out []string
	for range 1 + r.IntN(14) {
		group := groups[r.IntN(len(groups))]
		word := group[r.IntN(len(group))]
		if r.IntN(8) == 0 {
			word = word[:r.IntN(len(word)+1)]
		}
		out = append(out, word)
	}
	return strings.Join(out, []string{" ", " ", " ", "", ", "}[r.IntN(5)])
}

// catalogs are sets of tools that want different things of a question.
func catalogs() [][]plan.Tool {
	weather := tool("get_weather", "Get the weather forecast for a city", object("*city:string", "date:string:YYYY-MM-DD"), returning("temperature:number"))
	odd := []plan.Tool{}
	for i, schema := range []string{``, `null`, `{"properties":{"date":true}}`, `{"$ref":"#"}`, `{"properties":{"date":{"type":["null","string"]},"n":{"type":"array","items":{"type":"number"}}},"required":["date","n"]}`} {
		odd = append(odd, tool(fmt.Sprintf("odd_%d", i), "Send the schedule for tomorrow", schema))
	}
	return [][]plan.Tool{
		nil,
		{
			tool("web_search", "Search the web for news", object("*query:string:What to search for")),
			tool("calculate", "Calculate an arithmetic expression", object("*expression:string")), weather,
		},
		{
			tool("get_schedule", "Get the schedule of a person for a day", object("person:string", "*date:string:YYYY-MM-DD")),
			tool("send_email", "Send an email message to a recipient", object("*to:string", "subject:string", "*body:string")),
			tool("create_reminder", "Remind of something at a time, also repeatedly", object("*text:string", "*time:string:HH:MM", "recurrence:one of daily weekly monthly", "days:list of string")),
			tool("convert", "Convert an amount between units or currencies", object("*amount:number", "*from_unit:string", "*to_unit:string")),
			tool("search_flights", "Search flights between cities", object("*from:string", "*to:string", "*departure:string:YYYY-MM-DD", "passengers:integer", "flexible:boolean")),
			tool("find_employee", "Find an employee by name", object("name:string", "id:integer"), returning("email:string", "id:integer", "city:string")), weather,
		},
		odd,
	}
}

// answer plans a question and checks what holds for every plan: steps have names of their own, refer to earlier ones and
// have arguments that the tool's schema accepts; where there is none the plan says something.
func answer(t *testing.T, question string, tools []plan.Tool) {
	t.Helper()
	p := planned(t, question, tools...)
	if problems := plan.Check(&p, plan.NewValidator(), lookup(tools), nil); len(problems) > 0 {
		t.Errorf("%q: got the problems %+v in %s, want none", question, problems, calls(p))
	}
	if len(p.Steps) == 0 && p.Note == "" && !p.About {
		t.Errorf("%q: got no step and no note", question)
	}
}

func lookup(tools []plan.Tool) plan.Lookup {
	return func(name string) (plan.Tool, *plan.Error) {
		i := slices.IndexFunc(tools, func(t plan.Tool) bool { return t.Name == name })
		if i < 0 {
			return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool}
		}
		return tools[i], nil
	}
}

// Whatever the question, there is a plan of valid steps or a note, and no panic.
func TestGeneratedQuestions(t *testing.T) {
	all := catalogs()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		q := question(r)
		func() {
			defer func() {
				if cause := recover(); cause != nil {
					t.Errorf("question %d, %q: panic: %v\n%s", i, q, cause, debug.Stack())
				}
			}()
			answer(t, q, all[i%len(all)])
		}()
	}
}

func FuzzQuestions(f *testing.F) {
	all := catalogs()
	for i, q := range []string{"Email me tomorrow's schedule", "today's", "Today's date is 2023-04-03. What's the weather in Oslo tomorrow?", "current", "April", "3rd of", "day after", "next", "15% of $2500", `say "hi`, "O'"} {
		f.Add(q, uint8(i))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 50 {
		f.Add(question(r), uint8(i))
	}
	f.Fuzz(func(t *testing.T, q string, i uint8) {
		if len(q) > 10_000 || !utf8.ValidString(q) {
			return // the router refuses such questions
		}
		answer(t, q, all[int(i)%len(all)])
	})
}
