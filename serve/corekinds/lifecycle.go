package corekinds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

const (
	// staysFor is how long a namespace stays at least, once its controller knows of its mark: writes that were admitted
	// before have been stored by then, and other servers know of the mark, too.
	staysFor = 2 * time.Second
	// lookAgainAfter is how long the controller waits before it looks again for objects that finalizers keep.
	lookAgainAfter = time.Second
	// firstPause and longestPause are the pauses after objects could not be deleted.
	firstPause, longestPause = 100 * time.Millisecond, 30 * time.Second
	// atOnce is how many namespaces are emptied at once: one with many objects holds up few others.
	atOnce = 4
)

// Start makes the namespaces that are always there, and begins to delete the objects of namespaces that are deleted,
// those that were deleted before included, for which it does not wait. The server must serve the kinds: they
// are among the providers of its configuration. Start other kinds that have to be read, such as those of package
// apiextensions, before: what a namespace has of kinds that are not served stays.
//
// Errors: [ErrStarted], [engine.ErrEngineClosed] after Close, an [*engine.ConfigError] if server is nil, and as
// for [registry.Store.Create], after which Start may be called again.
func (k *Kinds) Start(ctx context.Context, server *serve.Server) error {
	if server == nil {
		return &engine.ConfigError{Field: "server", Problem: "is nil; give the one that serves the kinds"}
	}
	for _, name := range immortal {
		_, err := k.namespaces.Create(ctx, core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, registry.WriteOptions{})
		if err != nil && !errors.Is(err, engine.ErrExists) {
			return err
		}
	}
	return k.startController(server)
}

func (k *Kinds) startController(server *serve.Server) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return engine.ErrEngineClosed
	case k.controller != nil:
		return ErrStarted
	}
	k.server = server
	k.controller, err = controller.New(controller.Config[core.Namespace]{
		Source: k.namespaces.Engine().Source(), Host: k.cfg.Host, Name: "namespaces", Reconcile: k.reconcile, OnError: k.cfg.OnError,
		Workers: atOnce, Limiter: queue.NewExponentialRateLimiter[string](firstPause, longestPause),
	})
	return err
}

// reconcile deletes the objects of a namespace that is being deleted, and then lets it go.
func (k *Kinds) reconcile(ctx context.Context, name string, o *engine.Object[core.Namespace]) (controller.Result, error) {
	if o == nil || o.Value.DeletionTimestamp == nil || !slices.Contains(o.Value.Spec.Finalizers, core.FinalizerKubernetes) {
		k.marks.Delete(name)
		return controller.Result{}, nil
	}
	until := k.markOf(o).Add(staysFor)
	left, failed := k.empty(ctx, o)
	if errors.Is(failed, errLetGo) {
		return controller.Result{}, nil
	}
	if err := k.report(ctx, o, left, failed); err != nil || failed != nil {
		return controller.Result{}, errors.Join(failed, err)
	}
	wait := until.Sub(k.cfg.Host.Clock().Now())
	switch {
	case len(left) > 0:
		return controller.Result{RequeueAfter: lookAgainAfter}, nil
	case wait > 0:
		return controller.Result{RequeueAfter: wait}, nil
	}
	return controller.Result{}, k.release(ctx, o)
}

// mark is of when the controller has learned that the namespace with that uid is being deleted.
type mark struct {
	uid types.UID
	at  time.Time
}

// markOf returns when the controller has learned that a namespace is being deleted. The time of the deletion in
// its metadata has whole seconds, of the clock of the server that has marked it.
func (k *Kinds) markOf(o *engine.Object[core.Namespace]) time.Time {
	known, _ := k.marks.Load(o.Key)
	if m, is := known.(mark); is && m.uid == o.Value.UID {
		return m.at
	}
	now := k.cfg.Host.Clock().Now()
	k.marks.Store(o.Key, mark{o.Value.UID, now})
	return now
}

// release lets a namespace go.
func (k *Kinds) release(ctx context.Context, o *engine.Object[core.Namespace]) error {
	_, err := k.namespaces.UpdatePart(ctx, o.Key, finalizeSubresource, func(old *engine.Object[core.Namespace]) (core.Namespace, error) {
		n := old.Value
		n.Spec.Finalizers = slices.DeleteFunc(slices.Clone(n.Spec.Finalizers), func(f core.FinalizerName) bool { return f == core.FinalizerKubernetes })
		return n, nil
	}, registry.WriteOptions{UID: string(o.Value.UID)})
	return orGone(err)
}

// report says in the status of a namespace why it is still there.
func (k *Kinds) report(ctx context.Context, o *engine.Object[core.Namespace], left []string, failed error) error {
	now := k.conditions(o.Value.Status.Conditions, left, failed)
	if now == nil {
		return nil
	}
	_, err := k.namespaces.UpdateStatus(ctx, o.Key, func(old *engine.Object[core.Namespace]) (core.Namespace, error) {
		n := old.Value
		n.Status.Conditions = now
		return n, nil
	}, registry.WriteOptions{UID: string(o.Value.UID)})
	return orGone(err)
}

// conditions returns the conditions of a namespace that has these kinds of objects left; nil if they are as they were.
func (k *Kinds) conditions(before []core.NamespaceCondition, left []string, failed error) []core.NamespaceCondition {
	now := slices.Clone(before)
	remaining := core.NamespaceCondition{
		Type: core.NamespaceContentRemaining, Status: core.ConditionFalse, Reason: "ContentRemoved", Message: "All content successfully removed",
	}
	if len(left) > 0 {
		remaining.Status, remaining.Reason = core.ConditionTrue, "SomeResourcesRemain"
		remaining.Message = "Some resources are remaining: " + strings.Join(left, ", ")
	}
	failure := core.NamespaceCondition{
		Type: core.NamespaceDeletionContentFailure, Status: core.ConditionFalse, Reason: "ContentDeleted",
		Message: "All content successfully deleted, may be waiting on finalization",
	}
	if failed != nil {
		failure.Status, failure.Reason, failure.Message = core.ConditionTrue, "ContentDeletionFailed", failed.Error()
	}
	at := metav1.NewTime(k.cfg.Host.Clock().Now())
	if changed := setCondition(&now, remaining, at); !setCondition(&now, failure, at) && !changed {
		return nil
	}
	return now
}

// setCondition sets a condition, and reports whether it differs from what was there. One that says that nothing is
// wrong is left out if there was none.
func setCondition(all *[]core.NamespaceCondition, c core.NamespaceCondition, at metav1.Time) (changed bool) {
	i := slices.IndexFunc(*all, func(o core.NamespaceCondition) bool { return o.Type == c.Type })
	c.LastTransitionTime = at
	switch {
	case i < 0 && c.Status == core.ConditionFalse:
		return false
	case i < 0:
		*all = append(*all, c)
		return true
	}
	before := (*all)[i]
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	(*all)[i] = c
	return before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
}

// orGone returns the error of a write, nil if the object is gone or is another one by now.
func orGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
		return nil
	}
	return err
}
