package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Item is what the checks store. It can be encoded as JSON.
type Item struct {
	Key   string
	Value string
	// Poison makes the schema's Labels panic.
	Poison bool `json:",omitempty"`
}

// Schema returns how the checks' items are to be read: the label "value" and
// the field "key" are what the names say.
func Schema() store.Schema[Item] {
	return store.Schema[Item]{
		Key: func(i Item) string { return i.Key },
		Labels: func(i Item) labels.Set {
			if i.Poison {
				panic("poisoned item")
			}
			return labels.Set{"value": i.Value}
		},
		Fields: func(i Item) fields.Set { return fields.Set{"key": i.Key} },
	}
}

// Harness is a backend to be checked, and what the checks need beside it.
type Harness struct {
	// Backend is new and empty. Run closes it.
	Backend backend.Backend[Item]
	// Pass lets d go by for the backend: when it returns, what expires within d
	// is deleted, or soon will be. With a [Clock] that is its Advance; a backend
	// that lives by real time waits.
	Pass func(d time.Duration)
	// Patience is how long the checks wait for something that is bound to
	// happen, before they say that it did not. Zero means 30 s.
	Patience time.Duration
}

// Factory makes a new, empty backend over schema. It leaves what it needs to
// clean up to t.Cleanup.
type Factory func(t testing.TB, schema store.Schema[Item]) Harness

// T is what a check needs of a test. [*testing.T] has it.
type T interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// Check is one thing that a backend must get right.
type Check struct {
	// Name begins with the row that it holds, as in "Row003_...", or with
	// "Contract_".
	Name string
	// Run checks h, which must be new. It fails t if the backend is wrong.
	Run func(t T, h Harness)
}

// Run runs every check as a subtest, each on a backend of its own.
func Run(t *testing.T, make Factory) {
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			h := make(t, Schema())
			defer func() { require.NoError(t, h.Backend.Close()) }()
			check.Run(t, h)
		})
	}
}

// Checks returns all checks, for those who run them in their own way.
func Checks() []Check {
	var checks []Check
	for _, group := range [][]check{
		writeChecks, readChecks, pageChecks, historyChecks, watchChecks, notifyChecks, lifeChecks,
	} {
		for _, c := range group {
			checks = append(checks, Check{c.name, func(t T, h Harness) { c.run(newRig(t, h)) }})
		}
	}
	return checks
}

// check is a Check as it is written: on a rig.
type check struct {
	name string
	run  func(r *rig)
}
