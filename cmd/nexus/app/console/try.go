package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	tryTime  = 2 * time.Minute // to start a server, which may be downloaded first
	maxTried = 200             // tools that are shown
)

// triedTool is a tool of a server that is tried.
type triedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// try answers with the tools of a server as it would be configured.
func try(c *Console, w http.ResponseWriter, r *http.Request, v Viewer, server downstream.ServerConfig) {
	c.opts.Edit.Log.Warn("server tried on the page", "server", server.Name, "program", texts.Line(server.Command, maxTool),
		"by", v.Caller.Name)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(tryTime + readTime))
	ctx, cancel := context.WithTimeout(r.Context(), tryTime)
	defer cancel()
	tools, err := toolsOf(ctx, c.opts.Config, server)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	reply(w, map[string]any{"tools": tools})
}

// toolsOf connects to a server beside those in use, and lists its tools. Nothing is approved or called.
func toolsOf(ctx context.Context, cfg config.Settings, server downstream.ServerConfig) ([]triedTool, error) {
	if server.Unusable != "" {
		return nil, fmt.Errorf("it cannot be used: %s", server.Unusable)
	}
	server.Disabled = false
	mask := redact.NewMasker(config.Config{Servers: []downstream.ServerConfig{server}}.Secrets())
	m := downstream.New(downstream.Options{
		Servers: []downstream.ServerConfig{server}, Health: cfg.Health, ListDeadline: cfg.Proxy.ListDeadline,
		Execution: downstream.ExecutionConfig{Attempts: 1}, MaxMessage: int(cfg.Limits.ResultBytes),
		Logger: slog.New(slog.DiscardHandler), Access: downstream.Access{Mask: mask},
	})
	defer m.Stop()
	if _, err := m.Sessions().Initialized(ctx, server.Name, ""); err != nil {
		return nil, fmt.Errorf("it does not connect: %s", mask.Text(err.Error()))
	}
	items, err := m.Sessions().List(ctx, server.Name, "", "tools/list")
	if err != nil {
		return nil, fmt.Errorf("its tools cannot be listed: %s", mask.Text(err.Error()))
	}
	tools := []triedTool{}
	for _, item := range items[:min(len(items), maxTried)] {
		text := func(member string, most int) string {
			return texts.Line(mask.Text(texts.Visible(jsonrpc.Text(jsonrpc.Get(item, member)))), most)
		}
		tools = append(tools, triedTool{text("name", maxTool), text("description", maxTool)})
	}
	return tools, nil
}
