// Package corekinds has the kinds of Kubernetes itself that most of its programs need beside their own: ConfigMaps,
// Secrets, Events, Leases and Namespaces. With them Helm, leader election, recorders of events, and kubectl create
// namespace work on a server of package serve.
//
//	                ┌─ configmaps, secrets, leases ──▶ a store each
//	client ──▶ serve ─ events of both groups ────────▶ two stores of the same objects, which expire
//	                └─ namespaces ───────────────────▶ a store ──▶ controller ──▶ deletes the objects of all kinds
//
// # Usage
//
//	kinds, err := corekinds.New(ctx, corekinds.Config{})
//	server, err := serve.New(serve.Config{Resources: []serve.Provider{kinds, widgets}})
//	err = kinds.Start(ctx, server)
//	err = server.ListenAndServe(ctx, serve.ListenOptions{Address: "127.0.0.1:8080"})
//	err = kinds.Close()
//
// Objects are in memory unless [Config].Storage opens other storage for them. Leases need durable storage: package
// serve/lease says why. A program that needs no more than one of the kinds opens a store of [ConfigMap] or [Secret], or
// of package serve/lease.
//
// The rules, defaults, fields for selectors, columns of tables, and the texts of kubectl explain are Kubernetes'. Clients may send JSON and
// protobuf, and all four kinds of patches. Answers are JSON, as always.
//
// # Secrets
//
// Secrets are stored as readable as all else, as in a cluster that does not encrypt them. Config.Storage may
// encrypt, with a codec of package store/codec.
//
// # Events
//
// As in Kubernetes, an event that one group has is in the other one, too, in the form of that. So kubectl get events,
// which reads core/v1, shows what recorders write to events.k8s.io/v1. Each group has its own rules: those of the
// newer one are stricter. What a manager owns by writes in one group it owns in the other one, too. An event expires
// [Config].EventTTL after its last change.
//
// Fields that events do not have are dropped without a warning.
//
// # Namespaces
//
// The deletion of a namespace marks it, with the phase Terminating. A controller then deletes the objects that are in
// it, of all kinds of the server that can be deleted, and lets it go once they are gone. That goes on after a restart
// of the program. Objects with finalizers keep the namespace, and so do those that an admitter refuses to delete: the
// conditions in the namespace's status say how many are left, and with which finalizers. It is looked at again after a
// pause that grows to half a minute, and a second after an object of a kind with the admitter below loses its last
// finalizer. The namespaces default, kube-system and kube-public are made by Start and cannot be deleted.
//
// In a namespace that is being deleted nothing can be created, if [Kinds.Admit] is an admitter of the kind; those of
// this package have it. The namespace stays for two seconds at least, for writes that have passed it before.
//
// A namespace need not exist, unlike in Kubernetes: objects may be created in any. So a server of before keeps
// its objects, and those that are in a namespace without a Namespace stay where they are.
//
// Other finalizers in the spec of a namespace keep it, too. Clients take theirs out by the subresource finalize, which
// a replica passes on, too.
//
// # Several servers
//
// Servers may share storage. Each deletes the objects of the kinds that it serves itself, so serve the same ones with
// all: what lets the namespace go is the first to find none left. The status of a namespace says what the last server
// has found that wrote it. A server repeats what another one has replaced after ten minutes, and writes other texts of the
// same conditions at most once in half a minute.
//
// # Concurrency
//
// All methods are safe for concurrent use.
//
// The package is a module of its own, since Kubernetes' API types weigh more than all the rest that a server
// needs.
package corekinds
