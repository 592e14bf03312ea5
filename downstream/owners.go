package downstream

import (
	"hash/maphash"
	"maps"
)

const ownerShards = 1024

// owners are the places of the servers that list a tool of a name, in order. A change copies the shards that it
// concerns, and the others are shared.
type owners struct {
	seed   maphash.Seed
	shards *[ownerShards]map[string][]int
}

func newOwners() owners { return owners{maphash.MakeSeed(), new([ownerShards]map[string][]int)} }

func (o owners) shard(name string) uint64 { return maphash.String(o.seed, name) % ownerShards }

func (o owners) of(name string) []int { return o.shards[o.shard(name)][name] }

// set replaces the places of a name. Shards that are not in copied are copied first.
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
