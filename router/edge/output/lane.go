package output

// laneMessages limits the messages of one lane that wait to be written.
const laneMessages = 1000

// Lane is the queue of one source of messages on a stream: a request, or the session itself. The zero value is empty.
// The mutex of its stream guards it.
type Lane struct {
	queue  Queue[Message]
	vacant int  // entries of stream.order whose messages were dropped
	closed bool // its response is queued or written
}

// dropOldest removes the oldest droppable message. It reports false if there is none.
func (l *Lane) dropOldest() (Message, bool) {
	for i := l.queue.off; i < len(l.queue.items); i++ {
		if m := l.queue.items[i]; !m.Keep {
			copy(l.queue.items[l.queue.off+1:i+1], l.queue.items[l.queue.off:i])
			l.queue.Pop()
			l.vacant++
			return m, true
		}
	}
	return Message{}, false
}
