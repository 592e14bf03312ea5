package plan

// Reasons why a step failed. The list is closed: docs/queries.md explains each to users.
const (
	// The plan is at fault; the step was not called.
	ReasonUnknownTool      = "unknown_tool"
	ReasonAmbiguousTool    = "ambiguous_tool"
	ReasonInvalidArguments = "invalid_arguments"
	ReasonMissingReference = "missing_reference"
	ReasonCycle            = "cycle"
	ReasonDuplicateID      = "duplicate_id"

	// Something else kept the step from being called, or ended its call.
	ReasonDependencyFailed = "dependency_failed"
	ReasonDeclined         = "declined"  // the user did not allow it, or did not give an argument
	ReasonCancelled        = "cancelled" // the client cancelled the query, or closed the connection
	ReasonTimeout          = "timeout"   // of the step's call or of the query
	ReasonInternal         = "internal"

	// The server is at fault, or what lies between.
	ReasonToolError      = "tool_error"
	ReasonUnavailable    = "unavailable"
	ReasonDisconnected   = "disconnected"
	ReasonOutcomeUnknown = "outcome_unknown" // the call may have done its work
	ReasonTooLarge       = "too_large"
	ReasonOverloaded     = "overloaded"
	ReasonUnauthorized   = "unauthorized"
	ReasonQuarantined    = "quarantined"
	ReasonProtocol       = "protocol"
)

// Unsettled reports whether the step failed in a way that leaves open what its call has done.
func (o Outcome) Unsettled() bool {
	if o.Err == nil || o.Attempts == 0 {
		return false
	}
	switch o.Err.Reason {
	case ReasonOutcomeUnknown, ReasonTimeout, ReasonCancelled, ReasonDisconnected, ReasonTooLarge, ReasonProtocol, ReasonInternal:
		return true
	}
	return false
}
