package explore

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
)

// seams are where messages pass between the engine and what is around it. The
// tests of this package put a fault into one of them, behind the judge's back,
// to see that it is found. All are nil in a world that is whole.
//
//	storage ──[storage]──▶ engine ──[start, deliver, deaf, stop]──▶ consumer ──▶ judge
type seams[T any] struct {
	// storage returns what the engine takes for storage.
	storage func(*World[T]) backend.Backend[T]
	// start returns what is asked of the engine for a watch with the options.
	start func(*World[T], engine.WatchOptions) engine.WatchOptions
	// deliver returns what the consumer of a watch is given for ev.
	deliver func(r *watch[T], ev engine.Event[T]) []engine.Event[T]
	// deaf reports that the consumer of a watch gets nothing any more.
	deaf func(*watch[T]) bool
	// stop stops a watch.
	stop func(*World[T], *watch[T])
}

// spoilage is what a seam remembers of a watch.
type spoilage[T any] struct {
	held []engine.Event[T]
	done bool
}
