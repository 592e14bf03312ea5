package search

import (
	"crypto/sha256"
	"math"
)

// vector is a direction with one byte per dimension, which is precise enough for ranking.
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

// cosine returns the cosine of the angle between two vectors, 0 if their lengths differ.
func (v vector) cosine(o vector) float64 {
	if len(v.parts) != len(o.parts) {
		return 0
	}
	var sum int32 // enough for 130,000 dimensions
	for i, x := range v.parts {
		sum += int32(x) * int32(o.parts[i])
	}
	return float64(sum) * float64(v.scale) * float64(o.scale)
}

// textKey identifies an embedded text.
type textKey = [sha256.Size]byte

func keyOf(text string) textKey { return sha256.Sum256([]byte(text)) }
