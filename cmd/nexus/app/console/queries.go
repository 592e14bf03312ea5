package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	pageEntries    = 50
	maxPageEntries = 500
)

// queries lists queries and calls, the newest first.
func (c *Console) queries(w http.ResponseWriter, r *http.Request, v Viewer) {
	q := query{Values: r.URL.Query()} // the body is not read
	f := history.Filter{
		Kind: q.Get("kind"), Caller: q.Get("caller"), Server: q.Get("server"), Tool: texts.Cut(q.Get("tool"), maxTool),
		Outcome: q.Get("outcome"), Text: q.Get("text"), Failed: q.flag("failed"),
		Longer: q.number("longer"), Since: q.moment("since"), Until: q.moment("until"),
		See: func(e *history.Entry) bool { return v.sees(e.Caller) },
	}
	limit, before := cmp.Or(q.id("limit"), pageEntries), q.id("before")
	if q.invalid != "" {
		fail(w, http.StatusBadRequest, q.invalid)
		return
	}
	page, more := c.opts.Journal.log().Find(f, before, int(min(limit, maxPageEntries)))
	reply(w, map[string]any{
		"entries": append([]history.Entry{}, page...), "more": more, "live": c.opts.Journal.Running(v.sees),
		"history": c.about(v),
	})
}

// about describes the history itself. Only operators are told about disk errors.
func (c *Console) about(v Viewer) map[string]any {
	cfg, log := c.opts.Config.History, c.opts.Journal.log()
	if log == nil {
		return map[string]any{"off": true}
	}
	about := map[string]any{"entries": cfg.Entries, "contents": cfg.Contents, "dropped": 0}
	if v.Operator {
		about["dropped"], about["memory_only"] = log.Dropped(), log.WhyMemoryOnly()
	}
	return about
}

// query is a query string. Absent parameters have the value zero, and so have invalid ones.
type query struct {
	url.Values
	invalid string // what is wrong with the first invalid parameter
}

// read parses a parameter that is not empty. want describes its form.
func (q *query) read(name, want string, parse func(text string) error) {
	if text := q.Get(name); text != "" && parse(text) != nil && q.invalid == "" {
		q.invalid = fmt.Sprintf("%s: want %s, got %q", name, want, texts.Line(text, maxShown))
	}
}

// maxShown bounds an invalid parameter in a message, in bytes.
const maxShown = 100

func (q *query) flag(name string) (on bool) {
	q.read(name, "1 or 0", func(text string) (err error) {
		on, err = strconv.ParseBool(text)
		return err
	})
	return on
}

func (q *query) number(name string) (n float64) {
	q.read(name, "a number of milliseconds", func(text string) error {
		got, err := strconv.ParseFloat(text, 64)
		if err == nil && !(got >= 0) {
			err = strconv.ErrRange
		}
		if err == nil {
			n = got
		}
		return err
	})
	return n
}

func (q *query) id(name string) (n uint64) {
	q.read(name, "a number", func(text string) (err error) {
		n, err = strconv.ParseUint(text, 10, 64)
		return err
	})
	return n
}

// moment reads RFC 3339, or a duration before now.
func (q *query) moment(name string) (at time.Time) {
	q.read(name, "a time such as 2006-01-02T15:04:05Z, or a duration such as 1h", func(text string) (err error) {
		if ago, err := time.ParseDuration(text); err == nil {
			at = time.Now().Add(-ago)
			return nil
		}
		at, err = time.Parse(time.RFC3339, text)
		return err
	})
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
		s.Client, s.Version = texts.Line(s.Client, maxNamed), texts.Line(s.Version, maxNamed)
	}
	reply(w, map[string]any{"sessions": list, "total": total})
}
