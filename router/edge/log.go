package edge

import (
	"context"
	"log/slog"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// logReceived logs an incoming message at level trace. At level debug it logs _meta.session_id, which has no other
// effect. s may be nil.
func logReceived(log *slog.Logger, s *session, in *inbound.Message) {
	logMessage(log, "Message received", s, output.Whole(in.Raw))
	if jsonrpc.ValidID(in.SessionID) && log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("Request names a session", "method", in.Method, "session_id", jsonrpc.ID(in.SessionID).Text())
	}
}

// logSent logs an outgoing message at level trace. s may be nil.
func logSent(log *slog.Logger, s *session, m output.Message) { logMessage(log, "Message sent", s, m) }

// SessionLabel returns the end of a session id, for the log: the whole id is a credential.
func SessionLabel(id string) string { return id[max(0, len(id)-sessionLabel):] }

const sessionLabel = 8 // bytes

func logMessage(log *slog.Logger, event string, s *session, m output.Message) {
	if !log.Enabled(context.Background(), jsonrpc.LevelTrace) {
		return
	}
	id := ""
	if s != nil {
		id = s.id
	}
	log.Log(context.Background(), jsonrpc.LevelTrace, event, "session", SessionLabel(id), "message", string(m.Append(nil)))
}
