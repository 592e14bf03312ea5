// Package sessionid makes the ids of client sessions and reads them again, also after a restart.
//
// [New] returns [IDs]. [IDs.Issue] seals a [Record] of the session into its id, and [IDs.Open] returns the record of an
// id, so that a session can be revived from nothing else. [IDs.End] notes that a client has ended its session;
// [IDs.Ended] tells. [IDs.Keep] keeps the key and those notes in a folder, which several processes may share.
//
// IDs may be used from any goroutine; Keep is called before anything else. The notes are bounded for each hour and each
// caller: beyond the bound no session of that hour is revived.
package sessionid
