// Package bench measures what the router adds to the time of models and tools, the memory it takes, and how
// fast it passes a cancellation on. Run it with
// go test ./tests/bench -run '^$' -bench .
package bench
