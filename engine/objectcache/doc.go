// Package objectcache is a cache of single objects, for programs that know the
// keys of what they need and do not want all the rest: as the kubelet needs the
// secrets of its pods. Each key that has a reference is followed by a Reflector of
// its own.
//
//	secrets, err := objectcache.New(objectcache.Config[Secret]{Source: engine.Source()})
//	ref, err := secrets.Acquire("default/token")    // begins to follow the object
//	defer ref.Release()                             // the last release stops
//	object, err := ref.Get(ctx)                     // the newest state
//
// # The way of one object
//
//	                              start, stop
//	Acquire, Release ─recheck─▶ supervisor ───▶ Reflector ◀──List, Watch of one key── Source
//	                               ▲                │ Offer
//	   clock ──idle────────────────┘                ▼
//	                                              sink ──▶ entry: immutable view
//	                                                          ▲ one atomic load
//	                                                      Ref.Get
//
// An entry is one key: its references and what is known of its object. The
// supervisor is the one actor that starts and stops Reflectors. Its messages only
// name an entry; it compares what the entry needs with what runs. So the order in
// which references come and go meanwhile makes no difference. There are never two
// Reflectors for one key, not even while one of them is stopping.
//
// # When an object is followed
//
// While it has references; except that
//
//   - an object that [Config].Immutable says will never change is not followed
//     any more, but still served. If it is deleted nevertheless, and even created
//     again, the cache does not notice until all references are released.
//   - an object that has arrived and was not read for [Config].MaxIdle is not
//     followed until the next Get, which waits for a new list. An object that has
//     not arrived is never idle.
//   - a source that cannot be followed any more, as when it was closed, is not asked
//     again until the next Get.
//
// # Reading
//
// [Ref.Get] returns the newest state that has arrived: one atomic load, no lock
// and no allocation. While the object has not arrived it waits, on a signal, for
// as long as its context allows, and then says what the source's last error was.
// While the source is out of reach, what had arrived is served.
//
// # One stream for all
//
// Each key is a watch of the source. Where watches are expensive, put an engine
// between: its [engine.Engine.Source] serves any number of them from its window,
// which one stream feeds. A write then wakes the Reflector of its own key, however
// many others there are.
//
// # Caveats
//
// A key is followed as a prefix, by whole segments. So if there are keys below
// it, such as "a/b" below "a", they are transferred, too, and ignored.
//
// A cache on a deterministic host runs it while Get and Close wait. If nothing is
// left to run, because the source fails until time has passed, Get gives up with
// [engine.ErrIdle] as the cause.
package objectcache
