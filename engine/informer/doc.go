// Package informer keeps a copy of what a source holds, such as an engine, and
// tells any number of handlers what changes. Controllers are built on it.
//
//	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
//	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{AddFunc: ..., UpdateFunc: ..., DeleteFunc: ...}, informer.HandlerOptions{})
//	err = pods.WaitForRevision(ctx, rev)
//	web := pods.List(selector)
//
// # The way of one change
//
//	source ──List, Watch──▶ Reflector ──▶ updater ──batches──▶ pending ──▶ listener ──▶ OnAdd, OnUpdate, OnDelete
//	                            ▲          │   │                (one of each per handler)
//	                            └─ hold ───┘   │ publishes
//	                                           ▼
//	                                        Snapshot: Get, List, ByIndex: no lock, no wait
//
// The Reflector, the updater and the listeners are actors on a host. The updater
// transforms each object once, compares lists with the copy, changes the copy and
// its indexes, publishes an immutable [Snapshot], and only then passes the batch on
// to all handlers, which share it. A listener runs on the executor for code that
// may block and has a goroutine only while there is something to tell.
//
// # Usage
//
// New starts an informer. Everything else may be done at any time, also before
// the source was reached: add and remove handlers, add indexes, read. A [Factory]
// shares informers by name among their users and stops each with its last user. An
// [Overlay] shows a program its own writes before the informer has them. [WaitFor]
// waits for informers and handlers, and names those that are late.
//
// # Order
//
// Each handler gets one notification at a time, in the order of the source, across
// objects too. Notifications of an object join up: Old is what the handler was told
// last. Reads are never behind: when a handler is told of a change, the snapshot
// has it. A relist is compared with the copy: deletions come first, and objects that
// did not change are left out. An object that was deleted and created again is a
// deletion and an addition, however the informer learned of it. The [Cause] of a
// notification says why it comes.
//
// # Slow handlers
//
// A handler that is slow, or blocks for ever, delays neither the copy nor the
// source nor other handlers. What is kept for it is bounded, and OnError gets a
// [*SlowHandlerError] each time that it falls behind. [Policy] says what it misses;
// only [Block] misses nothing and holds up the others.
//
// # Errors
//
// Config.OnError gets every error that no call returns: of the source, even if it
// is retried; of a function of the configuration that failed or panicked for an
// object (see [ItemErrorPolicy]); of handlers that panicked or are slow. A panic of
// a handler costs it that one notification (see [PanicPolicy]).
//
// # Closing
//
// Close and [Registration.Remove] return when what they end has ended. Handlers and
// the functions of the configuration must not call them, since they would wait for
// themselves: Stop and [Registration.Stop] do the same without waiting. Nothing
// outlives Close: no goroutine, actor or timer.
//
// # Shared objects
//
// All readers and handlers share the objects, which must not be changed. Without a
// Transform they are those of the source, so that an engine with
// Config.DetectMutations finds what changes them. The indexes stay right
// nevertheless.
package informer
