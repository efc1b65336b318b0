// Package informer mirrors a source of objects, such as an engine, and tells any
// number of handlers what changes: what controllers are built on.
//
//	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
//	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{AddFunc: ..., UpdateFunc: ..., DeleteFunc: ...})
//	err = pods.WaitForRevision(ctx, rev)
//	web := pods.List(selector)
//
// # The way of one change
//
//	source ──List, Watch──▶ Reflector ──▶ mirror ──batches──▶ backlog ──▶ listener ──▶ OnAdd, OnUpdate, OnDelete
//	                            ▲          │  │                  (one of each per handler)
//	                            └─ hold ───┘  │ publishes
//	                                          ▼
//	                                       Snapshot: Get, List, ByIndex: no lock, no wait
//
// The Reflector, the mirror and the listeners are actors on a host. The mirror
// transforms what comes in, once; compares lists with what it has; changes the
// store and its indexes; publishes an immutable [Snapshot]; and only then passes
// the batch on to all handlers, who share it. A listener runs where it may block
// and has a goroutine only while there is something to tell.
//
// # Usage
//
// New starts an informer. Everything else may be done at any time, also before
// the source was reached: add and remove handlers, add indexes, read. A [Factory]
// shares informers by name among those who need them, and stops each with its
// last user. An [Overlay] shows writes before the informer has them. [WaitFor]
// waits for informers and handlers, and names those that are late.
//
// # Order
//
// Each handler is told one thing at a time, in the order of the source, across
// objects too. What it is told joins up: Old is always what it was told before.
// Reads are never behind: when a handler is told of a change, the snapshot has
// it. A relist is compared with what is known: deletions come first, objects
// that did not change are not told. An object that was deleted and created again
// is a deletion and an addition, however it was noticed. Why something is told is
// its [Cause], which nobody has to guess from revisions.
//
// # Slow handlers
//
// A handler that is slow, or blocks for good, delays neither the store nor the
// source nor other handlers, its memory is bounded, and OnError is told, once per
// occasion, with an [*SlowHandlerError]. See [Policy] for what it misses; only
// [Block] is different, for those who want to miss nothing.
//
// # Errors
//
// Config.OnError is told every error that no call returns: of the source, even if
// it is retried; of a function of the configuration that failed or panicked for
// some object (see [ItemErrorPolicy]); of handlers that panicked or are slow. A
// panic of a handler costs it the one notification (see [PanicPolicy]).
//
// # Closing
//
// Close, and Handle.Remove, return when what they end has ended. Called from a
// handler they do not wait. Nothing outlives Close: no goroutine, actor or timer.
//
// # Changed objects
//
// Objects are shared by everybody and must not be changed. Without a Transform
// they are those of the source, so an engine under Config.DetectMutations finds
// who does. The indexes do not depend on it.
//
// # What of client-go's informers does not apply
//
// Tests that hold down a behaviour of the original carry the number of its row in
// our map of the original's tests (ClientRow105 and so on). These rows, of those
// about informers, have no counterpart here:
//
//   - 108: resync periods that are adjusted to each other. Each handler has its own.
//   - 112 (its setters that race the start): what the setters set is in Config.
//   - 115: handles of another informer. A handle knows its informer.
//   - 129: examples of use. Ours have names of their own.
//   - 132: a handler's panic that ends the process. It is contained and reported.
//   - 135, 136 (its names): keys are not split into namespace and name here.
//   - 142: transforms that leave an object without revision. The revision is the
//     object's, not the value's.
//   - 143: a benchmark. Ours has its name.
//   - 161: clients that opt out of lists by watch. A source says in its Traits what
//     it can.
//   - 167 (its metrics): names need not be unique, since nothing global is named
//     by them; a Factory goes by name and type.
//   - 168 (its names of function types): a handler is called what it says, or by
//     its number.
//   - 169: stores that push their whole contents after each write. A Snapshot is
//     the contents.
//   - 172 (its conversions): everything is typed to begin with.
//   - 174: values that are computed when they are needed. sync.OnceValue does that.
//   - 175: the search for goroutines. TestMain has it.
package informer
