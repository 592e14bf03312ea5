package link

import (
	"bufio"
	"io"
	"time"
)

// Events reads all events of r, as name, id and data, and the error that ended them.
func Events(r io.Reader, max int) (events [][3]string, retry time.Duration, err error) {
	er := newEventReader(r, max)
	for {
		e, err := er.next()
		if err != nil {
			return events, er.retry, err
		}
		events = append(events, [3]string{e.name, e.id, string(e.data)})
	}
}

// Lines reads all lines of r as a child's output is read, and the error that ended them.
func Lines(r io.Reader, max int) (lines []string, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(br, max)
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}
