package plan

import "github.com/agenticnexus/agenticnexus/internal/reason"

// Unsettled reports whether the step failed and its call may have done its work.
func (o Outcome) Unsettled() bool {
	if o.Err == nil || o.Attempts == 0 {
		return false
	}
	switch o.Err.Reason {
	case reason.InvalidArguments: // an error in Pick, after the call
		return true
	case reason.OutcomeUnknown, reason.Timeout, reason.Cancelled, reason.Disconnected, reason.TooLarge,
		reason.Protocol, reason.Internal:
		return true
	}
	return false
}

// Reached reports whether the call of the step may have reached its server. The reason unavailable means that it
// certainly has not.
func (o Outcome) Reached() bool {
	return o.Attempts > 0 && (o.Err == nil || o.Err.Reason != reason.Unavailable)
}
