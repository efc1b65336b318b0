package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// The README quotes this file line by line.

// Lamp is a type of your own: any struct that embeds these two.
type Lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              LampSpec `json:"spec"`
}

type LampSpec struct {
	Watts int    `json:"watts" description:"What it draws."`
	Room  string `json:"room,omitempty"`
}

func serveLamps(ctx context.Context, at serve.ListenOptions) error {
	lamps, err := registry.New(registry.Config[Lamp]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Lamp", ShortNames: []string{"lp"}},
		Columns: []registry.Column[Lamp]{
			{Name: "Watts", Type: "integer", Value: func(l *Lamp) any { return l.Spec.Watts }},
		},
		Fields: map[string]func(*Lamp) string{"spec.room": func(l *Lamp) string { return l.Spec.Room }},
		Strategy: registry.Strategy[Lamp]{Validate: func(_ context.Context, l, _ *Lamp) field.ErrorList {
			return validation.ValidateNonnegativeField(int64(l.Spec.Watts), field.NewPath("spec", "watts"))
		}},
	})
	if err != nil {
		return err
	}
	defer lamps.Close()
	server, err := serve.New(serve.Config{
		Resources: []serve.Provider{lamps},
		Limits:    serve.Limits{ShutdownDelay: time.Nanosecond}, // no load balancer has to notice first
	})
	if err != nil {
		return err
	}
	return server.ListenAndServe(ctx, at) // until ctx is done; then it drains
}

func Example_readme() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listening := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- serveLamps(ctx, serve.ListenOptions{Address: "127.0.0.1:0", Ready: func(at net.Addr) { listening <- at }})
	}()
	lamps := "http://" + (<-listening).String() + "/apis/example.com/v1/namespaces/default/lamps"

	post := func(body string) {
		resp, err := http.Post(lamps, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		fmt.Println(resp.Status)
	}
	post(`{"metadata":{"name":"desk"},"spec":{"watts":9,"room":"study"}}`)
	post(`{"metadata":{"name":"odd"},"spec":{"watts":-1}}`)

	watch, err := http.Get(lamps + "?watch=true&fieldSelector=spec.room%3Dstudy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Body.Close()
	event, err := bufio.NewReader(watch.Body).ReadString('\n')
	fmt.Println(event[:15], err)

	stop() // as a signal would
	fmt.Println("served:", <-ended)
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 201 Created
	// 422 Unprocessable Entity
	// {"type":"ADDED" <nil>
	// served: <nil>
}

func replicaOf(origin string) (*registry.Store[Lamp], *remote.Backend, error) {
	lamps := registry.Config[Lamp]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Lamp"}}
	format, err := registry.FormatOf(lamps)
	if err != nil {
		return nil, nil, err
	}
	there, err := remote.New(format, remote.Config{URL: origin})
	if err != nil {
		return nil, nil, err
	}
	lamps.Engine.Backend = there // is closed after the store
	replica, err := registry.New(lamps)
	return replica, there, err
}

func Example_readmeReplica() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listening := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- serveLamps(ctx, serve.ListenOptions{Address: "127.0.0.1:0", Ready: func(at net.Addr) { listening <- at }})
	}()
	replica, there, err := replicaOf("http://" + (<-listening).String())
	if err != nil {
		fmt.Println(err)
		return
	}
	desk := Lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "desk"}, Spec: LampSpec{Watts: 9}}
	made, err := replica.Create(ctx, desk, registry.WriteOptions{}) // is created at the origin
	if err != nil {
		fmt.Println(err)
		return
	}
	here, err := replica.Engine().Get(ctx, "default/desk", engine.GetOptions{Read: engine.NotOlderThan(made.Revision)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(here.Value.Name, here.Value.Spec.Watts, here.Revision == made.Revision)
	fmt.Println(replica.Close(), there.Close())
	stop()
	fmt.Println("served:", <-ended)
	// Output:
	// desk 9 true
	// <nil> <nil>
	// served: <nil>
}
