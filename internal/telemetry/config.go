package telemetry

// LogConfig controls the log.
type LogConfig struct {
	Level  string `yaml:"level"`  // trace, debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// DefaultLog returns the documented defaults.
func DefaultLog() LogConfig { return LogConfig{Level: "info", Format: "text"} }

// Config controls OpenTelemetry; the standard OTEL_* variables choose exporters and endpoints.
type Config struct {
	Traces  *bool `yaml:"traces"`  // nil = on where OTEL_* names an exporter
	Metrics *bool `yaml:"metrics"` // nil = true: Prometheus at /metrics
	Content bool  `yaml:"content"` // spans have queries, arguments, results and answers, redacted
}
