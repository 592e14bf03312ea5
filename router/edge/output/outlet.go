package output

import "time"

// Outlet is where the messages of one request go.
type Outlet interface {
	// Send queues a message and reports whether it will be written. The last one closes the lane.
	Send(l *Lane, m Message, last bool) bool
	// Open makes the response an event stream, and reports whether the client accepts one.
	Open() bool
	// PreferStream makes the response an event stream once there is something to send, if the client accepts one.
	PreferStream()
	// KeepAlive sends a heartbeat if nothing was sent for so long. It is called at short intervals.
	KeepAlive(now, heartbeat time.Duration)
	// Lost is closed when nobody can read what is sent any more. It is only for open outlets.
	Lost() <-chan struct{}
}

// streamOutlet is the outlet of requests that share the stream of their session.
type streamOutlet struct{ stream *stream }

func (o streamOutlet) Send(l *Lane, m Message, last bool) bool { return o.stream.put(l, m, last) }
func (o streamOutlet) Open() bool                              { return true }

func (o streamOutlet) PreferStream()                          {}
func (o streamOutlet) KeepAlive(time.Duration, time.Duration) {}
func (o streamOutlet) Lost() <-chan struct{}                  { return o.stream.lost }
