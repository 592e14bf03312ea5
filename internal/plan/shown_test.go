package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

func TestShown(t *testing.T) {
	long := strings.Repeat("no ", 10)
	for _, row := range []struct {
		name           string
		value, message string
		limit          int
		want, failure  string
		cut            bool
	}{
		{name: "fits", value: `{"a":1}`, limit: 7, want: `{"a":1}`},
		{name: "cut", value: `{"a":12}`, limit: 7, want: `"{\"a\":12"`, cut: true},
		{name: "whole", value: `{"a":12}`, want: `{"a":12}`},
		{name: "failure", message: "no", limit: 9, want: `"Error: no"`, failure: "no"},
		{name: "failure with its result cut", message: "no", limit: 8, want: `"Error: n"`, failure: "no", cut: true},
		{name: "failure cut", message: long, limit: 9, want: `"Error: no"`, failure: "no no no …", cut: true},
		{name: "failure whole", message: long, want: `"Error: ` + long + `"`, failure: long},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := plan.Outcome{Value: json.RawMessage(row.value)}
			if row.message != "" {
				o = plan.Outcome{Err: &plan.Error{Reason: reason.ToolError, Message: row.message}}
			}
			value, failure, cut := o.Shown(row.limit)
			if string(value) != row.want || cut != row.cut {
				t.Errorf("got %s, cut %v, want %s, %v", value, cut, row.want, row.cut)
			}
			if (failure != nil) != (row.message != "") || failure != nil && (failure.Message != row.failure || failure.Reason != reason.ToolError) {
				t.Errorf("got failure %+v, want %q", failure, row.failure)
			}
			if o.Err != nil && o.Err.Message != row.message {
				t.Errorf("got %q in the outcome, want it unchanged", o.Err.Message)
			}
		})
	}
}
