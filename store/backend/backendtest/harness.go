package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Item is an object of the checks: a header and a value.
type Item struct {
	store.Object
	Value Value
}

// Value is what the checks store. It can be encoded as JSON.
type Value struct {
	Key  string
	Text string
	// Poison makes the schema panic when a backend asks for the value or its size.
	Poison bool `json:",omitempty"`
	// Stamped: the schema puts the object's revision into Revision.
	Stamped  bool           `json:",omitempty"`
	Revision store.Revision `json:",omitempty"`
}

// WithRevision returns the value that an object at rev has. A schema of your own needs
// it for SetRevision.
func (v Value) WithRevision(rev store.Revision) Value {
	if v.Stamped {
		v.Revision = rev
	}
	return v
}

// Schema returns the schema of [Item], with the label "text" and the field "key".
func Schema() store.Schema {
	return store.Schema{
		Fields:  store.NewColumns("key"),
		New:     func() *store.Object { return &new(Item).Object },
		Clone:   func(o *store.Object) *store.Object { c := *store.As[Item](o); return &c.Object },
		Pointer: func(o *store.Object) any { return valueOf(o) },
		Key:     func(o *store.Object) string { return store.As[Item](o).Value.Key },
		Describe: func(o *store.Object) {
			v := store.As[Item](o).Value
			o.Labels, o.Fields = store.LabelsOf(labels.Set{"text": v.Text}), []string{v.Key}
		},
		Size:  func(o *store.Object) int { return len(valueOf(o).Text) },
		Equal: func(a, b *store.Object) bool { return store.As[Item](a).Value == store.As[Item](b).Value },
		SetRevision: func(o *store.Object, rev store.Revision) {
			v := valueOf(o)
			*v = v.WithRevision(rev)
		},
	}
}

// valueOf returns the value of an item. It panics if that is poisoned.
func valueOf(o *store.Object) *Value {
	v := &store.As[Item](o).Value
	if v.Poison {
		panic("poisoned item")
	}
	return v
}

// Draft returns an object with this value, to be written to a [backend.Backend].
func Draft(v Value) *store.Object {
	draft := &Item{Value: v}
	draft.Key = v.Key
	schema.Describe(&draft.Object)
	return &draft.Object
}

// schema is the schema of all items.
var schema = Schema()

// Harness is a backend to check, with what the checks need besides.
type Harness struct {
	// Backend is new and empty. Run closes it, or the backend that replaced it by Reopen.
	Backend backend.Backend
	// Pass makes d pass for the backend: when it returns, objects that expire within d
	// are deleted, or will be soon. With a virtual clock that is its Advance; for a
	// backend with real time it waits.
	Pass func(d time.Duration)
	// Patience is how long the checks wait for something that must happen, before they
	// fail. Zero means 30 s.
	Patience time.Duration
	// TTLSlack is how long after its TTL an object may still be there.
	TTLSlack time.Duration
	// Reopen closes the backend, makes down pass, and opens the same storage as a new
	// process would. Its result replaces Backend. Nil if the storage does not outlive
	// the backend: then restarts are not checked.
	Reopen func(down time.Duration) backend.Backend
	// Another opens another backend on the same storage, as another process would
	// while this one runs. The check closes it. Nil if the storage cannot be shared:
	// then that is not checked.
	Another func() backend.Backend
	// Transact writes several values and removes several keys in one transaction with
	// one revision, as a foreign program would, and returns the revision. Nil if each
	// revision is one change.
	Transact func(put []Value, remove []string) store.Revision
}

// Factory makes a new, empty backend for the schema. It registers its cleanup with
// t.Cleanup.
type Factory func(t testing.TB, schema store.Schema) Harness

// T is the part of [*testing.T] that checks use. If it has the method Skip as well, that
// is called for checks that do not apply to the backend; otherwise those pass. It never gains methods.
type T interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// Check checks one behaviour of a backend.
type Check struct {
	// Name is the behaviour, such as "Create_OfAnExistingKeyFails".
	Name string
	// Run checks h, which must be new, and fails t if the backend is wrong.
	Run func(t T, h Harness)
}

// Run runs every check as a subtest, each on a backend of its own.
func Run(t *testing.T, newBackend Factory) {
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			h := newBackend(t, Schema())
			open := &h.Backend
			defer func() { require.NoError(t, (*open).Close()) }()
			if reopen := h.Reopen; reopen != nil {
				h.Reopen = func(down time.Duration) backend.Backend { *open = reopen(down); return *open }
			}
			check.Run(t, h)
		})
	}
}

// Checks returns all checks, for callers that run them themselves.
func Checks() []Check {
	var checks []Check
	for _, group := range [][]check{
		writeChecks, readChecks, pageChecks, historyChecks, watchChecks, notifyChecks, lifeChecks,
		restartChecks, sharingChecks,
	} {
		for _, c := range group {
			checks = append(checks, Check{c.name, func(t T, h Harness) { c.run(newFixture(t, h)) }})
		}
	}
	return checks
}

// check is a [Check] that runs on a fixture.
type check struct {
	name string
	run  func(x *fixture)
}
