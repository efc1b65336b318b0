package corekinds_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/corekinds"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// shared is storage of several servers, which closes after them.
type shared map[string]backend.Backend

// kept is storage that a server does not close.
type kept struct{ backend.Backend }

func (kept) Close() error { return nil }

func (s shared) open(_ context.Context, kind string, schema store.Schema) (backend.Backend, error) {
	if s[kind] == nil {
		objects, err := memoryOf(schema)
		if err != nil {
			return nil, err
		}
		s[kind] = objects
	}
	return kept{s[kind]}, nil
}

// revision returns the resourceVersion of an object.
func revision(t *testing.T, object map[string]any) int {
	t.Helper()
	n, err := strconv.Atoi(at(object, "metadata.resourceVersion").(string))
	require.NoError(t, err)
	return n
}

// An error that has another text each time is not written each time, after which it would be looked at again at once.
func TestNamespace_TextsOfErrorsAreWrittenSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int64
		refuse := registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if a.Operation == registry.OperationDelete {
				return fmt.Errorf("refusal %d", refused.Add(1))
			}
			return nil
		})
		c := newCluster(t, corekinds.Config{OnError: func(error) {}}, refuse)
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
		c.must(201, "POST", shopsOwn, `{"metadata":{"name":"a"}}`)
		marked := revision(t, c.must(200, "DELETE", inShop, ""))
		time.Sleep(10 * time.Minute)
		now := c.must(200, "GET", inShop, "")
		require.InDelta(t, 20, revision(t, now)-marked, 5)
		last := []string{}
		for n := refused.Load(); len(last) < 3; n-- {
			last = append(last, fmt.Sprintf("NamespaceDeletionContentFailure True widgets.example.com: refusal %d", n))
		}
		require.Contains(t, last, told(at(now, "status.conditions").([]any)[0]), "the status does not stay behind")
	})
}

// Servers that share storage and find different errors do not write theirs in turn.
func TestNamespace_ServersDoNotReplaceEachOthersReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := shared{}
		t.Cleanup(func() {
			for _, objects := range storage {
				require.NoError(t, objects.Close())
			}
		})
		refusing := func(why string) *cluster {
			refuse := registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
				if a.Operation == registry.OperationDelete {
					return errors.New(why)
				}
				return nil
			})
			return newCluster(t, corekinds.Config{Storage: storage.open, OnError: func(error) {}}, refuse)
		}
		one, two := refusing("not by one"), refusing("not by two")
		one.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
		for _, c := range []*cluster{one, two} {
			c.must(201, "POST", shopsOwn, `{"metadata":{"name":"a"}}`)
		}
		marked := revision(t, one.must(200, "DELETE", inShop, ""))
		time.Sleep(time.Hour)
		now := two.must(200, "GET", inShop, "")
		require.Contains(t, told(at(now, "status.conditions").([]any)[0]), "NamespaceDeletionContentFailure True widgets.example.com: not by ")
		require.LessOrEqual(t, revision(t, now)-marked, 14, "each has written once, and again every ten minutes")
	})
}

// A server starts without space, too: its clients can read then, and delete what takes the space.
func TestStart_WithoutSpace(t *testing.T) {
	storage := shared{}
	newCluster(t, corekinds.Config{Storage: storage.open})
	full := func(ctx context.Context, kind string, schema store.Schema) (backend.Backend, error) {
		objects, err := storage.open(ctx, kind, schema)
		if err != nil {
			return nil, err
		}
		without := faulty.New(objects, faulty.Options{})
		without.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Do: faulty.Fail(backend.ErrFull)})
		return without, nil
	}
	c := newCluster(t, corekinds.Config{Storage: full})
	require.Equal(t, []string{"default", "kube-public", "kube-system"}, c.items(namespaces))
	require.Contains(t, c.must(500, "POST", namespaces, `{"metadata":{"name":"shop"}}`)["message"], "no space left")
}
