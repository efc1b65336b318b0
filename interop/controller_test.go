package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// widgetScheme returns a scheme with the widget types, for clients.
func widgetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(gv, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(s, gv)
	return s
}

// A manager of controller-runtime discovers the kind, caches it, reconciles each widget,
// writes its status, and sees it go with its finalizer.
func TestControllerRuntime_Reconciles(t *testing.T) {
	const finalizer = "example.com/tidy"
	s := newServer(t)
	log.SetLogger(log.Log.WithSink(nil))
	manager, err := ctrl.NewManager(s.cfg, ctrl.Options{Scheme: widgetScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	c := manager.GetClient()
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Named(t.Name()).WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			var w Widget
			if err := c.Get(ctx, req.NamespacedName, &w); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			before := w.DeepCopyObject().(*Widget)
			if w.DeletionTimestamp != nil {
				w.Finalizers = nil
				return reconcile.Result{}, c.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}
			if len(w.Status.Conditions) > 0 {
				return reconcile.Result{}, nil
			}
			w.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Seen", LastTransitionTime: metav1.Unix(1, 0)}}
			return reconcile.Result{}, c.Status().Update(ctx, &w)
		}))
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	direct, err := client.New(s.cfg, client.Options{Scheme: widgetScheme()})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		w := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{finalizer}}, Spec: WidgetSpec{Size: 1}}
		require.NoError(t, direct.Create(ctx, w))
		require.NotEmpty(t, w.UID)
	}
	ready := func() bool {
		var all WidgetList
		err := direct.List(ctx, &all, client.InNamespace("default"))
		return err == nil && len(all.Items) == 2 && len(all.Items[0].Status.Conditions) == 1 && len(all.Items[1].Status.Conditions) == 1
	}
	require.Eventually(t, ready, patience, 10*time.Millisecond)
	require.NoError(t, direct.DeleteAllOf(ctx, &Widget{}, client.InNamespace("default")))
	gone := func() bool {
		var all WidgetList
		err := direct.List(ctx, &all)
		return err == nil && len(all.Items) == 0
	}
	require.Eventually(t, gone, patience, 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}
