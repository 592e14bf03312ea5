package pins

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// SharedPrefix begins the keys of the pins that replicas share, one entry for each server.
const SharedPrefix = "pins/"

const (
	maxEntry   = 255 << 10 // bytes of an entry, which is compressed and will be sealed
	shareTime  = 10 * time.Second
	maxDecoded = maxKept + maxTools*maxName
)

// entries are the pins in entries that replicas share. Changes are merged by compare-and-set.
type entries struct {
	mirror  *shared.Mirror
	decoded map[string]uint64 // revisions of the entries that the last merge read, by key; 0 = it was written
}

// String implements keeper.
func (e *entries) String() string { return "the shared state" }

// changed implements keeper.
func (e *entries) changed() bool {
	all := e.mirror.Entries(SharedPrefix)
	return len(all) != len(e.decoded) ||
		slices.ContainsFunc(all, func(x shared.Entry) bool { return e.decoded[x.Key] != x.Revision })
}

// merge implements keeper. It stores again what the shared state has lost, and what it has in a form that cannot be
// read: of that, no tool counts as approved that is not known. The error leaves the pins of that server as they are
// kept.
func (e *entries) merge(
	ctx context.Context, known *document, servers []string, change func(*document, string),
) (doc *document, damage string, err error) {
	// The process may be about to end, which must not keep it from writing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shareTime)
	defer cancel()
	doc = known.clone()
	doc.Lost = false
	before := e.decoded
	e.decoded = map[string]uint64{}
	for _, x := range e.mirror.Entries(SharedPrefix) {
		server := strings.TrimPrefix(x.Key, SharedPrefix)
		e.decoded[x.Key] = x.Revision
		if before[x.Key] == x.Revision {
			continue
		}
		k, err := decode(x.Value)
		if err == nil {
			doc.Servers[server] = k
			continue
		}
		damage = fmt.Sprintf("the shared pins of server %s cannot be read (%v); what this replica knows replaces them",
			server, err)
		doc.server(server)
		servers = append(servers, server)
	}
	for server := range doc.Servers {
		if e.decoded[SharedPrefix+server] == 0 {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	for _, server := range slices.Compact(servers) {
		var next *pinned
		failed := e.mirror.Update(ctx, SharedPrefix+server, func(value []byte) ([]byte, error) {
			one := &document{Servers: map[string]*pinned{}}
			if k, err := decode(value); err == nil {
				one.Servers[server] = k
			} else if k := doc.Servers[server]; k != nil {
				one.Servers[server] = k.clone()
			}
			change(one, server)
			if next = one.Servers[server]; next == nil {
				return value, nil
			}
			return next.encode()
		})
		switch {
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("server %s: %w", server, failed))
		case next != nil:
			doc.Servers[server] = next
			e.decoded[SharedPrefix+server] = 0 // others may have replaced it since: the next merge reads it
		}
	}
	return doc, damage, err
}

// decode returns the pins of a server from an entry.
func decode(value []byte) (*pinned, error) {
	k := &pinned{}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(value)), maxDecoded))
	if err == nil {
		err = json.Unmarshal(text, k)
	}
	if err == nil && !k.valid() {
		err = errors.New("it is not a list of pins of this version")
	}
	return k, err
}

// encode returns the entry of a server. It drops what an entry has no room for: first all definitions, so that changes
// are noticed but cannot be shown, then tools, approved ones last, which then count as never approved.
func (k *pinned) encode() ([]byte, error) {
	value, err := k.compressed()
	if err != nil || len(value) <= maxEntry {
		return value, err
	}
	for tool, p := range k.Tools {
		k.put(tool, pin{p.Approved.withoutDefinition(), p.Latest.withoutDefinition(), p.Rest})
	}
	value, err = k.compressed()
	for err == nil && len(value) > maxEntry && len(k.Tools) > 0 {
		tools := k.order()
		for _, tool := range tools[len(tools)*maxEntry/len(value)*9/10:] {
			delete(k.Tools, tool)
		}
		value, err = k.compressed()
	}
	return value, err
}

// order returns the names of the tools in order, the approved ones first.
func (k *pinned) order() []string {
	var approved, others []string
	for tool, p := range k.Tools {
		if p.Approved != nil {
			approved = append(approved, tool)
		} else {
			others = append(others, tool)
		}
	}
	slices.Sort(approved)
	slices.Sort(others)
	return append(approved, others...)
}

func (k *pinned) compressed() ([]byte, error) {
	text, err := json.Marshal(k, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.DefaultCompression) // the level is valid
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
