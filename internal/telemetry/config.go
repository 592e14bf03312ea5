package telemetry

// LogConfig controls the log.
type LogConfig struct {
	Level  string `yaml:"level"`  // trace, debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// DefaultLog returns the default: text at level info.
func DefaultLog() LogConfig { return LogConfig{Level: "info", Format: "text"} }

// Config configures OpenTelemetry; the standard OTEL_* variables select exporters and endpoints.
type Config struct {
	Traces  *bool `yaml:"traces"`  // nil = on if OTEL_* names an exporter
	Metrics *bool `yaml:"metrics"` // nil = true: Prometheus at /metrics
	Content bool  `yaml:"content"` // record redacted queries, arguments, results and answers in spans
}
