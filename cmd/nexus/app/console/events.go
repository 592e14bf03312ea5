package console

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"
)

const (
	eventPause = time.Second
	keepAlive  = 15 * time.Second
)

// change has one number per part of the page. A part may have changed if its number differs.
type change struct {
	History uint64 `json:"history"` // the newest entry that the viewer sees
	Servers uint64 `json:"servers"` // a digest of the states
	Live    []Live `json:"live"`    // queries that run
}

// events serves changes as server-sent events, at most one a second.
func (c *Console) events(w http.ResponseWriter, r *http.Request, v Viewer) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	var last string
	var sent time.Time
	for {
		data, err := json.Marshal(c.change(v))
		if err != nil {
			return
		}
		event := ""
		switch {
		case string(data) != last:
			last, event = string(data), fmt.Sprintf("data: %s\n\n", data)
		case time.Since(sent) >= keepAlive:
			event = ":\n\n"
		}
		if event != "" {
			sent = time.Now()
			_ = out.SetWriteDeadline(sent.Add(keepAlive)) // a client that does not read is left
			if _, err := w.Write([]byte(event)); err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-c.quit:
			return
		case <-r.Context().Done():
			return
		}
		id := v.Caller.ID
		if v = c.opts.Viewer(r); v.Caller.ID != id {
			return // the key is no longer valid
		}
	}
}

func (c *Console) change(v Viewer) change {
	digest := fnv.New64a()
	states := c.opts.Servers.StatusFor(v.Visible)
	for _, name := range c.visibleServers(v) {
		st := states[name]
		fmt.Fprintln(digest, name, st.Status, st.Breaker, st.InFlight > 0, st.Tools, st.Since)
	}
	return change{
		History: c.opts.Journal.log().Newest(v.sees), Servers: digest.Sum64() >> 11, // exact as a number of JavaScript
		Live: c.opts.Journal.Running(v.sees),
	}
}
