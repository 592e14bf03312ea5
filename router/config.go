package router

import "time"

// ToolsConfig selects the router's own tools that are offered.
type ToolsConfig struct {
	Tools []string `yaml:"tools"`
}

// QueryConfig sets the time limits of queries.
type QueryConfig struct {
	Timeout    time.Duration `yaml:"timeout"`     // if the caller gives no timeout
	TimeoutMax time.Duration `yaml:"timeout_max"` // the maximum a caller may request
}

// ValidationConfig defines which queries are refused.
type ValidationConfig struct {
	DenyPatterns []string `yaml:"deny_patterns"` // RE2, matched without regard to case; empty = none
}

// The names of the router's own tools.
const (
	ToolProcessQuery = "process_query"
	ToolListTools    = "list_available_tools"
	ToolHealthCheck  = "health_check"
	ToolSearchTools  = "search_available_tools"
	ToolRun          = "run"
)

// DefaultTools offers every router tool.
func DefaultTools() ToolsConfig {
	return ToolsConfig{Tools: []string{ToolProcessQuery, ToolListTools, ToolHealthCheck, ToolSearchTools, ToolRun}}
}

// DefaultQuery returns the default limits. The timeout is 55 s because common clients give up after 60 s.
func DefaultQuery() QueryConfig {
	return QueryConfig{Timeout: 55 * time.Second, TimeoutMax: 10 * time.Minute}
}

// DefaultValidation denies model control tokens and common override phrases.
func DefaultValidation() ValidationConfig {
	return ValidationConfig{DenyPatterns: []string{
		`<\|[a-z_]{1,40}\|>`,
		`\[/?INST\]`,
		`<</?SYS>>`,
		`\b(ignore|disregard|forget)\s+(all\s+|any\s+)?(of\s+)?(the\s+|your\s+)?(previous|prior|above|earlier)\s+(instructions?|prompts?|rules)\b`,
		`\breveal\s+(your|the)\s+(system\s+prompt|hidden\s+instructions)\b`,
	}}
}
