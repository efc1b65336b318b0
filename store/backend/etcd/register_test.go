package etcd_test

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/linearizability"
)

// call is one call in a history. Every write has a text of its own, so that a text
// says which write an object is of; "" stands for no object.
type call struct {
	key string
	// read has no expect and text.
	read         bool
	expect, text string
}

// mark names a write: its text, or for a deletion what it deletes.
func (c call) mark() string {
	if c.text == "" {
		return deletion(c.expect)
	}
	return c.text
}

func deletion(of string) string { return "deletion of " + of }

// answer is what a call returned.
type answer struct {
	text string // of a read
	// conflict: the object was not the one that was expected. unknown: the outcome
	// is.
	conflict, unknown bool
}

// register is an object under a key, with writes whose outcome is unknown: they were
// done at some time, or never.
var register = porcupine.NondeterministicModel{
	Partition: linearizability.ByKey(func(c call) string { return c.key }),
	Init:      func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		text, in, out := state.(string), input.(call), output.(answer)
		expected := text == in.expect
		switch {
		case in.read && out.text == text, !in.read && out.conflict && !expected, out.unknown && !expected:
			return []any{text}
		case in.read, out.conflict, !expected:
			return nil
		case out.unknown:
			return []any{text, in.text}
		}
		return []any{in.text}
	},
}

// calls is what clients did, and what they were told.
type calls struct {
	start time.Time

	mu    sync.Mutex
	all   []porcupine.Operation
	acked map[engine.Revision]string // the marks of the writes that were acknowledged
	maybe map[string]bool            // those whose outcome is unknown
	// done counts the acknowledged writes of each process, and wake tells of them.
	done [2]int
	wake *sync.Cond
}

func newCalls() *calls {
	c := &calls{start: time.Now(), acked: map[engine.Revision]string{}, maybe: map[string]bool{}}
	c.wake = sync.NewCond(&c.mu)
	return c
}

func (c *calls) now() int64 { return int64(time.Since(c.start)) }

// never is when a call ends whose outcome is unknown.
const never = 1 << 62

// record records a call. One whose outcome is unknown may take effect at any time from
// then on.
func (c *calls) record(client int, begun int64, in call, out answer, at engine.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.now()
	switch {
	case out.unknown:
		ended = never
		c.maybe[in.mark()] = true
	case !in.read && !out.conflict:
		c.acked[at] = in.mark()
		c.done[client%2]++
		c.wake.Broadcast()
	}
	c.all = append(c.all, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: ended})
}

// awaitWrites waits until a process has been acknowledged n more writes. It reports
// whether that was in time.
func (c *calls) awaitWrites(process, n int) bool {
	late := false
	timer := time.AfterFunc(killPatience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.wake.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for want := c.done[process] + n; c.done[process] < want; c.wake.Wait() {
		if late {
			return false
		}
	}
	return true
}

func TestRegister_TellsLinearizableHistories(t *testing.T) {
	write := func(expect, text string) call { return call{key: "k", expect: expect, text: text} }
	read := call{key: "k", read: true}
	unknown, conflict := answer{unknown: true}, answer{conflict: true}
	type did struct {
		call
		answer
	}
	for name, test := range map[string]struct {
		calls []did // one after the other
		want  porcupine.CheckResult
	}{
		"reads what was written":       {[]did{{write("", "a"), answer{}}, {read, answer{text: "a"}}}, porcupine.Ok},
		"reads what was there before":  {[]did{{write("", "a"), answer{}}, {read, answer{}}}, porcupine.Illegal},
		"writes over another":          {[]did{{write("", "a"), answer{}}, {write("", "b"), answer{}}}, porcupine.Illegal},
		"refused for another":          {[]did{{write("", "a"), answer{}}, {write("", "b"), conflict}}, porcupine.Ok},
		"refused for what it expected": {[]did{{write("", "a"), answer{}}, {write("a", "b"), conflict}}, porcupine.Illegal},
		"unknown and done late":        {[]did{{write("", "a"), unknown}, {read, answer{}}, {read, answer{text: "a"}}}, porcupine.Ok},
		"unknown and never done":       {[]did{{write("", "a"), unknown}, {read, answer{}}, {write("", "b"), answer{}}}, porcupine.Ok},
		"unknown and taken back":       {[]did{{write("", "a"), unknown}, {read, answer{text: "a"}}, {read, answer{}}}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			var history []porcupine.Operation
			for i, d := range test.calls {
				op := porcupine.Operation{ClientId: i, Input: d.call, Call: int64(2 * i), Output: d.answer, Return: int64(2*i + 1)}
				if d.unknown {
					op.Return = never
				}
				history = append(history, op)
			}
			result, _ := porcupine.CheckOperationsVerbose(register.ToModel(), history, killPatience)
			require.Equal(t, test.want, result)
		})
	}
}
