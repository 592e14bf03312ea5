package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/router"
)

// asked is a user who gives the same content to every question; an error is why there is none.
type asked struct {
	content   string
	err       error
	questions []string
	forms     []string
}

func (a *asked) elicit(_ context.Context, message string, schema []byte) ([]byte, error) {
	a.questions, a.forms = append(a.questions, message), append(a.forms, string(schema))
	return []byte(a.content), a.err
}

// by returns what asks a user who says yes or no; nil for nobody.
func (a *asked) by(user string) router.Elicit {
	switch user {
	case no:
		a.err = router.ErrDeclined
	case yes:
	default:
		return nil
	}
	return a.elicit
}

// Forms ask for what is missing, by what the tool's schema says of it and a form can hold.
func TestForms(t *testing.T) {
	k := newKit(t, nil)
	for name, row := range map[string]struct {
		plan, content string
		err           error
		forms         string
		want          string
	}{
		"given":     {`[{"tool":"hotel","arguments":{"nights":2}}]`, `{"city":"Oslo","tool":"wipe"}`, nil, `{"type":"object","properties":{"city":{"type":"string","description":"Where to stay","minLength":2}},"required":["city"]}`, `s1=hotel{"city":"Oslo","nights":2}`},
		"not given": {`[{"tool":"hotel"}]`, `{}`, nil, `{"type":"object","properties":{"city":{"type":"string","description":"Where to stay","minLength":2}},"required":["city"]}`, `s1=hotel{} invalid_arguments`},
		"composed": {`[{"tool":"stay","arguments":{"class":null}}]`, `{"city":"Oslo","nights":2,"class":"low"}`, nil,
			`{"type":"object","properties":{"city":{"type":"string","description":"Where to stay"},"nights":{"type":"integer","minimum":1},"class":{"type":"string","enum":["low","high"]}},"required":["city","nights","class"]}`,
			`s1=stay{"nights":2,"city":"Oslo","class":"low"}`},
		"no question": {`[{"tool":"hotel","arguments":{"city":"Rome"}}]`, `{}`, nil, ``, `s1=hotel{"city":"Rome"}`},
		"unasked":     {`[{"tool":"hotel"},{"tool":"echo"}]`, ``, errors.New("no client"), `{"type":"object","properties":{"city":{"type":"string","description":"Where to stay","minLength":2}},"required":["city"]}`, `s1=hotel{} invalid_arguments; s2=echo{}`},
	} {
		a := &asked{content: row.content, err: row.err}
		r := k.query(router.Query{Plan: json.RawMessage(row.plan), Elicit: a.elicit})
		if got := brief(r); got != row.want || strings.Join(a.forms, " ") != row.forms {
			t.Errorf("%s: got %s and the forms %q, want %s and %s", name, got, a.forms, row.want, row.forms)
		}
		if name == "given" && !strings.Contains(a.questions[0], `hotel of server peer needs city. Known so far: {"nights":2}`) {
			t.Errorf("got the question %q, want what is missing and what is known", a.questions[0])
		}
		if name == "unasked" && (len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "the user could not be asked for city: no client")) {
			t.Errorf("got warnings %q, want why nobody was asked", r.Warnings)
		}
	}
}

// No more than five forms are shown for one query.
func TestFormsAreBounded(t *testing.T) {
	k := newKit(t, nil)
	a := &asked{content: `{"city":"Oslo"}`}
	r := k.query(router.Query{Plan: json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(`{"tool":"hotel"},`, 7), ",") + "]"), Elicit: a.elicit})
	if got := strings.Count(brief(r), "Oslo"); got != 5 || len(a.forms) != 5 || strings.Count(brief(r), "invalid_arguments") != 2 {
		t.Errorf("got %d forms and %s, want five of each and two steps that lack an argument", len(a.forms), brief(r))
	}
}

// A client is asked by elicitation if it says that it shows forms; what it answers decides over the step.
func TestElicitation(t *testing.T) {
	k := newKit(t, nil)
	const missing = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"hotel"}]}}}`
	for _, row := range []struct {
		caps, answer, want string
		asked              bool
	}{
		{`{"elicitation":{}}`, `"result":{"action":"accept","content":{"city":"Oslo"}}`, `"arguments":{"city":"Oslo"},"success":true`, true},
		{`{"elicitation":{"form":{},"url":{}}}`, `"result":{"action":"accept","content":{"city":"Oslo"}}`, `"success":true`, true},
		{`{"elicitation":{}}`, `"result":{"action":"decline"}`, "the user declined, and the tool needs city", true},
		{`{"elicitation":{}}`, `"result":{"action":"cancel"}`, "the user dismissed the request, and the tool needs city", true},
		{`{"elicitation":{}}`, `"error":{"code":-1,"message":"no screen"}`, "the client could not ask: no screen", true},
		{`{"elicitation":{"url":{}}}`, ``, "invalid_arguments", false},
		{`{}`, ``, "invalid_arguments", false},
	} {
		s := k.sessionOf(row.caps)
		s.answer = row.answer
		lines := s.ask(missing)
		if last := lines[len(lines)-1]; !strings.Contains(last, row.want) || (len(lines) == 2) != row.asked {
			t.Errorf("%s, %s: got %q, want %q and a question: %v", row.caps, row.answer, lines, row.want, row.asked)
		}
		if row.asked && !strings.Contains(lines[0], `"method":"elicitation/create"`) {
			t.Errorf("got %s, want elicitation/create", lines[0])
		}
	}
}
