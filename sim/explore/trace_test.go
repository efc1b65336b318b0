package explore

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

// hashOf returns the hash of the trace that play makes.
func hashOf(play func(*trace)) uint64 {
	var t trace
	play(&t)
	return t.hash
}

func TestTheHashTellsApartWhatDiffers(t *testing.T) {
	object := func(rev store.Revision) *engine.Object[Thing] { return &engine.Object[Thing]{Key: "z", Revision: rev} }
	modified := func(was *engine.Object[Thing]) func(*trace) {
		return func(t *trace) {
			delivery(t, 1, engine.Event[Thing]{Type: engine.Modified, Revision: 9, Object: object(9), Prev: was})
		}
	}
	seen := map[uint64]string{}
	for what, play := range map[string]func(*trace){
		"nothing":              func(*trace) {},
		"a step":               func(t *trace) { t.step(1, script.Step{Do: script.Write}) },
		"a timer":              func(t *trace) { t.timer(time.Second) },
		"a timer later":        func(t *trace) { t.timer(2 * time.Second) },
		"a call":               func(t *trace) { t.call("list", 5, 1, nil) },
		"a call of another":    func(t *trace) { t.call("watch", 5, 1, nil) },
		"a call that fails":    func(t *trace) { t.call("list", 5, 1, errOutage) },
		"a result":             func(t *trace) { t.result(5, nil) },
		"a later result":       func(t *trace) { t.result(6, nil) },
		"an error":             func(t *trace) { t.result(5, errOutage) },
		"another error":        func(t *trace) { t.result(5, fmt.Errorf("it is %w", engine.ErrNotFound)) },
		"a list":               func(t *trace) { t.listed(5, 1) },
		"a longer list":        func(t *trace) { t.listed(5, 2) },
		"an end":               func(t *trace) { t.end(1, engine.ErrStopped) },
		"an end of another":    func(t *trace) { t.end(2, engine.ErrStopped) },
		"an end for another":   func(t *trace) { t.end(1, engine.ErrDeadline) },
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
func TestTheHashKnowsNoTexts(t *testing.T) {
	failed := func(text string) func(*trace) {
		return func(t *trace) { t.result(5, errors.New(text)) }
	}
	require.Equal(t, hashOf(failed("at 0xc0001")), hashOf(failed("at 0xc0002")))
}
