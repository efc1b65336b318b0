package corekinds

import (
	"context"
	"errors"
	"slices"
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
	// firstLook is how long the controller waits before it looks again for objects that finalizers keep, at first.
	firstLook = time.Second
	// firstPause is the first pause after objects could not be deleted.
	firstPause = 100 * time.Millisecond
	// longestPause is the longest of both pauses, which double.
	longestPause = 30 * time.Second
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
		if err := k.ensure(ctx, name); err != nil {
			return err
		}
	}
	return k.startController(server)
}

// ensure makes a namespace if it is not there. It looks first, since storage without space may refuse to create even what
// is there, and a server has to start then: by it objects are deleted.
func (k *Kinds) ensure(ctx context.Context, name string) error {
	if _, err := k.namespaces.Engine().Get(ctx, name, engine.GetOptions{}); err == nil {
		return nil
	}
	_, err := k.namespaces.Create(ctx, core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, registry.WriteOptions{})
	if errors.Is(err, engine.ErrExists) {
		return nil // another server was faster
	}
	return err
}

func (k *Kinds) startController(server *serve.Server) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return engine.ErrEngineClosed
	case k.controller.Load() != nil:
		return ErrStarted
	}
	k.server = server
	started, err := controller.New(controller.Config[core.Namespace]{
		Source: k.namespaces.Engine().Source(), Host: k.cfg.Host, Name: "namespaces", Reconcile: k.reconcile, OnError: k.cfg.OnError,
		Workers: atOnce, Limiter: queue.NewExponentialRateLimiter[string](firstPause, longestPause),
	})
	if err != nil {
		return err
	}
	k.controller.Store(started)
	return nil
}

// reconcile deletes the objects of a namespace that is being deleted, and then lets it go.
func (k *Kinds) reconcile(ctx context.Context, name string, o *engine.Object[core.Namespace]) (controller.Result, error) {
	if o == nil || o.Value.DeletionTimestamp == nil || !slices.Contains(o.Value.Spec.Finalizers, core.FinalizerKubernetes) {
		k.marks.Delete(name)
		k.looks.Forget(name)
		return controller.Result{}, nil
	}
	m := k.markOf(o)
	left, failed := k.empty(ctx, o)
	if errors.Is(failed, errLetGo) {
		return controller.Result{}, nil
	}
	if err := k.report(ctx, o, m, left, failed); err != nil || failed != nil {
		return controller.Result{}, errors.Join(failed, err)
	}
	now := k.cfg.Host.Clock().Now()
	wait := m.at.Add(staysFor).Sub(now)
	switch {
	case left.closing:
		return controller.Result{RequeueAfter: firstLook}, nil
	case len(left.objects) > 0:
		return controller.Result{RequeueAfter: k.looks.When(name, now)}, nil
	case wait > 0:
		return controller.Result{RequeueAfter: wait}, nil
	}
	return controller.Result{}, k.release(ctx, o)
}

// mark is what the controller knows of the namespace with that uid, which is being deleted. One call of reconcile at a
// time has it.
type mark struct {
	uid types.UID
	// at is when the controller has learned of the deletion.
	at time.Time
	// reported is what was last written to the status, and reportedAt when.
	reported   remains
	reportedAt time.Time
}

// markOf returns the mark of a namespace, a new one if there is none. The time of the deletion in its metadata has whole
// seconds, of the clock of the server that has marked it.
func (k *Kinds) markOf(o *engine.Object[core.Namespace]) *mark {
	known, _ := k.marks.Load(o.Key)
	if m, is := known.(*mark); is && m.uid == o.Value.UID {
		return m
	}
	m := &mark{uid: o.Value.UID, at: k.cfg.Host.Clock().Now()}
	k.marks.Store(o.Key, m)
	k.looks.Forget(o.Key)
	return m
}

// emptying is the key of a context in which the controller deletes objects.
type emptying struct{}

// notice has the controller look soon at a namespace that is being deleted if a write makes an object in it go, which may
// be the last one that finalizers have kept.
func (k *Kinds) notice(ctx context.Context, a *registry.Admission) {
	namespace := a.Old.(metav1.Object).GetNamespace()
	if _, marked := k.marks.Load(namespace); !marked || a.DryRun || !mayGo(a) || ctx.Value(emptying{}) != nil {
		return
	}
	k.looks.Forget(namespace)
	if started := k.controller.Load(); started != nil {
		_ = started.EnqueueAfter(namespace, firstLook) // it may be closed
	}
}

// mayGo reports whether a write may make its object go.
func mayGo(a *registry.Admission) bool {
	if a.Operation == registry.OperationDelete {
		return true
	}
	m := a.Object.(metav1.Object)
	return m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0
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

// orGone returns the error of a write, nil if the object is gone or is another one by now.
func orGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
		return nil
	}
	return err
}
