package synth

import (
	"unicode"
	"unicode/utf8"
)

// terms are the search terms of a question: the first letters of each word, which are stable across the endings of most
// languages; whole numbers; and each pair of characters in scripts without spaces between words.
type terms struct {
	table [termSlots]term
	count int
}

// term is a slot of a hash table with open addressing.
type term struct {
	hash uint64
	set  uint64 // one bit; 0 in an empty slot
}

const (
	maxTerms   = 64 // the bits of a set
	termSlots  = 256
	stemLength = 5  // significant characters of a word
	maxNumber  = 16 // significant characters of a number
	maxWord    = 64 // bytes; longer words are split
)

func termsOf(question string) *terms {
	t := &terms{}
	for i := 0; i < len(question); {
		if letters[question[i]] == 0 {
			i++
			continue
		}
		end := wordEnd(question, i)
		eachTerm(question[i:end], t.add)
		i = end
	}
	return t
}

func (t *terms) slot(hash uint64) *term {
	for i := hash >> 56; ; i = (i + 1) % termSlots {
		if slot := &t.table[i]; slot.set == 0 || slot.hash == hash {
			return slot
		}
	}
}

func (t *terms) add(hash uint64) {
	if slot := t.slot(hash); slot.set == 0 && t.count < maxTerms {
		*slot = term{hash, 1 << t.count}
		t.count++
	}
}

// word reads the word at i and returns its end and its terms.
func (t *terms) word(text string, i int) (end int, set uint64) {
	most := stemLength
	if isDigit(text[i]) {
		most = maxNumber
	}
	stem, length := uint64(0), 0
	for end = i; end < len(text) && end < i+maxWord; end++ {
		c := letters[text[end]]
		if c == 0 {
			break
		}
		if c >= utf8.RuneSelf {
			end = wordEnd(text, i)
			eachTerm(text[i:end], func(term uint64) { set |= t.slot(term).set })
			return end, set
		}
		if length < most {
			stem = hash(stem, rune(c))
			length++
		}
	}
	if length == 1 && most == stemLength {
		return end, 0
	}
	return end, t.slot(stem).set
}

// eachTerm yields hashes of the terms of a word: of its stem, or of each pair of its characters. A single letter is
// not a term.
func eachTerm(word string, yield func(term uint64)) {
	most := stemLength
	if isDigit(word[0]) {
		most = maxNumber
	}
	stem, length := uint64(0), 0
	var before rune
	for _, c := range word {
		c = unicode.ToLower(c)
		if unspaced(c) {
			if before != 0 {
				yield(hash(hash(0, before), c))
			}
			before = c
			continue
		}
		before = 0
		if length < most {
			stem = hash(stem, c)
			length++
		}
	}
	if length > 1 || length == 1 && most == maxNumber {
		yield(stem)
	}
}

// hash adds a character to the hash of those before it.
func hash(before uint64, c rune) uint64 { return (before ^ uint64(c)) * 0x9E3779B97F4A7C15 }

// unspaced reports whether a character belongs to a script without spaces between words.
func unspaced(c rune) bool {
	return c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// letters has the bytes that words consist of, in lower case: letters, digits and all of characters beyond ASCII. It is
// 0 for others.
var letters = func() (lower [256]byte) {
	for i := range lower {
		switch c := byte(i); {
		case c >= 'A' && c <= 'Z':
			lower[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', isDigit(c), c >= utf8.RuneSelf:
			lower[i] = c
		}
	}
	return lower
}()

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordEnd returns the end of the word at i. A long word ends early, at the end of a character.
func wordEnd(text string, i int) int {
	end, most := i+1, min(len(text), i+maxWord)
	for end < most && letters[text[end]] != 0 {
		end++
	}
	for cut := end; cut > i && cut < len(text); cut-- {
		if utf8.RuneStart(text[cut]) {
			return cut
		}
	}
	return end
}
