package demo

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	titleWeight = 3.0 // a word in the title counts as this many in the text
	topicWeight = 2.0
	halfLife    = 30 * 24 * time.Hour // of the recency of news
	saturation  = 1.2                 // how fast repetitions of a word stop counting
	relevant    = 0.3                 // least score, relative to the best page's
)

// index ranks the corpus. It is immutable once built.
type index struct {
	pages  []page
	in     map[string]int // number of pages that hold a word
	newest time.Time      // recency is measured from here, so that results do not depend on the clock
}

type page struct {
	document
	day    time.Time
	weight map[string]float64 // word → weighted occurrences
}

type hit struct {
	page  page
	score float64
}

func newIndex(documents []document) *index {
	ix := &index{in: map[string]int{}}
	for _, d := range documents {
		day, _ := time.Parse(time.DateOnly, d.Date)
		p := page{document: d, day: day, weight: map[string]float64{}}
		for text, weight := range map[string]float64{d.Title: titleWeight, d.Topic: topicWeight, d.Text: 1} {
			for _, word := range words(text) {
				p.weight[word] += weight
			}
		}
		for word := range p.weight {
			ix.in[word]++
		}
		if d.News && day.After(ix.newest) {
			ix.newest = day
		}
		ix.pages = append(ix.pages, p)
	}
	return ix
}

// search returns the matching pages, best first. Rare words weigh more. Pages without most of the
// query's words do not match. Queries for news prefer news, newest first; a query with no other words
// finds all news.
func (ix *index) search(query string) []hit {
	terms, wantsNews := ix.terms(query)
	var hits []hit
	for _, p := range ix.pages {
		score, found := 0.0, 0.0
		total := 0.0
		for _, term := range terms {
			idf := math.Log(1 + float64(len(ix.pages))/float64(1+ix.in[term]))
			total += idf
			if w := p.weight[term]; w > 0 {
				found += idf
				score += idf * w / (w + saturation)
			}
		}
		switch {
		case len(terms) == 0 && wantsNews && p.News:
			score = 1
		case found == 0 || found < total/3:
			continue
		}
		if wantsNews {
			score *= ix.recency(p)
		}
		hits = append(hits, hit{p, score})
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.page.day.Compare(a.page.day),
			strings.Compare(a.page.Title, b.page.Title))
	})
	for i, h := range hits {
		if h.score < hits[0].score*relevant {
			return hits[:i]
		}
	}
	return hits
}

// terms returns the words of the query that the corpus knows, each once, and whether it asks for news.
func (ix *index) terms(query string) (terms []string, wantsNews bool) {
	for _, word := range words(query) {
		switch word {
		case "new", "news", "latest", "recent", "recently", "current", "today",
			"headline", "update", "happening", "week", "month":
			wantsNews = true
			continue
		}
		if !isStopWord(word) && ix.in[word] > 0 && !slices.Contains(terms, word) {
			terms = append(terms, word)
		}
	}
	return terms, wantsNews
}

// recency is 1 for reference pages and grows to 3 for the newest news.
func (ix *index) recency(p page) float64 {
	if !p.News {
		return 1
	}
	age := float64(ix.newest.Sub(p.day)) / float64(halfLife)
	return 2 + math.Exp2(-age)
}
