package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// A secret is followed while it has a reference.
func ExampleCache() {
	ctx := context.Background()
	secrets, err := engine.New(secretConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer secrets.Close()
	cache, err := objectcache.New(objectcache.Config[secret]{
		Source:    secrets.Source(),
		Immutable: func(s secret) bool { return s.Immutable },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()

	if _, err := secrets.Create(ctx, secret{Name: "default/ca", Data: "MIIB…", Immutable: true}); err != nil {
		fmt.Println(err)
	}
	for _, key := range []string{"default/ca", "default/token"} {
		ref, err := cache.Acquire(key)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer ref.Release()
		object, err := ref.Get(ctx)
		if errors.Is(err, objectcache.ErrNotFound) {
			fmt.Println(err)
			continue
		}
		fmt.Println(object.Key, object.Value.Data)
	}
	fmt.Println(cache.Stats().Immutable, "immutable")
	// Output:
	// default/ca MIIB…
	// object "default/token": not found
	// 1 immutable
}

// A Get that cannot be answered in time says why.
func ExampleRef_Get() {
	source := enginetest.NewSource(secretConfig())
	defer source.Close()
	source.FailList(1000, errors.New("the server is on fire"))
	cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	ref, err := cache.Acquire("default/token")
	if err != nil {
		fmt.Println(err)
		return
	}
	for late := new(objectcache.NotSyncedError); late.Source == nil; { // the source may not have failed yet
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, err = ref.Get(ctx)
		cancel()
		if !errors.As(err, &late) {
			break
		}
	}
	fmt.Println(err)
	ref.Release()
	_, err = ref.Get(context.Background())
	fmt.Println(err)
	// Output:
	// object "default/token": not synced: context deadline exceeded: the source's last error is: the server is on fire
	// object "default/token": reference was released
}

// Each pod says which secrets it needs; the references that it does not need any
// more are released.
func ExampleOwners() {
	source := enginetest.NewSource(secretConfig())
	defer source.Close()
	cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()

	pods := objectcache.NewOwners[string](cache)
	fmt.Println(pods.Register("web-1", "token", "ca"))
	fmt.Println(pods.Register("web-2", "token"))
	fmt.Println(cache.Stats().References, "references to", cache.Stats().Keys, "keys")
	fmt.Println(pods.Register("web-1", "ca"))
	pods.Unregister("web-2")
	_, err = pods.Get(context.Background(), "web-1", "token")
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// 3 references to 2 keys
	// <nil>
	// object "token": not registered for web-1
}
