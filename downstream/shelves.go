package downstream

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// newCatalog returns the empty catalog of a configuration.
func newCatalog(configs []ServerConfig, policy string) *Catalog {
	c := &Catalog{
		policy: policy, configs: configs, places: make(map[string]int, len(configs)),
		lists: make([]*listing, len(configs)), shelves: make([]shelf, len(configs)), owners: newOwners(),
	}
	c.origin = c
	for i := range configs {
		c.places[configs[i].Name] = i
	}
	return c
}

// with returns the catalog of new lists, by place, or c itself if they list the same tools. Its cost depends on the
// number of tools added and removed, not on the size of the catalog. It does not change c.
func (c *Catalog) with(lists []*listing, missing []Missing) *Catalog {
	next := *c
	next.lists, next.Missing, next.number = lists, missing, c.number+1
	u := update{Catalog: &next, touched: map[string][]int{}, dirty: map[int]bool{}, copied: map[uint64]bool{}}
	for place, l := range lists {
		if before := c.lists[place]; !sameTools(before, l) {
			u.dirty[place] = true
			u.listed(place, before, l)
		}
	}
	if len(u.dirty) == 0 && slices.Equal(c.Missing, missing) {
		return c
	}
	u.affect()
	next.shelves = slices.Clone(c.shelves)
	for place := range u.dirty {
		next.shelves[place] = next.shelve(place)
	}
	if c.policy == ConflictError && len(u.touched) > 0 {
		next.conflicts = u.conflicting()
	}
	return &next
}

// Later reports whether c was made after other, for the same configuration.
func (c *Catalog) Later(other *Catalog) bool {
	return c.origin == other.origin && c.number > other.number
}

// Changed yields the servers whose tools may differ from an earlier catalog, with their tools; a nil catalog has no
// servers. Removed servers have no tools.
func (c *Catalog) Changed(since *Catalog) iter.Seq2[string, []Tool] {
	return func(yield func(string, []Tool) bool) {
		if since != nil {
			for name := range since.places {
				if _, ok := c.places[name]; !ok && !yield(name, nil) {
					return
				}
			}
		}
		for place := range c.shelves {
			name, tools := c.configs[place].Name, c.shelves[place].tools
			if since != nil && sameSlice(since.Of(name), tools) {
				continue
			}
			if !yield(name, tools) {
				return
			}
		}
	}
}

// sameSlice reports whether two slices share their memory or are both empty.
func sameSlice(a, b []Tool) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameTools reports whether two lists of a server have the same tools and instructions. Equal lists share their
// memory.
func sameTools(a, b *listing) bool {
	switch {
	case a == b:
		return true
	case a == nil || b == nil || a.instructions != b.instructions:
		return false
	}
	return sameSlice(a.tools, b.tools) && (len(a.tools) > 0 || maps.Equal(a.quarantined, b.quarantined))
}

// update builds a catalog from the previous one.
type update struct {
	*Catalog
	touched map[string][]int // own names with new or removed owners: owners before and after
	dirty   map[int]bool     // places whose shelves must be rebuilt
	copied  map[uint64]bool  // shards of owners that belong to this update
}

// listed records the names that a server has gained and lost.
func (u *update) listed(place int, before, now *listing) {
	var was, is map[string]int
	if before != nil {
		was = before.byName
	}
	if now != nil {
		is = now.byName
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			u.change(name, place, false)
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			u.change(name, place, true)
		}
	}
}

func (u *update) change(name string, place int, add bool) {
	before := u.owners.of(name)
	if _, ok := u.touched[name]; !ok {
		u.touched[name] = before
	}
	if at, found := slices.BinarySearch(before, place); add && !found {
		before = slices.Insert(slices.Clone(before), at, place)
		u.touched[name] = append(slices.Clip(u.touched[name]), place)
	} else if !add && found {
		before = slices.Delete(slices.Clone(before), at, at+1)
	}
	if len(u.copied) == 0 {
		shards := *u.owners.shards
		u.owners.shards = &shards
	}
	u.owners.set(name, before, u.copied)
}

// affect finds the servers with tools that are renamed, kept or dropped because other servers have gained or lost
// names.
func (u *update) affect() {
	for name, places := range u.touched {
		u.reconsider(name)
		for _, place := range places {
			for _, sep := range separators { // owners of this bare name
				u.reconsider(u.configs[place].Name + sep + name)
			}
		}
	}
}

// reconsider marks the servers that have a tool with this own name and an outdated shelf.
func (u *update) reconsider(name string) {
	for _, place := range u.owners.of(name) {
		if u.dirty[place] {
			continue
		}
		t := u.find(u.configs[place].Name, name)
		if keeps := u.keeps(place, name); keeps != (t != nil) || keeps && t.Name != u.planName(place, name) {
			u.dirty[place] = true
		}
	}
}

// keeps reports whether a tool that its server lists is in the catalog.
func (c *Catalog) keeps(place int, name string) bool {
	if c.lists[place] == nil {
		return false
	}
	if _, ok := c.lists[place].byName[name]; !ok {
		return false
	}
	return c.policy != ConflictError || c.owners.of(name)[0] == place
}

// planName returns the name of a tool in plans: its own name if that is unambiguous.
func (c *Catalog) planName(place int, name string) string {
	owners := c.owners.of(name)
	bearer := len(owners) == 1 || c.policy == ConflictError ||
		c.policy == ConflictLastWins && owners[len(owners)-1] == place
	for server, bare := range Splits(name) {
		if other, ok := c.places[server]; ok && c.keeps(other, bare) {
			bearer = false
		}
	}
	if bearer {
		return name
	}
	return c.configs[place].Name + "." + name
}

// shelve names the tools that a server lists. If all keep their own names, it copies none.
func (c *Catalog) shelve(place int) shelf {
	l := c.lists[place]
	if l == nil {
		return shelf{}
	}
	s := shelf{l.tools, l.byName}
	for i := range l.tools {
		own := l.tools[i].Tool.Tool
		if c.keeps(place, own) && c.planName(place, own) == own {
			continue
		}
		s = shelf{make([]Tool, 0, len(l.tools)), make(map[string]int, len(l.tools))}
		for _, t := range l.tools {
			if c.keeps(place, t.Tool.Tool) {
				t.Name = c.planName(place, t.Tool.Tool)
				s.byName[t.Tool.Tool] = len(s.tools)
				s.tools = append(s.tools, t)
			}
		}
		break
	}
	return s
}

// conflicting returns the names that several servers use, in order.
func (u *update) conflicting() []Conflict {
	out := slices.DeleteFunc(slices.Clone(u.conflicts), func(c Conflict) bool { return u.touched[c.Tool] != nil })
	for name := range u.touched {
		if places := u.owners.of(name); len(places) > 1 {
			conflict := Conflict{Tool: name}
			for _, place := range places {
				conflict.Servers = append(conflict.Servers, u.configs[place].Name)
			}
			out = append(out, conflict)
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int { return strings.Compare(a.Tool, b.Tool) })
	return out
}
