package lru_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

func TestCache_BoundsEntries(t *testing.T) {
	c := lru.New[string, int](3, 100)
	for i, key := range strings.Split("abc", "") {
		c.Put(key, i, 1)
	}
	c.Get("a")
	lru.Peek(c, "b")
	c.Put("d", 3, 1)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, got := c.Get(key); got != want {
			t.Errorf("%s: got kept %t, want %t", key, got, want)
		}
	}
	c.Remove("a")
	c.Remove("nobody")
	if got := c.Len(); got != 2 {
		t.Errorf("after removing one: got %d values, want 2", got)
	}
}

func TestCache_BoundsWeight(t *testing.T) {
	c := lru.New[string, string](100, 10)
	for _, key := range []string{"a", "b", "c", "a"} {
		c.Put(key, key, 4)
	}
	if _, kept := c.Get("b"); kept || c.Len() != 2 || lru.Peek(c, "a") != "a" || lru.Peek(c, "c") != "c" {
		t.Errorf("got %d values, b kept %t, want a and c", c.Len(), kept)
	}
	c.Put("large", "large", 20)
	if c.Len() != 1 || lru.Peek(c, "large") != "large" {
		t.Errorf("got %d values, want the large one alone", c.Len())
	}
	c.Remove("large")
	c.Put("a", "a", 10)
	c.Put("b", "b", 0)
	if c.Len() != 2 {
		t.Errorf("after removing it: got %d values, want 2", c.Len())
	}
}

func TestCache_Concurrently(t *testing.T) {
	c := lru.New[string, int](4, 4)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				key := fmt.Sprint(j % 10)
				c.Put(key, i, 1)
				c.Get(key)
			}
		})
	}
	wg.Wait()
	if got := c.Len(); got != 4 {
		t.Errorf("got %d values, want 4", got)
	}
}
