package apiextensions_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// slow is storage whose deletions take a while.
type slow struct {
	backend.Backend
	each time.Duration
}

func (s slow) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	time.Sleep(s.each) // of the bubble
	return s.Backend.Remove(ctx, prev)
}

// slowWidgets is a configuration whose storage takes that long for each deletion of a widget.
func slowWidgets(t *testing.T, each time.Duration) apiextensions.Config {
	return newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
		if name == widgetsName {
			return slow{objects, each}
		}
		return objects
	})
}

// The objects of one definition may take long. Others do not wait for all of them.
func TestDeletion_OfManyObjectsLetsOtherDefinitionsHaveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, slowWidgets(t, 10*time.Millisecond))
		c.define(definition("widgets", "Widget"))
		for i := range 1000 {
			c.must(201, "POST", widgetsPath, fmt.Sprintf(`{"metadata":{"name":"w%d"}}`, i))
		}
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "Terminating=True")
		began := time.Now()
		c.define(definition("gears", "Gear"))
		require.Less(t, time.Since(began), 2*time.Second)
		c.get(widgetsName)
		c.await(widgetsName, "gone")
		require.Less(t, time.Since(began), 12*time.Second, "no time is lost in between")
	})
}

// Objects that take longer than a turn, or stay, are passed.
func TestDeletion_ComesToAllObjectsHoweverSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, slowWidgets(t, 10*time.Second))
		c.define(definition("widgets", "Widget"))
		for i := range 120 {
			finalizers := `"example.com/hold"`
			if i%6 == 5 {
				finalizers = ""
			}
			c.must(201, "POST", widgetsPath, fmt.Sprintf(`{"metadata":{"name":"w%03d","finalizers":[%s]}}`, i, finalizers))
		}
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		time.Sleep(220 * time.Second) // of the bubble
		list := &unstructured.UnstructuredList{}
		require.NoError(t, list.UnmarshalJSON(c.must(200, "GET", widgetsPath, "").Body.Bytes()))
		require.Len(t, list.Items, 100)
		for _, o := range list.Items {
			require.NotEmpty(t, o.GetFinalizers())
			require.NotNil(t, o.GetDeletionTimestamp())
		}
	})
}

// A change that cannot be served is tried again ever more seldom, and the objects are deleted nevertheless.
func TestDeletion_OfManyObjectsDoesNotWaitForAChangeThatCannotBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, broken := slowWidgets(t, 100*time.Millisecond), atomic.Bool{}
		cfg.Configure = func(*registry.Config[unstructured.Unstructured]) {
			if broken.Load() {
				panic("odd")
			}
		}
		cfg.OnError = func(error) {}
		c := newCluster(t, cfg)
		c.define(definition("widgets", "Widget"))
		for i := range 300 {
			c.must(201, "POST", widgetsPath, fmt.Sprintf(`{"metadata":{"name":"w%d"}}`, i))
		}
		broken.Store(true)
		c.update(200, definition("widgets", "Widget", addVersion))
		began := time.Now()
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		require.Less(t, time.Since(began), 35*time.Second)
	})
}
