package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// pod is what the examples store.
type pod struct {
	Name, Node string
}

func podConfig() engine.Config[pod] {
	return engine.Config[pod]{
		Key:              func(p pod) string { return p.Name },
		FreshnessTimeout: patience, // a machine may be slow
	}
}

// podDraft returns an object as backends take it.
func podDraft(schema store.Schema, p pod) *store.Object {
	o := schema.New()
	o.Key, *schema.Pointer(o).(*pod) = p.Name, p
	return o
}

// startEtcd stands for the cluster.
func startEtcd() (endpoint string, stop func()) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		log.Fatal(err)
	}
	server, err := etcdtest.Run(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	return server.Endpoint, func() {
		server.Close()
		_ = os.RemoveAll(dir)
	}
}

// Two engines over one etcd, as two processes would have them: what one writes, the
// other watches.
func Example() {
	ctx := context.Background()
	endpoint, stop := startEtcd()
	defer stop()

	open := func() *engine.Engine[pod] {
		cfg := podConfig()
		storage, err := etcd.New(ctx, etcd.Config{Prefix: "/shop/pods", Endpoints: []string{endpoint}, Schema: cfg.Schema()})
		if err != nil {
			log.Fatal(err)
		}
		cfg.Backend = storage
		pods, err := engine.New(cfg)
		if err != nil {
			log.Fatal(err)
		}
		return pods
	}
	here, there := open(), open()
	defer here.Backend().Close()
	defer there.Backend().Close()
	defer here.Close()
	defer there.Close()

	created, err := here.Create(ctx, pod{Name: "web", Node: "n1"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := there.Put(ctx, pod{Name: "web", Node: "n2"}); err != nil {
		log.Fatal(err)
	}
	changes, err := there.Watch(ctx, engine.WatchOptions{From: created.Revision})
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range changes.Events() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Type, ev.Object.Value)
		break
	}
	list, err := here.List(ctx, engine.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(list.Items[0].Value)
	// Output:
	// MODIFIED {web n2}
	// {web n2}
}

// A write that lost a race says what is there now.
func ExampleBackend_Put() {
	ctx := context.Background()
	endpoint, stop := startEtcd()
	defer stop()
	schema := podConfig().Schema()
	pods, err := etcd.New(ctx, etcd.Config{Prefix: "/shop/pods", Endpoints: []string{endpoint}, Schema: schema})
	if err != nil {
		log.Fatal(err)
	}
	defer pods.Close()

	write := func(p pod, prev *store.Object) (*store.Object, error) {
		return pods.Put(ctx, podDraft(schema, p), prev, backend.PutOptions{})
	}
	first, err := write(pod{"web", "n1"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := write(pod{"web", "n2"}, first); err != nil {
		log.Fatal(err)
	}
	_, err = write(pod{"web", "n3"}, first)
	var conflict *backend.ConflictError
	switch {
	case errors.As(err, &conflict):
		fmt.Println("there is", *schema.Pointer(conflict.Current).(*pod))
	case backend.Uncertain(err):
		fmt.Println("it may have been written: read it")
	}
	// Output: there is {web n2}
}

// History of one prefix is given up without that of the rest of the cluster.
func ExampleBackend_Compact() {
	ctx := context.Background()
	endpoint, stop := startEtcd()
	defer stop()
	schema := podConfig().Schema()
	pods, err := etcd.New(ctx, etcd.Config{Prefix: "/shop/pods", Endpoints: []string{endpoint}, Schema: schema})
	if err != nil {
		log.Fatal(err)
	}
	defer pods.Close()

	created, err := pods.Put(ctx, podDraft(schema, pod{"web", "n1"}), nil, backend.PutOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.Compact(ctx, created.Revision); err != nil {
		log.Fatal(err)
	}
	_, err = pods.List(ctx, backend.ListOptions{Revision: created.Revision - 1})
	fmt.Println(errors.Is(err, store.ErrExpired))
	// Output: true
}

// What the members say of themselves tells when a quota comes near.
func ExampleBackend_Info() {
	ctx := context.Background()
	endpoint, stop := startEtcd()
	defer stop()
	schema := podConfig().Schema()
	pods, err := etcd.New(ctx, etcd.Config{Prefix: "/shop/pods", Endpoints: []string{endpoint}, Schema: schema})
	if err != nil {
		log.Fatal(err)
	}
	defer pods.Close()

	info, err := pods.Info(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range info.Members {
		fmt.Println(m.Err, m.Size < m.Quota, m.Alarms)
	}
	// Output: <nil> true []
}
