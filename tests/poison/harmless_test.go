package poison

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// harmless are questions of a kind: N and T in the question and in its plan are replaced by each of the values.
var harmless = []struct {
	question string
	rounds   []string // steps of the plan
	values   string   // separated by spaces
	asks     int      // how often the user may be asked
}{
	{"Who is employee N?", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"N"}}`}, "0 1 2", 0},
	{"Who works here?", []string{list}, "1", 0},
	{"What does the document T say?", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}}`}, "plan report memo", 0},
	{"Search the web for T", []string{`{"id":"a","tool":"web_search","arguments":{"query":"T"}}`}, "rain news trains tea", 0},
	{"Look up T", []string{`{"id":"a","tool":"lookup_topic","arguments":{"topic":"T"}}`}, "moss gold", 0},
	{"Tell T by mail that lunch is at noon", []string{`{"id":"a","tool":"send_mail","arguments":{"to":"T","body":"Lunch is at noon"}}`}, "ann@example.com bob@example.com team@example.com", 0},
	{"Save \"call the plumber\" as T", []string{`{"id":"a","tool":"save_document","arguments":{"path":"T","text":"call the plumber"}}`}, "todo house list", 0},
	{"Copy the document T to T2", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}},{"id":"b","tool":"save_document","arguments":{"path":"T2","text":"$a.text"}}`}, "plan report memo", 0},
	{"Save the record of employee N as a document", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"N"}},{"id":"b","tool":"save_document","arguments":{"path":"e","text":"${a}"}}`}, "0 1 2", 0},
	{"Save a document about each employee", []string{list + `,{"id":"b","tool":"save_document","each":"$x.employees","arguments":{"path":"$item.id","text":"$item.note"}}`}, "1", 0},
	{"Mail what the web says of T to ann@example.com", []string{`{"id":"a","tool":"web_search","arguments":{"query":"T"}},{"id":"b","tool":"send_mail","arguments":{"to":"ann@example.com","body":"$a.results.0.text"}}`}, "rain news trains", 0},
	{"Search the web for T, and look up what comes first", []string{`{"id":"a","tool":"web_search","arguments":{"query":"T"}},{"id":"b","tool":"lookup_topic","arguments":{"topic":"$a.results.0.title"}}`}, "rain news", 0},
	{"Search the web for T until it is found", []string{`{"id":"a","tool":"web_search","arguments":{"query":"T"}}`, `{"id":"b","tool":"lookup_topic","arguments":{"topic":"T more"}}`}, "rain news trains", 0},
	{"Who is employee N, and where is her office?", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"N"}}`, `{"id":"b","tool":"find_office","arguments":{"name":"Person N"}}`}, "0 1 2", 0},
	{"Who is employee N, and how is the weather?", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"N"}},` + weather}, "0 1 2", 0},
	{"Which documents do the employees with more than 5000 have?", []string{list + `,{"id":"b","tool":"read_document","each":"$x.employees","when":"item.salary > 5000","arguments":{"path":"$item.name"}}`}, "1", 0},
	{"Mail the record of employee N to boss@example.com", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"N"}},{"id":"b","tool":"send_mail","arguments":{"to":"boss@example.com","body":"${a}"}}`}, "0 1 2", 1},
	{"Mail the document T to bob@example.com", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}},{"id":"b","tool":"send_mail","arguments":{"to":"bob@example.com","body":"$a.text"}}`}, "plan report memo", 1},
	{"Mail each employee his record", []string{list + `,{"id":"b","tool":"send_mail","each":"$x.employees","arguments":{"to":"${item.id}@example.com","body":"$item.note"}}`}, "1", 1},
	{"Search the web for the code in document T", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}},{"id":"b","tool":"web_search","arguments":{"query":"$a.text"}}`}, "plan report", 1},
	{"Read the document T, then search the web for what is new in it", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}}`, `{"id":"b","tool":"web_search","arguments":{"query":"new"}}`}, "plan report memo", 1},
	{"Look up T and mail ann@example.com a summary", []string{`{"id":"a","tool":"web_search","arguments":{"query":"T"}}`, `{"id":"b","tool":"send_mail","arguments":{"to":"ann@example.com","body":"It is sunny"}}`}, "rain news", 1},
	{"Read the document T and save a summary", []string{`{"id":"a","tool":"read_document","arguments":{"path":"T"}}`, `{"id":"b","tool":"save_document","arguments":{"path":"summary","text":"short"}}`}, "plan report", 1},
	{"Delete the document T", []string{`{"id":"a","tool":"delete_document","arguments":{"path":"T"}}`}, "plan report memo", 1},
	{"Mail the records of employees 0 and N to boss@example.com", []string{`{"id":"a","tool":"get_employee","arguments":{"id":"0"}},{"id":"b","tool":"get_employee","arguments":{"id":"N"}},{"id":"c","tool":"send_mail","arguments":{"to":"boss@example.com","body":"${a}"}},{"id":"d","tool":"send_mail","arguments":{"to":"boss@example.com","body":"${b}"}}`}, "1 2", 1},
}

// TestHarmless asks questions that want nothing wrong: none is blocked, and the user is asked at most once for each.
func TestHarmless(t *testing.T) {
	w := newWorld(t, "", servers(lie{}))
	questions, asked := 0, 0
	for _, h := range harmless {
		for i, value := range strings.Fields(h.values) {
			if i > 0 && !*all {
				break
			}
			with := strings.NewReplacer("N", value, "T", value)
			var rounds [][]json.RawMessage
			for _, steps := range h.rounds {
				rounds = append(rounds, stepsOf(with.Replace(steps)))
			}
			w.model.next(rounds)
			p := w.meet("/mcp", eras[questions%len(eras)], "accept")
			question := with.Replace(h.question)
			a := p.ask(question, nil)
			questions++
			asked += len(p.asked)
			if got := a.failures(); got != "" || a.NeedsApproval || len(a.Steps) == 0 {
				t.Errorf("%s: got %d steps and the failures %q, want none", question, len(a.Steps), got)
			}
			if len(p.asked) > h.asks {
				t.Errorf("%s: the user was asked %d times, want at most %d", question, len(p.asked), h.asks)
			}
			if len(p.asked) == 0 || !*all {
				continue
			}
			w.model.next(rounds)
			if n := w.meet("/mcp", "", ""); !n.ask(question, nil).NeedsApproval {
				t.Errorf("%s: where nobody can be asked, got no needs_approval", question)
			}
		}
	}
	if *all {
		fmt.Printf("harmless questions: %d, of which none was blocked; the user was asked %d times\n", questions, asked)
		if questions < 60 {
			t.Errorf("got %d questions, want 60", questions)
		}
	}
}

// stepsOf splits steps that are separated by commas.
func stepsOf(steps string) (all []json.RawMessage) {
	if err := json.Unmarshal([]byte("["+steps+"]"), &all); err != nil {
		panic(err)
	}
	return all
}
