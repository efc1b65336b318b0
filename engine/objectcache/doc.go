// Package objectcache is a cache of single objects, for programs that need only a few
// objects by key, as the kubelet needs the secrets of its pods. A Reflector of its own
// follows each key that is referenced.
//
//	secrets, err := objectcache.New(objectcache.Config[Secret]{Source: engine.Source()})
//	ref, err := secrets.Acquire("default/token")    // begins to follow the object
//	defer ref.Release()                             // the last release stops
//	object, err := ref.Get(ctx)                     // the newest state
//
// # Data flow
//
//	                              start, stop
//	Acquire, Release ─recheck─▶ supervisor ───▶ Reflector ◀──List, Watch of one key── Source
//	                               ▲                │ Offer
//	   clock ──idle────────────────┘                ▼
//	                                              sink ──▶ entry: immutable view
//	                                                          ▲ one atomic load
//	                                                      Ref.Get
//
// An entry is one key with its references and its object. The supervisor is the one
// actor that starts and stops Reflectors. Its messages only name an entry: it compares
// the Reflector that is needed with the one that runs, so the order of Acquire and
// Release does not matter. There are never two Reflectors for one key, not even while
// one is stopping.
//
// # When an object is followed
//
// An object is followed while it has references. There are three exceptions:
//
//   - Immutable: an object that [Config].Immutable says will never change is still
//     served, and not followed. If it is deleted nevertheless, and even created again,
//     the cache does not notice until all references are released.
//   - Idle: an object that was not read for [Config].MaxIdle is not followed until the
//     next Get, which waits for a new list. If lists of the source may lag, as those of
//     a replica may, that one may be older than what was read before; GetNotOlderThan
//     waits for one that is not. An object that has not arrived yet is never idle.
//   - Ended: a source that cannot be followed any more, as when it was closed, is not
//     asked again until the next Get.
//
// # Reading
//
// [Ref.Get] returns the newest state received since the cache began to follow the object:
// one atomic load, no lock and no allocation. Before the first list it waits until its
// context is done, and then returns the source's last error. While the source is
// unreachable, it returns the last state. [Ref.GetNotOlderThan] waits for a revision, and
// [Ref.Changed] tells of the next change.
//
// # Sharing a watch
//
// Each key is a watch of the source. Where watches are expensive, put an engine in
// between: its [engine.Engine.Source] serves any number of them from its window, with a
// single watch of the backend. A write then wakes only the Reflector of its own key.
//
// # Caveats
//
// A key is followed as a prefix, by whole segments. If there are keys below it, such
// as "a/b" below "a", they are transferred, too, and ignored.
//
// A deterministic host runs only while Get or Close waits. If nothing is left to run,
// because the source fails until time has passed, Get gives up with [engine.ErrIdle] as
// the cause.
package objectcache
