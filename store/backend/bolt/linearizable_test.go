package bolt_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/linearizability"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// call is one operation on one key. Its text is its own.
type call struct {
	verb   string // "get", "put" or "remove"
	key    string
	expect store.Revision
	text   string
}

// answer is what came of a call. One whose outcome is unknown may have been done
// at any time from then on, or never.
type answer struct {
	revision store.Revision
	text     string
	err      error
	unknown  bool
}

// register is what a key holds by the model: nothing, or a text. The revision is
// zero as long as no answer has told it.
type register struct {
	text     string
	revision store.Revision
	exists   bool
}

// model is the contract of Get, Put and Remove for one key; an unknown outcome
// leads to two states.
var model = (&porcupine.NondeterministicModel{
	Partition: linearizability.ByKey(func(c call) string { return c.key }),
	Init:      func() []any { return []any{register{}} },
	Step: func(state, input, output any) []any {
		return step(state.(register), input.(call), output.(answer))
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// step returns the states that the call c, answered with a, can lead to from r.
func step(r register, c call, a answer) []any {
	// An object whose revision is not known yet may be at the one expected.
	matches := !r.exists && c.expect == 0 || r.exists && c.expect != 0 && (r.revision == c.expect || r.revision == 0)
	after := register{text: c.text, revision: a.revision, exists: true}
	if c.verb == "remove" {
		after = register{}
	}
	switch {
	case c.verb == "get" && errors.Is(a.err, store.ErrNotFound):
		return only(!r.exists, r)
	case c.verb == "get":
		known := register{text: r.text, revision: a.revision, exists: true}
		return only(a.err == nil && r.exists && r.text == a.text && (r.revision == a.revision || r.revision == 0), known)
	case a.unknown:
		return append(only(matches, after), r)
	case a.err == nil:
		return only(matches, after)
	case errors.Is(a.err, store.ErrExists):
		return only(r.exists && c.expect == 0, r)
	case errors.Is(a.err, store.ErrNotFound):
		return only(!r.exists && c.expect != 0, r)
	case errors.Is(a.err, store.ErrConflict):
		return only(r.exists && r.revision != c.expect, r)
	}
	return only(errors.Is(a.err, backend.ErrFull) || errors.Is(a.err, backend.ErrFailed), r)
}

func only(allowed bool, r register) []any {
	if !allowed {
		return nil
	}
	return []any{r}
}

// perform makes the call.
func (f *fixture) perform(c call) answer {
	var o, prev *store.Object
	var err error
	if c.expect != 0 {
		prev = &store.Object{Key: c.key, Revision: c.expect}
	}
	switch c.verb {
	case "get":
		o, err = f.Get(f.ctx, c.key)
	case "put":
		o, err = f.Put(f.ctx, draft(c.key, c.text), prev, backend.PutOptions{})
	case "remove":
		o, err = f.Remove(f.ctx, prev)
	}
	if err != nil {
		return answer{err: err, unknown: backend.Uncertain(err)}
	}
	return answer{revision: o.Revision, text: textOf(o)}
}

// caller makes random calls of its own, over restarts.
type caller struct {
	id     int
	random *rand.Rand
	known  map[string]store.Revision
	calls  int
}

func (c *caller) call(f *fixture, moment *atomic.Int64) porcupine.Operation {
	c.calls++
	in := call{
		verb: []string{"get", "put", "put", "remove"}[c.random.IntN(4)], key: fmt.Sprint("k", c.random.IntN(3)),
		text: fmt.Sprintf("%d.%d", c.id, c.calls),
	}
	in.expect = c.known[in.key]
	if in.verb == "remove" && in.expect == 0 {
		in.verb = "get"
	}
	op := porcupine.Operation{ClientId: c.id, Input: in, Call: moment.Add(1)}
	out := f.perform(in)
	op.Output, op.Return = out, moment.Add(1)
	if out.unknown {
		op.Return = math.MaxInt64 // it may still happen
	}
	if c.known[in.key] = out.revision; in.verb == "remove" {
		c.known[in.key] = 0
	}
	return op
}

// Writers meet full and failing disks, and restarts: what they were told, and
// what they were not told, is that of one register for each key.
func TestLinearizable_OverRestartsAndFailingDisks(t *testing.T) {
	f, disk := newFaulty(t)
	random := rand.New(rand.NewPCG(7, 7))
	var moment atomic.Int64
	var all []porcupine.Operation
	var callers []*caller
	for id := range 4 {
		callers = append(callers, &caller{id: id, random: rand.New(rand.NewPCG(1, uint64(id))), known: map[string]store.Revision{}})
	}
	unknown := 0
	for range 8 {
		for range random.IntN(8) { // a group of writers is one write to the disk
			disk.Add(journaltest.Fault{})
			if random.IntN(5) == 0 {
				disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
			}
		}
		disk.Add(journaltest.Fault{
			Phase: journaltest.Phase(random.IntN(2)),
			Err:   &bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO},
		})
		histories := make([][]porcupine.Operation, len(callers))
		var wg sync.WaitGroup
		for i, c := range callers {
			wg.Go(func() {
				for range 25 {
					histories[i] = append(histories[i], c.call(f, &moment))
				}
			})
		}
		wg.Wait()
		for _, h := range histories {
			for _, op := range h {
				if op.Output.(answer).unknown {
					unknown++
				}
			}
			all = append(all, h...)
		}
		f.reopen(0)
		disk = f.disk
	}
	require.Positive(t, unknown)
	require.True(t, porcupine.CheckOperations(model, all))
}

// The check is worth nothing if it takes everything for linearizable.
func TestLinearizable_FindsWhatIsNot(t *testing.T) {
	put := porcupine.Operation{Input: call{verb: "put", key: "k", text: "a"}, Output: answer{revision: 2, text: "a"}, Call: 1, Return: 2}
	lost := porcupine.Operation{Input: call{verb: "get", key: "k"}, Output: answer{err: store.ErrNotFound}, Call: 3, Return: 4}
	require.False(t, porcupine.CheckOperations(model, []porcupine.Operation{put, lost}), "an acknowledged write is lost")
	put.Output, put.Return = answer{err: backend.ErrUncertain, unknown: true}, math.MaxInt64
	require.True(t, porcupine.CheckOperations(model, []porcupine.Operation{put, lost}), "one whose outcome is unknown may be")
	found := porcupine.Operation{Input: call{verb: "get", key: "k"}, Output: answer{revision: 2, text: "a"}, Call: 5, Return: 6}
	require.True(t, porcupine.CheckOperations(model, []porcupine.Operation{put, lost, found}))
	lost.Call, lost.Return = 7, 8
	require.False(t, porcupine.CheckOperations(model, []porcupine.Operation{put, found, lost}), "not after it was seen")
}
