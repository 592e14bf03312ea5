// Package safe keeps a panic in a goroutine from ending the process.
package safe

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Recover is deferred at the top of a goroutine, or of what must not end one. It logs a panic as an error and passes
// failed an error that says so; failed may be nil. doing says what panicked, as in "listing tools". Deferred functions
// that need what failed sets are deferred before Recover.
func Recover(log *slog.Logger, doing string, failed func(err error)) {
	Caught(recover(), log, doing, failed)
}

// Caught is Recover for a deferred function that has called recover itself.
func Caught(cause any, log *slog.Logger, doing string, failed func(err error)) {
	if cause == nil {
		return
	}
	log.Error("recovered from a panic", "doing", doing, "panic", cause, "stack", string(debug.Stack()))
	if failed != nil {
		failed(fmt.Errorf("internal error while %s", doing))
	}
}
