// Command three watches engines of three types.
package main

import (
	"context"
	"fmt"
	"strconv"

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

type Order struct {
	ID    int
	Total float64
	Notes map[string]string
}

func main() {
	watchPods()
	watchNodes()
	watchOrders()
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

func watchOrders() {
	orders, err := engine.New(engine.Config[Order]{Key: func(p Order) string { return strconv.Itoa(p.ID) }})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	w, err := orders.Watch(context.Background(), engine.WatchOptions{InitialState: true})
	if err != nil {
		panic(err)
	}
	for ev, err := range w.Events() {
		fmt.Println(ev, err, line)
	}
}
