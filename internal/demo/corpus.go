package demo

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed corpus.json
var corpusJSON []byte

//go:embed employees.json
var employeesJSON []byte

// document is one page of the corpus.
type document struct {
	Title string `json:"title"`
	URL   string `json:"url"`
	Date  string `json:"date"` // as 2006-01-02
	Topic string `json:"topic"`
	News  bool   `json:"news"` // dated news, not reference
	Text  string `json:"text"`
}

// employee is one entry of the directory.
type employee struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Title      string `json:"title"`
	Department string `json:"department"`
	Location   string `json:"location"`
	Email      string `json:"email"`
	Manager    string `json:"manager"` // empty for the head of the company
	Since      string `json:"since"`   // first day at work, YYYY-MM-DD
}

// corpus returns the pages: news of autumn 2026 and reference articles. They were written for it; the news is invented.
var corpus = sync.OnceValue(func() []document { return parse[document](corpusJSON) })

// employees returns the directory. All people are invented.
var employees = sync.OnceValue(func() []employee { return parse[employee](employeesJSON) })

// parse reads an embedded list. Tests use all of them, so a failure is a bug.
func parse[T any](embedded []byte) (list []T) {
	if err := json.Unmarshal(embedded, &list); err != nil {
		panic(err)
	}
	return list
}
