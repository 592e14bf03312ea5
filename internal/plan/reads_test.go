package plan

import "testing"

func TestTool_Reads(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		tool Tool
		want bool
	}{
		"says so":                            {Tool{Tool: "purge", Annotations: Annotations{ReadOnlyHint: &yes}}, true},
		"says the contrary":                  {Tool{Tool: "get_file", Annotations: Annotations{ReadOnlyHint: &no}}, false},
		"destroys":                           {Tool{Tool: "get_file", Annotations: Annotations{DestructiveHint: &yes}}, false},
		"destroys nothing, but may write":    {Tool{Tool: "put_file", Annotations: Annotations{DestructiveHint: &no}}, false},
		"destroys nothing, named a read":     {Tool{Tool: "get_file", Annotations: Annotations{DestructiveHint: &no}}, true},
		"snake case":                         {Tool{Tool: "list_issues"}, true},
		"camel case":                         {Tool{Tool: "getIssue"}, true},
		"dashes":                             {Tool{Tool: "get-sum"}, true},
		"a module in front":                  {Tool{Tool: "weather.get_by_city"}, true},
		"a module that is a verb":            {Tool{Tool: "crime_record.get_record"}, true},
		"a write behind a module":            {Tool{Tool: "music_track_delete", Description: "Get rid of a track"}, false},
		"a write":                            {Tool{Tool: "cancel_order", Description: "Checks and cancels an order"}, false},
		"two verbs":                          {Tool{Tool: "find_and_replace"}, false},
		"a noun that is a verb elsewhere":    {Tool{Tool: "get_order"}, true},
		"the description says it":            {Tool{Tool: "prime_factors", Description: "Calculates the prime factors of a number"}, true},
		"the description, after an adverb":   {Tool{Tool: "files", Description: "Recursively search for files"}, true},
		"the description tells of a write":   {Tool{Tool: "records", Description: "Deletes records and lists the rest"}, false},
		"the description adds a write":       {Tool{Tool: "files", Description: "Finds and deletes records"}, false},
		"the description adds a read":        {Tool{Tool: "files", Description: "Finds and shows records"}, true},
		"a verb late in the description":     {Tool{Tool: "frobnicate", Description: "This is the tool of our house that can find"}, false},
		"nothing is known":                   {Tool{Tool: "frobnicate", Description: "Frobnicates the frobs"}, false},
		"nothing at all":                     {Tool{}, false},
		"a verb in the third person with es": {Tool{Tool: "files", Description: "Searches files"}, true},
		"a verb in the third person with y":  {Tool{Tool: "files", Description: "Classifies files"}, true},
		"an echo":                            {Tool{Tool: "echo", Description: "Echo a message back"}, true},
		"an echo, in the third person":       {Tool{Tool: "echo", Description: "Echoes a message"}, true},
		"an echo that is a device":           {Tool{Tool: "echo_say", Description: "Announces text on an Echo"}, false},
		"a sum":                              {Tool{Tool: "sum", Description: "Sums numbers"}, true},
		"another script":                     {Tool{Tool: "查询", Description: "查询天气"}, false},
	} {
		if got := tc.tool.Reads(); got != tc.want {
			t.Errorf("%s: Reads of %s: got %v, want %v", name, tc.tool.Tool, got, tc.want)
		}
	}
}
