package downstream

import (
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// identity identifies the server that sessions, spans and log lines belong to.
type identity struct {
	config ServerConfig
	logger *slog.Logger
	where  []attribute.KeyValue // attributes of spans
}

// perClient reports whether each client has its own session on the proxy surfaces.
func (i *identity) perClient() bool {
	if i.config.Session != "" {
		return i.config.Session == SessionPerClient
	}
	return i.config.URL != ""
}

// rescue is deferred in goroutines that use the server. It converts a panic to an error and passes it to failed,
// which may be nil.
func (i *identity) rescue(doing string, failed func(f *link.Failure)) {
	safe.Caught(recover(), i.logger, doing+", server "+i.config.Name, func(err error) {
		if failed != nil {
			failed(i.failure(reason.Unavailable, err.Error()))
		}
	})
}

func (i *identity) failure(reason, message string) *link.Failure {
	return &link.Failure{Server: i.config.Name, Reason: reason, Message: message}
}

// where returns the span attributes that locate a server.
func (c ServerConfig) where() []attribute.KeyValue {
	if c.URL == "" {
		return []attribute.KeyValue{tracing.Transport.String(tracing.TransportPipe)}
	}
	out := []attribute.KeyValue{tracing.Transport.String(tracing.TransportTCP)}
	u, err := url.Parse(c.URL)
	if err != nil {
		return out
	}
	out = append(out, tracing.ServerAddress.String(u.Hostname()))
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	if n, err := strconv.Atoi(port); err == nil {
		out = append(out, tracing.ServerPort.Int(n))
	}
	return out
}
