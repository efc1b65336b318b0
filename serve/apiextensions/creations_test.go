package apiextensions_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// held is storage in which a creation waits, once it has come that far.
type held struct {
	backend.Backend
	come, release chan struct{}
}

func (h held) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if prev == nil {
		close(h.come)
		<-h.release
	}
	return h.Backend.Put(ctx, draft, prev, opts)
}

// An object that is being created while its definition is deleted is deleted, too: it would be
// there again with a definition of that name. That also holds if the definition has changed meanwhile.
func TestDeletion_TakesObjectsThatAreBeingCreated(t *testing.T) {
	for method, request := range map[string][]string{
		"POST":  {widgetsPath, `{"metadata":{"name":"w"}}`, "Content-Type", "application/json"},
		"PUT":   {widgetsPath + "/w", `{"metadata":{"name":"w"}}`, "Content-Type", "application/json"},
		"PATCH": {widgetsPath + "/w?fieldManager=a", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`, "Content-Type", "application/apply-patch+yaml"},
	} {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, changes: %v", method, changes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { deleteWhileCreating(t, changes, method, request[0], request[1], request[2:]...) })
			})
		}
	}
}

// deleteWhileCreating deletes a definition while a request creates an object of it. If changes, the definition
// changes in between.
func deleteWhileCreating(t *testing.T, changes bool, method, path, body string, headers ...string) {
	storage, hold := newLasting(t), held{come: make(chan struct{}), release: make(chan struct{})}
	cfg := storage.config(func(name string, objects backend.Backend) backend.Backend {
		if name != widgetsName {
			return objects
		}
		return held{objects, hold.come, hold.release}
	})
	cfg.Configure = func(of *registry.Config[unstructured.Unstructured]) { of.Strategy.CreateOnUpdate = true }
	c := newCluster(t, cfg)
	c.define(definition("widgets", "Widget"))
	go c.do(method, path, body, headers...)
	<-hold.come
	if changes {
		c.update(200, definition("widgets", "Widget", withDefault("grey")))
		synctest.Wait()
	}
	c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
	time.Sleep(10 * time.Second) // of the bubble
	close(hold.release)
	synctest.Wait()
	c.await(widgetsName, "gone")
	require.NoError(t, c.definitions.Close())

	c = newCluster(t, storage.config())
	c.define(definition("widgets", "Widget"))
	c.must(404, "GET", widgetsPath+"/w", "")
}

// A server that has not heard yet that a definition is deleted creates objects. They are deleted,
// too.
func TestDeletion_TakesObjectsOfServersThatDoNotKnowYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, gears := newLasting(t), make(chan struct{})
		busy := func(name string, objects backend.Backend) backend.Backend {
			if name == "gears.example.com" {
				<-gears
			}
			return objects
		}
		a, b := newCluster(t, storage.config(shared)), newCluster(t, storage.config(shared, busy))
		a.define(definition("widgets", "Widget"))
		synctest.Wait()
		a.define(definition("gears", "Gear")) // which keeps b from following others
		synctest.Wait()
		a.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		synctest.Wait()
		b.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		a.await(widgetsName, "gone")
		close(gears)
		synctest.Wait()
		a.define(definition("widgets", "Widget"))
		for _, c := range []*cluster{a, b} {
			synctest.Wait()
			c.must(404, "GET", widgetsPath+"/w", "")
		}
	})
}

// others is storage that says that others write it, too.
type others struct{ backend.Backend }

func (o others) Traits() backend.Traits {
	traits := o.Backend.Traits()
	traits.Shared = true
	return traits
}

// shared has a configuration's storage say that others write it.
func shared(_ string, objects backend.Backend) backend.Backend { return others{objects} }

// A definition that takes the place of one that is being deleted, before the controller has seen
// either go or come, has a kind of its own, of which objects are created.
func TestDeletion_FollowedByADefinitionOfThatName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gears := make(chan struct{})
		c := newCluster(t, newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
			if name == "gears.example.com" {
				<-gears
			}
			return objects
		}))
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "Terminating=True")
		c.must(201, "POST", definitionsPath, definition("gears", "Gear"))
		synctest.Wait() // the controller opens the storage of gears
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		close(gears)
		synctest.Wait()
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
	})
}
