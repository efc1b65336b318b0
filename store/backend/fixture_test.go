package backend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// began is when the clocks of the tests start.
var began = time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)

// pod is what the tests store.
type pod struct {
	store.Object
	Value podValue
}

type podValue struct{ Name, Image string }

func podSchema() store.Schema {
	return store.Schema{
		New:      func() *store.Object { return &new(pod).Object },
		Clone:    func(o *store.Object) *store.Object { c := *store.As[pod](o); return &c.Object },
		Pointer:  func(o *store.Object) any { return &store.As[pod](o).Value },
		Key:      func(o *store.Object) string { return store.As[pod](o).Value.Name },
		Describe: func(o *store.Object) { o.Labels = store.LabelsOf(labels.Set{"image": imageOf(o)}) },
		Size:     func(*store.Object) int { return store.DefaultSize },
		Equal:    func(a, b *store.Object) bool { return store.As[pod](a).Value == store.As[pod](b).Value },
	}
}

// newPod returns a pod to be written.
func newPod(name, image string) *store.Object { return &(&pod{Value: podValue{name, image}}).Object }

// imageOf returns a pod's image.
func imageOf(o *store.Object) string { return store.As[pod](o).Value.Image }

// drafted returns a pod as backends take it: with its key and labels.
func drafted(name, image string) *store.Object {
	o := newPod(name, image)
	o.Key = name
	podSchema().Describe(o)
	return o
}

// watched is a memory backend that counts the calls of Storage, and lets a test
// interfere right before a write reaches it.
type watched struct {
	*memory.Backend
	gets, puts, removes int
	// interfere is called once, before the next Put or Remove.
	interfere func()
	// unanswered: the next Put or Remove is done, but its answer is lost.
	unanswered bool
}

func (w *watched) Get(ctx context.Context, key string) (*store.Object, error) {
	w.gets++
	return w.Backend.Get(ctx, key)
}

func (w *watched) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	w.puts++
	w.disturb()
	return w.answer("put", draft.Key)(w.Backend.Put(ctx, draft, prev, opts))
}

func (w *watched) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	w.removes++
	w.disturb()
	return w.answer("remove", prev.Key)(w.Backend.Remove(ctx, prev))
}

// answer passes an answer on, unless it is to be lost.
func (w *watched) answer(verb, key string) func(*store.Object, error) (*store.Object, error) {
	return func(o *store.Object, err error) (*store.Object, error) {
		if !w.unanswered {
			return o, err
		}
		w.unanswered = false
		return nil, &backend.UncertainError{Verb: verb, Key: key, Cause: errors.New("the connection was cut")}
	}
}

func (w *watched) disturb() {
	if f := w.interfere; f != nil {
		w.interfere = nil
		f()
	}
}

// fixture is a Storage over a watched backend.
type fixture struct {
	*testing.T
	*backend.Storage
	ctx   context.Context
	below *watched
	clock *clock.Virtual
}

func newFixture(t *testing.T) *fixture {
	virtual := clock.NewVirtual(began)
	b, err := memory.New(podSchema(), memory.Options{Clock: virtual, FirstRevision: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	below := &watched{Backend: b}
	return &fixture{T: t, Storage: backend.NewStorage(below, podSchema()), ctx: t.Context(), below: below, clock: virtual}
}

// create creates a pod with image.
func (f *fixture) create(name, image string) *store.Object {
	f.Helper()
	o, err := f.Create(f.ctx, newPod(name, image), backend.CreateOptions{})
	require.NoError(f, err)
	return o
}

// rival changes the pod's image behind Storage's back.
func (f *fixture) rival(name, image string) *store.Object {
	f.Helper()
	last, err := f.below.Backend.Get(f.ctx, name)
	require.NoError(f, err)
	o, err := f.below.Backend.Put(f.ctx, drafted(name, image), last, backend.PutOptions{})
	require.NoError(f, err)
	return o
}

// rivalDelete deletes the pod behind Storage's back.
func (f *fixture) rivalDelete(name string) {
	f.Helper()
	last, err := f.below.Backend.Get(f.ctx, name)
	require.NoError(f, err)
	_, err = f.below.Backend.Remove(f.ctx, last)
	require.NoError(f, err)
}

// holds demands that the pod is there with image, or not there for "".
func (f *fixture) holds(name, image string) {
	f.Helper()
	o, err := f.below.Backend.Get(f.ctx, name)
	if image == "" {
		require.ErrorIs(f, err, store.ErrNotFound)
		return
	}
	require.NoError(f, err)
	require.Equal(f, image, imageOf(o))
}

// setImage is an UpdateFunc that counts its calls.
func setImage(image string, calls *int) backend.UpdateFunc {
	return func(_ context.Context, current *store.Object) (*store.Object, error) {
		*calls++
		return newPod(store.As[pod](current).Value.Name, image), nil
	}
}
