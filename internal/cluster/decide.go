package cluster

import "time"

// The periods of the protocol. A renewal or promise is in force for its holder from when it was sent, and for the
// others from when they saw it, which is later; the differences are the margin for clocks that run unevenly.
const (
	renewEvery = 2 * time.Second
	actFor     = 5 * time.Second // a replica acts so long after it sent its last renewal that was stored
	silentFor  = 6 * time.Second // others may fence it so long after they saw its last renewal
	heldFor    = 4 * time.Second // a replica acts so long after it asked for the promises of all others
	promiseFor = 5 * time.Second // others keep a promise so long after they were asked
	answerFor  = 3 * time.Second // an answer over HTTP counts as a sign of life for so long
)

// mayAct reports whether a replica acts for its sessions. Both clocks in a time.Time must agree: the monotonic clock
// stands still while a machine sleeps, the wall clock may be set back.
func mayAct(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// prolonged returns until when a replica may act that may act until a time and has reason to act until a later one. A
// replica that has stopped acting does not start again under the same incarnation.
func prolonged(now, until, later time.Time) time.Time {
	if !mayAct(now, until) || later.Before(until) {
		return until
	}
	return later
}

// sight is what a replica knows about another incarnation. Times are those of its own clock.
type sight struct {
	seen     time.Time // when it saw a renewal, or first heard of the incarnation
	answered time.Time // when the incarnation last answered, or asked for a promise
	promised time.Time // when this replica last promised not to fence it
	held     time.Time // when this replica sent the last request that the incarnation has granted
	refuses  bool      // since the last renewal its address refused a connection, or was that of another incarnation
	ended    bool      // the incarnation is fenced, or has left
}

// standing is what an incarnation may be doing.
type standing int

const (
	live     standing = iota // acting
	promised                 // perhaps acting: a promise to it is in force
	silent                   // not acting, unless it answers
	departed                 // not acting, but to be fenced before others act for its sessions
	ended                    // never to act again
)

// standing judges the incarnation.
func (s sight) standing(now time.Time) standing {
	switch {
	case s.ended:
		return ended
	case s.refuses:
		return departed
	case now.Sub(s.seen) < silentFor || now.Sub(s.answered) < answerFor:
		return live
	case now.Sub(s.promised) < promiseFor:
		return promised
	}
	return silent
}

// mayFence reports whether the incarnation certainly does not act; unanswered tells that it was asked and did not
// answer after it had become silent.
func (s sight) mayFence(now time.Time, unanswered bool) bool {
	is := s.standing(now)
	return is == departed || is == silent && unanswered
}

// heldUntil returns until when a replica may act on the promises of all replicas that it knows: the others.
func heldUntil(now time.Time, others []sight) time.Time {
	until := now.Add(heldFor)
	for _, s := range others {
		if at := s.held.Add(heldFor); !s.ended && !s.refuses && at.Before(until) {
			until = at
		}
	}
	return until
}

// step is what a replica does with a request of a session.
type step int

const (
	serve   step = iota // act for the session
	pass                // forward the request to the session's home
	look                // read the entry of the session
	take                // make itself the home by compare-and-set
	succeed             // make sure that the home is fenced, then take
	refuse              // the client has ended the session
)

// view is what a replica knows about a session at one moment.
type view struct {
	self, born uint64 // its own incarnation; the one in the session's id, 0 = nobody's
	draining   bool   // it hands sessions over
	forwarded  bool   // another replica takes this one for the home
	read       bool   // entry was read just now
	known      bool   // entry is remembered, or was read
	entry      placed
}

// placed is the entry of a session. Its zero value means that there is none.
type placed struct {
	Home  uint64 `json:"home"`
	State []byte `json:"state,omitempty"`
	Ended bool   `json:"ended,omitempty"`
	taken bool   // this replica wrote the entry, and has not handed the session over since
}

// home returns the session's home as far as it is known.
func (v view) home() uint64 {
	if v.known && v.entry.Home != 0 {
		return v.entry.Home
	}
	return v.born
}

// next decides. lives tells whether an incarnation may be acting and can be asked.
//
// Nobody else writes a home into an entry while that home may act, so a replica acts for the sessions born here until
// it begins to hand over, and for those that it has taken by compare-and-set. It never acts on what it has only read.
func (v view) next(lives func(uint64) bool) step {
	home := v.home()
	switch {
	case v.known && v.entry.Ended:
		return refuse
	case home == v.self && (v.entry.taken || home == v.born && !v.draining):
		return serve
	case home != v.self && home != 0 && (v.read || !v.forwarded) && lives(home):
		return pass
	case !v.read:
		return look
	case home == v.self || home == 0:
		return take
	}
	return succeed
}
