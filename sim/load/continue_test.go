package load

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// boltStorage is a file with one type of objects.
type boltStorage struct {
	*bolt.Backend
	file *bolt.File
}

func (s boltStorage) Close() error { return errors.Join(s.Backend.Close(), s.file.Close()) }

// openBolt returns a function that opens the test's file.
func openBolt(t *testing.T) func(store.Schema) (backend.Backend, error) {
	path := filepath.Join(t.TempDir(), "state.db")
	return func(schema store.Schema) (backend.Backend, error) {
		f, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			return nil, err
		}
		b, err := bolt.New(f, "objects", bolt.Config{Schema: schema})
		return boltStorage{b, f}, err
	}
}

// The last process judges what a watcher has received in all of them.
func TestContinue_FindsWhatWasLostInAnotherProcess(t *testing.T) {
	var saved Saved
	h := History{Watchers: 2, Open: openBolt(t), Save: func(s *Saved) error { saved = *s; return nil }}
	for i := range 20 {
		h.Changes = append(h.Changes, trace.Change{Op: trace.Put, Key: fmt.Sprint(i % 5), Version: fmt.Sprint(i)})
	}
	begun, err := Replay(t.Context(), h)
	require.NoError(t, err)
	require.True(t, begun.OK())

	resume := saved
	h.Resume = &resume
	continued, err := Replay(t.Context(), h)
	require.NoError(t, err)
	require.True(t, continued.OK())
	require.Equal(t, 20, continued.Continued)
	require.EqualValues(t, 40, continued.DeliveredBefore)

	resume.Watchers[1].Received.Count--
	continued, err = Replay(t.Context(), h)
	require.NoError(t, err)
	require.Equal(t, 1, continued.Misfits)
	require.False(t, continued.OK())

	resume.Watchers[1].Received.Count++
	resume.Watchers[1].Misfits = 2
	continued, err = Replay(t.Context(), h)
	require.NoError(t, err)
	require.Equal(t, 2, continued.Misfits, "that the process before had found")
	require.False(t, continued.OK())
}

// What came before an event that stands for several can be judged only by the process that has received it.
func TestContinue_AfterAConflatedEventAnotherStretchBegins(t *testing.T) {
	h := &History{Watchers: 1, Policy: engine.Conflate, Save: func(*Saved) error { return nil }}
	r := newRun(h.plan(), Options{})
	r.history = &replay{History: h}
	w := newWatcher(r, &watchers{spec: &r.plan.Watchers[0]}, 0, 0)
	w.trail.Begin(1)
	w.trail.Receive(&engine.Event[content.Item]{Type: engine.Added, Revision: 2, Object: file("a", "1", 2)})
	w.trail.Reach(2)
	w.updatePosition(2)
	require.EqualValues(t, 1, w.position.Received.Count)
	w.trail.Receive(&engine.Event[content.Item]{Type: engine.Modified, Revision: 9, Marks: engine.Conflated, Object: file("a", "8", 9)})
	w.updatePosition(9)
	require.Equal(t, judge.Position{After: 9, Through: 9}, w.position.Received)
	require.EqualValues(t, 1, w.position.Conflated)
}

func TestContinue_NeedsTheSameWatchersAndStorageOfItsOwn(t *testing.T) {
	h := History{Watchers: 2, Resume: &Saved{Watchers: make([]WatcherPosition, 3)}}
	_, err := Replay(t.Context(), h)
	require.ErrorIs(t, err, ErrCannotContinue)
	require.ErrorContains(t, err, "3 watchers were saved")
	h = History{Watchers: 1, Via: ViaObjectCache, Save: func(*Saved) error { return nil }}
	_, err = Replay(t.Context(), h)
	require.ErrorIs(t, err, ErrCannotContinue)
	h.Via = ViaWatch
	h.Changes = []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}
	_, err = Replay(t.Context(), h)
	require.ErrorIs(t, err, ErrCannotContinue)
	require.ErrorContains(t, err, "ends with the process")
	open := openBolt(t)
	h.Open = func(schema store.Schema) (backend.Backend, error) {
		b, err := open(schema)
		return faulty.New(b, faulty.Options{Sparse: true}), err
	}
	_, err = Replay(t.Context(), h)
	require.ErrorIs(t, err, ErrCannotContinue)
	require.ErrorContains(t, err, "has changes of others among its revisions")
}

// A watcher that has to list, since its checkpoint has been compacted, knows what it had received before.
func TestContinue_FindsWhatWasLostBeforeACompaction(t *testing.T) {
	var saved Saved
	open := openBolt(t)
	h := History{Watchers: 2, Open: open, Save: func(s *Saved) error { saved = *s; return nil }}
	for i := range 10 {
		h.Changes = append(h.Changes, trace.Change{Op: trace.Put, Key: fmt.Sprint(i % 5), Version: fmt.Sprint(i)})
	}
	_, err := Replay(t.Context(), h)
	require.NoError(t, err)
	half := saved
	h.Resume = &half
	for i := range 10 {
		h.Changes = append(h.Changes, trace.Change{Op: trace.Put, Key: fmt.Sprint(i % 5), Version: fmt.Sprint(10 + i)})
	}
	_, err = Replay(t.Context(), h)
	require.NoError(t, err)

	h.Open = func(schema store.Schema) (backend.Backend, error) {
		b, err := open(schema)
		if err != nil {
			return nil, err
		}
		newest, err := b.Revision(t.Context())
		return b, errors.Join(err, b.Compact(t.Context(), newest))
	}
	for _, lost := range []int{0, 1} {
		half.Watchers[1].Received.Count -= uint64(lost)
		rep, err := Replay(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, 2, rep.Relisted)
		require.Equal(t, lost, rep.Misfits)
		require.Equal(t, lost == 0, rep.OK())
	}
}
