// Package soak runs the nexus program under mixed load for as long as one likes, while its servers restart,
// die, change and hide behind a bad network. At the end no call may be lost or made twice, and no memory,
// goroutine or descriptor may be left behind.
//
// SOAK_DURATION (such as 10m; a few seconds if unset) and SOAK_CALLERS (8) say how long and how hard.
package soak
