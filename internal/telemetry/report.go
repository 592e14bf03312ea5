package telemetry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

const quietPeriod = time.Minute // between two reports of failed exports

// report sends the errors of the OpenTelemetry libraries to log instead of standard error. It drops attributes,
// because the libraries pass whole variables and headers, and redacts errors.
func report(log *slog.Logger) {
	otel.SetErrorHandler(&failures{log: log})
	otel.SetLogger(logr.New(sink{log}))
}

// failures implements otel.ErrorHandler.
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

// sink implements logr.LogSink without attributes.
type sink struct{ log *slog.Logger }

func (sink) Init(logr.RuntimeInfo) {}

func (sink) Enabled(level int) bool { return level <= 1 } // errors and warnings

func (s sink) Info(_ int, message string, _ ...any) {
	s.log.Warn("OpenTelemetry warns", "text", redact.Text(message))
}

func (s sink) Error(err error, message string, _ ...any) {
	text := ""
	if err != nil {
		text = redact.Text(err.Error())
	}
	s.log.Warn("OpenTelemetry failed", "text", redact.Text(message), "err", text)
}

func (s sink) WithValues(...any) logr.LogSink { return s }

func (s sink) WithName(string) logr.LogSink { return s }
