// Package etcd keeps versioned objects in an etcd cluster: the backend for programs
// of many processes. Each opens a [Backend] over the same prefix, and an engine over
// that; they see each other's writes, in one order, with the same revisions.
//
//	process 1                               etcd                      process 2
//	engine ─▶ Backend ──Txn: if unchanged──▶ PREFIX/KEY = value ◀──── Backend ◀─ engine
//	  ▲          │ Put, Remove                    │                      │
//	  │          │                          mod revision = Revision      │
//	  │          ▼                                │                      ▼
//	  └── Next ◀─ pending ◀─ goroutine ◀──watch───┴───watch──▶ goroutine ─▶ …
//	            (bounded: broken off and resumed when it is full)
//
// Values are the codec's own bytes, so that etcdctl and programs in other languages
// can read and write them. Only those with a TTL, a seal or another codec tag have a
// short header. Writes of other programs are like any others: several keys of one
// transaction are one revision, and never come in two batches.
//
// A value that cannot be decoded gives a [*backend.UndecodableError]. A key below the
// prefix that cannot name an object is left out, and reported to [Config].OnError.
//
// # Reading and writing
//
// Get, List and Revision are linearizable. A list is read in requests of up to 10,000
// objects at one revision, a prefix "foo" as the key "foo" and the range "foo/".
//
// A write is one request, conditional on the revision of the object that it replaces. If
// the answer does not come, the error is a [*backend.UncertainError]: the write may have
// been done, or may still be done, so read before trying again. After any other error
// nothing was written. That includes a request that never left the process, if the backend
// has made the client.
//
// A linearizable read from an engine's cache costs a read of the cluster's revision and a
// progress request, even if its prefix has no events and the cluster many. For that
// [Backend.Revision] has watches that are behind request progress until they have reached
// the revision.
//
// # Watches
//
// Each watch has a stream and a goroutine of its own. It holds at most [Config].Buffer; etcd
// keeps the history for a reader that stays further behind. The client resumes by itself
// after a cut connection or a restarted member.
//
// A watch ends with [backend.ErrUnavailable] if the member has no leader, or if there is
// nothing new from it for twice [Config].ProgressEvery though the cluster has come further:
// the connection is open and dead, or the member receives no writes. Reflectors then resume
// from its revision, perhaps at another member. If etcd has compacted that, the error is
// [store.ErrExpired], and they list again.
//
// A member sends at most 1,000 revisions each 100 ms to a watch that catches up, some
// 7,000 events a second. A watch that is far behind is up to date sooner if its
// reader lists again: engine.Config.ListWhenBehind has an engine do so.
//
// # Several members
//
// Give the endpoints of all members: the client takes turns at those that are connected. All that
// this package promises holds while any one of three members, or fewer than half of more, is dead,
// cut off from the others, behind them, or replaced by a member without data. No read is of a past
// state, no watch misses or repeats an event when it goes on at another member, and engines keep up
// with the cluster. The members that are left have to be in touch with each other.
//
// A member that is connected, but cut off from the others or behind them, answers no calls. A
// backend that has made a client of at least three endpoints passes over it: if a member has
// answered nothing for a second, or for a tenth of [Config].RequestTimeout if that is shorter, the
// backend asks it for the revision; if there is no answer for as long again, all calls and new
// watches go to the other members until it answers. Reads that wait for it then are made at
// another member. Writes are not: they fail with a [*backend.UncertainError], after
// RequestTimeout at the latest. So such a member delays the calls of its first two seconds alone.
// With a client that was given, or with fewer endpoints, a share of the calls fails until the
// member is back or stopped.
//
// A member that is a learner may be among the endpoints, and is passed over.
//
// # Compaction
//
// Have etcd compact itself (--auto-compaction-retention), and keep no more history than
// watches need to resume. An engine that starts reads all of it before it is ready, unless
// [Config].NoHistory makes it start with the newest state.
//
// etcd's compaction affects the whole cluster. [Backend.Compact] drops the history of its
// own prefix alone: it raises a floor, a key beside the objects (PREFIX!//compacted), which
// all processes respect. It frees no space.
//
// # Caveats
//
//   - Versions: 3.5.13 or newer, or 3.4.31. Older ones report progress past events that
//     they have not sent, and are refused.
//   - Permissions: read and write on the range from PREFIX/ up to PREFIX0, and on the
//     key PREFIX!//compacted.
//   - A TTL is at least what was asked: whole seconds, two at the least with etcd's
//     defaults, up to a second late, and anew whenever the leader changes.
//   - A lease that another program has put a key on does not show in the object, which has no
//     time of expiry. An update keeps the lease, unless it is Permanent and changes the value:
//     with an equal value nothing is written, and the object expires.
//   - Revisions are the cluster's, so those of one prefix have gaps.
//   - An object has at most 1,400 KiB, encoded.
//   - No space: at its quota (2 GiB by default, 8 GiB at most) a member raises an
//     alarm, and the whole cluster stores nothing ([backend.ErrFull]), but for what deletes
//     objects, which still expire, too. That alone does not end the alarm. An operator then
//     has to do three things, in this order: etcdctl compact REVISION; etcdctl defrag,
//     member by member; etcdctl alarm disarm. OnError is called at 80 %, when a backend
//     is opened; [Backend.Info] reports the size at any time.
//   - Defragmentation stops a member for seconds for each GB. Do one member at a time,
//     the leader last. Watches live through it.
//   - Restoring: restore a cluster with --bump-revision and --mark-compacted, so that no
//     old revision comes to mean something else. A restored cluster has another ID. So a
//     backend that stays open fails with a [*ClusterError], which [Backend.Failure] returns, too:
//     make a new one. A write that fails so may have been done in the restored cluster.
//     [Backend.StoreID] tells saved revisions from new ones. If the ID was kept, watches that are further than the
//     cluster end with [store.ErrFuture], as soon as a call reads its revision. Without such
//     a call they get no answers, and end with [backend.ErrUnavailable]; resuming them fails
//     with [store.ErrFuture]. Reflectors list again then.
//   - kine speaks etcd's protocol over SQL databases, and takes only requests of the shapes
//     that this package makes. See the README beside this file for what differs.
package etcd
