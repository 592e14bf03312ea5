package jsonrpc

import "runtime"

// largeMessage is the size in bytes from which parsing a message noticeably delays others.
const largeMessage = 256 << 10

// turns limits the concurrent parsing of large messages to half of the processors. Otherwise a few callers with large
// messages would delay all others, because a scan cannot be interrupted.
var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// takeTurn waits until a message of n bytes may be parsed. The caller must call end afterwards.
func takeTurn(n int) (end func()) {
	if n < largeMessage {
		return func() {}
	}
	turns <- struct{}{}
	return func() { <-turns }
}
