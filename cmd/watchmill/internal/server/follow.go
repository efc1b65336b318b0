package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
)

// lastCalls is how long a kind that is not served any more stays open for the requests that have found it, at
// most, and lastEvents how long it does for watches to read what has happened.
const (
	lastCalls  = time.Minute
	lastEvents = time.Second
)

// readyWithin is how long a kind may take to read its objects before it is served all the same: the token may
// not be allowed to read them, and the other kinds wait meanwhile. changedWithin is the same for a kind whose form
// of before has read them, and serves them meanwhile.
const (
	readyWithin   = 2 * time.Second
	changedWithin = 20 * time.Second
)

// following serves the kinds that are defined at the origin of a replica, as their definitions come, change
// and go. A nil following does nothing.
type following struct {
	data        *data
	server      *serve.Server
	definitions *engine.Engine[object]
	controller  *controller.Controller[object]
	// kinds are those that are served, by the name of their definition. The controller has one worker, in
	// whose calls alone it is used from the start on.
	kinds map[string]*openKind

	// ending are the kinds that are no longer served, and not closed yet. They wait for clients only as long
	// as life lasts.
	ending sync.WaitGroup
	life   context.Context
	stop   context.CancelFunc
}

// follow makes the server serve the kinds that the origin's definitions define from now on. It takes over the
// open kinds that have one. Without definitions that may be read it returns nil.
func (d *data) follow(server *serve.Server) (*following, error) {
	i := slices.IndexFunc(d.kinds, func(k *openKind) bool { return k.defines })
	if i < 0 {
		return nil, nil
	}
	definitions := d.kinds[i].stores[0].Engine()
	f := &following{data: d, server: server, definitions: definitions, kinds: map[string]*openKind{}}
	f.life, f.stop = context.WithCancel(context.Background())
	for _, k := range d.kinds {
		if k.definition != nil {
			f.kinds[k.definition.GetName()] = k
		}
	}
	d.kinds = slices.DeleteFunc(d.kinds, func(k *openKind) bool { return k.definition != nil })
	names := slices.Collect(maps.Keys(f.kinds)) // the controller changes kinds
	var err error
	f.controller, err = controller.New(controller.Config[object]{
		Source: definitions.Source(), Host: d.host, Name: "definitions", Reconcile: f.reconcile, OnError: f.failed,
	})
	for _, name := range names { // a definition may be gone before the controller could see it
		if err == nil {
			err = f.controller.Enqueue(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// reconcile serves the kind of a definition as it is now. It reads the definition anew: a replica begins with
// the history of its origin, so that the controller may know a state from before the definition was made.
func (f *following) reconcile(ctx context.Context, name string, _ *engine.Object[object]) (controller.Result, error) {
	now, err := f.definitions.List(ctx, engine.ListOptions{Key: name})
	if err != nil {
		return controller.Result{}, err
	}
	var o *engine.Object[object] // nil if it is gone
	if len(now.Items) > 0 {
		o = now.Items[0]
	}
	was := f.kinds[name]
	if was != nil && (o == nil || o.Value.GetUID() != was.definition.GetUID()) {
		f.remove(name, was)
		was = nil
	}
	switch {
	case o == nil, was == nil && !isEstablished(&o.Value), was != nil && reflect.DeepEqual(was.definition.Object["spec"], o.Value.Object["spec"]):
		return controller.Result{}, nil
	}
	return controller.Result{}, f.serve(ctx, name, &o.Value, was)
}

// remove stops serving a kind whose definition is gone.
func (f *following) remove(name string, k *openKind) {
	f.server.Remove(k)
	delete(f.kinds, name)
	f.drain(k)
	f.data.log.Info("a kind is served no more: its definition at the upstream server is gone", "kind", name)
}

// serve serves the kind of a definition in place of was, nil if it is new. A definition that cannot be used
// leaves that as it is: another attempt would fail, too.
func (f *following) serve(ctx context.Context, name string, definition *object, was *openKind) error {
	k, err := originKind(definition)
	if err != nil {
		f.failed(err)
		if was != nil {
			was.definition = definition
		}
		return nil
	}
	k.definition = definition
	next, err := f.data.open(ctx, k)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, readyLimit(was))
	defer cancel()
	next.awaitReady(waiting) // until then its clients would be told to come back
	if err := f.put(next, was); err != nil {
		f.end(next)
		return err
	}
	f.kinds[name] = next
	f.data.log.Info("a kind is served as the upstream server defines it", "kind", name, "version", k.versions[0].Kind.Version)
	return nil
}

// readyLimit returns how long a kind may take to read its objects that is to be served in place of was, nil for none.
func readyLimit(was *openKind) time.Duration {
	if was != nil && was.isReady() {
		return changedWithin
	}
	return readyWithin
}

// put makes the server serve next in place of was, nil if that is not served.
func (f *following) put(next, was *openKind) error {
	if was == nil {
		return f.server.Add(next)
	}
	if err := f.server.Replace(was, next); err != nil {
		return err
	}
	f.end(was)
	return nil
}

// end closes a kind that is not served any more, in the background, once no request uses it.
func (f *following) end(k *openKind) {
	f.ending.Go(func() {
		f.awaitUnused(k)
		f.closeKind(k)
	})
}

// drain is end for a kind that the origin has given up: its watches may read its last events before. The origin
// cannot be asked any more which one is the last, so that this takes all the time.
func (f *following) drain(k *openKind) {
	f.ending.Go(func() {
		f.awaitUnused(k)
		ctx, cancel := context.WithTimeout(f.life, lastEvents)
		defer cancel()
		for _, s := range k.stores {
			_ = s.Engine().Drain(ctx) // not known to be complete; close has the other errors
		}
		f.closeKind(k)
	})
}

func (f *following) awaitUnused(k *openKind) {
	ctx, cancel := context.WithTimeout(f.life, lastCalls)
	defer cancel()
	_ = f.server.WaitUnused(ctx, k) // the requests that are left are told to come back
}

func (f *following) closeKind(k *openKind) {
	if err := k.close(); err != nil {
		f.data.log.Error("a kind that is served no more has not closed", "kind", k.name(), "error", err)
	}
}

// failed logs an error of the controller. The host logs those of the definitions' source.
func (f *following) failed(err error) {
	if listsAgain(err) {
		return
	}
	f.data.log.Error("a kind is not served as the upstream server defines it", "error", err)
}

// close stops following, and closes the kinds that it has served.
func (f *following) close() error {
	if f == nil {
		return nil
	}
	f.stop()
	if f.controller != nil {
		if err := f.controller.Close(); err != nil {
			return fmt.Errorf("follow the definitions of the upstream server: %w", err) // it may still open kinds
		}
	}
	var errs []error
	for _, k := range f.kinds {
		errs = append(errs, k.close())
	}
	f.ending.Wait()
	return errors.Join(errs...)
}

// isEstablished reports whether the origin serves the kind of a definition, and will go on.
func isEstablished(definition *object) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return definition.GetDeletionTimestamp() == nil && slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}
