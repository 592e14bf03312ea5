package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// hang is a time that no answer takes, however busy the machine.
const hang = 2 * time.Minute

// answer plans a question, which must succeed in bounded time with calls whose arguments are JSON objects.
func answer(t *testing.T, question string, tools Catalog) plan.Plan {
	t.Helper()
	start := time.Now()
	p, err := New(Options{Now: monday}).Plan(t.Context(), question, tools)
	if err != nil {
		t.Errorf("%.20q: %v", question, err)
	}
	for _, s := range p.Steps {
		var args map[string]any
		if err := json.Unmarshal(s.Arguments, &args); err != nil || args == nil {
			t.Errorf("%.20q: arguments %.60s are no object", question, s.Arguments)
		}
	}
	if len(p.Steps) == 0 && p.Note == "" {
		t.Errorf("%.20q: got neither a step nor a note", question)
	}
	if took := time.Since(start); took > hang {
		t.Errorf("%.20q took %v", question, took)
	}
	return p
}

// oddSchemas are what servers may send for a schema, all for a tool about the weather of a city.
func oddSchemas() []string {
	values := make([]string, 10_000)
	numbers := make([]string, len(values))
	for i := range values {
		values[i], numbers[i] = fmt.Sprintf("%q", fmt.Sprintf("Station %d", i)), fmt.Sprint(i)
	}
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf(`"city%d":{"type":"string"}`, i))
	}
	wide := `{"enum":[` + strings.Join(values, ",") + `]}`
	return []string{
		``, `null`, `[]`, `1`, `[`, `{}`, `{"type":"object"}`, `{"properties":null}`, `{"properties":[1]}`, `{"properties":{}}`, `{"properties":{"city":true}}`, `{"properties":{"":{}}}`,
		`{"properties":{"city":{"$ref":"#/properties/city"}},"required":["city"]}`, `{"$ref":"#"}`, `{"properties":{"city":{"$ref":"#"}},"required":["city"]}`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"city":{"$ref":"#/$defs/a"}}}`, `{"properties":{"city":{"$ref":"http://x/y"}}}`, `{"properties":{"city":{"$ref":7}}}`,
		`{"$defs":{"n":{"type":"object","properties":{"city":{"$ref":"#/$defs/n"},"next":{"$ref":"#/$defs/n"}}}},"properties":{"city":{"$ref":"#/$defs/n"}},"required":["city"]}`,
		`{"properties":{"city":{"type":["null","string"]}},"required":["city"]}`, `{"properties":{"city":{"anyOf":[{"type":"null"},{"type":"string"}]}},"required":"city"}`,
		`{"properties":{"city":{"anyOf":[{"anyOf":[{"anyOf":[]}]}]}}}`, `{"properties":{"city":{"type":"array"}},"required":["city"]}`, `{"properties":{"city":{"type":"array","items":[{}]}},"required":["city"]}`,
		`{"properties":{"city":` + wide + `},"required":["city"]}`, `{"properties":{"city":{"type":"array","items":` + wide + `}},"required":["city"]}`,
		`{"properties":{"city":{"type":"integer","enum":[` + strings.Join(numbers, ",") + `]}},"required":["city"]}`, `{"properties":{"a":` + wide + `,"b":` + wide + `,"city":` + wide + `},"required":["city"]}`,
		`{"properties":{"city":{"enum":[` + strings.Repeat(`"Oslo",`, 9999) + `null]}}}`, `{"properties":{"city":{"enum":[{},[],null,true,1e300]}},"required":["city"]}`,
		`{"properties":{` + strings.Join(many, ",") + `}}`, `{"properties":{"city":{"type":"string","pattern":"(((((","minLength":-1,"minimum":"x","default":[{}]}}}`,
		`{"type":"object","properties":{"weather":` + strings.Repeat(`{"type":"object","properties":{"weather":`, 500) + `{}` + strings.Repeat(`}}`, 500) + `}}`,
	}
}

func oddQuestions() []string {
	return []string{
		``, ` `, "\n\t", `"(((`, `)))"`, `'`, `"`, `$`, `%`, "\x00", "\xff\xfe weather", "?!?!", "the of and",
		"奥斯陆的天气怎么样？", "北京明天的天气预报，以及15%的2500", "ما هو الطقس في القاهرة غدا؟", "🌦️ weather in Oslo 🌦️", "🙂🙂🙂", "погода в Москве", "オスロの天気", "Oslo में मौसम", "\u202eweather in Oslo",
		strings.Repeat("天气", 2000), strings.Repeat("طقس ", 1500), strings.Repeat("🙂", 2500), strings.Repeat("a", 10_000), strings.Repeat("(", 10_000), strings.Repeat("\" ", 5000),
		strings.Repeat("the weather of Rome, 'x' 12 km and b@c.de on May 5 or ", 180), strings.Repeat("get the weather in Rome and ", 400), strings.Repeat("weather and ", 850),
		strings.Repeat("12 + ", 2500), strings.Repeat("15% of 20 and ", 750), strings.Repeat("'", 10_000), strings.Repeat("Rome, ", 1700), strings.Repeat("[{", 5000), strings.Repeat("9", 10_000),
		strings.Repeat("latest news; ", 800), strings.Repeat("Station 17 and ", 700),
	}
}

func TestOddSchemas(t *testing.T) {
	for _, schema := range oddSchemas() {
		tools := NewCatalog([]plan.Tool{tool("get_weather", "Get the weather forecast of a city", schema, readOnly, returning(schema))})
		for _, q := range []string{"Get the weather forecast for the city of Oslo", "weather forecast 17 for station 17 and the cities of Rome and Oslo", ""} {
			answer(t, q, tools)
		}
	}
}

func TestOddQuestions(t *testing.T) {
	tools := []plan.Tool{webSearch, calculate, weather}
	for i, schema := range oddSchemas() {
		if len(schema) > 50_000 {
			continue // TestOddSchemas has them
		}
		tools = append(tools, tool(fmt.Sprintf("get_weather_%d", i), "Get the weather and the news of a city 天气 الطقس 🌦️", schema, readOnly))
	}
	var params []string
	for i := range 64 {
		kind := []string{`"string"`, `"number"`, `"array","items":{"type":"string"}`}[i%3]
		params = append(params, fmt.Sprintf(`"p%d":{"type":%s,"description":"The weather of a city, such as 'Rome' or 'Oslo'"}`, i, kind))
	}
	for i := range 2 {
		tools = append(tools, tool(fmt.Sprintf("get_city_weather_%d", i), "Get the weather and the news of a city", `{"properties":{`+strings.Join(params, ",")+`},"required":["p0","p1","p2","p3"]}`))
	}
	catalog := NewCatalog(tools)
	for _, q := range oddQuestions() {
		answer(t, q, catalog)
		answer(t, q, NewCatalog(nil))
	}
}

// TestWideEnumerations: a value is found wherever in a long list it stands, and nothing else is called.
func TestWideEnumerations(t *testing.T) {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("Station%d", i)))
	}
	values := strings.Join(names, ",")
	one := tool("get_water_level", "Get the water level at a station", `{"properties":{"station":{"type":"string","enum":[`+values+`]}},"required":["station"]}`)
	several := tool("get_water_level", "Get the water level at stations", `{"properties":{"stations":{"type":"array","items":{"enum":[`+values+`]}}},"required":["stations"]}`)
	year := tool("get_water_level", "Get the water level of a year", `{"properties":{"year":{"type":"integer","enum":[`+strings.NewReplacer(`"Station`, "", `"`, "").Replace(values)+`]}},"required":["year"]}`)
	for _, tc := range []struct {
		question string
		tool     plan.Tool
		want     string
	}{
		{"Get the water level at Station9876", one, `get_water_level{"station":"Station9876"}`},
		{"Get the water level at Station12345", one, ``},
		{"Get the water level at Station9876 and Station17", several, `get_water_level{"stations":["Station17","Station9876"]}`},
		{"Get the water level of the year 1998", year, `get_water_level{"year":1998}`},
	} {
		if got := calls(t, tc.question, tc.tool); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.question, got, tc.want)
		}
	}
}
