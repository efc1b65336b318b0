package backend_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// pod is what the tests store.
type pod struct {
	Name  string
	Image string
}

func podSchema() store.Schema[pod] {
	return store.Schema[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"image": p.Image} },
	}
}

// watched is a memory backend that counts the calls of Storage, and lets a test
// interfere right before a write reaches it.
type watched struct {
	*memory.Backend[pod]
	gets, puts, removes int
	// interfere is called once, before the next Put or Remove.
	interfere func()
}

func (w *watched) Get(ctx context.Context, key string) (*store.Object[pod], error) {
	w.gets++
	return w.Backend.Get(ctx, key)
}

func (w *watched) Put(ctx context.Context, key string, value pod, expect store.Revision, opts backend.PutOptions) (*store.Object[pod], error) {
	w.puts++
	w.disturb()
	return w.Backend.Put(ctx, key, value, expect, opts)
}

func (w *watched) Remove(ctx context.Context, key string, expect store.Revision) (*store.Object[pod], error) {
	w.removes++
	w.disturb()
	return w.Backend.Remove(ctx, key, expect)
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
	*backend.Storage[pod]
	ctx   context.Context
	below *watched
	clock *backendtest.Clock
}

func newFixture(t *testing.T) *fixture {
	clock := backendtest.NewClock()
	b, err := memory.New(podSchema(), memory.Options{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	below := &watched{Backend: b}
	return &fixture{T: t, Storage: backend.NewStorage(below, podSchema()), ctx: t.Context(), below: below, clock: clock}
}

// create creates a pod with image.
func (f *fixture) create(name, image string) *store.Object[pod] {
	f.Helper()
	o, err := f.Create(f.ctx, pod{name, image}, backend.CreateOptions{})
	require.NoError(f, err)
	return o
}

// rival changes the pod's image behind Storage's back.
func (f *fixture) rival(name, image string) *store.Object[pod] {
	f.Helper()
	last, err := f.below.Backend.Get(f.ctx, name)
	require.NoError(f, err)
	o, err := f.below.Backend.Put(f.ctx, name, pod{name, image}, last.Revision, backend.PutOptions{})
	require.NoError(f, err)
	return o
}

// rivalDelete deletes the pod behind Storage's back.
func (f *fixture) rivalDelete(name string) {
	f.Helper()
	last, err := f.below.Backend.Get(f.ctx, name)
	require.NoError(f, err)
	_, err = f.below.Backend.Remove(f.ctx, name, last.Revision)
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
	require.Equal(f, image, o.Value.Image)
}

// setImage is an UpdateFunc that counts its calls.
func setImage(image string, calls *int) backend.UpdateFunc[pod] {
	return func(_ context.Context, current *store.Object[pod]) (pod, error) {
		*calls++
		p := current.Value
		p.Image = image
		return p, nil
	}
}
