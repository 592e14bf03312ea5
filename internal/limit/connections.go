package limit

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	samples   = 64          // connections, or hosts, that are looked at to find one to close
	warnPause = time.Minute // between two warnings about closed connections
	plenty    = 1 << 20     // files, where the system has no limit
)

// Connections limits how many connections a listener has open: in total, so that file descriptors remain for servers
// and files, and for one host, so that it leaves room for others. A host is an address, or the /64 of an IPv6 address.
//
// Beyond the limit, a new connection takes the place of an idle one of the same host or, beyond the total, of a host
// with many. If none is idle, the new one is closed at once. A connection is idle until it sends a request, and between
// requests; Watch must be the ConnState of the HTTP server. Connections is safe for concurrent use.
type Connections struct {
	net.Listener
	all, own int
	exempt   []netip.Prefix // proxies: they have only the total limit
	logger   *slog.Logger

	mu     sync.Mutex
	hosts  map[netip.Addr]map[*connection]bool
	open   int
	closed int64
	warned time.Time
}

// connection is an open connection.
type connection struct {
	net.Conn
	owner *Connections
	host  netip.Addr
	since atomic.Int64 // when it became idle, in Unix nanoseconds; 0 while it sends or waits for a request
}

// NewConnections limits a listener of a process that may have a number of files open.
func NewConnections(l net.Listener, files int, exempt []netip.Prefix, logger *slog.Logger) *Connections {
	all := max(files/4*3, 2)
	return &Connections{Listener: l, all: all, own: max(all/4*3, 1), exempt: exempt, logger: logger,
		hosts: map[netip.Addr]map[*connection]bool{}}
}

// Closed returns how many connections were closed because of the limits.
func (l *Connections) Closed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Open returns how many connections are open.
func (l *Connections) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Accept implements net.Listener.
func (l *Connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		own, left := l.admit(c)
		if left != nil {
			left.Close()
		}
		if own != nil {
			return own, nil
		}
	}
}

// admit adds a connection, and returns one to close: an idle one, or c itself.
func (l *Connections) admit(c net.Conn) (own *connection, left net.Conn) {
	host := hostOf(c.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.hosts[host]
	most := l.own
	if slices.ContainsFunc(l.exempt, func(p netip.Prefix) bool { return p.Contains(host) }) {
		most = l.all
	}
	if len(of) >= most || l.open >= l.all {
		if len(of) < most {
			of = l.largest()
		}
		idle := longestIdle(of)
		l.closed++
		l.warn(host)
		if idle == nil {
			return nil, c
		}
		l.remove(idle)
		left = idle.Conn
	}
	own = &connection{Conn: c, owner: l, host: host}
	own.since.Store(time.Now().UnixNano())
	if l.hosts[host] == nil {
		l.hosts[host] = map[*connection]bool{}
	}
	l.hosts[host][own] = true
	l.open++
	return own, left
}

// largest returns the connections of a host with many. The caller holds l.mu.
func (l *Connections) largest() (most map[*connection]bool) {
	looked := 0
	for _, of := range l.hosts {
		if len(of) > len(most) {
			most = of
		}
		if looked++; looked == samples {
			break
		}
	}
	return most
}

func longestIdle(of map[*connection]bool) (found *connection) {
	looked, oldest := 0, int64(0)
	for c := range of {
		if since := c.since.Load(); since != 0 && (found == nil || since < oldest) {
			found, oldest = c, since
		}
		if looked++; looked == samples {
			break
		}
	}
	return found
}

// warn logs that connections are closed. The caller holds l.mu.
func (l *Connections) warn(host netip.Addr) {
	if now := time.Now(); now.Sub(l.warned) >= warnPause {
		l.warned = now
		l.logger.Warn("clients hold too many connections; idle and new ones are closed", "address", host.String(),
			"of_address", len(l.hosts[host]), "open", l.open, "closed", l.closed)
	}
}

// remove forgets a connection; one that is not known changes nothing. The caller holds l.mu.
func (l *Connections) remove(c *connection) {
	of := l.hosts[c.host]
	if !of[c] {
		return
	}
	l.open--
	if delete(of, c); len(of) == 0 {
		delete(l.hosts, c.host)
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.owner.mu.Lock()
	c.owner.remove(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// Watch notes whether a connection, which may be wrapped in another, is idle.
func (l *Connections) Watch(c net.Conn, state http.ConnState) {
	for {
		switch known := c.(type) {
		case *connection:
			switch state {
			case http.StateIdle:
				known.since.Store(time.Now().UnixNano())
			case http.StateActive:
				known.since.Store(0)
			}
			return
		case interface{ NetConn() net.Conn }:
			c = known.NetConn()
		default:
			return
		}
	}
}

// hostOf returns the address that connections are counted for.
func hostOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if addr.Is6() && !addr.IsLoopback() {
		prefix, _ := addr.Prefix(64) // 64 bits are there
		addr = prefix.Addr()
	}
	return addr
}
