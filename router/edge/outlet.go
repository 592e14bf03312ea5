package edge

import "time"

// outlet is where the messages of an exchange go.
type outlet interface {
	// send queues a message and reports whether it will be written. The last one closes the lane.
	send(l *lane, m message, last bool) bool
	// open makes the answer a stream, if the client takes one.
	open() bool
	// favour makes the answer a stream as soon as there is something to send, if the client takes one.
	favour()
	// quiet tells the time, for answers that nothing was heard of for long.
	quiet(now, heartbeat time.Duration)
	// lost is closed when nobody will read what is sent any more. Only for open outlets.
	lost() <-chan struct{}
}

// pipe is the outlet of requests that share the own stream of their session.
type pipe struct{ stream *stream }

func (p pipe) send(l *lane, m message, last bool) bool { return p.stream.put(l, m, last) }
func (p pipe) open() bool                              { return true }

func (p pipe) favour()                            {}
func (p pipe) quiet(time.Duration, time.Duration) {}
func (p pipe) lost() <-chan struct{}              { return p.stream.lost }
