package downstream

import (
	"hash/maphash"
	"maps"
)

const ownerShards = 1024

// owners maps tool names to the places of the servers that list them, in order. A change copies only the shards it
// touches; all others are shared.
type owners struct {
	seed   maphash.Seed
	shards *[ownerShards]map[string][]int
}

func newOwners() owners { return owners{maphash.MakeSeed(), new([ownerShards]map[string][]int)} }

func (o owners) shard(name string) uint64 { return maphash.String(o.seed, name) % ownerShards }

func (o owners) of(name string) []int { return o.shards[o.shard(name)][name] }

// set replaces the places of a name. It first copies the shard unless copied contains it.
func (o owners) set(name string, places []int, copied map[uint64]bool) {
	n := o.shard(name)
	if !copied[n] {
		copied[n] = true
		if o.shards[n] = maps.Clone(o.shards[n]); o.shards[n] == nil {
			o.shards[n] = map[string][]int{}
		}
	}
	if len(places) == 0 {
		delete(o.shards[n], name)
	} else {
		o.shards[n][name] = places
	}
}
