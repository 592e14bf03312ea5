// Package safe keeps a panic in a goroutine from ending the process.
package safe

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Recover is deferred at the top of a goroutine or of a function that must not end it. It logs a panic and passes an
// error to failed, which may be nil. doing names the action, as in "listing tools". Defer functions that need the
// result of failed before Recover.
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
