// Package lru keeps values within bounds: a [Cache] forgets the values that were longest unused first.
package lru

import (
	"container/list"
	"sync"
)

// Cache maps keys to values. It is safe for concurrent use. Use [New].
type Cache[K comparable, V any] struct {
	maxEntries, maxWeight int

	mu     sync.Mutex
	by     map[K]*list.Element // of *entry[K, V]
	order  list.List           // the longest unused first
	weight int
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

// New returns an empty Cache for so many entries and so much weight of all of them.
func New[K comparable, V any](maxEntries, maxWeight int) *Cache[K, V] {
	return &Cache[K, V]{maxEntries: maxEntries, maxWeight: maxWeight, by: map[K]*list.Element{}}
}

// Get returns a value and counts as a use of it.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[key]; ok {
		c.order.MoveToBack(e)
		return e.Value.(*entry[K, V]).value, true
	}
	return value, false
}

// Peek returns a value, the zero value if there is none. It counts as no use. It is a function because
// methods are compiled for each Cache, used or not.
func Peek[K comparable, V any](c *Cache[K, V], key K) (value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[key]; ok {
		return e.Value.(*entry[K, V]).value
	}
	return value
}

// Put keeps a value in place of an earlier one, and forgets others where a bound is exceeded.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.by[key])
	c.by[key] = c.order.PushBack(&entry[K, V]{key, value, weight})
	c.weight += weight
	for len(c.by) > 1 && (len(c.by) > c.maxEntries || c.weight > c.maxWeight) {
		c.remove(c.order.Front())
	}
}

// Remove forgets a value.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.by[key])
}

// remove forgets an element; nil is none. c.mu is held.
func (c *Cache[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	gone := c.order.Remove(e).(*entry[K, V])
	delete(c.by, gone.key)
	c.weight -= gone.weight
}

// KeysOf returns the keys of the values that satisfy wanted, which must not use the Cache. It counts as no use.
// It is a function like Peek.
func KeysOf[K comparable, V any](c *Cache[K, V], wanted func(V) bool) (keys []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; e = e.Next() {
		if found := e.Value.(*entry[K, V]); wanted(found.value) {
			keys = append(keys, found.key)
		}
	}
	return keys
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.by)
}
