package router

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/synth"
)

// maxAddresses is the number of addresses of an answer that are looked up in results; others are removed.
const maxAddresses = 200

// clean returns an answer as the user sees it. Images become links, because clients fetch them. If the answer may tell
// what private servers have said, addresses are removed that neither the user nor a result has: a model may have
// written private data into them.
func (s *queryState) clean(text string) string {
	text = synth.WithoutImages(text)
	private := s.router.servers.Private()
	confidential := func(o plan.Outcome) bool { return slices.Contains(private, o.Step.Server) }
	if !slices.ContainsFunc(s.record.Outcomes, confidential) {
		return text
	}
	return synth.WithoutAddresses(text, func(address string) bool {
		if strings.Contains(s.q.Text, address) {
			return true
		}
		for _, m := range s.q.Context {
			if strings.Contains(m.Content, address) {
				return true
			}
		}
		has, looked := s.addresses[address] // an answer that grows has the same ones again
		if !looked && len(s.addresses) < maxAddresses {
			if has = s.record.resultsHave(address); s.addresses == nil {
				s.addresses = map[string]bool{}
			}
			s.addresses[address] = has
		}
		return has
	})
}

// resultsHave reports whether a result has an address.
func (r *Record) resultsHave(address string) bool {
	escaped, _ := json.Marshal(address) // never fails
	for _, o := range r.Outcomes {
		if bytes.Contains(o.Value, []byte(address)) || bytes.Contains(o.Value, bytes.Trim(escaped, `"`)) {
			return true
		}
	}
	return false
}
