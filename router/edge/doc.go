// Package edge serves MCP to clients: streamable HTTP of every protocol version, HTTP+SSE and stdio.
//
// [New] returns an [Edge]. [Edge.Streamable], [Edge.SSE] and [Edge.ServeStdio] each serve a [Handler] over one
// transport; [Edge.Stop] ends them all. The handler receives every request and notification as an [Exchange] and
// replies with [Exchange.Reply] or [Exchange.Fail]. [Edge.Send] and [Edge.Request] reach a client outside of its
// requests.
//
// A message passes these layers. Each is a package or files of this one, and uses only later layers:
//
//	transport     streamable.go, get.go, sse.go, stdio.go, batch.go, replies.go
//	authorization access, access.go, unauthenticated.go
//	sessions      registry.go, session.go, handshake.go, with sessions and sessionid
//	serving       receive.go, serve.go, notifications.go, inflight.go
//	handler       exchange.go, response.go, progress.go, requests.go, mrtr.go
//	output        output: one writer for each stream, with queues, replay and batches
//	input         inbound: bodies, messages, versions and headers
//
// Guarantees:
//
//   - Concurrency: handlers run concurrently, also for one session, and only their own response waits for them. All
//     exported functions may be called from any goroutine.
//   - Ordering: each stream has one writer. What an Exchange sends arrives in the order in which it was sent, on the
//     stream of its request and before its response; nothing follows the response. A session's notifications are served
//     in order with its requests and responses, see [Exchange.Sent].
//   - Ownership: byte slices passed to the edge belong to it; slices in an Exchange belong to the handler. Messages are
//     passed on as they are, not decoded and encoded again.
//   - Access: the edge alone answers clients that have sent no key where one is needed.
//   - Bounds: sessions, requests in flight, bodies, queues and replay logs are bounded, and the memory held for each
//     caller is bounded in bytes. A client that does not read loses its oldest notifications, then its connection. It
//     does not delay others.
//   - Ends: a session ends by DELETE, with its SSE stream or stdin, when it is idle, when its key is revoked, when
//     another caller takes its place, or with the edge. Its requests are cancelled. After the last has returned,
//     Handler.Ended is called once.
//   - Revival: a session of streamable HTTP that did not end by DELETE is reopened if its client returns within 24
//     hours of its start. The handler first serves the client's initialize and notifications/initialized again; their
//     responses are dropped. See [Edge.Keep].
package edge
