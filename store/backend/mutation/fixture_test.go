package mutation_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/backend/mutation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reports collects what a detector reports.
type reports struct {
	mu  sync.Mutex
	all []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

// take returns what was reported since the last call.
func (r *reports) take() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// box is an object with a value that can be changed in place.
type box struct {
	store.Object
	Value *content
}

type content struct {
	Name string
	Tags map[string]string
}

func boxSchema() store.Schema {
	return store.Schema{
		New:      func() *store.Object { return &new(box).Object },
		Clone:    func(o *store.Object) *store.Object { c := *store.As[box](o); return &c.Object },
		Pointer:  func(o *store.Object) any { return &store.As[box](o).Value },
		Key:      func(o *store.Object) string { return store.As[box](o).Value.Name },
		Describe: func(*store.Object) {},
		Size:     func(*store.Object) int { return store.DefaultSize },
		Equal:    func(a, b *store.Object) bool { return store.As[box](a).Value == store.As[box](b).Value },
	}
}

// drafted returns a box to be written.
func drafted(c *content) *store.Object {
	b := &box{Value: c}
	b.Key = c.Name
	return &b.Object
}

// detected is a backend in memory under a detector.
type detected struct {
	backend.Backend
	audit func()
	found *reports
}

func newDetected(t testing.TB) detected {
	t.Helper()
	schema := boxSchema()
	m, err := memory.New(schema, memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	found := &reports{}
	b, audit := mutation.Detect(m, &schema, found.add)
	return detected{b, audit, found}
}

// put writes a box over prev, which may be nil.
func (d detected) put(t testing.TB, c *content, prev *store.Object) *store.Object {
	t.Helper()
	o, err := d.Put(t.Context(), drafted(c), prev, backend.PutOptions{})
	require.NoError(t, err)
	return o
}
