// Package objectcache is a cache of single objects for those who know by name
// what they need, and do not want all the rest: as the kubelet needs the secrets
// of its pods. Each key that somebody has a reference to is followed by a
// Reflector of its own.
//
//	secrets, err := objectcache.New(objectcache.Config[Secret]{Source: engine.Source()})
//	ref, err := secrets.Acquire("default/token")    // begins to follow it
//	defer ref.Release()                             // the last one stops
//	object, err := ref.Get(ctx)                     // the newest state
//
// # The way of one object
//
//	                          start, stop
//	Acquire, Release ─look─▶ keeper ──────▶ Reflector ◀──List, Watch of one key── Source
//	                           ▲                │ Offer
//	   clock ──due─────────────┘                ▼
//	                                          feed ──▶ entry: immutable view
//	                                                      ▲ one atomic load
//	                                                  Ref.Get
//
// An entry is one key: its references and what is known of its object. The
// keeper is the one actor that starts and stops Reflectors. It is only told where
// to look, and makes what runs what is needed: so it makes no difference in which
// order references come and go meanwhile. There are never two Reflectors for one
// key, not even while one of them is stopping.
//
// # When an object is followed
//
// While it has references; except that
//
//   - an object that [Config].Immutable says will never change is not followed
//     any more, but served on. If it is deleted nevertheless, and even created
//     again, nobody hears of it until all references are released.
//   - an object that has arrived and was not read for [Config].MaxIdle is not
//     followed until the next Get, which waits for a new list. One that has not
//     arrived is never idle.
//   - a source that is out of reach for good, as when it was closed, is not asked
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
// Each key is a watch of the source. Where watches are dear, put an engine
// between: its [engine.Engine.Source] serves any number of them from its window,
// which one stream feeds. A write then wakes the Reflector of its own key, however
// many others there are.
//
// # Caveats
//
// A key is followed as a prefix, by whole segments. So if there are keys below
// it, such as "a/b" below "a", they are transferred, too, and left out.
//
// A cache on a deterministic host runs it while Get and Close wait. If nothing is
// left to run, because the source fails until time has passed, Get gives up with
// [engine.ErrIdle] as the cause.
//
// # What of the kubelet's caches does not apply
//
// Tests carry the numbers of the rows in our map of the original's tests
// (TestClientRow182 and so on). These have none, where parentheses name a part of
// a row whose rest is tested:
//
//   - 188: a store that fetches on Get what is older than a TTL, which nodes are
//     annotated with. A Reflector that stops when idle bounds what the store's
//     clients cost the server, too, and what it serves is never stale.
//   - 189 (invalidation by a new reference or by time): that is of the store with
//     a TTL. What is followed needs no invalidation.
package objectcache
