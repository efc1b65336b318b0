package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
)

// thing is what the engines keep.
type thing struct{ Name, Text, Color string }

func things() engine.Config[thing] {
	return engine.Config[thing]{
		BookmarkPeriod: 100 * time.Millisecond,
		Backoff:        engine.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}, // a watch is rarely open for long
		Key:            func(v thing) string { return v.Name },
		Labels:         func(v thing) labels.Set { return labels.Set{"color": v.Color} },
	}
}

// colored returns a value whose color changes with its text.
func colored(name, text string, n int) thing {
	return thing{Name: name, Text: text, Color: []string{"red", "blue"}[n%2]}
}

func encoded(t testing.TB, v thing) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// process is an engine with watches, as one process has it.
type process struct {
	*engine.Engine[thing]
	*killTest
	id       int
	backend  *recordingBackend
	watches  []*consumer
	watching sync.WaitGroup
}

// newProcess opens an engine. It is closed when the test ends.
func (x *killTest) newProcess(id int, endpoints []string) *process {
	x.Helper()
	cfg := things()
	ctx, cancel := context.WithTimeout(x.ctx, killPatience)
	defer cancel()
	b, err := open(ctx, etcd.Config{
		Prefix: x.cfg.Prefix, Endpoints: endpoints, Schema: cfg.Schema(),
		RequestTimeout: x.patience, ProgressEvery: time.Second,
	})
	require.NoError(x, err)
	x.Cleanup(func() { require.NoError(x, b.Close()) })
	p := &process{killTest: x, id: id, backend: &recordingBackend{Backend: b}}
	cfg.Backend = p.backend
	p.Engine, err = engine.New(cfg)
	require.NoError(x, err)
	x.Cleanup(func() { require.NoError(x, p.Engine.Close()) })
	return p
}

const (
	// pace is how often each client makes burstCalls reads and writes, as fast as it can:
	// all at the same time, so that they meet, and few enough for porcupine.
	pace       = 100 * time.Millisecond
	burstCalls = 2
	// roundKeys is how many keys the clients write in a round. Each round has keys of its
	// own, which bounds the calls of a key.
	roundKeys = 3
)

// client reads and writes keys until ctx ends.
func (x *killTest) client(ctx context.Context, id int) {
	p := x.engines[id%2]
	random := rand.New(rand.NewPCG(7, uint64(id)))
	known := map[string]*engine.Object[thing]{} // what it has read
	due := time.NewTicker(pace)
	defer due.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("k/%d/%d", x.round.Load(), random.IntN(roundKeys))
		if o, ok := x.read(id, p, key, random.IntN(2) == 0); ok {
			known[key] = o
		} // else it writes over what it has read before
		o := known[key]
		in := call{key: key}
		if o != nil {
			in.expect = o.Value.Text
		}
		if random.IntN(8) != 0 || o == nil {
			in.text = fmt.Sprintf("%d/%d", id, n)
		}
		x.write(id, p, in, o, n)
		if n%burstCalls == 0 {
			select {
			case <-due.C:
			case <-ctx.Done():
			}
		}
	}
}

// read reads an object, nil if there is none: from the cache, or from etcd. It reports
// whether that is known.
func (x *killTest) read(id int, p *process, key string, cached bool) (*engine.Object[thing], bool) {
	begun := x.calls.now()
	var o *engine.Object[thing]
	var err error
	if cached {
		o, err = p.Get(context.Background(), key, engine.GetOptions{})
	} else if stored, failed := p.backend.Get(context.Background(), key); failed != nil {
		err = failed
	} else {
		o = store.As[engine.Object[thing]](stored)
	}
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, false
	}
	text := ""
	if o != nil {
		text = o.Value.Text
	}
	x.calls.record(id, begun, call{key: key, read: true}, answer{text: text}, 0)
	return o, true
}

// write writes over an object, or deletes it. It waits for its outcome, whatever
// becomes of the test.
func (x *killTest) write(id int, p *process, in call, over *engine.Object[thing], n int) {
	ctx := context.Background()
	begun := x.calls.now()
	var o *engine.Object[thing]
	var err error
	switch {
	case over == nil:
		o, err = p.Create(ctx, colored(in.key, in.text, n))
	case in.text == "":
		o, err = p.Delete(ctx, in.key, engine.DeleteOptions{Preconditions: engine.Preconditions{Revision: over.Revision}})
	default:
		o, err = p.Replace(ctx, colored(in.key, in.text, n), over.Revision)
	}
	switch {
	case err == nil:
		x.calls.record(id, begun, in, answer{}, o.Revision)
	case backend.Uncertain(err):
		x.calls.record(id, begun, in, answer{unknown: true}, 0)
	case isConflict(err):
		x.calls.record(id, begun, in, answer{conflict: true}, 0)
	}
}

// foreignWrites writes two keys at one revision, as another program would, until ctx
// ends.
func (x *killTest) foreignWrites(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		var ops []clientv3.Op
		for i := range 2 {
			v := colored(fmt.Sprint("t/", i), fmt.Sprint("foreign ", n), n)
			ops = append(ops, clientv3.OpPut(x.place(v.Name), encoded(x, v)))
		}
		_, _ = x.raw.Txn(ctx).Then(ops...).Commit()
		select {
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// values returns the text of every object, read linearizably, trying until the engine
// is connected.
func (p *process) values() map[string]string {
	p.killTest.Helper()
	values := map[string]string{}
	require.Eventually(p.killTest, func() bool {
		l, err := p.List(context.Background(), engine.ListOptions{})
		if err != nil {
			return false
		}
		for _, o := range l.Items {
			values[o.Key] = o.Value.Text
		}
		return true
	}, killPatience, tick)
	return values
}

// read returns a revision that was the newest after the call, trying until the member
// answers.
func (p *process) read(t testing.TB) (at engine.Revision) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		at, err = p.backend.Revision(context.Background())
		return err == nil
	}, killPatience, 10*time.Millisecond)
	return at
}

// resume returns the events from a checkpoint through a revision.
func (p *process) resume(t testing.TB, from engine.Checkpoint, through engine.Revision) []string {
	t.Helper()
	lines, err := resumed(context.Background(), p.Engine, from, through)
	require.NoError(t, err)
	return lines
}

// resumed describes the events from a checkpoint through a revision.
func resumed(ctx context.Context, e *engine.Engine[thing], from engine.Checkpoint, through engine.Revision) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	at, err := e.RevisionOf(ctx, from)
	if err != nil {
		return nil, err
	}
	w, err := e.Watch(ctx, engine.WatchOptions{From: at})
	for errors.Is(err, engine.ErrNotReady) && ctx.Err() == nil { // it is connecting
		wait(tick)
		w, err = e.Watch(ctx, engine.WatchOptions{From: at})
	}
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for w.Revision() < through {
		events, err := w.Next(ctx)
		if err != nil {
			return lines, err
		}
		for _, ev := range events {
			if ev.Revision <= through {
				lines = append(lines, describe(ev.Revision, ev.Type.String(), ev.Object.Value))
			}
		}
	}
	return lines, nil
}

func describe(at engine.Revision, kind string, v thing) string {
	return fmt.Sprintf("%d %s %s=%s %s", at, kind, v.Name, v.Text, v.Color)
}
