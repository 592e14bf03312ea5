// Package faults has the fault suite: everything that is known to go wrong around a router, and what must come
// of it. TestFaults runs each fault in a process of its own, five times at once, so that a crash, a leaked
// goroutine or a leaked descriptor can be told to belong to it. A router, a server that fails and a neighbour
// that does not are started for each run; the neighbour's client must never notice anything.
package faults
