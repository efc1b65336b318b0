package execution

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/store"
)

var errBroken = errors.New("broken")

// hashOf returns the hash of the trace that play makes.
func hashOf(play func(*Trace)) uint64 {
	t := Trace{Errors: []error{errBroken, engine.ErrNotFound, engine.ErrStopped, engine.ErrDeadline}}
	play(&t)
	return t.Hash
}

func TestTrace_HashTellsApartWhatDiffers(t *testing.T) {
	object := func(rev store.Revision) *engine.Object[string] {
		return &engine.Object[string]{Key: "z", Revision: rev}
	}
	modified := func(was *engine.Object[string]) func(*Trace) {
		return func(t *Trace) {
			Delivery(t, 1, engine.Event[string]{Type: engine.Modified, Revision: 9, Object: object(9), Prev: was})
		}
	}
	seen := map[uint64]string{}
	for what, play := range map[string]func(*Trace){
		"nothing":              func(*Trace) {},
		"a step":               func(t *Trace) { t.Step(1, script.Step{Do: script.Write}) },
		"a timer":              func(t *Trace) { t.timer(time.Second) },
		"a timer later":        func(t *Trace) { t.timer(2 * time.Second) },
		"a call":               func(t *Trace) { t.Call("list", 5, 1, nil) },
		"a call of another":    func(t *Trace) { t.Call("watch", 5, 1, nil) },
		"a call that fails":    func(t *Trace) { t.Call("list", 5, 1, errBroken) },
		"a result":             func(t *Trace) { t.Result(5, nil) },
		"a later result":       func(t *Trace) { t.Result(6, nil) },
		"an error":             func(t *Trace) { t.Result(5, errBroken) },
		"another error":        func(t *Trace) { t.Result(5, fmt.Errorf("it is %w", engine.ErrNotFound)) },
		"a list":               func(t *Trace) { t.Listed(5, 1) },
		"a longer list":        func(t *Trace) { t.Listed(5, 2) },
		"an end":               func(t *Trace) { t.End(1, engine.ErrStopped) },
		"an end of another":    func(t *Trace) { t.End(2, engine.ErrStopped) },
		"an end for another":   func(t *Trace) { t.End(1, engine.ErrDeadline) },
		"an event":             modified(object(7)),
		"an event after other": modified(object(8)),
		"an event after none":  modified(nil),
	} {
		hash := hashOf(play)
		require.NotContains(t, seen, hash, "%s and %s", what, seen[hash])
		seen[hash] = what
	}
}

// An error's text may depend on an address or on the order of a map.
func TestTrace_HashIgnoresErrorTexts(t *testing.T) {
	failed := func(text string) func(*Trace) {
		return func(t *Trace) { t.Result(5, errors.New(text)) }
	}
	require.Equal(t, hashOf(failed("at 0xc0001")), hashOf(failed("at 0xc0002")))
}
