package output

import "time"

// Outlet takes the messages of one request.
type Outlet interface {
	// Send queues a message and reports whether it will be written. The last one closes the lane.
	Send(l *Lane, m Message, last bool) bool
	// Open makes the response an event stream, and reports whether the client accepts one.
	Open() bool
	// PreferStream makes the response an event stream once a message is sent, if the client accepts one.
	PreferStream()
	// KeepAlive sends a heartbeat if nothing was sent for that long. It is called at short intervals.
	KeepAlive(now, heartbeat time.Duration)
	// Lost is closed when nobody can read the outlet. It may be called only after Open has returned true.
	Lost() <-chan struct{}
}

// streamOutlet is the outlet of requests that share the stream of their session.
type streamOutlet struct{ stream *stream }

func (o streamOutlet) Send(l *Lane, m Message, last bool) bool { return o.stream.put(l, m, last) }
func (o streamOutlet) Open() bool                              { return true }

func (o streamOutlet) PreferStream()                          {}
func (o streamOutlet) KeepAlive(time.Duration, time.Duration) {}
func (o streamOutlet) Lost() <-chan struct{}                  { return o.stream.lost }
