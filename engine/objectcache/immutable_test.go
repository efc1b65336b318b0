package objectcache_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/usercode"
)

func TestImmutable_ReflectorStopsIfAndOnlyIf(t *testing.T) {
	const key = "ns/token"
	for _, test := range []struct {
		name    string
		initial *secret
		later   *secret
		stopped bool
	}{
		{"there is none", nil, nil, false},
		{"created mutable", nil, &secret{Name: key, Data: "1"}, false},
		{"created immutable", nil, &secret{Name: key, Data: "1", Immutable: true}, true},
		{"mutable stays so", &secret{Name: key, Data: "1"}, &secret{Name: key, Data: "2"}, false},
		{"mutable becomes immutable", &secret{Name: key, Data: "1"}, &secret{Name: key, Data: "2", Immutable: true}, true},
		{"immutable from the start", &secret{Name: key, Data: "1", Immutable: true}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t)
			if test.initial != nil {
				r.put(*test.initial)
			}
			ref := r.acquire(key)
			r.settle()
			last := test.initial
			if test.later != nil {
				r.put(*test.later)
				last = test.later
			}
			if last == nil {
				r.requireErr(ref, objectcache.ErrNotFound)
			} else {
				r.requireGet(ref, last.Data)
			}
			if test.stopped {
				r.requireRunning()
			} else {
				r.requireRunning(key)
			}
		})
	}
}

// An immutable object is served, even if the source deletes it, until all
// references are released.
func TestImmutable_IsStillServed(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "old", Immutable: true})
	ref := r.acquire("a")
	r.requireGet(ref, "old")
	r.delete("a")
	r.put(secret{Name: "a", Data: "new"})
	r.advance(10 * maxIdle)
	r.requireGet(ref, "old")
	another := r.acquire("a")
	ref.Release()
	r.requireGet(another, "old")
	require.Equal(t, 1, r.source.ListCalls())
	another.Release()
	r.settle()
	r.requireGet(r.acquire("a"), "new")
	r.requireRunning("a")
}

// The cache may not have had a turn since the last reference was released.
func TestImmutable_IsListedAnewForTheNextFirstReference(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "old", Immutable: true})
	ref := r.acquire("a")
	r.requireGet(ref, "old")
	r.delete("a")
	r.put(secret{Name: "a", Data: "new"})
	ref.Release()
	ref = r.acquire("a")
	r.requireGet(ref, "new")
	r.requireRunning("a")
}

func TestImmutable_APanicIsReportedAndMeansNo(t *testing.T) {
	r := newFixture(t, func(c *objectcache.Config[secret]) {
		c.Immutable = func(s secret) bool { return s.Immutable || s.Data[0] == '!' }
	})
	r.put(secret{Name: "a"}) // without data, the predicate panics
	ref := r.acquire("a")
	r.requireGet(ref, "")
	r.requireRunning("a")
	require.Len(t, r.told, 1)
	require.ErrorIs(t, r.told[0], usercode.ErrPanic)
	r.put(secret{Name: "a", Data: "!"})
	r.requireGet(ref, "!")
	r.requireRunning()
}
