package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/usercode"
)

// Put stores draft if the object under its key is still prev, and returns when that is
// durable.
//
// Errors besides those of [backend.Backend]: [*FullError], [*FailedError],
// [*ReadOnlyError], [*TooLargeError], and those of codec and sealer. If ctx ends
// before the write is in a transaction, nothing is written; after that Put waits
// for the outcome.
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	w := puttings.Get().(*putting)
	defer w.free()
	*w = putting{writing: writing{backend: b, key: draft.Key, expect: revisionOf(prev)}, opts: opts}
	if err := w.prepare(ctx, draft); err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer b.end()
	if w.expect != 0 {
		if err := w.measure(); err != nil {
			return nil, err
		}
		store.ShareAttributes(draft, w.before.object)
	}
	w.draft = b.drafted(draft)
	if err := b.file.queue.Do(ctx, w); err != nil {
		w.draft.giveBack(&b.values.schema)
		return nil, err
	}
	return draft, nil
}

// Remove deletes the object under prev's key if it is still prev, and returns when
// that is durable. Errors as for Put.
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if prev == nil || prev.Revision == 0 {
		return nil, &usercode.ConfigError{Field: "prev", Problem: "has no revision; give the object to remove as storage returned it"}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := store.ValidateKey(prev.Key); err != nil {
		return nil, err
	}
	w := &removing{writing{backend: b, key: prev.Key, expect: prev.Revision}}
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer b.end()
	if err := w.measure(); err != nil {
		return nil, err
	}
	if err := b.file.queue.Do(ctx, w); err != nil {
		return nil, err
	}
	return w.event.Object, nil
}

// Emit gives draft the next revision; watches see it when it is durable, even after a
// restart, as long as history reaches back to it. Errors as for Put.
func (b *Backend) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	w := &emitting{writing: writing{backend: b, key: draft.Key}}
	if err := w.prepare(ctx, draft); err != nil {
		return nil, err
	}
	w.size, w.draft = w.own, b.drafted(draft)
	if err := b.do(ctx, w); err != nil {
		w.draft.giveBack(&b.values.schema)
		return nil, err
	}
	return draft, nil
}

// do commits a write.
func (b *Backend) do(ctx context.Context, w commit.Write) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.end()
	return b.file.queue.Do(ctx, w)
}

// revisionOf returns o's revision, zero for none.
func revisionOf(o *store.Object) store.Revision {
	if o == nil {
		return 0
	}
	return o.Revision
}

// expected returns an error unless o, the object under key or nil, is at revision
// expect. The error does not have the object if its value could not be decoded.
func expected(key string, o *store.Object, unknown bool, expect store.Revision) error {
	err := backend.CheckExpected(key, o, expect)
	if err != nil && unknown {
		return fmt.Errorf("%v: %w", err, errors.Unwrap(err))
	}
	return err
}

// writing is the common part of all writes of one object.
type writing struct {
	commit.Ticket
	backend *Backend
	key     string
	expect  store.Revision // of the object under key; zero for none
	value   encoded
	before  durable
	change
}

// prepare does the part of a write that does not need the queue. That includes all calls
// of the user's code except [store.Schema.Stamp], which needs the revision.
func (w *writing) prepare(ctx context.Context, draft *store.Object) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := store.ValidateKey(draft.Key); err != nil {
		return err
	}
	if w.own, err = backend.Measure(&w.backend.values.schema, draft); err != nil {
		return err
	}
	w.value, err = w.backend.values.encode(draft)
	return err
}

// begin is [Backend.begin], and also reads what the write replaces.
func (w *writing) begin() error {
	b := w.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.beginLocked(); err != nil {
		return err
	}
	w.before = b.durable(w.key)
	return nil
}

// measure learns the size of the object that the write replaces, which must be at the
// revision that is expected.
func (w *writing) measure() error {
	last, unknown := w.before.object, w.before.unknown
	if err := expected(w.key, last, unknown, w.expect); err != nil {
		return err
	}
	if unknown {
		w.size = store.DefaultSize
		return nil
	}
	size, err := backend.Measure(&w.backend.values.schema, last)
	w.size = size
	return err
}

// Read reads again what the write replaces, unless nothing has changed since begin.
func (w *writing) Read() {
	if b := w.backend; b.closed || w.before.at != b.revision {
		w.before = b.durable(w.key)
	}
}

func (w *writing) Log() commit.Log { return w.backend.commitLog() }
func (w *writing) Size() int       { return len(w.value.data) + journal.MaxOverhead }
func (w *writing) Publish()        { w.backend.apply(w.change) }

// last returns the object that the write replaces, and the revision that it makes.
func (w *writing) last() (o *store.Object, next store.Revision, err error) {
	o, unknown, next, err := w.backend.staged(w.key, w.before)
	if err == nil {
		err = expected(w.key, o, unknown, w.expect)
	}
	return o, next, err
}

// put stages the event of the write.
func (w *writing) put(batch *journal.Batch, ev store.Event) {
	w.event = ev
	w.bytes = w.backend.put(batch, ev, w.value)
}

type putting struct {
	writing
	draft drafted
	opts  backend.PutOptions
}

// puttings are reused: one for each write would be a tenth of the garbage of many writers.
var puttings = sync.Pool{New: func() any { return new(putting) }}

func (w *putting) free() {
	*w = putting{}
	puttings.Put(w)
}

// Stage completes the draft, if the object is still the one that was expected.
func (w *putting) Stage(batch *journal.Batch) error {
	o := w.draft.object
	prev, next, err := w.last()
	if err != nil {
		return err
	}
	ev := store.Event{Type: store.Added, Revision: next, Object: o, Prev: prev}
	if err := w.backend.stamp(o, next); err != nil {
		return err
	}
	o.Expires = w.opts.Expires(o.Written, prev)
	if prev != nil {
		ev.Type, o.Created = store.Modified, prev.Created
	}
	w.put(batch, ev)
	return nil
}

type removing struct{ writing }

// Stage deletes the object, if it is still the one that was expected.
func (w *removing) Stage(batch *journal.Batch) error {
	last, next, err := w.last()
	if err != nil {
		return err
	}
	now, err := expiry.Now(w.backend.clock)
	if err == nil {
		w.put(batch, w.backend.deletion(last, next, now))
	}
	return err
}

// deletion returns the event of an object's deletion.
func (b *Backend) deletion(last *store.Object, at store.Revision, now time.Time) store.Event {
	gone := b.values.schema.Gone(last, at, now)
	return store.Event{Type: store.Deleted, Revision: at, Object: gone, Prev: last}
}

// stamp gives a draft its revision and time. The error is a panic of the schema or of the
// clock.
func (b *Backend) stamp(o *store.Object, next store.Revision) error {
	if err := b.values.schema.Stamp(o, next); err != nil {
		return err
	}
	now, err := expiry.Now(b.clock)
	o.Revision, o.Created, o.Written = next, next, now
	return err
}

type emitting struct {
	writing
	draft drafted
}

// Stage completes the draft.
func (w *emitting) Stage(batch *journal.Batch) error {
	_, _, next, err := w.backend.staged(w.key, w.before)
	if err != nil {
		return err
	}
	o := w.draft.object
	if err := w.backend.stamp(o, next); err != nil {
		return err
	}
	w.put(batch, store.Event{Type: store.Emitted, Revision: next, Object: o})
	return nil
}
