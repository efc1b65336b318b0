package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// call is one call in a history. Every write has a text of its own, so that a text
// says which write an object is of; "" stands for no object.
type call struct {
	key string
	// read has no expect and text.
	read         bool
	expect, text string
}

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
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(call).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{""} },
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

// history is what clients did, and what they were told.
type history struct {
	start time.Time

	mu    sync.Mutex
	calls []porcupine.Operation
	acked map[store.Revision]string // the text of the writes that were acknowledged
	maybe map[string]bool           // those whose outcome is unknown
}

func (h *history) now() int64 { return int64(time.Since(h.start)) }

// record takes down a call. One whose outcome is unknown may take effect at any time
// from then on.
func (h *history) record(client int, begun int64, in call, out answer, at store.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ended := h.now()
	switch {
	case out.unknown:
		ended = 1 << 62
		h.maybe[in.text] = true
	case !in.read && !out.conflict && in.text != "":
		h.acked[at] = in.text
	}
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: ended})
}

// client reads and writes keys until ctx ends. It goes on after each failure by
// reading.
func (h *history) client(ctx context.Context, id int, b *etcd.Backend) {
	random := rand.New(rand.NewPCG(7, uint64(id)))
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprint("k", random.IntN(3))
		begun := h.now()
		o, err := b.Get(context.Background(), key)
		if err != nil && !isNotFound(err) {
			continue
		}
		h.record(id, begun, call{key: key, read: true}, answer{text: textOr(o)}, 0)
		h.write(id, b, call{key: key, expect: textOr(o), text: fmt.Sprintf("%d/%d", id, n)}, o, random.IntN(8) == 0)
	}
}

// write writes over prev, or removes it.
func (h *history) write(id int, b *etcd.Backend, in call, prev *store.Object, remove bool) {
	begun := h.now()
	var o *store.Object
	var err error
	if remove && prev != nil {
		in.text = ""
		o, err = b.Remove(context.Background(), prev)
	} else {
		o, err = b.Put(context.Background(), draft(in.key, in.text), prev, backend.PutOptions{})
	}
	switch {
	case err == nil:
		h.record(id, begun, in, answer{}, o.Revision)
	case backend.Uncertain(err):
		h.record(id, begun, in, answer{unknown: true}, 0)
	case isConflict(err):
		h.record(id, begun, in, answer{conflict: true}, 0)
	}
}

func textOr(o *store.Object) string {
	if o == nil {
		return ""
	}
	return textOf(o)
}

// A member is killed and cut off again and again, while two processes write the same
// objects and a third watches them: what was acknowledged is there, what is uncertain
// was done at most once, and the watch sees all of it, once and in order.
func TestKill_NothingAcknowledgedIsLostOrRepeated(t *testing.T) {
	member := etcdtest.StartMember(t)
	proxy := etcdtest.StartProxy(t, member.Endpoint)
	f := &fixture{TB: t, ctx: context.Background(), proxy: proxy, cfg: etcd.Config{
		Prefix: newPrefix(), Schema: backendtest.Schema(), Endpoints: []string{proxy.Endpoint}, RequestTimeout: 3 * time.Second,
		ProgressEvery: 10 * time.Second,
	}}
	first, second, reader := f.open(), f.open(), f.open()
	f.Backend = reader
	w := f.watch(f.revision(), "")

	h := &history{start: time.Now(), acked: map[store.Revision]string{}, maybe: map[string]bool{}}
	ctx, stop := context.WithCancel(f.ctx)
	var clients sync.WaitGroup
	for id, b := range []*etcd.Backend{first, second, first, second} {
		clients.Go(func() { h.client(ctx, id, b) })
	}
	for round := range 5 {
		wait(200 * time.Millisecond)
		switch round % 3 {
		case 0:
			member.Restart()
		case 1:
			proxy.Cut()
			wait(50 * time.Millisecond)
			proxy.Heal()
		case 2:
			proxy.Mute()
			wait(50 * time.Millisecond)
			proxy.Heal()
		}
	}
	wait(200 * time.Millisecond)
	stop()
	clients.Wait()

	t.Logf("%d calls, %d writes acknowledged, %d unknown", len(h.calls), len(h.acked), len(h.maybe))
	require.Greater(t, len(h.acked), 20, "the clients got something done")
	h.judge(t, w.readAll(f.revision()))
	result, _ := porcupine.CheckOperationsVerbose(register.ToModel(), h.calls, time.Minute)
	require.Equal(t, porcupine.Ok, result)
}

// judge compares what was acknowledged with the events of a watch.
func (h *history) judge(t *testing.T, events []store.Event) {
	t.Helper()
	seen := map[string]bool{}
	for _, ev := range events {
		if ev.Type == store.Deleted {
			continue
		}
		text := textOf(ev.Object)
		require.False(t, seen[text], "%q was written twice", text)
		seen[text] = true
		if acked, known := h.acked[ev.Revision]; known {
			require.Equal(t, acked, text)
		} else {
			require.True(t, h.maybe[text], "%v was neither acknowledged nor uncertain", ev)
		}
		delete(h.acked, ev.Revision)
	}
	require.Empty(t, h.acked, "acknowledged, but not seen")
}

// readAll returns the events up to a revision.
func (fo *follower) readAll(through store.Revision) (events []store.Event) {
	fo.Helper()
	for fo.through < through {
		batch, err := fo.Next(100)
		require.NoError(fo, err)
		require.Equal(fo, fo.through, batch.After)
		for _, ev := range batch.Events {
			require.Greater(fo, ev.Revision, fo.through)
		}
		fo.through = batch.Through
		events = append(events, batch.Events...)
		if len(batch.Events) == 0 && fo.through < through {
			fo.await()
		}
	}
	return events
}
