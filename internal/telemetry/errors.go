package telemetry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

const quietPeriod = time.Minute // between two reports of failed exports

// failures sends the errors of the OpenTelemetry libraries to log instead of standard error, at most one per
// quietPeriod. It implements otel.ErrorHandler.
type failures struct {
	log *slog.Logger

	mu         sync.Mutex
	last       time.Time
	suppressed int
}

// Handle implements otel.ErrorHandler.
func (f *failures) Handle(err error) {
	f.mu.Lock()
	now := time.Now()
	if now.Sub(f.last) < quietPeriod {
		f.suppressed++
		f.mu.Unlock()
		return
	}
	suppressed := f.suppressed
	f.last, f.suppressed = now, 0
	f.mu.Unlock()
	f.log.Warn("Telemetry export failed", "err", redact.Text(err.Error()), "suppressed", suppressed)
}
