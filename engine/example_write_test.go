package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
)

func ExampleEngine_Create() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	created, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	fmt.Println(created.Key, created.Revision)
	_, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	fmt.Println(errors.Is(err, engine.ErrExists))
	// Output:
	// default/web-1 2
	// true
}

// A lease that is not renewed is deleted by storage.
func ExampleEngine_CreateWith() {
	ctx := context.Background()
	clock := engine.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock})
	must(err)
	defer host.Close()
	leases, err := engine.New(engine.Config[Pod]{
		Key:           func(p Pod) string { return p.Name },
		Host:          host,
		FirstRevision: 1,
	})
	must(err)
	defer leases.Close()
	w, err := leases.Watch(ctx, engine.WatchOptions{From: 1})
	must(err)
	_, _ = leases.CreateWith(ctx, Pod{Name: "leader"}, engine.CreateOptions{TTL: 15 * time.Second})
	for ev := range w.Events() {
		fmt.Println(ev)
		if ev.Type == engine.Deleted {
			break
		}
		clock.Advance(15 * time.Second)
	}
	// Output:
	// ADDED leader@2
	// DELETED leader@3
}

func ExampleEngine_Put() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	first, _ := pods.Put(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"})
	again, _ := pods.Put(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"}) // nothing changes
	moved, _ := pods.Put(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n2"})
	fmt.Println(first.Revision, again.Revision, moved.Revision)
	// Output: 2 2 3
}

// A session lives on with each request, and for good once it is pinned.
func ExampleEngine_PutWith() {
	ctx := context.Background()
	clock := engine.NewVirtualClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	host, _ := engine.NewHost(engine.HostConfig{Clock: clock})
	defer host.Close()
	sessions, _ := engine.New(engine.Config[Pod]{Key: func(p Pod) string { return p.Name }, Host: host, FirstRevision: 1})
	defer sessions.Close()
	session := Pod{Name: "s1"}
	first, _ := sessions.PutWith(ctx, session, engine.PutOptions{TTL: time.Minute})
	session.Node = "n1"
	same, _ := sessions.Put(ctx, session) // expires as before
	clock.Advance(30 * time.Second)
	later, _ := sessions.PutWith(ctx, session, engine.PutOptions{TTL: time.Minute})
	pinned, _ := sessions.PutWith(ctx, session, engine.PutOptions{Permanent: true})
	for _, s := range []*engine.Object[Pod]{first, same, later, pinned} {
		fmt.Println(s.Expires.Format(time.TimeOnly), s.Expires.IsZero())
	}
	// Output:
	// 00:01:00 false
	// 00:01:00 false
	// 00:01:30 false
	// 00:00:00 true
}

// Values such as plain text have no key of their own: it is given together with them.
func ExamplePutOptions_key() {
	ctx := context.Background()
	notes, _ := engine.New(engine.Config[string]{FirstRevision: 1})
	defer notes.Close()
	first, _ := notes.PutWith(ctx, "bread", engine.PutOptions{Key: "lists/food"})
	_, err := notes.PutWith(ctx, "milk", engine.PutOptions{Key: "lists/food", Preconditions: engine.Preconditions{Absent: true}})
	fmt.Println(first.Key, first.Value, errors.Is(err, engine.ErrExists))
	// Output: lists/food bread true
}

// A value can carry the revision of its object, as those of Kubernetes do.
func ExampleConfig_setRevision() {
	type Doc struct{ Name, ResourceVersion string }
	ctx := context.Background()
	docs, _ := engine.New(engine.Config[Doc]{
		Key:           func(d Doc) string { return d.Name },
		SetRevision:   func(d Doc, rev engine.Revision) Doc { d.ResourceVersion = rev.String(); return d },
		FirstRevision: 1,
	})
	defer docs.Close()
	_, _ = docs.Create(ctx, Doc{Name: "a"})
	gone, _ := docs.Delete(ctx, "a", engine.DeleteOptions{})
	fmt.Println(gone.Value)
	// Output: {a 3}
}

// Update returns a changed copy; it is called again if another writer was faster.
func ExampleEngine_Update() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	created, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	bind := func(p Pod) (Pod, error) {
		p.Node = "n7"
		return p, nil
	}
	bound, _ := pods.Update(ctx, "default/web-1", bind, engine.UpdateOptions{})
	fmt.Println(bound.Value.Node, bound.Revision)
	_, err := pods.Update(ctx, "default/web-1", bind, engine.UpdateOptions{
		Preconditions: engine.Preconditions{Revision: created.Revision},
	})
	fmt.Println(errors.Is(err, engine.ErrConflict))
	// Output:
	// n7 3
	// true
}

// Modify sees the whole object; here a lease that runs out soon is renewed, and one
// whose holder has gone is deleted.
func ExampleEngine_Modify() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	leased, _ := pods.CreateWith(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"}, engine.CreateOptions{TTL: time.Minute})
	tend := func(o *engine.Object[Pod]) (engine.Change[Pod], error) {
		if o.Value.Node == "" {
			return engine.Change[Pod]{Delete: true}, nil
		}
		next := engine.Change[Pod]{Value: o.Value}
		if o.Expires.Sub(o.Written) < time.Hour {
			next.TTL = time.Hour
		}
		return next, nil
	}
	renewed, _ := pods.Modify(ctx, leased.Key, tend, engine.ModifyOptions{})
	fmt.Println(renewed.Expires.Sub(renewed.Written))
	_, _ = pods.Put(ctx, Pod{Namespace: "default", Name: "web-1"})
	gone, _ := pods.Modify(ctx, leased.Key, tend, engine.ModifyOptions{})
	_, err := pods.Get(ctx, leased.Key, engine.GetOptions{})
	fmt.Println(gone.Revision, errors.Is(err, engine.ErrNotFound))
	// Output:
	// 1h0m0s
	// 5 true
}

// A value that was edited elsewhere is written only over the state it was made from.
func ExampleEngine_Replace() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	shown, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	edited := shown.Value
	edited.Node = "n7"
	_, err := pods.Replace(ctx, edited, shown.Revision)
	fmt.Println(err)
	_, err = pods.Replace(ctx, edited, shown.Revision) // another tab of the browser
	fmt.Println(errors.Is(err, engine.ErrConflict))
	// Output:
	// <nil>
	// true
}

func ExampleEngine_Delete() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	created, _ := pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"})
	// This very pod, not one that was created again under its name.
	only := engine.DeleteOptions{Preconditions: engine.Preconditions{UID: created.Created}}
	last, _ := pods.Delete(ctx, "default/web-1", only)
	fmt.Println("was on", last.Value.Node, "until", last.Revision)
	_, err := pods.Delete(ctx, "default/web-1", engine.DeleteOptions{})
	fmt.Println(errors.Is(err, engine.ErrNotFound))
	// Output:
	// was on n1 until 3
	// true
}

func ExampleEngine_DeleteIf() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1", Node: "n1"})
	errRunning := errors.New("it runs on a node")
	_, err := pods.DeleteIf(ctx, "default/web-1", func(o *engine.Object[Pod]) error {
		if o.Value.Node != "" {
			return errRunning
		}
		return nil
	}, engine.DeleteOptions{})
	fmt.Println(errors.Is(err, errRunning))
	// Output: true
}
