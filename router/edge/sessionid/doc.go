// Package sessionid issues and reads the ids of client sessions, also across restarts.
//
// [New] returns [IDs]. [IDs.Issue] seals a [Record] of the session into its id; [IDs.Open] returns the record of an
// id, which is all that a revival needs. [IDs.End] records that a client has ended its session; [IDs.Ended] reports
// it. [IDs.Keep] stores the key and these records in a folder, which several processes may share.
//
// IDs are safe for concurrent use after Keep. The records of ended sessions are bounded per hour and per caller:
// beyond the bound, no session of that hour is revived.
package sessionid
