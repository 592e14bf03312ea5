package search

import (
	"container/list"
	"crypto/sha256"
	"math"
	"sync"
)

// vector is a direction, kept in a byte a dimension: a quarter of what the model sent, and as good for ranking.
type vector struct {
	scale float32
	parts []int8
}

// quantize returns the direction of v.
func quantize(v []float32) vector {
	var length, largest float64
	for _, x := range v {
		length += float64(x) * float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	if largest == 0 {
		return vector{parts: make([]int8, len(v))}
	}
	q := vector{scale: float32(largest / math.Sqrt(length) / math.MaxInt8), parts: make([]int8, len(v))}
	for i, x := range v {
		q.parts[i] = int8(math.Round(float64(x) / largest * math.MaxInt8))
	}
	return q
}

// cosine of the angle between two vectors, 0 if they are of different spaces.
func (v vector) cosine(o vector) float64 {
	if len(v.parts) != len(o.parts) {
		return 0
	}
	var sum int64
	for i, x := range v.parts {
		sum += int64(x) * int64(o.parts[i])
	}
	return float64(sum) * float64(v.scale) * float64(o.scale)
}

// maxVectorBytes bounds the vectors kept: 30,000 of the 1,536 dimensions that are common.
const maxVectorBytes = 48 << 20

// textKey identifies a text that is embedded.
type textKey = [sha256.Size]byte

func keyOf(text string) textKey { return sha256.Sum256([]byte(text)) }

// vectorCache keeps the vectors of texts, those longest unused forgotten first. The zero value is ready.
type vectorCache struct {
	mu    sync.Mutex
	order list.List // of *cachedVector, the longest unused first
	by    map[textKey]*list.Element
	bytes int
}

type cachedVector struct {
	key textKey
	vector
}

func (c *vectorCache) get(key textKey) (vector, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[key]
	if !ok {
		return vector{}, false
	}
	c.order.MoveToBack(e)
	return e.Value.(*cachedVector).vector, true
}

func (c *vectorCache) put(key textKey, v vector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if newest := c.order.Back(); c.by == nil || newest != nil && len(newest.Value.(*cachedVector).parts) != len(v.parts) {
		c.by, c.bytes = map[textKey]*list.Element{}, 0 // the model behind the endpoint has changed
		c.order.Init()
	}
	if e, ok := c.by[key]; ok {
		e.Value.(*cachedVector).vector = v
		return
	}
	c.by[key] = c.order.PushBack(&cachedVector{key, v})
	for c.bytes += len(v.parts); c.bytes > maxVectorBytes; {
		oldest := c.order.Remove(c.order.Front()).(*cachedVector)
		delete(c.by, oldest.key)
		c.bytes -= len(oldest.parts)
	}
}
