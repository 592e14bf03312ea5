package plan

import "github.com/agenticnexus/agenticnexus/internal/reason"

// Reasons why a step failed.
const (
	ReasonUnknownTool      = reason.UnknownTool
	ReasonAmbiguousTool    = reason.AmbiguousTool
	ReasonInvalidArguments = reason.InvalidArguments
	ReasonMissingReference = reason.MissingReference
	ReasonCycle            = reason.Cycle
	ReasonDuplicateID      = reason.DuplicateID
	ReasonDependencyFailed = reason.DependencyFailed
	ReasonNeedsApproval    = reason.NeedsApproval
	ReasonDeclined         = reason.Declined
	ReasonCancelled        = reason.Cancelled
	ReasonTimeout          = reason.Timeout
	ReasonInternal         = reason.Internal
	ReasonToolError        = reason.ToolError
	ReasonUnavailable      = reason.Unavailable
	ReasonDisconnected     = reason.Disconnected
	ReasonOutcomeUnknown   = reason.OutcomeUnknown
	ReasonTooLarge         = reason.TooLarge
	ReasonOverloaded       = reason.Overloaded
	ReasonUnauthorized     = reason.Unauthorized
	ReasonQuarantined      = reason.Quarantined
	ReasonProtocol         = reason.Protocol
)

// Unsettled reports whether the step failed and its call may have done its work.
func (o Outcome) Unsettled() bool {
	if o.Err == nil || o.Attempts == 0 {
		return false
	}
	switch o.Err.Reason {
	case ReasonInvalidArguments: // of Pick: the call was made
		return true
	case ReasonOutcomeUnknown, ReasonTimeout, ReasonCancelled, ReasonDisconnected, ReasonTooLarge,
		ReasonProtocol, ReasonInternal:
		return true
	}
	return false
}

// Reached reports whether the call of the step may have reached its server. As unavailable fails only what surely has
// not.
func (o Outcome) Reached() bool {
	return o.Attempts > 0 && (o.Err == nil || o.Err.Reason != ReasonUnavailable)
}
