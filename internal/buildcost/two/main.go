// Command two watches engines of two types.
package main

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

const line = 0

type Pod struct {
	Namespace, Name, Node string
}

type Node struct {
	Name  string
	Zones []string
}

func main() {
	watchPods()
	watchNodes()
}

func watchPods() {
	pods, err := engine.New(engine.Config[Pod]{Key: func(p Pod) string { return p.Namespace + "/" + p.Name }})
	if err != nil {
		panic(err)
	}
	defer pods.Close()
	w, err := pods.Watch(context.Background(), engine.WatchOptions{InitialState: true})
	if err != nil {
		panic(err)
	}
	for ev, err := range w.Events() {
		fmt.Println(ev, err, line)
	}
}

func watchNodes() {
	nodes, err := engine.New(engine.Config[Node]{Key: func(p Node) string { return p.Name }})
	if err != nil {
		panic(err)
	}
	defer nodes.Close()
	w, err := nodes.Watch(context.Background(), engine.WatchOptions{InitialState: true})
	if err != nil {
		panic(err)
	}
	for ev, err := range w.Events() {
		fmt.Println(ev, err, line)
	}
}
