package jsonrpc

import (
	"strings"
	"testing"
)

// A large message waits for its turn, a small one does not.
func TestLargeMessagesTakeTurns(t *testing.T) {
	for range cap(turns) {
		turns <- struct{}{}
	}
	read := make(chan *Error, 1)
	go func() {
		_, err := Parse([]byte(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", largeMessage) + `"}`))
		read <- err
	}()
	if _, err := Parse([]byte(`{"jsonrpc":"2.0","method":"x"}`)); err != nil {
		t.Error(err)
	}
	select {
	case <-read:
		t.Error("got the large message read, want it to wait")
	default:
	}
	<-turns
	if err := <-read; err != nil {
		t.Error(err)
	}
	for range cap(turns) - 1 {
		<-turns
	}
	if len(turns) != 0 {
		t.Errorf("got %d turns taken, want none", len(turns))
	}
}
