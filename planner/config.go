package planner

// Config bounds planning.
type Config struct {
	Shortlist int `yaml:"shortlist"`  // tools shown to the model
	MaxRounds int `yaml:"max_rounds"` // planning rounds of one query
}

// Default returns the documented defaults.
func Default() Config { return Config{Shortlist: 10, MaxRounds: 2} }
