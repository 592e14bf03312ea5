package mcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// stream of HTTP+SSE: all that the server says in one session.
type sseStream struct {
	ctx context.Context
	end context.CancelFunc
	out chan string    // as it is written
	wg  sync.WaitGroup // messages that are being served
}

// write writes bytes as they stand.
func (st *sseStream) write(raw string) {
	select {
	case st.out <- raw:
	case <-st.ctx.Done(): // nobody reads any more
	}
}

// ServeSSE serves HTTP+SSE of 2024-11-05: a GET opens the stream of a session, messages are posted to the same
// path with the session in the query.
func (s *Server) ServeSSE(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.openSSE(w, r)
		return
	}
	var m Message
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.OnHTTP != nil && s.OnHTTP(w, r, m) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[r.URL.Query().Get("session")]
	if st == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	st.wg.Go(func() {
		if s.OnSSE == nil || !s.OnSSE(m, st.write, st.end) {
			s.Answer(st.ctx, m, func(raw string) { st.write("event: message\ndata: " + raw + "\n\n") })
		}
	})
}

// openSSE serves the stream of a new session until the reader is gone or somebody ends it.
func (s *Server) openSSE(w http.ResponseWriter, r *http.Request) {
	st := &sseStream{out: make(chan string)}
	st.ctx, st.end = context.WithCancel(r.Context())
	session := rand.Text()
	s.mu.Lock()
	if s.streams == nil {
		s.streams = map[string]*sseStream{}
	}
	s.streams[session] = st
	s.mu.Unlock()
	defer st.wg.Wait()
	defer func() {
		st.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, session)
	}()
	BeginEvents(w)
	flush := http.NewResponseController(w)
	say := func(raw string) {
		_, _ = io.WriteString(w, raw) // a reader that is gone hears nothing
		_ = flush.Flush()
	}
	say("event: endpoint\ndata: ?session=" + session + "\n\n")
	for {
		select {
		case raw := <-st.out:
			say(raw)
		case <-st.ctx.Done():
			return
		}
	}
}
