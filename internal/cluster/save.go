package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

const (
	// maxState bounds the bytes of a session's state.
	maxState = 64 << 10
	// maxUnsaved bounds the bytes of what waits to be saved. States take half of it, so that there is room for ends.
	maxUnsaved = 16 << 20
	// unsavedBytes is what counts for an entry besides its state.
	unsavedBytes = 512
	// attempts bounds how often an entry is read again after a conflict.
	attempts = 4
)

// unsaved is the state of a session that waits to be saved, or its end.
type unsaved struct {
	session Session
	state   []byte
	ended   bool
	by      *incarnation
}

// size returns the bytes that count; 0 for the zero value.
func (u unsaved) size() int {
	if u.by == nil {
		return 0
	}
	return unsavedBytes + len(u.state)
}

// change reads the entry of a session and stores what f makes of it, unless f reports false or fails. It repeats that
// after conflicts.
func (d *Directory) change(ctx context.Context, s Session, f func(e *placed) (bool, error)) error {
	err := shared.ErrConflict
	for n := 0; n < attempts && errors.Is(err, shared.ErrConflict); n++ {
		var e entry
		if e, err = d.read(ctx, s); err != nil {
			return err
		}
		if e.Home == 0 {
			e.Home = s.Home
		}
		write, refused := f(&e.placed)
		if refused != nil || !write {
			return refused
		}
		err = d.write(ctx, s, e)
	}
	return err
}

// Load returns the state that was last saved of a session; nil if there is none.
func (d *Directory) Load(ctx context.Context, s Session) ([]byte, error) {
	if d.replica == nil {
		return nil, nil
	}
	e, err := d.read(ctx, s)
	return e.State, err
}

// Save keeps the state of a session whose home is here, at most maxState bytes, which the caller must not change, for
// the replica that adopts it. It returns at once; of several states only the last may be stored. The error means that
// the state is too large or that too much waits to be stored; the one before is kept.
func (d *Directory) Save(s Session, state []byte) error {
	if d.replica == nil {
		return nil
	}
	i := d.replica.acting()
	if i == nil {
		return ErrUnavailable
	}
	if len(state) > maxState {
		return fmt.Errorf("the state of a session has %d bytes; %d can be saved", len(state), maxState)
	}
	return d.later(unsaved{session: s, state: state, by: i})
}

// later stores a state or an end soon.
func (d *Directory) later(u unsaved) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, room := d.unsaved[u.session.Tag], maxUnsaved
	if !u.ended {
		room /= 2
	}
	switch {
	case before.ended:
		return nil
	case d.waiting-before.size()+u.size() > room:
		return fmt.Errorf("%d MiB of states and ends of sessions wait to be saved", d.waiting>>20)
	}
	u.wait(d)
	poke(d.wake)
	return nil
}

// wait adds it to what waits, in place of what waits for the same session. d.mu is held.
func (u unsaved) wait(d *Directory) {
	d.waiting += u.size() - d.unsaved[u.session.Tag].size()
	d.unsaved[u.session.Tag] = u
}

// keepSaving stores states until ctx ends.
func (d *Directory) keepSaving(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-d.wake:
		case <-ctx.Done():
		}
		warn := true
		for err := d.flush(ctx); err != nil && ctx.Err() == nil; err = d.flush(ctx) {
			if warn {
				warn = false
				d.replica.config.Log.Warn("cannot save what sessions take along; it is tried again", "error", err)
			}
			pause(ctx, nil, ioTime)
		}
	}
}

// flush stores all states that wait, also those that another call is about to store, or returns an error.
func (d *Directory) flush(ctx context.Context) error {
	select {
	case d.saving <- struct{}{}:
		defer func() { <-d.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		u, ok := d.firstUnsaved()
		if !ok {
			return nil
		}
		if err := d.save(ctx, u); err != nil {
			d.mu.Lock()
			if _, newer := d.unsaved[u.session.Tag]; !newer || u.ended {
				u.wait(d)
			}
			d.mu.Unlock()
			return err
		}
	}
}

// firstUnsaved takes one of the states that wait.
func (d *Directory) firstUnsaved() (unsaved, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for tag, u := range d.unsaved {
		delete(d.unsaved, tag)
		d.waiting -= u.size()
		return u, true
	}
	return unsaved{}, false
}

// save stores the state or the end of a session unless its home is no longer the incarnation that saved it.
func (d *Directory) save(ctx context.Context, u unsaved) error {
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	if u.ended {
		if err := d.change(ctx, u.session, endedBy(u.by)); !errors.Is(err, ErrMoved) {
			return err
		}
		return nil
	}
	if !u.by.acts() {
		return nil
	}
	return d.change(ctx, u.session, func(e *placed) (bool, error) {
		write := !e.Ended && e.Home == u.by.id && !bytes.Equal(e.State, u.state)
		e.State = u.state
		return write, nil
	})
}

// End notes that the client has ended a session whose home is here, so that nobody adopts it; if the store cannot be
// reached, once it can. The error is ErrMoved if its home is elsewhere, ErrUnavailable, or that too much waits to be
// stored.
func (d *Directory) End(ctx context.Context, s Session) error {
	if d.replica == nil {
		return nil
	}
	i := d.replica.acting()
	if i == nil {
		return ErrUnavailable
	}
	err := d.change(ctx, s, endedBy(i))
	if errors.Is(err, ErrMoved) {
		return err
	}
	i.known.put(s.Tag, placed{Home: i.id, Ended: true})
	if err != nil {
		return d.later(unsaved{session: s, ended: true, by: i})
	}
	return nil
}

// endedBy returns the change of the entry of a session that has ended and whose home is an incarnation of this replica.
// Its error is ErrMoved if it is not.
func endedBy(home *incarnation) func(e *placed) (bool, error) {
	return func(e *placed) (bool, error) {
		if e.Home != home.id && !e.Ended {
			return false, ErrMoved
		}
		ended := e.Ended
		*e = placed{Home: home.id, Ended: true}
		return !ended, nil
	}
}

// HandOver moves a session whose home is this draining replica to another, which [Directory.Elsewhere] returned. end
// ends the session here, without a tombstone, and returns its state; it reports false, and changes nothing, if the
// session is busy. Until HandOver returns, Find waits. Afterwards the caller calls Find, also after an error: ErrBusy,
// ErrMoved if another call hands the session over, ErrEnded, or ErrUnavailable.
func (d *Directory) HandOver(ctx context.Context, s Session, to Place, end func() (state []byte, ok bool)) error {
	i := d.replica.acting()
	if i == nil || !d.replica.Draining() {
		return ErrUnavailable
	}
	known := i.known
	known.mu.Lock()
	if known.moving[s.Tag] != nil {
		known.mu.Unlock()
		return ErrMoved
	}
	done := make(chan struct{})
	known.moving[s.Tag] = done
	known.mu.Unlock()
	defer func() {
		known.mu.Lock()
		defer known.mu.Unlock()
		delete(known.moving, s.Tag)
		close(done)
	}()
	state, ok := end()
	if !ok {
		return ErrBusy
	}
	known.by.Remove(s.Tag) // from now on only a compare-and-set makes it this replica's again
	err := d.change(ctx, s, func(e *placed) (bool, error) {
		switch {
		case e.Ended:
			return false, ErrEnded
		case e.Home != i.id:
			return false, nil
		}
		e.Home = to.peer.id
		if state != nil {
			e.State = state
		}
		return true, nil
	})
	if err != nil && !errors.Is(err, ErrEnded) && !errors.Is(err, ErrUnavailable) {
		return unavailable(err)
	}
	return err
}
