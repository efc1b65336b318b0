// Package etcdtest gives tests an etcd to write to, and makes it go wrong.
//
//	Start        an etcd in the test's process, ready in a fraction of a second
//	StartMember  an etcd in a process of its own, to be killed and started again
//	StartProxy   a network before either, to be cut, muted and slowed down
//
//	test ──▶ backend ──▶ Proxy ──▶ Server | Member
//	   └──────────────Client──────────▶ ┘     what others do to the same keys
//
// Everything it starts ends with the test. Importing it compiles the whole of etcd,
// which takes minutes when the build cache is empty; package etcd itself does not.
package etcdtest
