package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	pageEntries    = 50
	maxPageEntries = 500
)

// queries lists queries and calls, the newest first.
func (c *Console) queries(w http.ResponseWriter, r *http.Request, v Viewer) {
	q := r.URL.Query() // the body is not read
	f := history.Filter{
		Kind: q.Get("kind"), Caller: q.Get("caller"), Server: q.Get("server"), Tool: short.Text(q.Get("tool"), maxTool),
		Outcome: q.Get("outcome"), Text: q.Get("text"), Failed: q.Get("failed") != "",
		Longer: number(q, "longer"), Since: moment(q, "since"), Until: moment(q, "until"),
		See: func(e *history.Entry) bool { return v.sees(e.Caller) },
	}
	limit := cmp.Or(max(int(number(q, "limit")), 0), pageEntries)
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64) // what is not a number counts as absent
	page, more := c.opts.Journal.log().Find(f, before, min(limit, maxPageEntries))
	reply(w, map[string]any{
		"entries": append([]history.Entry{}, page...), "more": more, "live": c.opts.Journal.Running(v.sees),
		"history": c.about(v),
	})
}

// about describes the history itself. Only viewers who see everything are told about disk errors.
func (c *Console) about(v Viewer) map[string]any {
	cfg, log := c.opts.Config.History, c.opts.Journal.log()
	if log == nil {
		return map[string]any{"off": true}
	}
	about := map[string]any{"entries": cfg.Entries, "contents": cfg.Contents, "dropped": 0}
	if v.Visible == nil {
		about["dropped"], about["memory_only"] = log.Dropped(), log.MemoryOnly()
	}
	return about
}

// moment reads a time of the query string: RFC 3339, or a duration before now.
func moment(q url.Values, name string) time.Time {
	text := q.Get(name)
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago)
	}
	at, _ := time.Parse(time.RFC3339, text) // what is no time counts as absent
	return at
}

// query returns one query or call with its details.
func (c *Console) query(w http.ResponseWriter, r *http.Request, v Viewer) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	e, found := c.opts.Journal.log().Get(id)
	if err != nil || !found || !v.sees(e.Caller) {
		fail(w, http.StatusNotFound, "no such entry; the history keeps only the newest")
		return
	}
	answer := map[string]any{"entry": e}
	if e.Kind == history.KindQuery {
		detail, err := c.opts.Journal.log().Detail(id)
		switch {
		case errors.Is(err, history.ErrNoDetail) && e.Error != "": // the query failed before it had a plan
		case err != nil:
			answer["missing"] = err.Error()
		default:
			answer["detail"] = detail
		}
	}
	reply(w, answer)
}

// maxNamed bounds the shown name of a client, in bytes.
const maxNamed = 100

// sessions lists client sessions.
func (c *Console) sessions(w http.ResponseWriter, _ *http.Request, v Viewer) {
	list, total := edge.List(c.opts.Edge, v.sees, maxPageEntries)
	for i := range list {
		s := &list[i]
		s.Client, s.Version = short.Line(s.Client, maxNamed), short.Line(s.Version, maxNamed)
	}
	reply(w, map[string]any{"sessions": list, "total": total})
}
