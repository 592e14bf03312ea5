package app

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handshakeTime is for connections that have begun to come about.
const handshakeTime = 20 * time.Millisecond

// noSYN is a program of the kernel that drops segments with SYN, the first of a connection.
var noSYN = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},                   // the flags of the TCP header
	{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x02, Jt: 0, Jf: 1}, // SYN
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
}

// awaitAccepted lets no further connection begin, and waits at most for a second until those that have begun are
// accepted: the kernel resets those that wait when their listener is closed. Clients that begin meanwhile begin again
// after a second, and are refused.
func awaitAccepted(l syscall.Conn) {
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	waiting := uint32(1)
	_ = raw.Control(func(fd uintptr) { // if it fails, some may be reset
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(noSYN)), Filter: &noSYN[0]})
	})
	for end := time.Now().Add(time.Second); waiting > 0 && time.Now().Before(end); {
		time.Sleep(handshakeTime)
		waiting = 0
		_ = raw.Control(func(fd uintptr) {
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				waiting = info.Unacked // of a listener: the connections that are not accepted
			}
		})
	}
}
