package backend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestCreate_TakesTheKeyFromTheValue(t *testing.T) {
	f := newFixture(t)
	o := f.create("ns/p", "v1")
	require.Equal(t, "ns/p", o.Key)
	require.Equal(t, "v1", o.Labels.Get("image"))
	got, err := f.Get(f.ctx, "ns/p")
	require.NoError(t, err)
	require.Same(t, o, got)
}

func TestCreate_WithTTL(t *testing.T) {
	f := newFixture(t)
	_, err := f.Create(f.ctx, newPod("p", "v1"), backend.CreateOptions{TTL: time.Second})
	require.NoError(t, err)
	f.clock.Advance(time.Second)
	f.holds("p", "")
}

func TestCreate_OfAnExistingKey(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	_, err := f.Create(f.ctx, newPod("p", "v2"), backend.CreateOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	f.holds("p", "v1")
}

func TestKeys_MalformedOnesAreRefusedByEveryVerb(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"", "/", "a//b", "../a", "a/"} {
		_, err := f.Create(f.ctx, newPod(key, ""), backend.CreateOptions{})
		require.ErrorIs(t, err, store.ErrInvalidKey, "Create %q", key)
		_, err = f.Get(f.ctx, key)
		require.ErrorIs(t, err, store.ErrInvalidKey, "Get %q", key)
		_, err = f.GuaranteedUpdate(f.ctx, key, nil, backend.UpdateOptions{CreateIfMissing: true})
		require.ErrorIs(t, err, store.ErrInvalidKey, "GuaranteedUpdate %q", key)
		_, err = f.Delete(f.ctx, key, backend.DeleteOptions{})
		require.ErrorIs(t, err, store.ErrInvalidKey, "Delete %q", key)
	}
	_, err := f.List(f.ctx, backend.ListOptions{Prefix: "a//b"})
	require.ErrorIs(t, err, store.ErrInvalidKey)
	require.Zero(t, f.below.gets+f.below.puts+f.below.removes, "nothing of it reached the backend")
}

func TestCreate_NegativeTTLNamesTheOption(t *testing.T) {
	f := newFixture(t)
	_, err := f.Create(f.ctx, newPod("p", ""), backend.CreateOptions{TTL: -time.Second})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "CreateOptions.TTL")
	_, err = f.GuaranteedUpdate(f.ctx, "p", nil, backend.UpdateOptions{TTL: -time.Second})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "UpdateOptions.TTL")
}

func TestPanics_OfUserCodeAreErrorsAndWriteNothing(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	cause := errors.New("the cause")
	schema := podSchema()
	schema.Key = func(o *store.Object) string {
		if imageOf(o) == "bad" {
			panic(cause)
		}
		return store.As[pod](o).Value.Name
	}
	equal := schema.Equal
	schema.Equal = func(a, b *store.Object) bool {
		if imageOf(b) == "incomparable" {
			panic("cannot compare")
		}
		return equal(a, b)
	}
	s := backend.NewStorage(f.Backend(), schema)
	image := func(image string) backend.UpdateFunc {
		return func(context.Context, *store.Object) (*store.Object, error) { return newPod("p", image), nil }
	}
	cases := map[string]func() error{
		"Schema.Key": func() error {
			_, err := s.Create(f.ctx, newPod("q", "bad"), backend.CreateOptions{})
			return err
		},
		"Schema.Equal": func() error {
			_, err := s.GuaranteedUpdate(f.ctx, "p", image("incomparable"), backend.UpdateOptions{})
			return err
		},
		"UpdateFunc": func() error {
			_, err := s.GuaranteedUpdate(f.ctx, "p", func(context.Context, *store.Object) (*store.Object, error) { panic(cause) }, backend.UpdateOptions{})
			return err
		},
		"DeleteOptions.Validate": func() error {
			_, err := s.Delete(f.ctx, "p", backend.DeleteOptions{Validate: func(context.Context, *store.Object) error { panic(cause) }})
			return err
		},
	}
	for name, call := range cases {
		err := call()
		require.ErrorIs(t, err, usercode.ErrPanic, name)
		var contained *usercode.PanicError
		require.ErrorAs(t, err, &contained)
		require.Equal(t, name, contained.Func)
		require.NotEmpty(t, contained.Stack)
		if name != "Schema.Equal" {
			require.ErrorIs(t, err, cause, "a panic with an error can be matched")
		}
	}
	f.holds("p", "v1")
	require.Zero(t, f.below.removes)
	require.Equal(t, 1, f.below.puts, "only the creation at the start")
}
