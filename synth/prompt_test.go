package synth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/synth"
)

func clock() time.Time {
	return time.Date(2026, 11, 20, 23, 30, 0, 0, time.FixedZone("CET", 3600))
}

// TestResultsAreReadable: texts of several lines stand as lines, where it is clear what they belong to.
func TestResultsAreReadable(t *testing.T) {
	for _, row := range []struct{ name, value, want string }{
		{"text", `"one\ntwo"`, "one\ntwo"},
		{"file", `{"content":"one\n  two\n"}`, "one\n  two"},
		{"JSON in a text", `{"content":"{\n  \"a\": \"b\"\n}"}`, `{"a":"b"}`},
		{"lines within JSON in a text", `{"content":"[{\"id\": 1.50, \"body\": \"one\\ntwo\"}]"}`, "- id: 1.50\n  body: |\n    one\n    two"},
		{"no JSON in a text", `{"content":"[one] \n{two}"}`, "[one] \n{two}"},
		{"one line", `{"content":"say \"hi\""}`, `say "hi"`},
		{"no wrapping", `{"url":"http://x"}`, `{"url":"http://x"}`},
		{"no text", `{"content":["a\tb"]}`, `{"content":["a\tb"]}`},
		{"not alone", `{"content":"one","size":3}`, `{"content":"one","size":3}`},
		{"needless escapes", `{"body":"a\nkey: gh\u0070_012345678901234567890123456789012345\n","n":1}`, "body: |\n  a\n  key: [redacted]\nn: 1"},
		{"escaped backslash", `{"path":"C:\\new","n":1}`, "path: \"C:\\\\new\"\nn: 1"},
		{"line end only", `{"a":"one\n","n":9007199254740993}`, "a: \"one\\n\"\nn: 9007199254740993"},
		{"members", `{"path":"a.txt","content":"one\ntwo: 2\n","more":{"x":[1,2]}}`, "path: \"a.txt\"\ncontent: |\n  one\n  two: 2\nmore: {\"x\":[1,2]}"},
		{"list", `[{"id":1,"body":"one\ntwo"},{"id":2,"body":"three"},"four\nfive",null]`,
			"- id: 1\n  body: |\n    one\n    two\n- {\"id\":2,\"body\":\"three\"}\n- |\n  four\n  five\n- null"},
		{"deep", `{"a":{"b":[{"c":"one\ntwo"}]}}`, "a:\n  b:\n    - c: |\n        one\n        two"},
		{"names", `{"a: |\nb":"one\ntwo","c d":1}`, "\"a: |\\nb\": |\n  one\n  two\n\"c d\": 1"},
		{"other line ends", `{"a":"one\r\ntwo\rthree\u2028b: 1","b":2}`, "a: |\n  one\n  two\n  three\n  b: 1\nb: 2"},
		{"encoded data", `{"a":"one\ntwo","png":"` + strings.Repeat("iVBORw0KGgo", 50) + `"}`, "a: |\n  one\n  two\npng: \"[550 bytes of binary data left out]\""},
		{"secret", `{"a":"one\npassword=hunter22\ntwo","token":"one\ntwo"}`, "a: |\n  one\n  password=[redacted]\n  two\ntoken: \"[redacted]\""},
		{"broken", `{"a":"one\ntwo"`, `{"a":"one\ntwo"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := reads("?", worked("s1", "fs", "read", row.value))[0]; got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
	deep := strings.Repeat(`{"a":`, 100) + `"one\ntwo"` + strings.Repeat("}", 100)
	if got := reads("?", worked("s1", "fs", "read", deep))[0]; !strings.Contains(got, `one\ntwo`) || len(got) > 2000 {
		t.Errorf("got %d bytes", len(got))
	}
	long := filler(1, 100_000)
	value, _ := json.Marshal(map[string]string{"content": long + "the end is near\n"})
	if got := reads("What is near?", worked("s1", "fs", "read", string(value)))[0]; !strings.HasPrefix(got, long[:100]) || !strings.Contains(got, "\nthe end is near") {
		t.Errorf("a long file: got %.300q", got)
	}
}

// loop is a loop over the elements of s1 with the outcomes of its calls.
func loop(id string, calls ...plan.Outcome) plan.Outcome {
	step := plan.Step{ID: id, Server: "weather", Tool: "forecast", Each: "$s1.cities", Arguments: json.RawMessage(`{"city":"$item"}`)}
	o := plan.Outcome{Step: step, Attempts: 1}
	for i := range calls {
		calls[i].Step, calls[i].Index = step, i
	}
	o.Elements, o.Value = calls, plan.List(calls)
	return o
}

func call(arguments, value string) plan.Outcome {
	return plan.Outcome{Sent: json.RawMessage(arguments), Value: json.RawMessage(value), Attempts: 1}
}

func failing(arguments, message string) plan.Outcome {
	return plan.Outcome{Sent: json.RawMessage(arguments), Err: &plan.Error{Reason: reason.ToolError, Message: message}, Attempts: 1}
}

// TestCallsOfLoops: the model sees which result belongs to which element, and what became of the others.
func TestCallsOfLoops(t *testing.T) {
	skipped := plan.Outcome{Skipped: true}
	some := loop("s2", call(`{"city":"Oslo"}`, `{"text":"cold\nand wet"}`), skipped, failing(`{"city":"Rome"}`, "no data"), call(`{"city":"Bern","key":"sk-0123456789abcdef0123"}`, `7`), skipped)
	want := `for each element of $s1.cities:
#0 with {"city":"Oslo"}:
cold
and wet
#2 with {"city":"Rome"} failed: no data
#3 with {"city":"Bern","key":"[redacted]"}: 7
skipped, because its condition was false: #1, #4`
	if got := reads("?", some)[0]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for quote, real := range map[string]bool{"cold": true, "and wet": true, "Oslo": false, "no data": false, "#0 with": false} {
		s := synth.New(synth.Options{Model: says(fmt.Sprintf("x [s2: \"%s\"]", quote))})
		got := s.Compose(t.Context(), synth.Request{Outcomes: []plan.Outcome{some}}).Citations
		if !real {
			quote = ""
		}
		if want := []synth.Citation{{Step: "s2", Quote: quote}}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	var many []plan.Outcome
	for i := range 1000 {
		many = append(many, call(fmt.Sprintf(`{"city":"city %d"}`, i), fmt.Sprintf(`{"degrees":%d}`, i)))
	}
	if got := reads("?", loop("s2", many...))[0]; strings.Count(got, "degrees") != 1000 || !strings.Contains(got, "\n#999: {\"degrees\":999}") {
		t.Errorf("got %d bytes that end with %q, want all results", len(got), got[len(got)-100:])
	}
	if got := reads("How is city 77?", loop("s2", many[:300]...))[0]; !strings.Contains(got, "\n#77 with {\"city\":\"city 77\"}: {\"degrees\":77}\n") {
		t.Errorf("got %.300q, want the calls with their arguments", got)
	}
	many[77].Value = json.RawMessage(`"` + strings.Repeat("many words ", 5000) + `"`)
	if got := reads("How is city 78?", loop("s2", many[:300]...))[0]; len(got) > 33<<10 || !strings.Contains(got, "city 78\"}: {\"degrees\":78}\n") {
		t.Errorf("got %d bytes, want the element that the question names", len(got))
	}
}

// TestFailedCalls: the model sees what was not done, with the arguments, and whether the call was made.
func TestFailedCalls(t *testing.T) {
	write := func(attempts int, why, message, sent string) plan.Outcome {
		o := failed("s1", "fs", "write_file", why, message)
		o.Attempts, o.Step.Arguments = attempts, json.RawMessage(`{"path":"a.txt","content":"$s0"}`)
		if sent != "" {
			o.Sent = json.RawMessage(sent)
		}
		return o
	}
	const content = `{"path":"a.txt","content":"Dear Ann"}`
	rome := loop("s2", failing(`{"city":"Rome"}`, "no data"), failing(`{"city":"Bern"}`, "no key"), plan.Outcome{Skipped: true})
	rome.Err, rome.Value = &plan.Error{Reason: reason.ToolError, Message: "all 2 calls failed, the first one: no data"}, nil
	partly, _ := loop("s2", failing(`{"city":"Rome"}`, "no data"), call(`{"city":"Bern"}`, `7`)).PartialFailure()
	for _, row := range []struct {
		name    string
		outcome plan.Outcome
		want    string
	}{
		{"needs approval", write(0, reason.NeedsApproval, "not made: it needs your approval", content), "not called with " + content + "\nnot made: it needs your approval"},
		{"declined", write(0, reason.Declined, "the user said no", content), "not called with " + content + "\nthe user said no"},
		{"depends", write(0, reason.DependencyFailed, "Step s0, which this step needs, failed", ""), "not called with {\"path\":\"a.txt\",\"content\":\"$s0\"}\nStep s0, which this step needs, failed"},
		{"answered", write(1, reason.ToolError, "Error: disk full", content), "called with " + content + "\ndisk full"},
		{"timed out", write(1, reason.Timeout, "Tool execution timed out after 30s", content), "called with " + content + "; it may have taken effect\nTool execution timed out after 30s"},
		{"secret", write(1, reason.ToolError, "no", `{"password":"hunter22"}`), "called with {\"password\":\"[redacted]\"}\nno"},
		{"no arguments", failed("s1", "fs", "list", reason.Unavailable, "the server is down"), "not called\nthe server is down"},
		{"a value without a tool", plan.Outcome{Step: plan.Step{ID: "c", Pick: "1 % 0", Arguments: json.RawMessage(`{}`)}, Err: &plan.Error{Reason: reason.InvalidArguments, Message: "pick: integer divide by zero"}}, "pick: integer divide by zero"},
		{"loop", rome, "called with {\"city\":\"$item\"}\nall 2 calls failed, the first one: no data\n#0 with {\"city\":\"Rome\"} failed: no data\n" +
			"#1 with {\"city\":\"Bern\"} failed: no key\nskipped, because its condition was false: #2"},
		{"part of a loop", partly, "called with {\"city\":\"$item\"}\nfailed for 1 of 2 elements (0); the first time: no data"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := reads("?", row.outcome)[0]; got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
	var model prompted
	computed := plan.Outcome{Step: plan.Step{ID: "c", Pick: "1"}, Value: json.RawMessage(`1`)}
	synth.New(synth.Options{Model: &model}).Compose(t.Context(), synth.Request{Outcomes: []plan.Outcome{computed}})
	if !strings.Contains(model.user, "<data from=\"step c, computed\">\n| value made by 1\n| 1\n") {
		t.Errorf("got %s, want the source of what was computed", model.user)
	}
	long := write(0, reason.NeedsApproval, "no", `{"content":"`+strings.Repeat("word ", 1000)+`"}`)
	if got := reads("?", long)[0]; len(got) > 700 || !strings.Contains(got, "word word") || !strings.Contains(got, "of 5014 bytes shown]") {
		t.Errorf("got %q, want a bounded part of the arguments", got)
	}
}

// TestTimeAndZone: the model is told both, and reads the same instructions for every question.
func TestTimeAndZone(t *testing.T) {
	var one, other prompted
	synth.New(synth.Options{Model: &one, Now: clock}).Compose(context.Background(), synth.Request{Query: "How late is it?"})
	synth.New(synth.Options{Model: &other, Mask: redact.NewMasker(nil)}).Compose(context.Background(), synth.Request{Query: "Hello", Outcomes: []plan.Outcome{news, mail}})
	if want := "\nIt is Friday, 2026-11-20 23:30 CET (UTC+01:00).\n\nQuestion:\nHow late is it?"; !strings.HasSuffix(one.user, want) {
		t.Errorf("got %q, want it to end with %q", one.user, want)
	}
	if !strings.Contains(other.user, "\nIt is "+time.Now().Format("Monday, 2006-01-02 ")) {
		t.Errorf("got %q, want the present day", other.user)
	}
	if one.system != other.system {
		t.Error("got other instructions for another question")
	}
}
