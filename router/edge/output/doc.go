// Package output writes messages to clients: as one JSON body, as server-sent events or as lines.
//
// A [Message] is queued in the [Lane] of its request on a stream, which has one writer. [Response] is the HTTP response
// to one POST, [SessionStream] the stream of a session, and [Batch] collects the responses to a batch. Requests reach
// all of them through an [Outlet]. [Outputs] is what the outputs of one edge share. [CoalesceWrites] makes an HTTP
// server send each event in one piece.
//
// What it promises:
//
//   - Concurrency: all functions may be called from any goroutine, except that a Response is begun and finished by one.
//   - Ordering: messages leave a stream in the order of their arrival. After the response nothing follows in its lane.
//   - Bounds: a lane holds 1,000 messages, and a stream a number of bytes. What is queued, being written or kept for
//     replay is charged to its payer. A full lane drops its oldest message that may be dropped.
//   - Ends: a stream ends once it is closed and written, or is abandoned when nobody can read it any more. The
//     goroutines that write are started with Outputs.Spawn and end with their stream or connection.
package output
