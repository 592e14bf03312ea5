package plan

// Unmet is a part of a question without a successful step.
type Unmet struct {
	Text    string   `json:"text"` // the part as the user wrote it
	Reason  string   `json:"reason"`
	Tool    string   `json:"tool,omitempty"`    // the tool for it, or the most similar tool
	Missing []string `json:"missing,omitempty"` // required arguments that are not known
	Step    string   `json:"-"`                 // the failed step that would serve it; empty if there is none

	// Nearest are one to three tools that share a word with the part if no tool fits. Tool is the first of them.
	Nearest []Nearest `json:"-"`
}

// Nearest is a tool that is similar to a part of a question, and what the question lacks for it.
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
