package synth_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/synth"
)

func unmet(text, reason, tool string, missing ...string) plan.Unmet {
	return plan.Unmet{Text: text, Reason: reason, Tool: tool, Missing: missing}
}

// TestUnmetParts: whoever writes the answer, it names each part of the question that was not done, and why.
func TestUnmetParts(t *testing.T) {
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	near := plan.Unmet{Text: "who is king", Reason: plan.UnmetNoTool, Tool: "query_hr", Nearest: []plan.Nearest{
		{Tool: "query_hr", Missing: []string{"name"}}, {Tool: "web_search"}, {Tool: "wiki", Missing: []string{"page", "lang"}}, {Tool: "fourth"},
	}}
	for _, row := range []struct {
		name     string
		outcomes []plan.Outcome
		unmet    []plan.Unmet
		note     string
		want     string // below the results, or the model's words
	}{
		{name: "no tool", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetNoTool, "")},
			want: "Not done: \"email them\", because no tool fits."},
		{name: "nearest tool", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetNoTool, "send_fax", "to", "text")},
			want: "Not done: \"email them\", because no tool fits; closest: send_fax (needs to and text)."},
		{name: "nearest tools", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{near},
			want: "Not done: \"who is king\", because no tool fits; closest: query_hr (needs name), web_search, wiki (needs page and lang)."},
		{name: "missing argument", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetMissingArgument, "send_email", "to", "subject", "body")},
			want: "Not done: \"email them\", because send_email needs to, subject and body."},
		{name: "many missing arguments", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("x", plan.UnmetMissingArgument, "t", many...)},
			want: "Not done: \"x\", because t needs a, b, c, d, e, f, g, h, i, j and 2 more."},
		{name: "something missing", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetMissingArgument, "")},
			want: "Not done: \"email them\", because it needs something that is not given."},
		{name: "needs approval", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("delete it", plan.UnmetNeedsApproval, "delete_file")},
			want: "Not done: \"delete it\", because delete_file needs your approval."},
		{name: "unclear", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("do the thing", plan.UnmetUnclear, "")},
			want: "Not done: \"do the thing\", because it is not clear what to do."},
		{name: "failed without a step", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetFailed, "send_email")},
			want: "Not done: \"email them\", because send_email failed."},
		{name: "failed without a tool", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetFailed, "")},
			want: "Not done: \"email them\", because it could not be planned."},
		{name: "declined without a step", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", plan.UnmetDeclined, "")},
			want: "Not done: \"email them\", because it was not allowed."},
		{name: "another reason", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("email them", "late\nhour", "")},
			want: "Not done: \"email them\", because late hour."},
		{name: "failed step", outcomes: []plan.Outcome{sum, mail}, unmet: []plan.Unmet{unmet("email them", plan.UnmetFailed, "send_email")},
			want: "Not done: \"email them\", because send_email failed: Tool execution timed out after 30s."},
		{name: "declined step", outcomes: []plan.Outcome{sum, failed("s3", "mail", "send_email", reason.Declined, "The user said no.")},
			unmet: []plan.Unmet{unmet("email them", plan.UnmetDeclined, "send_email")},
			want:  "Not done: \"email them\", because send_email was not allowed: The user said no."},
		{name: "step that needs approval", outcomes: []plan.Outcome{sum, failed("s3", "mail", "send_email", reason.NeedsApproval, "not called")},
			unmet: []plan.Unmet{unmet("email them", plan.UnmetNeedsApproval, "send_email")},
			want:  "Not done: \"email them\", because send_email needs your approval."},
		{name: "step behind one that needs approval", outcomes: []plan.Outcome{sum, failed("s3", "mail", "send_email", reason.DependencyFailed, "Step s2, which this step needs, failed")},
			unmet: []plan.Unmet{unmet("email them", plan.UnmetNeedsApproval, "send_email")},
			want:  "Not done: \"email them\", because send_email was not called: Step s2, which this step needs, failed."},
		{name: "failed step of another tool", outcomes: []plan.Outcome{mail, sum}, unmet: []plan.Unmet{unmet("sum up", plan.UnmetNoTool, "send_email")},
			want: mailFailed + "\n\nNot done: \"sum up\", because no tool fits; closest: send_email."},
		{name: "step without a tool", outcomes: []plan.Outcome{sum, failed("s3", "", "", reason.UnknownTool, "step names no tool")},
			unmet: []plan.Unmet{{Text: "email them", Reason: plan.UnmetFailed, Step: "s3"}},
			want:  "Not done: \"email them\", because it failed: step names no tool."},
		{name: "several", outcomes: []plan.Outcome{sum, mail, failed("s4", "mail", "send_email", "timeout", "too late")},
			unmet: []plan.Unmet{unmet("fly", plan.UnmetNoTool, ""), unmet("email them", plan.UnmetFailed, "send_email")},
			want: "Not everything worked:\n- send_email: too late\n\n- Not done: \"fly\", because no tool fits.\n" +
				"- Not done: \"email them\", because send_email failed: Tool execution timed out after 30s."},
		{name: "about an action", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet("should I email them?", plan.UnmetUnclear, "send_email")},
			want: "Not done: \"should I email them?\", because it is no plain command; write one, with texts in quotes, if send_email is to be called."},
		{name: "long text", outcomes: []plan.Outcome{sum}, unmet: []plan.Unmet{unmet(strings.Repeat("word ", 100), plan.UnmetUnclear, "")},
			want: "Not done: \"" + strings.Repeat("word ", 40) + "…\", because it is not clear what to do."},
	} {
		t.Run(row.name, func(t *testing.T) {
			req := synth.Request{Query: question, Outcomes: row.outcomes, Unmet: row.unmet, Note: row.note}
			digest := synth.Digest(req)
			if want := "**calculate**: 375 (expression: 2500 * 0.15)\n\n" + row.want; digest != want {
				t.Errorf("digest: got\n%s\nwant\n%s", digest, want)
			}
			answer := synth.New(synth.Options{Model: says("I emailed them, did the thing, and it is 375.")}).Compose(t.Context(), req)
			if want := "I emailed them, did the thing, and it is 375.\n\n" + row.want; answer.Text != want || answer.Degraded {
				t.Errorf("answer: got\n%s\nwant\n%s", answer.Text, want)
			}
		})
	}
}

// TestModelHint: without a model the answer says once that one would help, where the question was not understood.
func TestModelHint(t *testing.T) {
	const hint = "\n\nA language model understands more questions; the setting llm names one."
	for reason, want := range map[string]int{plan.UnmetNoTool: 1, plan.UnmetUnclear: 1, plan.UnmetMissingArgument: 0, plan.UnmetFailed: 0, plan.UnmetNeedsApproval: 0} {
		req := synth.Request{Query: question, Unmet: []plan.Unmet{unmet("a", reason, "t"), unmet("b", reason, "t")}}
		if got := synth.New(synth.Options{}).Compose(t.Context(), req).Text; strings.Count(got, hint) != want {
			t.Errorf("%s: got %q, want the hint %d times", reason, got, want)
		}
		if got := synth.New(synth.Options{Model: says("No.")}).Compose(t.Context(), req).Text; strings.Contains(got, hint) {
			t.Errorf("%s: got %q, want no hint where there is a model", reason, got)
		}
	}
}

// TestNothingFits: the planner's note is in the answer, first in a digest, and the tools that it names are not named again.
func TestNothingFits(t *testing.T) {
	const note = "No tool matches. Closest: `query_hr` (needs `name`)."
	part := unmet("who is king", plan.UnmetNoTool, "query_hr", "name")
	for _, row := range []struct {
		name, says, want string
		req              synth.Request
	}{
		{"digest", "", note + "\n\nNot done: \"who is king\", because no tool fits.", synth.Request{Note: note, Unmet: []plan.Unmet{part}}},
		{"digest with results", "", "**calculate**: 375 (expression: 2500 * 0.15)\n\nNot done: \"who is king\", because no tool fits.\n\n" + note,
			synth.Request{Note: note, Unmet: []plan.Unmet{part}, Outcomes: []plan.Outcome{sum}}},
		{"model", "I do not know.", "I do not know.\n\n" + note + "\n\nNot done: \"who is king\", because no tool fits.", synth.Request{Note: note, Unmet: []plan.Unmet{part}}},
		{"model that repeats the note", "Sorry: " + note, "Sorry: " + note + "\n\nNot done: \"who is king\", because no tool fits.", synth.Request{Note: note, Unmet: []plan.Unmet{part}}},
		{"model with results", "375.", "375.\n\n" + note + "\n\nNot done: \"who is king\", because no tool fits.", synth.Request{Note: note, Unmet: []plan.Unmet{part}, Outcomes: []plan.Outcome{sum}}},
		{"small talk", "Hello!", "Hello!", synth.Request{Note: note}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var opts synth.Options
			if row.says != "" {
				opts.Model = says(row.says)
			}
			got := synth.New(opts).Compose(t.Context(), row.req).Text
			if row.says == "" {
				got = synth.Digest(row.req)
			}
			if got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// TestMarkedAsNotDone: what the model marks is not said again.
func TestMarkedAsNotDone(t *testing.T) {
	two := []plan.Unmet{unmet("fly", plan.UnmetNoTool, ""), unmet("email them", plan.UnmetFailed, "send_email")}
	for _, row := range []struct{ name, says, want string }{
		{"part", "Ich kann nicht fliegen [n1 not done], keine Mail [s3 failed].", "Ich kann nicht fliegen [not done: fly], keine Mail [s3: send_email failed]."},
		{"part by its own mark", "No [n1, n2 not done] [s3 failed].", "No [not done: fly; email them] [s3: send_email failed]."},
		{"part, but not the step that failed", "No [n1 not done], [n2 not done].", "No [not done: fly], [not done: email them].\n\n" + mailFailed},
		{"unknown part", "No [n3 not done] [n1 not done] [s3 failed].", "No [n3 not done] [not done: fly] [s3: send_email failed]."},
		{"words", "I cannot fly, and send_email failed (n1, not done).",
			"I cannot fly, and send_email failed (n1, not done).\n\n- Not done: \"fly\", because no tool fits.\n- Not done: \"email them\", because send_email failed: Tool execution timed out after 30s."},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := synth.New(synth.Options{Model: says(row.says)}).Compose(t.Context(), synth.Request{Outcomes: []plan.Outcome{sum, mail}, Unmet: two})
			if got.Text != row.want {
				t.Errorf("got\n%s\nwant\n%s", got.Text, row.want)
			}
		})
	}
}

// TestRefusalIsFinal: what a model says when it refuses is the answer; no digest takes its place.
func TestRefusalIsFinal(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"in words":   {Text: "I can't help with that."},
		"as refusal": {Raw: `{"choices":[{"message":{"content":null,"refusal":"I can't help with that."},"finish_reason":"stop"}]}`, RawType: "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t)
			f.Answer(reply)
			got := f.synth.Compose(t.Context(), synth.Request{Query: question, Outcomes: []plan.Outcome{sum, mail}})
			if want := "I can't help with that.\n\n" + mailFailed; got.Text != want || got.Degraded || len(got.Warnings) > 0 || got.Citations == nil {
				t.Errorf("got %+v, want the refusal", got)
			}
		})
	}
	f := connect(t)
	f.Answer(llmtest.Reply{Text: "I", Finish: "content_filter"})
	if got := f.synth.Compose(t.Context(), synth.Request{Query: question, Outcomes: []plan.Outcome{sum}}); !got.Degraded || !strings.Contains(got.Text, "375") {
		t.Errorf("content filter: got %+v, want the digest", got)
	}
}

// TestLongErrors: tools' words on a failure are cut wherever they are shown.
func TestLongErrors(t *testing.T) {
	long := failed("s1", "s", strings.Repeat("tool", 1000), "tool_error", strings.Repeat("no\n", 400_000))
	req := synth.Request{Query: "?", Outcomes: []plan.Outcome{long}, Unmet: []plan.Unmet{unmet("it", plan.UnmetFailed, long.Step.Tool)}}
	for range 2 {
		var model prompted
		answer := synth.New(synth.Options{Model: &model}).Compose(t.Context(), req)
		digest := synth.New(synth.Options{}).Compose(t.Context(), req)
		for name, text := range map[string]string{"prompt": model.user, "answer": answer.Text, "digest": digest.Text} {
			if len(text) > 1200 || !strings.Contains(text, "no no no …") {
				t.Errorf("%s: got %d bytes: %.100q", name, len(text), text)
			}
		}
		req.Unmet = nil
	}
}

func TestDigestOfManySteps(t *testing.T) {
	var outcomes []plan.Outcome
	for i := range 1000 {
		outcomes = append(outcomes, worked(fmt.Sprintf("s%d", i), "s", "count", fmt.Sprint(i)))
	}
	got := synth.New(synth.Options{}).Compose(t.Context(), synth.Request{Outcomes: outcomes}).Text
	if strings.Count(got, "**count**: ") != 1000 {
		t.Errorf("got %.200q, want every step", got)
	}
	outcomes = []plan.Outcome{{Step: plan.Step{Tool: "list"}, Value: json.RawMessage(`[` + strings.Repeat(`{"name":"x","n":1},`, 100_000) + `{"name":"last"}]`)}}
	if got := synth.New(synth.Options{}).Compose(t.Context(), synth.Request{Outcomes: outcomes}).Text; len(got) > 5000 || !strings.HasSuffix(got, "… (and more)") {
		t.Errorf("got %d bytes that end with %q", len(got), got[max(0, len(got)-50):])
	}
}

// TestQuotedParts: a part of the question stands in quotes, so that its punctuation does not run into the reason.
func TestQuotedParts(t *testing.T) {
	for text, want := range map[string]string{
		"what time is it?": `Not done: "what time is it?", because it is not clear what to do.`,
		`write "hi" to x`:  `Not done: write "hi" to x, because it is not clear what to do.`,
	} {
		if got := synth.Digest(synth.Request{Unmet: []plan.Unmet{unmet(text, plan.UnmetUnclear, "")}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
