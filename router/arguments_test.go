package router

import (
	"encoding/json"
	"errors"
	"testing"
)

// Whatever the arguments are, reading them ends in a query or in a refusal.
func FuzzReadQuery(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"query":"q"}`, `{"query":"q","context":[{"role":"user","content":"c"}],"servers":["a"],"dry_run":true,"max_rounds":2,"timeout_seconds":1.5,"detail":"full"}`,
		`{"query":7}`, `{"query":"q","max_rounds":1e400}`, `{"query":"q","timeout_seconds":1e-300}`, `{"query":"q","context":{"role":1}}`, `{"query":"q","plan":[null]}`, `[1]`, `null`, `"x"`,
	} {
		f.Add([]byte(seed))
	}
	p := parameters{}
	p.add(ToolProcessQuery, define(ToolProcessQuery).RawInputSchema)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		args, err := p.read(ToolProcessQuery, []byte(`{"arguments":`+string(raw)+`}`))
		var q *Query
		if err == nil {
			q, _, err = readQuery(args)
		}
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) || err == nil && (q.Timeout < 0 || q.MaxRounds < 0 || q.MaxRounds > 10) {
			t.Errorf("%s: got %+v and %v, want a query within bounds or a refusal", raw, q, err)
		}
	})
}
