// Package output writes messages to clients: as one JSON body, as server-sent events or as lines.
//
// A [Message] is queued in the [Lane] of its request on a stream, which has one writer. [Response] is the HTTP
// response to one POST, [SessionStream] the stream of a session, and [Batch] collects the responses to a batch.
// Requests send to all of them through an [Outlet]. [Outputs] is the shared configuration of an edge's outputs.
// [CoalesceWrites] makes an HTTP server send each event in one piece.
//
// Guarantees:
//
//   - Concurrency: all functions are safe for concurrent use, but one goroutine begins and finishes a Response.
//   - Ordering: messages leave a stream in order of arrival. Nothing follows the response in its lane.
//   - Bounds: a lane holds 1,000 messages, and a stream a number of bytes. Bytes queued, being written or kept for
//     replay are charged to their payer. A full lane drops its oldest droppable message.
//   - Ends: a stream ends once it is closed and written, or is abandoned when nobody can read it. Writing goroutines
//     are started with Outputs.Spawn and end with their stream or connection.
package output
