// Command bare is what programs with an engine are compared with.
package main

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const line = 0

func main() {
	fmt.Println(actor.NewActorSystem(), labels.Set{}, fields.Set{}, line)
}
