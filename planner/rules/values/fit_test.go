package values

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// fitted writes how the first value of a text that fits a parameter does.
func fitted(t *testing.T, language, text, name, parameter string) string {
	t.Helper()
	s, err := schema.Read(json.RawMessage(parameter))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Extract(text, Options{Now: now(), Language: language}) {
		if f, ok := v.Fit(schema.Property{Name: name, Schema: s}); ok {
			b, _ := json.Marshal(f.Value)
			out := string(b)
			for _, other := range f.Others {
				b, _ := json.Marshal(other)
				out += " or " + string(b)
			}
			if f.Ambiguous && len(f.Others) == 0 {
				out += "?"
			}
			if f.Score <= 0 || f.Score > 1 {
				out += fmt.Sprint(" score ", f.Score)
			}
			return out
		}
	}
	return ""
}

func TestFit(t *testing.T) {
	for _, row := range []struct{ text, name, parameter, want string }{
		{"3 guests", "guests", `{"type":"integer"}`, `3`},
		{"3.5", "x", `{"type":"integer"}`, ``},
		{"3.5", "x", `{"type":"number"}`, `3.5`},
		{"3", "x", `{"type":"string"}`, `"3"`},
		{"order 007", "order", `{"type":"string"}`, `"007"`},
		{"1,250.50", "x", `{"type":"string"}`, `"1250.5"`},
		{"twenty-five", "x", `{"type":"string"}`, `"25"`},
		{"9007199254740993", "x", `{"type":"integer"}`, `9007199254740993`},
		{"#4711", "id", `{"type":"integer"}`, `4711`},
		{"#4711", "id", `{"type":"string"}`, `"4711"`},
		{"A-1", "id", `{"type":"integer"}`, ``},
		{"5", "x", `{"type":"integer","minimum":6}`, ``},
		{"5", "x", `{"type":"integer","exclusiveMaximum":5}`, ``},
		{"5", "x", `{"type":"number","multipleOf":2}`, ``},
		{"5", "x", `{"enum":[1,5,9]}`, `5`},
		{"5", "x", `{"type":["integer","null"]}`, `5`},
		{"5", "x", `{"anyOf":[{"type":"boolean"},{"type":"integer"}]}`, `5`},
		{"$12.50", "amount", `{"type":"number"}`, `12.5`},
		{"$12.50", "amount", `{"type":"integer","description":"in cents"}`, `1250`},
		{"$12.50", "currency", `{"type":"string"}`, `"USD"`},
		{"1.250 EUR", "amount", `{"type":"number"}`, `1.25 or 1250`},
		{"1.250 EUR", "amount", `{"type":"integer"}`, `1250`},
		{"15%", "rate", `{"type":"number"}`, `0.15 or 15`},
		{"15%", "rate", `{"type":"number","description":"in percent"}`, `15`},
		{"15%", "rate", `{"type":"number","maximum":1}`, `0.15`},
		{"15%", "rate", `{"type":"number","description":"such as 0.05"}`, `0.15`},
		{"15%", "rate", `{"type":"integer"}`, `15`},
		{"2 hours", "duration_minutes", `{"type":"integer"}`, `120`},
		{"2 hours", "timeout", `{"type":"integer","description":"Timeout in seconds"}`, `7200`},
		{"2 hours", "timeoutMs", `{"type":"integer"}`, `7200000`},
		{"90 minutes", "hours", `{"type":"number"}`, `1.5`},
		{"90 minutes", "hours", `{"type":"integer"}`, ``},
		{"2 hours", "timeout", `{"type":"integer"}`, `2?`},
		{"5 years", "term", `{"type":"integer"}`, `5`},
		{"5 years", "term", `{"type":"integer","description":"in months"}`, `60`},
		{"5 years", "term", `{"type":"integer","description":"in days"}`, ``},
		{"5 miles", "distance", `{"type":"number","description":"Distance in kilometers"}`, `8.04672`},
		{"68 F", "temperature", `{"type":"number","description":"in Celsius"}`, `20`},
		{"2 hours", "d", `{"type":"string","format":"duration"}`, `"PT2H"`},
		{"for 3 days", "d", `{"type":"string","format":"duration"}`, `"P3D"`},
		{"2 hours", "d", `{"type":"string"}`, `"2 hours"`},
		{"on April 3rd, 2025", "date", `{"type":"string"}`, `"2025-04-03"`},
		{"on April 3rd, 2025", "date", `{"type":"string","format":"date"}`, `"2025-04-03"`},
		{"on April 3rd, 2025", "date", `{"type":"string","description":"as DD/MM/YYYY"}`, `"03/04/2025"`},
		{"on April 3rd, 2025", "date", `{"type":"string","description":"format: MM-DD-YYYY"}`, `"04-03-2025"`},
		{"on April 3rd, 2025", "date", `{"type":"string","description":"yyyymmdd"}`, `"20250403"`},
		{"on April 3rd, 2025", "date", `{"type":"string","description":"%d.%m.%Y"}`, `"03.04.2025"`},
		{"on April 3rd, 2025", "date", `{"type":"string","pattern":"^\\d{2}$"}`, ``},
		{"on April 3rd, 2025", "year", `{"type":"integer"}`, `2025`},
		{"on April 3rd, 2025", "start", `{"type":"integer","description":"Unix timestamp"}`, `1743631200`},
		{"tomorrow at 3pm", "at", `{"type":"string","format":"date-time"}`, `"2025-06-05T15:00:00+02:00"`},
		{"tomorrow at 3pm", "at", `{"type":"string","description":"YYYY-MM-DD HH:MM"}`, `"2025-06-05 15:00"`},
		{"tomorrow at 3pm", "time", `{"type":"string","description":"24-hour HH:MM"}`, `"15:00"`},
		{"at 3pm", "time", `{"type":"string"}`, `"15:00"`},
		{"at 3pm", "time", `{"type":"string","description":"HH:MM:SS"}`, `"15:00:00"`},
		{"at 3pm", "time", `{"type":"string","description":"such as 9:00 am/pm"}`, `"3:00 PM"`},
		{"at 3", "time", `{"type":"string","format":"time"}`, `"03:00:00+02:00" or "15:00:00+02:00"`},
		{"at 3pm", "date", `{"type":"string","format":"date"}`, ``},
		{"3/4/2025", "date", `{"type":"string","format":"date"}`, `"2025-04-03" or "2025-03-04"`},
		{"4/4/2025", "date", `{"type":"string","format":"date"}`, `"2025-04-04"`},
		{"last week", "start_date", `{"type":"string"}`, `"2025-05-26"`},
		{"last week", "endDate", `{"type":"string"}`, `"2025-06-01"`},
		{"last week", "date", `{"type":"string"}`, ``},
		{"last week", "period", `{"type":"string"}`, `"last week"`},
		{"in August", "month", `{"type":"string","description":"YYYY-MM"}`, `"2025-08"`},
		{"in August", "month", `{"type":"integer"}`, `8`},
		{"in August", "month", `{"type":"string"}`, `"August"`},
		{"next month", "month", `{"type":"string"}`, `"2025-07"`},
		{"in Canadian dollars", "currency", `{"type":"string"}`, `"CAD"`},
		{"in Canadian dollars", "text", `{"type":"string"}`, ``},
		{"in Canadian dollars", "amount", `{"type":"number"}`, ``},
		{"at 298K", "temp", `{"type":"integer","description":"in Kelvin"}`, `298`},
		{"at 298K", "size", `{"type":"integer"}`, `298000 or 298`},
		{"at 3pm", "time", `{"type":"string","description":"e.g. 9am"}`, `"3pm"`},
		{"a 49-year-old man", "age", `{"type":"integer"}`, `49`},
		{"a 49-year-old man", "patient_age", `{"type":"string"}`, `"49"`},
		{"until 11 PM", "opening_hour", `{"type":"integer"}`, `23`},
		{"to bob@x.com", "recipient", `{"type":"string","format":"email"}`, `"bob@x.com"`},
		{"to Bob", "recipient", `{"type":"string","format":"email"}`, ``},
		{"see example.com", "link", `{"type":"string","format":"uri"}`, `"https://example.com"`},
		{"see example.com", "host", `{"type":"string"}`, `"example.com"`},
		{"550e8400-e29b-41d4-a716-446655440000", "id", `{"type":"string","format":"uuid"}`, `"550e8400-e29b-41d4-a716-446655440000"`},
		{"A-1", "id", `{"type":"string","format":"uuid"}`, ``},
		{`say "hello"`, "text", `{"type":"string"}`, `"hello"`},
		{`say "hello"`, "text", `{"type":"string","maxLength":4}`, ``},
		{`make it "in progress"`, "status", `{"type":"string","enum":["OPEN","IN_PROGRESS"]}`, `"IN_PROGRESS"`},
		{"it is true", "flag", `{"type":"boolean"}`, `true`},
		{"15% of $2500", "expression", `{"type":"string"}`, `"2500 * 0.15"`},
		{"3 * (4+5)", "x", `{"type":"object"}`, ``},
		{"3", "x", `{}`, `"3"`},
	} {
		if got := fitted(t, "en", row.text, row.name, row.parameter); got != row.want {
			t.Errorf("%q as %s %s: got %s, want %s", row.text, row.name, row.parameter, got, row.want)
		}
	}
	for _, row := range []struct{ language, text, want string }{
		{"de", "1.250,50 EUR", "1250.5"}, {"fr", "1 250,50 €", "1250.5"}, {"es", "1.250,50 €", "1250.5"}, {"de", "1,250", "1.25 or 1250"},
	} {
		if got := fitted(t, row.language, row.text, "amount", `{"type":"number"}`); got != row.want {
			t.Errorf("%s %q: got %s, want %s", row.language, row.text, got, row.want)
		}
	}
}

func TestEnum(t *testing.T) {
	for _, row := range []struct{ text, choices, want string }{
		{"convert 5 kg to lb", "kg lb", "kg@10 lb@16"},
		{"convert 5 kilograms to pounds", "kg lb", "kg@10 lb@23"},
		{"100 euros in dollars", "USD EUR", "EUR@4 USD@13"},
		{"from $5 to €", "USD EUR", "USD@5 EUR@11"},
		{"all tickets in progress", "open inProgress closed", "inProgress@12"},
		{"all IN-PROGRESS tickets", "OPEN IN_PROGRESS", "IN_PROGRESS@4"},
		{"the tickets", "ticket", "ticket@4"},
		{"red, green and red", "red green blue", "red@0 green@5 red@15"},
		{"high priority", "high very_high", "high@0"},
		{"very high priority", "high very_high", "very_high@0"},
		{"nothing here", "high low", ""},
		{"", "a", ""},
		{"Größe groß", "gross", "gross@8"},
		{"a", "", ""},
	} {
		var got []string
		for _, m := range Enum(row.text, strings.Split(row.choices, " ")) {
			got = append(got, fmt.Sprintf("%s@%d", m.Choice, m.Start))
			if m.Start < 0 || m.End > len(row.text) || m.Start >= m.End {
				t.Errorf("%q: got the span %d to %d", row.text, m.Start, m.End)
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%q of %s: got %q, want %q", row.text, row.choices, strings.Join(got, " "), row.want)
		}
	}
}
