package jsonrpc

import "runtime"

// largeMessage is the size in bytes from which reading a message takes so long that others notice.
const largeMessage = 256 << 10

// turns is held while a large message is read: half of the processors are left to the others. Without that, a few
// callers who send large messages delay everybody, because each of these scans runs to its end first.
var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// takeTurn waits until a message of n bytes may be read. The turn ends with the function that it returns.
func takeTurn(n int) (end func()) {
	if n < largeMessage {
		return func() {}
	}
	turns <- struct{}{}
	return func() { <-turns }
}
