package planner

// Config bounds planning.
type Config struct {
	ToolTokens int    `yaml:"tool_tokens"` // of the tools in a prompt, at bytesPerToken each
	MaxRounds  int    `yaml:"max_rounds"`  // planning rounds of one query
	Mode       string `yaml:"mode"`        // plan, tools or auto

	// Learn learns the result types of tools without an outputSchema, and the tools that answer questions.
	Learn bool `yaml:"learn"`
}

// Default returns the documented defaults.
func Default() Config { return Config{ToolTokens: 6000, MaxRounds: 2, Mode: ModePlan, Learn: true} }

// bytesPerToken is the number of bytes of a prompt that count as a token: the approximate average of large models'
// tokenizers for English and JSON.
const bytesPerToken = 4
