// Package reason has the reasons why a step of a plan, or a request to a server, failed.
//
// The list is closed: docs/queries.md explains each reason to users.
package reason

// The plan is wrong; the step was not called.
const (
	UnknownTool      = "unknown_tool"
	AmbiguousTool    = "ambiguous_tool"
	InvalidArguments = "invalid_arguments"
	MissingReference = "missing_reference"
	Cycle            = "cycle"
	DuplicateID      = "duplicate_id"
)

// The router or the user kept the step from being called, or ended its call.
const (
	DependencyFailed = "dependency_failed"
	NeedsApproval    = "needs_approval" // it needs the user's yes, and nobody could be asked
	Forbidden        = "forbidden"      // a rule denies it, or nobody could be asked for the consent it needs
	Declined         = "declined"       // the user did not allow it, or did not give an argument
	Cancelled        = "cancelled"      // the client cancelled the query, or closed the connection
	Timeout          = "timeout"        // of the step's call or of the query
	Internal         = "internal"
)

// The server, or the connection to it, failed.
const (
	ToolError      = "tool_error"
	Unavailable    = "unavailable"
	Disconnected   = "disconnected"
	OutcomeUnknown = "outcome_unknown" // the call may have done its work
	TooLarge       = "too_large"
	Overloaded     = "overloaded"
	Unauthorized   = "unauthorized"
	Quarantined    = "quarantined"
	Protocol       = "protocol"
)
