package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Of a plan that has run in part, the writes that may have been made are not repeated, and what they returned stands in
// what is left.
func TestPending(t *testing.T) {
	text := func(s plan.Step) string { return s.ID + string(s.Arguments) + strings.Join(s.After, ",") }
	for name, row := range map[string]struct{ steps, value, reason, want, left string }{
		"nothing refers to it": {`{"id":"x","tool":"send","arguments":{"v":1}}`, `{}`, "", `x{"v":1}`, ``},
		"a value":              {`{"id":"x","tool":"send","arguments":{"v":"$w.id","r":"$r.a"},"after":["w","r"]}`, `{"id":7}`, "", `x{"v":7,"r":"$r.a"}r`, ``},
		"a text":               {`{"id":"x","tool":"send","arguments":{"v":"is ${w.id}"}}`, `{"id":"a\"b"}`, "", `x{"v":"is a\"b"}`, ``},
		"a list":               {`{"id":"x","tool":"send","each":"$w.ids","arguments":{"v":"$item"}},{"id":"y","tool":"send","after":["x"]}`, `{"ids":[1]}`, "", ``, `x y`},
		"a condition":          {`{"id":"x","tool":"send","when":"w.id > 1"}`, `{"id":7}`, "", ``, `x`},
		"a missing part":       {`{"id":"x","tool":"send","arguments":{"v":"$w.no"}}`, `{"id":7}`, "", ``, `x`},
		"a new reference":      {`{"id":"x","tool":"send","arguments":{"v":"$w.id","r":"$r.a"}}`, `{"id":"$r.secret"}`, "", ``, `x`},
		"a reference in text":  {`{"id":"x","tool":"send","arguments":{"v":"${w.id}"}}`, `{"id":"$r"}`, "", ``, `x`},
		"an element":           {`{"id":"x","tool":"send","each":"$r.l","arguments":{"v":"$item.w","t":"${w.id}"}}`, `{"id":7}`, "", `x{"v":"$item.w","t":"7"}`, ``},
		"unavailable":          {`{"id":"x","tool":"send","arguments":{"v":"$w.id"}}`, ``, reason.Unavailable, `w{} x{"v":"$w.id"}`, ``},
		"an unknown outcome":   {`{"id":"x","tool":"send","arguments":{"v":"$w.id"}},{"id":"y","tool":"send","after":["w"]},{"id":"z","tool":"send"}`, ``, reason.OutcomeUnknown, `z{}`, `x y`},
	} {
		p, err := plan.Parse(`{"steps":[{"id":"r","tool":"get"},{"id":"w","tool":"send"},` + row.steps + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		w := plan.Outcome{Step: p.Steps[1], Attempts: 1, Value: json.RawMessage(row.value)}
		if row.reason != "" {
			w.Value, w.Err = nil, &plan.Error{Reason: row.reason}
		}
		done := []plan.Outcome{{Step: p.Steps[0], Attempts: 1, Value: json.RawMessage(`{"a":1,"l":[{"w":1}]}`)}, w}
		steps, left := p.Pending(done, func(s plan.Step) bool { return s.Tool == "get" })
		var got, gone []string
		for _, s := range steps {
			got = append(got, text(s))
		}
		for _, s := range left {
			gone = append(gone, s.ID)
		}
		if got, _ := strings.CutPrefix(strings.Join(got, " "), `r{}`); strings.TrimSpace(got) != row.want || strings.Join(gone, " ") != row.left {
			t.Errorf("%s: got %q without %q, want %q without %q", name, got, gone, row.want, row.left)
		}
	}
}
