package mutation_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/backend/mutation"
)

// The backend under a detector keeps the contract, and nothing that the checks do is a change.
func TestDetect_KeepsTheContract(t *testing.T) {
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		virtual := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
		m, err := memory.New(schema, memory.Options{Clock: virtual})
		require.NoError(t, err)
		found := &reports{}
		b, audit := mutation.Detect(m, &schema, found.add)
		t.Cleanup(func() {
			audit()
			require.Empty(t, found.take())
		})
		return backendtest.Harness{Backend: b, Pass: virtual.Advance}
	})
}

// replaced is storage that was replaced since its watches began, which know what they are of.
type replaced struct{ backend.Backend }

func (replaced) StoreID(context.Context) (string, error) { return "new", nil }

func (b replaced) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return ofOld{w}, err
}

type ofOld struct{ backend.Watcher }

func (ofOld) StoreID(context.Context) (string, error) { return "old", nil }

// A watch that knows which storage it is of does so under a detector, and another does not.
func TestDetect_LeavesAWatchItsIdentity(t *testing.T) {
	d := newDetected(t)
	schema := boxSchema()
	b, _ := mutation.Detect(replaced{d.Backend}, &schema, d.found.add)
	w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	of, knows := w.(backend.Identifier)
	require.True(t, knows)
	require.Implements(t, (*backend.ProgressRequester)(nil), w, "it is a watch as the others")
	id, err := of.StoreID(t.Context())
	require.NoError(t, err)
	require.Equal(t, "old", id)

	other, err := d.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer other.Close()
	require.NotImplements(t, (*backend.Identifier)(nil), other)
}

// asked is storage whose watches take requests for progress.
type asked struct{ backend.Backend }

func (b asked) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return askedWatcher{w}, err
}

type askedWatcher struct{ backend.Watcher }

func (askedWatcher) RequestProgress(context.Context) error { return errRequested }

var errRequested = errors.New("it was requested")

func TestDetect_PassesRequestsForProgressOn(t *testing.T) {
	d := newDetected(t)
	schema := boxSchema()
	b, _ := mutation.Detect(asked{d.Backend}, &schema, d.found.add)
	w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	require.ErrorIs(t, backend.RequestProgress(t.Context(), w), errRequested)

	other, err := d.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer other.Close()
	require.ErrorIs(t, backend.RequestProgress(t.Context(), other), store.ErrUnsupported)
}

func TestDetect_NamesTheObjectAndTheDifference(t *testing.T) {
	d := newDetected(t)
	c := &content{"a", map[string]string{"color": "red"}}
	o := d.put(t, c, nil)
	c.Tags["color"] = "blue"
	d.audit()
	found := d.found.take()
	require.Len(t, found, 1)
	var err *mutation.Error
	require.ErrorAs(t, found[0], &err)
	require.ErrorIs(t, err, mutation.ErrMutated)
	require.Equal(t, "a", err.Key)
	require.Equal(t, o.Revision, err.Revision)
	require.Contains(t, err.Before, "red")
	require.Contains(t, err.After, "blue")
	d.audit()
	require.Empty(t, d.found.take(), "each is reported once")
}

// Objects that others have written are shared, too, once an event or a list has returned them.
func TestDetect_FindsChangesOfWhatOthersWrite(t *testing.T) {
	for name, see := range map[string]func(b backend.Backend, w backend.Watcher) error{
		"event": func(_ backend.Backend, w backend.Watcher) error { _, err := w.Next(10); return err },
		"list": func(b backend.Backend, _ backend.Watcher) error {
			_, err := b.List(t.Context(), backend.ListOptions{})
			return err
		},
		"list with the state": func(b backend.Backend, _ backend.Watcher) error {
			_, err := b.List(t.Context(), backend.ListOptions{State: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			schema := boxSchema()
			m, err := memory.New(schema, memory.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			found := &reports{}
			b, audit := mutation.Detect(m, &schema, found.add)
			w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
			require.NoError(t, err)
			defer w.Close()
			written, emitted := &content{Name: "a"}, &content{Name: "a"}
			_, err = m.Put(t.Context(), drafted(written), nil, backend.PutOptions{})
			require.NoError(t, err)
			_, err = m.Emit(t.Context(), drafted(emitted))
			require.NoError(t, err)
			require.NoError(t, see(b, w))
			written.Tags = map[string]string{"color": "blue"}
			audit()
			require.Len(t, found.take(), 1, "the state")
			emitted.Tags = map[string]string{"color": "blue"}
			audit()
			require.Equal(t, name == "event", len(found.take()) == 1, "an emission")
		})
	}
}

// A change is found by the next call for the object, or by enough calls for anything.
func TestDetect_FindsAChangeBeforeTheEnd(t *testing.T) {
	const others = 100
	for name, call := range map[string]func(d detected, o *store.Object) error{
		"get":    func(d detected, o *store.Object) error { _, err := d.Get(t.Context(), o.Key); return err },
		"remove": func(d detected, o *store.Object) error { _, err := d.Remove(t.Context(), o); return err },
		"put": func(d detected, o *store.Object) error {
			_, err := d.Put(t.Context(), drafted(&content{Name: o.Key}), o, backend.PutOptions{})
			return err
		},
		"others": func(d detected, _ *store.Object) error {
			for range others + 2 { // each checks one of all the objects
				if _, err := d.Revision(t.Context()); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDetected(t)
			c := &content{Name: "a"}
			d.put(t, &content{Name: "first"}, nil)
			o := d.put(t, c, nil)
			for i := range others {
				d.put(t, &content{Name: strconv.Itoa(i)}, nil)
			}
			c.Tags = map[string]string{"color": "blue"}
			require.NoError(t, call(d, o))
			require.Len(t, d.found.take(), 1)
		})
	}
}

// A change while the write runs is one, too: readers have the value once it is committed.
func TestDetect_FindsAChangeDuringTheWrite(t *testing.T) {
	schema := boxSchema()
	c := &content{"a", map[string]string{}}
	m, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	found := &reports{}
	b, _ := mutation.Detect(changing{m, func() { c.Tags["late"] = "yes" }}, &schema, found.add)
	_, err = b.Put(t.Context(), drafted(c), nil, backend.PutOptions{})
	require.NoError(t, err)
	require.Len(t, found.take(), 1)
}

// changing is a backend whose writes end with a change.
type changing struct {
	backend.Backend
	change func()
}

func (b changing) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	o, err := b.Backend.Put(ctx, draft, prev, opts)
	b.change()
	return o, err
}

// Random writes, deletions, reads and changes in place: what is reported is what was changed.
func TestDetect_FindsTheChangesOfARandomWalk(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		d := newDetected(t)
		newest := map[string]*store.Object{} // by key
		var all []*store.Object
		changed := map[store.Revision]bool{}
		for step := range 200 {
			key := strconv.Itoa(random.IntN(8))
			switch prev := newest[key]; random.IntN(8) {
			case 0, 1, 2:
				newest[key] = d.put(t, &content{key, map[string]string{"step": strconv.Itoa(step)}}, prev)
				all = append(all, newest[key])
			case 3:
				if prev != nil {
					_, err := d.Remove(t.Context(), prev)
					require.NoError(t, err)
					delete(newest, key)
				}
			case 4:
				_, err := d.List(t.Context(), backend.ListOptions{})
				require.NoError(t, err)
			case 5, 6:
				if prev != nil {
					_, err := d.Get(t.Context(), key)
					require.NoError(t, err)
				}
			case 7:
				if len(all) > 0 {
					o := all[random.IntN(len(all))]
					store.As[box](o).Value.Tags["changed at"] = strconv.Itoa(step)
					changed[o.Revision] = true
				}
			}
		}
		d.audit()
		found := map[store.Revision]bool{}
		for _, err := range d.found.take() {
			var mutated *mutation.Error
			require.ErrorAs(t, err, &mutated)
			require.False(t, found[mutated.Revision], "seed %d: revision %d is reported twice", seed, mutated.Revision)
			found[mutated.Revision] = true
		}
		require.Equal(t, slices.Sorted(maps.Keys(changed)), slices.Sorted(maps.Keys(found)), "seed %d", seed)
	}
}

// Nothing would supersede the objects of a list of the past whose keys are gone.
func TestDetect_DoesNotKeepTheObjectsOfThePast(t *testing.T) {
	const keys, kept = 2000, 1024
	for _, paged := range []bool{false, true} {
		d := newDetected(t)
		var all []*store.Object
		for i := range keys {
			all = append(all, d.put(t, &content{Name: strconv.Itoa(i)}, nil))
		}
		first, err := d.List(t.Context(), backend.ListOptions{Limit: 1})
		require.NoError(t, err)
		for _, o := range all {
			_, err := d.Remove(t.Context(), o)
			require.NoError(t, err)
		}
		past := backend.ListOptions{Revision: first.Revision}
		if paged {
			past = backend.ListOptions{Continue: first.Continue}
		}
		page, err := d.List(t.Context(), past)
		require.NoError(t, err)
		require.Greater(t, len(page.Items), kept)
		for _, o := range page.Items {
			store.As[box](o).Value.Name = "changed"
		}
		d.audit()
		require.Equal(t, kept, len(d.found.take()), "what is still tracked, paged: %t", paged)
	}
}

func TestDetect_PanicOfTheReportIsContained(t *testing.T) {
	schema := boxSchema()
	m, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	b, audit := mutation.Detect(m, &schema, func(error) { panic("report") })
	c := &content{"a", map[string]string{}}
	_, err = b.Put(t.Context(), drafted(c), nil, backend.PutOptions{})
	require.NoError(t, err)
	c.Name = "b"
	require.NotPanics(t, audit)
	_, err = b.Get(t.Context(), "a")
	require.NoError(t, err, "the detector's lock is free")
}

// A report may end its goroutine, as t.FailNow does: the changes behind it are reported all the same.
func TestDetect_ReportsAllChangesThoughAReportEndsItsGoroutine(t *testing.T) {
	schema := boxSchema()
	m, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	found := &reports{}
	b, audit := mutation.Detect(m, &schema, func(err error) {
		found.add(err)
		runtime.Goexit()
	})
	contents := []*content{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, c := range contents {
		_, err := b.Put(t.Context(), drafted(c), nil, backend.PutOptions{})
		require.NoError(t, err)
	}
	for _, c := range contents {
		c.Tags = map[string]string{"color": "blue"}
	}
	var goroutine sync.WaitGroup
	goroutine.Go(audit)
	goroutine.Wait()
	require.Len(t, found.take(), 3)
}

// A schema that ends its goroutine leaves the detector usable, which reports the change later.
func TestDetect_SchemaThatEndsItsGoroutineHoldsNothingUp(t *testing.T) {
	schema := boxSchema()
	var exits bool
	pointer := schema.Pointer
	schema.Pointer = func(o *store.Object) any {
		if exits {
			runtime.Goexit()
		}
		return pointer(o)
	}
	m, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	found := &reports{}
	b, audit := mutation.Detect(m, &schema, found.add)
	c := &content{Name: "a"}
	_, err = b.Put(t.Context(), drafted(c), nil, backend.PutOptions{})
	require.NoError(t, err)
	c.Tags = map[string]string{"color": "blue"}
	exits = true
	var goroutine sync.WaitGroup
	goroutine.Go(audit)
	goroutine.Wait()
	exits = false
	audit()
	require.Len(t, found.take(), 1)
}
