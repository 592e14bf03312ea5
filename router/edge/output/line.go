package output

import "io"

// lineSink writes messages as lines.
type lineSink struct {
	w   io.Writer
	buf []byte
}

func (s *lineSink) write(ms []Message) error {
	s.buf = s.buf[:0]
	for _, m := range ms {
		var err error
		if s.buf, err = m.put(s.buf, s.put); err != nil {
			return err
		}
		s.buf = append(s.buf, '\n')
	}
	return s.put(s.buf)
}

func (s *lineSink) put(b []byte) error {
	_, err := s.w.Write(b)
	return err
}

func (s *lineSink) heartbeat() error { return nil }
