package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/router"
)

const (
	auto, always, never = downstream.ConfirmAuto, downstream.ConfirmAlways, downstream.ConfirmNever
	yes, no, nobody     = "yes", "no", "nobody"
)

// TestConsent_WhoConfirms goes through planner, what the tool does, round and setting: which calls are asked about, and
// what becomes of them after a yes, a no and where nobody can be asked.
func TestConsent_WhoConfirms(t *testing.T) {
	settings := []string{auto, always, never}
	for _, row := range []struct {
		source string
		round  int
		tool   string
		asked  [3]bool // by the settings
	}{
		{plan.SourceRules, 1, "echo", [3]bool{false, false, false}}, // says that it reads
		{plan.SourceRules, 1, "get_x", [3]bool{false, false, false}},
		{plan.SourceRules, 1, "note", [3]bool{true, true, false}},
		{plan.SourceRules, 1, "get_w", [3]bool{true, true, false}}, // says that it does not read
		{plan.SourceRules, 1, "wipe", [3]bool{true, true, false}},
		{plan.SourceModel, 1, "echo", [3]bool{false, false, false}},
		{plan.SourceModel, 1, "get_x", [3]bool{false, false, false}},
		{plan.SourceModel, 1, "note", [3]bool{false, true, false}},
		{plan.SourceModel, 1, "get_w", [3]bool{false, true, false}},
		{plan.SourceModel, 1, "wipe", [3]bool{true, true, false}},
		{plan.SourceModel, 2, "get_x", [3]bool{false, false, false}},
		{plan.SourceModel, 2, "note", [3]bool{true, true, false}},
		{plan.SourceModel, 2, "wipe", [3]bool{true, true, false}},
		{plan.SourceGiven, 1, "get_x", [3]bool{false, false, false}},
		{plan.SourceGiven, 1, "note", [3]bool{false, true, false}},
		{plan.SourceGiven, 1, "wipe", [3]bool{false, true, false}},
	} {
		for i, setting := range settings {
			for _, user := range []string{yes, no, nobody} {
				name := fmt.Sprintf("%s, round %d, %s, %s, %s", row.source, row.round, row.tool, setting, user)
				testConsent(t, name, row.source, row.round, row.tool, setting, user, row.asked[i])
			}
		}
	}
}

func testConsent(t *testing.T, name, source string, round int, tool, setting, user string, asks bool) {
	step := `{"steps":[{"id":"w","tool":"` + tool + `","arguments":{"v":7}},{"id":"r","tool":"echo","arguments":{}},` +
		`{"id":"d","tool":"echo","arguments":{"after":1},"after":["w"]}]}`
	var q router.Query
	var plans []string
	switch {
	case source == plan.SourceRules:
		plans = []string{byRules + step}
	case source == plan.SourceGiven:
		q.Plan = json.RawMessage(step)
	case round == 2:
		plans = []string{`{"steps":[{"id":"a","tool":"echo","arguments":{"first":1}}],"more":true}`, step}
	default:
		plans = []string{step, `[]`}
	}
	k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = setting }, plans...)
	a := &asked{}
	q.Elicit = a.by(user)
	r := k.query(q)
	want := "w=" + tool + `{"v":7}`
	after := `d=echo{"after":1}`
	called := !asks || user == yes
	switch {
	case called:
	case user == no:
		want, after = want+" declined", after+" dependency_failed"
	default:
		want, after = want+" needs_approval", after+" dependency_failed"
	}
	got, _ := strings.CutPrefix(brief(r), `a=echo{"first":1}; `)
	if want = want + "; r=echo{}; " + after; got != want {
		t.Errorf("%s: got %s, want %s", name, got, want)
	}
	if did := slices.Contains(k.called(), tool+`{"v":7}`); did != called {
		t.Errorf("%s: got %q called, want the tool among them: %v", name, k.called(), called)
	}
	if got, want := len(a.questions) > 0, asks && user != nobody; got != want {
		t.Errorf("%s: got the requests %q, want one: %v", name, a.questions, want)
	}
	if got, want := r.NeedsApproval, asks && user == nobody; got != want {
		t.Errorf("%s: got needs_approval %v, want %v", name, got, want)
	}
	if r.NeedsApproval && (!r.Answer.Degraded || !strings.Contains(r.Answer.Text, tool+` of server peer with {"v":7}`)) {
		t.Errorf("%s: got the answer %q, want it degraded and naming the call", name, r.Answer.Text)
	}
}

func unconfirmed(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = never }

// TestConsent_Twice: the second of two equal writes needs a yes, also in a loop and where nothing else does; what the
// client gives or allows does not.
func TestConsent_Twice(t *testing.T) {
	const two = `{"steps":[{"id":"a","tool":"note","arguments":{"v":1,"w":2}},{"id":"b","tool":"note","arguments":{"w":2,"v":1},"after":["a"]},{"id":"c","tool":"note","arguments":{"v":2}}]}`
	const loop = `{"steps":[{"id":"a","tool":"echo","arguments":{"l":[1,1]}},{"id":"b","tool":"note","each":"$a.l","arguments":{"v":"$item"}}]}`
	for _, row := range []struct {
		name, plan, setting, user string
		notes                     int
		change                    func(*router.Query)
	}{
		{"a yes", two, auto, yes, 3, nil},
		{"a no", two, auto, no, 2, nil},
		{"nobody", two, auto, nobody, 2, nil},
		{"nothing is confirmed", two, never, yes, 2, nil},
		{"allowed", two, auto, nobody, 3, func(q *router.Query) { q.Approved = true }},
		{"given", two, auto, nobody, 3, func(q *router.Query) { q.Plan = json.RawMessage(two) }},
		{"a loop, a yes", loop, auto, yes, 2, nil},
		{"a loop, nobody", loop, auto, nobody, 0, nil},
	} {
		k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = row.setting }, row.plan, row.plan, `[]`)
		a := &asked{}
		q := router.Query{Elicit: a.elicit}
		switch row.user {
		case no:
			a.err = router.ErrDeclined
		case nobody:
			q.Elicit = nil
		}
		if row.change != nil {
			row.change(&q)
		}
		r := k.query(q)
		notes := 0
		for _, call := range k.called() {
			if strings.HasPrefix(call, "note") {
				notes++
			}
		}
		asks := row.setting == auto && row.user != nobody
		if notes != row.notes || (len(a.questions) == 1) != asks || r.NeedsApproval != (row.notes < 3 && row.user != no && (row.user == nobody || row.setting == never)) {
			t.Errorf("%s: got %s, %d notes, the questions %q and needs_approval %v, want %d notes and a question: %v", row.name, brief(r), notes, a.questions, r.NeedsApproval, row.notes, asks)
		}
		if asks && !strings.Contains(a.questions[0], "This exact call was made before.") {
			t.Errorf("%s: got the question %q, want the reason in it", row.name, a.questions[0])
		}
		if r.NeedsApproval && row.notes > 0 && !strings.Contains(r.Answer.Text, "This exact call was made before") {
			t.Errorf("%s: got the answer %q, want it to say what was done", row.name, r.Answer.Text)
		}
	}
}

// TestConsent_TwiceDenied: equal calls of a loop that a policy denies are not made, and no reason to ask about the others.
func TestConsent_TwiceDenied(t *testing.T) {
	k := newKit(t, nil, `{"steps":[{"id":"n","tool":"note","each":"[1,1,2]","arguments":{"v":"$item"}}]}`)
	policy, err := trust.Compile([]trust.Rule{{When: "arguments.v == 1", Then: trust.Deny}})
	if err != nil {
		t.Fatal(err)
	}
	k.servers.SetPolicy(policy)
	const want = `n=note{"v":1} forbidden; n=note{"v":1} forbidden; n=note{"v":2}`
	if got, called := brief(k.query(router.Query{})), k.called(); got != want || !slices.Equal(called, []string{`note{"v":2}`}) {
		t.Errorf("got %s and the calls %q, want %s", got, called, want)
	}
}

// TestConsent_DeclinedIsNotMade: a call that the user did not allow is not said to have been made.
func TestConsent_DeclinedIsNotMade(t *testing.T) {
	const two = `[{"tool":"note","arguments":{"v":1}},{"tool":"note","arguments":{"v":1}}]`
	k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always }, two, two)
	a := &asked{err: router.ErrDeclined}
	k.query(router.Query{Elicit: a.elicit})
	if len(a.questions) != 2 || strings.Contains(strings.Join(a.questions, " "), "made before") || len(k.called()) > 0 {
		t.Errorf("got the questions %q and the calls %q, want two questions about calls that were not made", a.questions, k.called())
	}
	if r := k.query(router.Query{}); strings.Contains(brief(r)+r.Answer.Text, "made before") {
		t.Errorf("got %s and %q where nobody can be asked, want nothing about a call that was made", brief(r), r.Answer.Text)
	}
}

// The plan that waits for approval is approved by giving it back, all rounds of it, or by the caller at once.
func TestConsent_Approval(t *testing.T) {
	plans := []string{
		`{"steps":[{"id":"a","tool":"echo","arguments":{"disk":"c"}}],"more":true}`,
		`{"steps":[{"id":"b","tool":"wipe","arguments":{"disk":"$a.disk"}}],"more":true}`, `{"steps":[{"id":"c","tool":"echo","arguments":{}}]}`,
	}
	k := newKit(t, nil, plans...)
	r := k.query(router.Query{MaxRounds: 3})
	if got, want := brief(r), `a=echo{"disk":"c"}; b=wipe{"disk":"c"} needs_approval`; got != want || !r.NeedsApproval || r.Plan.Rounds != 2 {
		t.Fatalf("got %s after %d rounds, want %s after 2", got, r.Plan.Rounds, want)
	}
	if got := r.Answer.Text; !strings.HasPrefix(got, "All well.") || !strings.Contains(got, "nexus query --plan FILE") {
		t.Errorf("got the answer %q, want what the reads brought and how to approve", got)
	}
	given, err := json.Marshal(r.Content(false).Plan)
	if err != nil {
		t.Fatal(err)
	}
	again := k.query(router.Query{Plan: given})
	if got, want := brief(again), `a=echo{"disk":"c"}; b=wipe{"disk":"c"}`; got != want || again.NeedsApproval || again.Plan.Source != plan.SourceGiven {
		t.Errorf("given back: got %s, want %s", got, want)
	}
	approved := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always }, plans...)
	if got, want := brief(approved.query(router.Query{MaxRounds: 2, Approved: true})), `a=echo{"disk":"c"}; b=wipe{"disk":"c"}`; got != want {
		t.Errorf("approved by the caller: got %s, want %s", got, want)
	}
	r = approved.query(router.Query{Plan: given})
	if got, want := brief(r), `a=echo{"disk":"c"}; b=wipe{"disk":"c"} needs_approval`; got != want || strings.Contains(r.Answer.Text, "--plan") {
		t.Errorf("given back under always: got %s and %q, want %s and another way", got, r.Answer.Text, want)
	}
}

// The plan that waits for approval lacks the writes that were made, of this round and of earlier ones: approving it does
// not make them again.
func TestConsent_ApprovalRepeatsNoWrite(t *testing.T) {
	for name, row := range map[string]struct {
		plans       []string
		first, then string // steps
		warns       bool
	}{
		"one round": {[]string{`{"steps":[{"id":"a","tool":"note","arguments":{"v":1}},{"id":"b","tool":"wipe","arguments":{"disk":"c"}}]}`, `[]`},
			`a=note{"v":1}; b=wipe{"disk":"c"} needs_approval`, `b=wipe{"disk":"c"}`, false},
		"rounds": {[]string{`{"steps":[{"id":"a","tool":"note","arguments":{"disk":"c"}}],"more":true}`, `{"steps":[{"id":"b","tool":"wipe","arguments":{"disk":"$a.disk"}}]}`},
			`a=note{"disk":"c"}; b=wipe{"disk":"c"} needs_approval`, `b=wipe{"disk":"c"}`, false},
		"a read again": {[]string{`{"steps":[{"id":"r","tool":"echo","arguments":{"d":"c"}},{"id":"a","tool":"note","arguments":{"v":"$r.d"}}],"more":true}`, `{"steps":[{"id":"b","tool":"wipe","arguments":{"disk":"$r.d"},"after":["a"]}]}`},
			`r=echo{"d":"c"}; a=note{"v":"c"}; b=wipe{"disk":"c"} needs_approval`, `r=echo{"d":"c"}; b=wipe{"disk":"c"}`, false},
		"computed from a write": {[]string{`{"steps":[{"id":"a","tool":"note","arguments":{"l":["c"]}},{"id":"p","pick":"a.l[0]"}],"more":true}`, `{"steps":[{"id":"b","tool":"wipe","arguments":{"disk":"$p"}}]}`},
			`a=note{"l":["c"]}; p={}; b=wipe{"disk":"c"} needs_approval`, `b=wipe{"disk":"c"}`, false},
		"a computed list": {[]string{`{"steps":[{"id":"a","tool":"note","arguments":{"l":["c"]}},{"id":"p","pick":"[\"d\"]"},{"id":"b","tool":"wipe","each":"$p","arguments":{"disk":"$item"}}]}`},
			`a=note{"l":["c"]}; p={}; b=wipe{"disk":"d"} needs_approval`, `p={}; b=wipe{"disk":"d"}`, false},
		"a list of a write": {[]string{`{"steps":[{"id":"a","tool":"note","arguments":{"l":["c"]}}],"more":true}`, `{"steps":[{"id":"b","tool":"wipe","each":"$a.l","arguments":{"disk":"$item"}},{"id":"c","tool":"wipe","arguments":{"disk":"d"}}]}`},
			`a=note{"l":["c"]}; b=wipe{"disk":"c"} needs_approval; c=wipe{"disk":"d"} needs_approval`, `c=wipe{"disk":"d"}`, true},
	} {
		k := newKit(t, nil, row.plans...)
		r := k.query(router.Query{MaxRounds: 2})
		if got := brief(r); got != row.first || !r.NeedsApproval || strings.Contains(strings.Join(r.Warnings, " "), "step b (wipe) is not part of the plan") != row.warns {
			t.Errorf("%s: got %s and %q, want %s", name, got, r.Warnings, row.first)
		}
		given, err := json.Marshal(r.Content(false).Plan)
		if err != nil {
			t.Fatal(err)
		}
		if again := k.query(router.Query{Plan: given}); brief(again) != row.then {
			t.Errorf("%s, given back: got %s, want %s", name, brief(again), row.then)
		}
		notes := slices.DeleteFunc(k.called(), func(call string) bool { return !strings.HasPrefix(call, "note") })
		if len(notes) != 1 {
			t.Errorf("%s: got the writes %q, want one", name, notes)
		}
	}
}

// A dry run asks nobody and needs no approval.
func TestConsent_DryRun(t *testing.T) {
	k := newKit(t, nil, byRules+`[{"tool":"wipe"}]`)
	a := &asked{}
	if r := k.query(router.Query{DryRun: true, Elicit: a.elicit}); r.NeedsApproval || len(a.questions) > 0 || len(k.called()) > 0 {
		t.Errorf("got needs_approval %v, the requests %q and the calls %q, want none", r.NeedsApproval, a.questions, k.called())
	}
}

// What a server that is not trusted says of its tools does not make a write a read, for no planner.
func TestConsent_Distrust(t *testing.T) {
	for _, row := range []struct {
		trusted bool
		plans   []string
		want    string
	}{
		{true, []string{byRules + `[{"tool":"purge"}]`}, `s1=purge{}`},
		{false, []string{byRules + `[{"tool":"purge"}]`}, `s1=purge{} needs_approval`},
		{false, []string{byRules + `[{"tool":"echo"}]`}, `s1=echo{}`}, // "Returns its arguments" is enough
		{false, []string{`{"steps":[{"id":"a","tool":"echo"}],"more":true}`, `[{"tool":"purge"}]`}, `a=echo{}; s1=purge{} needs_approval`},
	} {
		k := newKit(t, func(_ *router.Options, o *downstream.Options) { o.Servers[0].TrustAnnotations = &row.trusted }, row.plans...)
		if got := brief(k.query(router.Query{})); got != row.want {
			t.Errorf("trusted %v, %q: got %s, want %s", row.trusted, row.plans, got, row.want)
		}
	}
}

// A query that is cancelled while its user is asked makes no call.
func TestConsent_CancelledQuery(t *testing.T) {
	k := newKit(t, nil, byRules+`[{"tool":"wipe"}]`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := k.Query(ctx, router.Query{Text: "q", Elicit: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		cancel()
		<-ctx.Done()
		return []byte(`{}`), ctx.Err()
	}})
	if !errors.Is(err, context.Canceled) || len(k.called()) > 0 {
		t.Errorf("got %v and the calls %q, want that it was cancelled and no call", err, k.called())
	}
}

// A client that cannot be asked gets the plan, and how to approve it.
func TestConsent_ClientWithoutElicitation(t *testing.T) {
	for _, caps := range []string{`{}`, `{"elicitation":{"url":{}}}`} {
		k := newKit(t, nil, byRules+`[{"tool":"wipe","arguments":{"disk":"c"}}]`)
		lines := k.sessionOf(caps).ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q"}}}`)
		for _, want := range []string{`"needs_approval":true`, `"plan":{"source":"rules","rounds":1,`, `"arguments":{"disk":"c"}`, "as the argument plan"} {
			if len(lines) != 1 || !strings.Contains(lines[0], want) {
				t.Errorf("%s: got %q, want one line with %s", caps, lines, want)
			}
		}
		if got := k.called(); len(got) > 0 {
			t.Errorf("%s: got the calls %q, want none", caps, got)
		}
	}
}

// Only an answer that says "accept", and nothing else, is a yes.
func TestConsent_OddAnswers(t *testing.T) {
	for _, answer := range []string{
		`{}`, `null`, `[]`, `"accept"`, `{"action":"ACCEPT"}`, `{"action":["accept"]}`, `{"Action":"accept"}`, `{"action":true}`,
		`{"content":{"action":"accept"}}`, `{"action":"accept","action":"decline"}`, `{"action":"decline","action":"accept"}`,
	} {
		k := newKit(t, nil, byRules+`[{"tool":"wipe"}]`)
		s := k.sessionOf(`{"elicitation":{}}`)
		s.answer = `"result":` + answer
		lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q"}}}`)
		if got := k.called(); len(got) > 0 || len(lines) != 2 || !strings.Contains(lines[1], `"success":false`) {
			t.Errorf("%s: got the calls %q and %q, want a question and no call", answer, got, lines)
		}
	}
}

// A client that fails to ask leaves the step unapproved, and says why.
func TestConsent_CannotBeAsked(t *testing.T) {
	k := newKit(t, nil, byRules+`[{"tool":"wipe"}]`)
	a := &asked{err: errors.New("no screen")}
	r := k.query(router.Query{Elicit: a.elicit})
	if got, want := brief(r), `s1=wipe{} needs_approval`; got != want || !strings.Contains(r.Outcomes[0].Err.Message, "no screen") {
		t.Errorf("got %s, %q, want %s and why", got, r.Outcomes[0].Err.Message, want)
	}
}

// What is shown to the user are the server, the tool and the arguments. None of them can write a line of its own.
func TestConsent_Message(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"to":"a@b.c"}`:                            `Arguments: {"to":"a@b.c"}`,
		"{\n\"x\":\n1}":                             `Arguments: {"x":1}`,
		`{"x":"\u001b[2J\nTool: echo"}`:             `Arguments: {"x":"\u001b[2J\nTool: echo"}`,
		"{\"x\":\"a\u202eb\u2028\u00a0\"}":          `Arguments: {"x":"a\u202eb\u2028\u00a0"}`,
		`{"x":"` + strings.Repeat("ü", 2000) + `"}`: "… (cut, ",
	} {
		k := newKit(t, nil, byRules+`[{"tool":"wipe","arguments":`+arguments+`}]`)
		a := &asked{err: router.ErrDismissed}
		r := k.query(router.Query{Elicit: a.elicit})
		if got := brief(r); !strings.HasSuffix(got, " declined") || len(a.questions) != 1 {
			t.Fatalf("%s: got %s and the requests %q, want one and that it is declined", arguments, got, a.questions)
		}
		lines := strings.Split(a.questions[0], "\n")
		if len(lines) != 5 || lines[1] != "Server: peer" || lines[2] != "Tool: wipe" || !strings.Contains(lines[3], want) ||
			lines[4] != "This tool is marked destructive." || len(lines[3]) > 2500 {
			t.Errorf("%s: got %q, want %s in the fourth line", arguments, lines, want)
		}
	}
}
