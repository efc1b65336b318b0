package resttest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest/resttest"

	"github.com/watchmill/watchmill/registry"
)

// withBothScopes runs a part of the suite over a kind with namespaces and over the same
// without. They run beside each other, since the suite waits half a second for each event
// that must not come.
func withBothScopes(t *testing.T, cfg registry.Config[Widget], part func(s *storage, suite *resttest.Tester)) {
	t.Helper()
	t.Run("namespaced", func(t *testing.T) {
		t.Parallel()
		s := newStorage(t, cfg)
		part(s, resttest.New(t, s))
	})
	t.Run("cluster-scoped", func(t *testing.T) {
		t.Parallel()
		cfg := cfg
		cfg.Kind.ClusterScoped = true
		s := newStorage(t, cfg)
		part(s, resttest.New(t, s).ClusterScope())
	})
}

// put stores an object as it is, past the rules.
func (s *storage) put(ctx context.Context, obj runtime.Object) error {
	_, err := s.engine.Create(ctx, *obj.DeepCopyObject().(*Widget))
	return err
}

// get returns the stored state of an object.
func (s *storage) get(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return s.Get(ctx, obj.(*Widget).Name, nil)
}

// withInvalidSize returns a copy of the widget with an invalid size.
func withInvalidSize(obj runtime.Object) runtime.Object {
	w := obj.DeepCopyObject().(*Widget)
	w.Spec.Size = -1
	return w
}

// withInvalidName returns a copy of the widget with an invalid name.
func withInvalidName(obj runtime.Object) runtime.Object {
	w := obj.DeepCopyObject().(*Widget)
	w.Name = "Not_A_Name"
	return w
}

func TestCreate_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(s *storage, suite *resttest.Tester) {
		invalid := valid("invalid", suite.TestNamespace())
		suite.TestCreate(valid("a", suite.TestNamespace()), s.put, s.get, withInvalidSize(invalid), withInvalidName(invalid))
	})
}

func grow(obj runtime.Object) runtime.Object {
	w := obj.DeepCopyObject().(*Widget)
	w.Spec.Size++
	return w
}

func TestUpdate_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(s *storage, suite *resttest.Tester) {
		suite.TestUpdate(valid("a", suite.TestNamespace()), s.put, s.get, grow, withInvalidSize)
	})
}

func TestUpdate_ThatCreates(t *testing.T) {
	cfg := config()
	cfg.Strategy.CreateOnUpdate = true
	s := newStorage(t, cfg)
	suite := resttest.New(t, s).AllowCreateOnUpdate()
	suite.TestUpdate(valid("a", suite.TestNamespace()), s.put, s.get, grow, withInvalidSize)
}

func TestDelete_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(s *storage, suite *resttest.Tester) {
		suite.TestDelete(valid("a", suite.TestNamespace()), s.put, s.get, apierrors.IsNotFound)
	})
}

func TestDelete_GracefulPassesTheSuite(t *testing.T) {
	withBothScopes(t, gracefulConfig(), func(s *storage, suite *resttest.Tester) {
		suite.ReturnDeletedObject().TestDeleteGraceful(valid("a", suite.TestNamespace()), s.put, s.get, defaultGrace)
	})
}

func TestGet_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(_ *storage, suite *resttest.Tester) { suite.TestGet(valid("a", suite.TestNamespace())) })
}

func TestList_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(s *storage, suite *resttest.Tester) {
		ctx := suite.TestContext()
		suite.TestList(valid("a", suite.TestNamespace()), func(objects []runtime.Object) []runtime.Object {
			_, err := s.DeleteCollection(ctx, nil, &metav1.DeleteOptions{}, nil)
			require.NoError(suite, err)
			for i, o := range objects {
				require.NoError(suite, s.put(ctx, o))
				objects[i], err = s.get(ctx, o)
				require.NoError(suite, err)
			}
			return objects
		})
	})
}

// change makes an event of that type, of an object of which there may be one already.
func (s *storage) change(ctx context.Context, obj runtime.Object, event string) error {
	w := obj.(*Widget)
	_, _, err := s.Delete(ctx, w.Name, nil, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if _, err = s.Create(ctx, w, nil, &metav1.CreateOptions{}); err != nil {
		return err
	}
	switch event {
	case "ADDED":
		return nil
	case "MODIFIED":
		_, _, err = s.resource.Update(ctx, s.key(ctx, w.Name), func(live registry.Item) ([]byte, error) {
			return fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":"web"}},"spec":{"size":2}}`, w.Name), nil
		}, registry.WriteOptions{})
		return err
	case "DELETED":
		_, _, err = s.Delete(ctx, w.Name, nil, nil)
		return err
	}
	return fmt.Errorf("no event %s", event)
}

func TestWatch_PassesTheSuite(t *testing.T) {
	withBothScopes(t, config(), func(s *storage, suite *resttest.Tester) {
		suite.TestWatch(valid("a", suite.TestNamespace()),
			func(obj runtime.Object, event string) error { return s.change(suite.TestContext(), obj, event) },
			[]labels.Set{{"app": "web"}, {}}, []labels.Set{{"app": "db"}},
			[]fields.Set{{"metadata.name": "a"}, {}}, []fields.Set{{"metadata.name": "b"}},
			[]string{"ADDED", "MODIFIED", "DELETED"},
		)
	})
}
