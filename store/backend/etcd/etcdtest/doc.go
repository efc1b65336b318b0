// Package etcdtest starts etcd for tests, and makes it and its network fail.
//
//	Start         an etcd in the test's process, ready in a fraction of a second
//	StartMember   an etcd in a process of its own, to be killed and started again
//	StartCluster  several of them, to be cut off from each other, held back and replaced
//	StartProxy    a network before either, to be cut, muted and slowed down
//
//	test ──▶ backend ──▶ Proxy ──▶ Server | Member
//	   └──────────────Client──────────▶ ┘     what other programs do to the same keys
//
// Everything it starts ends with the test. Importing it compiles the whole of etcd,
// which takes minutes when the build cache is empty; package etcd itself does not.
package etcdtest
