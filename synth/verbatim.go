package synth

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Quotes are found by blocks: a table has blocks of the quotes, and every stride-th block of the text is looked up in
// it. stride is small enough that no quote fits between two blocks. Only equal blocks cause a comparison.
const (
	blockSize = 8  // bytes of a block; of quotes that are shorter than two of them, fewer
	maxStride = 64 // bytes between two blocks of the text; with many quotes fewer,
	minStride = 16 // so that blocks can be taken which few of them share
	longQuote = 2*blockSize - 1
	tableBits = 16 // of the filter in front of the table
	pieceSize = 256 << 10
)

// finder finds quotes in a result in time linear in its size. Its buffers serve one result after the other.
type finder struct {
	quotes  []string
	found   []bool
	escapes bool // only quotes that have a backslash are looked for
	left    int  // quotes that are looked for and not found yet
	filter  [1 << tableBits / 64]uint64
	blocks  map[uint64][]place
	piece   []byte // of unescaped JSON
}

// place is where a block is in a quote.
type place struct{ quote, offset int }

// find reports which quotes occur verbatim in a result's text, in its JSON or in one of its strings.
func (f *finder) find(o *plan.Outcome, quotes []string) []bool {
	f.quotes, f.found, f.escapes = quotes, make([]bool, len(quotes)), false
	search(f, o.Text)
	if f.left == 0 {
		return f.found
	}
	same := isText(o.Value, o.Text)
	if bytes.IndexByte(o.Value, '\\') < 0 {
		if !same {
			search(f, o.Value)
		}
		return f.found
	}
	f.escapes = true
	search(f, o.Value)
	f.escapes = false
	if !same || o.Value[0] != '"' {
		f.unescaped(o.Value)
	}
	return f.found
}

// isText reports whether a value is the text of its result: as a string, or as it is. It looks at both ends alone, so
// that a text which is made to agree there with something else proves no quote.
func isText(value json.RawMessage, text string) bool {
	const edge = 1 << 10
	if text == "" || len(value) == 0 {
		return false
	}
	if value[0] == '"' {
		begin, _ := appendUnescaped(nil, value[1:min(len(value), edge)], false)
		return strings.HasPrefix(text, strings.TrimSuffix(string(begin), `"`))
	}
	n := min(len(value), edge)
	return len(value) == len(text) && string(value[:n]) == text[:n] && string(value[len(value)-n:]) == text[len(text)-n:]
}

// unescaped looks at the strings of JSON without their escapes. It takes all JSON for one string: quotes have no
// quotation mark, so that none reaches from one string into the next.
func (f *finder) unescaped(value json.RawMessage) {
	overlap := 0
	for _, quote := range f.quotes {
		overlap = max(overlap, len(quote)-1)
	}
	f.piece = f.piece[:0]
	for len(value) > 0 {
		n := min(len(value), pieceSize)
		f.piece, n = appendUnescaped(f.piece, value[:n], n == len(value))
		value = value[n:]
		if search(f, f.piece); f.left == 0 {
			return
		}
		f.piece = f.piece[:copy(f.piece, f.piece[max(0, len(f.piece)-overlap):])]
	}
}

// looked reports whether a quote is still being searched for.
func (f *finder) looked(i int) bool {
	return !f.found[i] && (!f.escapes || strings.IndexByte(f.quotes[i], '\\') >= 0)
}

// search searches for the remaining quotes. The number of comparisons is bounded; a text crafted to agree with many
// quotes nearly everywhere proves none of them.
func search[T ~string | ~[]byte](f *finder, text T) {
	f.left = 0
	for i := range f.quotes {
		if f.looked(i) {
			f.left++
		}
	}
	for size := 1; size <= blockSize && f.left > 0; size++ {
		switch size {
		case 1, 2, 3, 4:
			if f.table(size, 1, func(n int) bool { return n == size || n > size && size == 4 && n < blockSize }) {
				slide(f, text, size)
			}
		case blockSize:
			if f.table(size, 1, func(n int) bool { return n >= blockSize && n < longQuote }) {
				slide(f, text, size)
			}
			if stride := f.stride(); stride > 0 && f.table(size, stride, func(n int) bool { return n >= longQuote }) {
				leap(f, text, stride)
			}
		}
	}
}

// stride is how far apart blocks of the text may be so that each long quote holds one; 0 without long quotes.
func (f *finder) stride() int {
	shortest := 0
	for i, quote := range f.quotes {
		if n := len(quote); f.looked(i) && n >= longQuote && (shortest == 0 || n < shortest) {
			shortest = n
		}
	}
	return min(max(shortest-blockSize+1, 0), max(maxStride/len(f.quotes), minStride))
}

// table fills the table with stride blocks of each quote of a length that is wanted and not found yet, from where they
// are shared with the fewest others. It reports whether there are any.
func (f *finder) table(size, stride int, wanted func(length int) bool) bool {
	var looked []int
	for i, quote := range f.quotes {
		if f.looked(i) && wanted(len(quote)) {
			looked = append(looked, i)
		}
	}
	if len(looked) == 0 {
		return false
	}
	clear(f.filter[:])
	f.blocks = make(map[uint64][]place, len(looked)*stride)
	for _, i := range looked {
		quote := f.quotes[i]
		best, fewest := 0, -1
		for part := range 4 {
			from, shared := (len(quote)-size-stride+1)*(3-part)/3, 0
			for j := range stride {
				shared += len(f.blocks[blockOf(quote[from+j:], size)])
			}
			if fewest < 0 || shared < fewest {
				best, fewest = from, shared
			}
		}
		for j := range stride {
			block := blockOf(quote[best+j:], size)
			f.blocks[block] = append(f.blocks[block], place{i, best + j})
			h := slot(block)
			f.filter[h/64] |= 1 << (h % 64)
		}
	}
	return true
}

// slot returns the position of a block in the filter.
func slot(block uint64) uint64 { return block * 0x9E3779B97F4A7C15 >> (64 - tableBits) }

// blockOf reads the first bytes of text as a number.
func blockOf(text string, size int) (block uint64) {
	for i := range size {
		block = block<<8 | uint64(text[i])
	}
	return block
}

// slide looks up every block of the text.
func slide[T ~string | ~[]byte](f *finder, text T, size int) {
	mask := ^uint64(0) >> (64 - 8*size)
	budget := len(text)
	block := uint64(0)
	for i := range len(text) {
		block = (block<<8 | uint64(text[i])) & mask
		if h := slot(block); f.filter[h/64]&(1<<(h%64)) != 0 && i >= size-1 {
			if compare(f, text, i-size+1, block, &budget); f.left == 0 || budget < 0 {
				return
			}
		}
	}
}

// leap looks up one block of the text in stride.
func leap[T ~string | ~[]byte](f *finder, text T, stride int) {
	budget := len(text)
	for i := 0; i+blockSize <= len(text); i += stride {
		b := text[i : i+blockSize]
		block := uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
			uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
		if h := slot(block); f.filter[h/64]&(1<<(h%64)) != 0 {
			if compare(f, text, i, block, &budget); f.left == 0 || budget < 0 {
				return
			}
		}
	}
}

// compare checks whether the quotes with that block occur around its position in the text.
func compare[T ~string | ~[]byte](f *finder, text T, at int, block uint64, budget *int) {
	for _, p := range f.blocks[block] {
		quote, from := f.quotes[p.quote], at-p.offset
		if *budget--; f.looked(p.quote) && from >= 0 && from+len(quote) <= len(text) &&
			string(text[from:from+len(quote)]) == quote {
			f.found[p.quote] = true
			f.left--
		}
	}
}
