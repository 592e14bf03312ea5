package trust_test

import (
	"fmt"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/trust"
)

func BenchmarkDecide(b *testing.B) {
	var rules []trust.Rule
	for i := range 20 {
		rules = append(rules, trust.Rule{When: fmt.Sprintf(`server == "s%d" && tool startsWith "delete_" && caller != "ops"`, i), Then: trust.Deny})
	}
	p, err := trust.Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	r := trust.Rules{Policy: p, ConfirmWrites: trust.ConfirmAuto}
	c := &trust.Call{Caller: "alice", Server: "hr", Tool: "get_employee", Method: "tools/call", Source: "client"}
	for b.Loop() {
		r.Decide(c)
	}
}
