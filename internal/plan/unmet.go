package plan

// Unmet is a part of a question that no successful step serves.
type Unmet struct {
	Text    string   `json:"text"` // the part, in the user's words
	Reason  string   `json:"reason"`
	Tool    string   `json:"tool,omitempty"`    // the tool that would serve it, or is nearest to it
	Missing []string `json:"missing,omitempty"` // required arguments that are not known

	// Nearest are one to three tools that share a word with the part, where none fits; Tool is the first of them.
	Nearest []Nearest `json:"-"`
}

// Nearest is a tool that is close to a part of a question, and what it would need.
type Nearest struct {
	Tool    string
	Missing []string // required arguments that the question does not give
}

// Reasons why a part of a question is unmet.
const (
	UnmetNoTool          = "no_tool"
	UnmetMissingArgument = "missing_argument"
	UnmetNeedsApproval   = "needs_approval"
	UnmetDeclined        = "declined"
	UnmetFailed          = "failed"
	UnmetUnclear         = "unclear"
)
