// Package apiextensions lets clients define kinds while a server serves, as they do in a
// cluster: it serves CustomResourceDefinitions, and with each one that is created the kind that
// it defines. Tools that install definitions, such as kubectl apply, Helm and the environments
// of controllers' tests, work on it.
//
//	kubectl apply -f widgets-crd.yaml
//	      │  a definition, checked as package registry/crd checks manifests
//	      ▼
//	 Definitions.Resources ──▶ engine of definitions ──▶ controller, one definition at a time
//	                                                        │
//	   names of another kind? ─▶ condition NamesAccepted ◀──┤
//	   new or changed: Storage ─▶ registry.Store ───────────┼─▶ Server.Add, Server.Replace ─▶ Established
//	   deleted: condition Terminating, delete its objects ──┴─▶ Server.Remove ─▶ the definition goes
//
// # Usage
//
//	definitions, err := apiextensions.New(ctx, apiextensions.Config{})
//	server, err := serve.New(serve.Config{Resources: []serve.Provider{definitions}})
//	err = definitions.Start(ctx, server)
//	err = server.ListenAndServe(ctx, serve.Listen{Address: "127.0.0.1:8080"})
//	err = definitions.Close()
//
// Objects are in memory unless [Config].Storage opens other storage for them. Definitions are
// kept there, too: the kinds come back when the program starts again.
//
// # What of a definition is honoured
//
// What package registry/crd honours, in all versions that are served without conversion. Each
// version prunes, defaults and validates what is written by its own schema, and objects are stored
// as the schema of the storage version has them. That need not be served, nor need any other. Reads
// set the defaults of the version in which an object is stored, and show the fields that their own
// version has. Managers keep what they own by one version while others write in another, also where
// Kubernetes refuses the apply, since the other version does not have a field. A definition with parts
// that are not honoured is accepted, and its writer gets a warning for each. One that breaks the rules
// is refused with 422, also where only a cluster would refuse it: its schema is not structural, for
// example. A definition that is older than a rule can be changed.
//
// Rules in CEL are evaluated if [Config].Rules is given. Those of a definition that was stored
// without are not checked anew: where one does not compile, no object can be written.
//
// # What can change
//
// A changed definition replaces its kind: the watches of its objects end, and clients start
// others. All reads show the objects as the new schema has them at once: with its defaults, and
// without the fields that it has no more. No object is written for that, so revisions stay, and
// watches have no events of it; the next write of an object stores it so, also one that changes
// nothing. The objects are converted once, when the new kind is opened; one that has changed by that
// is in memory twice, as are all objects of a version that is not the storage version. Fixed are the
// group, the plural, the kind, the scope and, since storage knows the objects by them, the
// selectable fields. A version that objects may be stored in need not be served, but stays until it is
// taken out of status.storedVersions.
//
// # Names
//
// Of two kinds of a group that share a name the first is served. The name stays its own, by its
// status, until its definition goes or has other names. The condition NamesAccepted of the other
// one says why it is not served.
//
// # Deletion
//
// With a definition all objects of its kind are deleted. It stays, with the condition
// Terminating, until those with finalizers are gone. No objects are created any more. Without its
// finalizer a definition goes at once, and its objects stay in storage that lasts, as in a cluster.
//
// Of a kind that is gone a file keeps the name and the last revision, some hundred bytes: if it
// is defined again its revisions go on, and a watch from before is refused as expired. Shared
// storage, as in etcd, keeps the history for as long as that of other kinds.
//
// # Several servers
//
// Servers may share storage: each serves what any of them has been told to, a moment after
// the first that says so in the definition's status. A definition that is deleted stays for two
// seconds, in which the others learn that no objects are to be created any more. Servers that
// disagree about a definition, since they are of two releases or have other kinds of their own,
// change its status every ten seconds.
//
// # Concurrency
//
// All methods are safe for concurrent use.
package apiextensions
