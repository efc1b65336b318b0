package apiextensions_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestStorage_ServersThatShareItServeTheSameKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		a, b := newCluster(t, storage.config(shared)), newCluster(t, storage.config(shared))
		for range 3 {
			a.define(definition("widgets", "Widget"))
			synctest.Wait() // either may have said that it is established
			a.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
			synctest.Wait()
			b.must(200, "GET", widgetsPath+"/w", "")
			b.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
			b.await(widgetsName, "gone")
			synctest.Wait()
			for _, c := range []*cluster{a, b} {
				c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
				c.must(404, "GET", widgetsPath, "")
			}
		}
	})
}

// counting counts the writes to storage, and fails if there are very many.
type counting struct {
	backend.Backend
	writes *atomic.Int64
}

func (c counting) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if c.writes.Add(1) > 1000 {
		return nil, errors.New("there are more writes than there can be")
	}
	return c.Backend.Put(ctx, draft, prev, opts)
}

// Servers that disagree do not write the status as fast as they can.
func TestStatus_ServersThatDisagreeTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, writes := newLasting(t), &atomic.Int64{}
		count := func(name string, objects backend.Backend) backend.Backend {
			if strings.HasPrefix(name, "customresourcedefinitions.") {
				return counting{objects, writes}
			}
			return objects
		}
		own, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
		require.NoError(t, err)
		defer func() { require.NoError(t, own.Close()) }()
		a := newCluster(t, storage.config(shared, count))
		newCluster(t, storage.config(shared, count), own)
		a.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		time.Sleep(10 * time.Minute) // of the bubble
		require.Less(t, writes.Load(), int64(1000))
		a.must(200, "GET", widgetsPath, "")
	})
}
