// Package informer keeps a copy of the objects of a source, such as an engine, and
// notifies handlers of changes. Controllers are built on it.
//
//	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
//	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{AddFunc: ..., UpdateFunc: ..., DeleteFunc: ...}, informer.HandlerOptions{})
//	err = pods.WaitForRevision(ctx, rev)
//	web := pods.List(selector)
//
// # Data flow
//
//	source ──List, Watch──▶ Reflector ──▶ updater ──batches──▶ pending ──▶ listener ──▶ OnAdd, OnUpdate, OnDelete
//	                            ▲          │   │                (one of each per handler)
//	                            └─ hold ───┘   │ publishes
//	                                           ▼
//	                                        Snapshot: Get, List, ByIndex: no lock, no wait
//
// The Reflector, the updater and the listeners are actors on a host. The updater
// transforms each object once, compares lists with the copy, and changes the copy and
// its indexes. It publishes an immutable [Snapshot], and only then passes the batch to
// the handlers, which share it. A listener may block, and has a goroutine only while
// there are notifications to deliver.
//
// # Usage
//
//   - [New] starts an informer. At any time, even before the first list, handlers and
//     indexes can be added, and the copy read.
//   - [WaitFor] waits until informers and handlers have synced, or names those that have
//     not.
//   - A [Factory] shares informers by name, and stops each when its last user releases it.
//   - With an [Overlay] a program reads its own writes before the informer has them.
//
// # Order
//
// Each handler gets one notification at a time, in the order of the source, also
// across objects. Old is the object of the handler's previous notification for the
// key. Reads are never behind notifications: the snapshot has the change already.
//
// A relist is compared with the copy: deletions come first, and unchanged objects are
// left out. An object that was deleted and created again is a deletion and an
// addition, even if a relist found it. The [Cause] of a notification says why it is
// sent.
//
// # Slow handlers
//
// A handler that is slow, or blocks forever, delays neither the copy nor the source
// nor other handlers. Its pending notifications are bounded, and OnError gets a
// [*SlowHandlerError] each time that it falls behind. [Policy] says what it misses;
// with [Block] it misses nothing but delays the others.
//
// # Errors
//
// Config.OnError gets every error that no call returns:
//
//   - those of the source, even if it is retried;
//   - those of a function of the configuration that failed or panicked for an object; see
//     [ItemErrorPolicy];
//   - those of handlers that panicked or are slow. A panic of a handler costs it that one
//     notification; see [PanicPolicy].
//
// A source that cannot be followed any more, as when its engine was closed, ends the
// informer once what has arrived can be read: handlers are given it, and end. The copy can
// still be read.
//
// # Closing
//
// Close and [Registration.Remove] wait for the handlers that they end. No goroutine,
// actor or timer outlives Close. Handlers, and the functions of the configuration, cannot
// wait for themselves: they call Stop and [Registration.Stop], which do the same without
// waiting.
//
// # Shared objects
//
// All readers and handlers share the objects, which must not be changed. Without a
// Transform they are those of the source, so that an engine with
// [engine.Config].DetectMutations detects changes to them.
package informer
