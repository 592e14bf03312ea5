package planner

// Config bounds planning.
type Config struct {
	ToolTokens int    `yaml:"tool_tokens"` // of the tools in a prompt, at bytesPerToken each
	MaxRounds  int    `yaml:"max_rounds"`  // planning rounds of one query
	Mode       string `yaml:"mode"`        // plan, tools or auto

	// Learn has results teach what tools return, as far as they do not say so.
	Learn bool `yaml:"learn"`
}

// Default returns the documented defaults.
func Default() Config { return Config{ToolTokens: 6000, MaxRounds: 2, Mode: ModePlan, Learn: true} }

// bytesPerToken is how many bytes of a prompt count as a token: about what the tokenizers of large models make of
// English and JSON.
const bytesPerToken = 4
