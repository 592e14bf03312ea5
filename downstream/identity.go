package downstream

import (
	"log/slog"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// identity says which server something belongs to. It never changes.
type identity struct {
	config ServerConfig
	logger *slog.Logger
}

// perClient reports whether each client has a session of its own on the proxy surfaces.
func (i *identity) perClient() bool {
	if i.config.Session != "" {
		return i.config.Session == SessionPerClient
	}
	return i.config.URL != ""
}

// rescue is deferred by code that uses the server in a goroutine of its own. It turns a panic into an error and
// passes it to failed, which may be nil.
func (i *identity) rescue(doing string, failed func(f *link.Failure)) {
	safe.Caught(recover(), i.logger, doing+", server "+i.config.Name, func(err error) {
		if failed != nil {
			failed(i.failure(link.ReasonUnavailable, err.Error()))
		}
	})
}

func (i *identity) failure(reason, message string) *link.Failure {
	return &link.Failure{Server: i.config.Name, Reason: reason, Message: message}
}
