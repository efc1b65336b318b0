package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// A later clock gives a higher revision than storage that was made before can
// have come to meanwhile.
func TestFirstRevisionAt_RisesWithTheClock(t *testing.T) {
	require.Equal(t, store.Revision(4_000_000), memory.FirstRevisionAt(time.Unix(1, 0)))
	for _, early := range []time.Time{{}, time.Unix(-9_000_000_000_000, 0), time.Unix(0, 0), time.Unix(-1, 0)} {
		require.Equal(t, store.Revision(1), memory.FirstRevisionAt(early), "the clock shows %v", early)
	}
	for _, late := range []int64{1 << 41, 1 << 42, 1 << 43, 1 << 62} {
		require.Equal(t, store.Revision(1<<62), memory.FirstRevisionAt(time.Unix(late, 0)), "the clock shows %d", late)
	}
	require.Less(t, memory.FirstRevisionAt(time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)), store.Revision(1<<53))
}

// Storage starts at the clock's revision. What comes before it was another
// storage's, and is refused.
func TestNew_StartsAtTheClocksRevision(t *testing.T) {
	now := clock.NewVirtual(began)
	b, err := memory.New(lamps, memory.Options{Clock: now})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	first, err := b.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.FirstRevisionAt(began), first)
	before := memory.FirstRevisionAt(began.Add(-time.Second))
	_, err = b.Watch(t.Context(), backend.WatchOptions{From: before, Notify: func() {}})
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = b.List(t.Context(), backend.ListOptions{Revision: before})
	require.ErrorIs(t, err, store.ErrExpired)

	_, err = b.List(t.Context(), backend.ListOptions{Continue: backend.Token{Revision: before, Start: "a"}.Encode()})
	var expired *backend.ExpiredContinueError
	require.ErrorAs(t, err, &expired, "a page of a list of that storage")
	require.Equal(t, &store.ExpiredError{Requested: before, Oldest: first}, expired.Expired)
	_, err = b.List(t.Context(), backend.ListOptions{Continue: expired.Continue})
	require.NoError(t, err)

	_, err = memory.New(lamps, memory.Options{FirstRevision: 1 << 63})
	require.ErrorIs(t, err, usercode.ErrConfig)
}

// Without the error, the first write would panic.
func TestNew_NamesTheSchemaThatLacksAFunction(t *testing.T) {
	for _, schema := range []store.Schema{{}, {Clone: lamps.Clone}, {Size: lamps.Size}} {
		_, err := memory.New(schema, memory.Options{})
		var wrong *usercode.ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "schema", wrong.Field)
	}
}

// Objects that expired before the storage began are not in it, not even for its first read.
func TestNew_DeletesObjectsThatHaveExpired(t *testing.T) {
	lamp := func(key string, expires time.Time) *store.Object {
		o := newLamp(key, false)
		o.Revision, o.Created, o.Expires = 1, 1, expires
		return o
	}
	schema := lamps
	schema.Describe = func(*store.Object) {}
	b, err := memory.New(schema, memory.Options{Clock: clock.NewVirtual(began), FirstRevision: 7, Objects: []*store.Object{
		lamp("expired", began.Add(-time.Hour)), lamp("expired too", began), lamp("later", began.Add(time.Hour)), lamp("never", time.Time{}),
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	all, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 2)
	require.Equal(t, store.Revision(9), all.Revision, "each deletion is a change")
	_, err = b.Put(t.Context(), newLamp("expired", false), nil, backend.PutOptions{})
	require.NoError(t, err)
}

func TestNew_RefusesObjectsThatStorageCannotHave(t *testing.T) {
	lamp := func(key string, created, revision store.Revision) *store.Object {
		o := newLamp(key, false)
		o.Created, o.Revision = created, revision
		return o
	}
	schema := lamps
	schema.Describe = func(*store.Object) {}
	for problem, objects := range map[string][]*store.Object{
		"invalid key":                   {lamp("hall//", 1, 1)},
		"Created is zero":               {lamp("hall", 0, 1)},
		"above its Revision":            {lamp("hall", 3, 2)},
		"so large that none":            {lamp("hall", 1, 1<<62+1)},
		"newer than FirstRevision":      {lamp("hall", 1, 8)},
		`two objects with one key: "a"`: {lamp("a", 1, 1), lamp("b", 2, 2), lamp("a", 3, 3)},
	} {
		_, err := memory.New(schema, memory.Options{Clock: clock.NewVirtual(began), FirstRevision: 7, Objects: objects})
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, problem)
	}
}

// The clock may have been set back since the objects were written.
func TestNew_BeginsBeyondItsObjects(t *testing.T) {
	o := newLamp("hall", false)
	o.Created, o.Revision = 3, memory.FirstRevisionAt(began.Add(time.Hour))
	schema := lamps
	schema.Describe = func(*store.Object) {}
	b, err := memory.New(schema, memory.Options{Clock: clock.NewVirtual(began), Objects: []*store.Object{o}})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	first, err := b.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, o.Revision, first)
}
