// Package kinetest starts kine, which speaks etcd's protocol over SQL databases, so that
// package etcd can be tested on it. It is a module of its own, because kine brings many
// others with it.
//
//	test ──▶ backend ──▶ kine, a process ──▶ SQLite, a file
//
// SQLite is configured to keep acknowledged writes through a power failure; with kine's
// defaults it may lose them. Building it takes a C compiler, or CGO_ENABLED=0, and minutes
// the first time.
package kinetest
