package rules_test

import "testing"

// TestPlan_ToolNamesAreNoValues checks that the name of a tool in a question chooses the tool, and is no argument of it
// but within quotation marks and longer names.
func TestPlan_ToolNamesAreNoValues(t *testing.T) {
	people := tool("query_people", "Query the directory of people", object("query:string:What to look for", "city:string:City of the office"))
	for question, want := range map[string]string{
		"query_people in the city Berlin":                                                      `query_people{"city":"Berlin"}`,
		"Use the query_people tool for the city Berlin":                                        `query_people{"city":"Berlin"}`,
		"Send an email to bob@example.com with subject \"query_people\" and body \"At noon?\"": `send_email{"body":"At noon?","subject":"query_people","to":"bob@example.com"}`,
	} {
		if got := calls(planned(t, question, people, sendEmail)); got != want {
			t.Errorf("%s: got %s, want %s", question, got, want)
		}
	}
}
