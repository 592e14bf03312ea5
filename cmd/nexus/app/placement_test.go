package app

import (
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
)

// A server that runs once runs here under the lease of this replica, and all other servers without one.
func TestPlacement_Lease(t *testing.T) {
	one := downstream.ServerConfig{Name: "work", Type: downstream.TransportStdio, Command: "work", Placement: server.PlacementOne}
	each := downstream.ServerConfig{Name: "each", Type: downstream.TransportStdio, Command: "each"}
	p := newPlacement([]downstream.ServerConfig{one, each})
	p.lease = cluster.Alone()
	for name, test := range map[string]struct {
		of     downstream.ServerConfig
		at     cluster.Holder
		leased bool
	}{
		"here":      {one, cluster.Holder{Here: true, Name: "r1"}, true},
		"elsewhere": {one, cluster.Holder{Name: "r2", Address: "http://r2"}, false},
		"nowhere":   {one, cluster.Holder{}, false},
		"each":      {each, cluster.Holder{}, false},
	} {
		p.holders = map[string]cluster.Holder{test.of.Name: test.at}
		if got := p.of(test.of); (got.Lease != nil) != test.leased {
			t.Errorf("%s: got the lease %v, want one: %t", name, got.Lease, test.leased)
		}
	}
}
