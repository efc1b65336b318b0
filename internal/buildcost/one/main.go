// Command one watches engines of one type.
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

func main() {
	watchPods()
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
