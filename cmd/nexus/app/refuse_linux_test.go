package app

import (
	"bufio"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// busy is a listener whose connections wait, as on a busy machine.
type busy struct{ *net.TCPListener }

func (b busy) Accept() (net.Conn, error) {
	time.Sleep(20 * time.Millisecond)
	return b.TCPListener.Accept()
}

// Connections that were made before the listener closes are served, also if their requests come late, and later ones
// refused.
func TestRefuse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	var w web
	w.serve(limit.NewConnections(busy{l.(*net.TCPListener)}, 1000, nil, log), http.NotFoundHandler(), log)
	var clients []net.Conn
	for i := range 8 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.AfterFunc(time.Duration(i/4)*300*time.Millisecond, func() {
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) // its answer is awaited
		})
		clients = append(clients, c)
	}
	w.refuse(silentTime)
	if n := w.listener.Open(); n > 0 {
		t.Errorf("%d connections are open after their answers", n)
	}
	if err := w.close(time.Second); err != nil {
		t.Error(err)
	}
	for i, c := range clients {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		response.Body.Close()
	}
	if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a later connection: got %v, want that it is refused", err)
	}
}
