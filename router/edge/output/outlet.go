package output

import "time"

// Outlet is where the messages of an exchange go.
type Outlet interface {
	// Send queues a message and reports whether it will be written. The last one closes the lane.
	Send(l *Lane, m Message, last bool) bool
	// Open makes the answer a stream, if the client takes one.
	Open() bool
	// PreferStream makes the answer a stream as soon as there is something to send, if the client takes one.
	PreferStream()
	// KeepAlive tells the time, for answers that nothing was heard of for long.
	KeepAlive(now, heartbeat time.Duration)
	// Lost is closed when nobody will read what is sent any more. Only for open outlets.
	Lost() <-chan struct{}
}

// streamOutlet is the outlet of requests that share the own stream of their session.
type streamOutlet struct{ stream *stream }

func (p streamOutlet) Send(l *Lane, m Message, last bool) bool { return p.stream.put(l, m, last) }
func (p streamOutlet) Open() bool                              { return true }

func (p streamOutlet) PreferStream()                          {}
func (p streamOutlet) KeepAlive(time.Duration, time.Duration) {}
func (p streamOutlet) Lost() <-chan struct{}                  { return p.stream.Lost }
