// Package apiextensions lets clients define kinds while a server serves, as they do in a
// cluster: it serves CustomResourceDefinitions, and with each one that is created the kind that
// it defines. Tools that install definitions, such as kubectl apply and the environments of
// controllers' tests, work on it. So does Helm, if the server has the kind Secret, too, in which
// it keeps its releases: package serve/corekinds, a module of its own, has it.
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
//	err = server.ListenAndServe(ctx, serve.ListenOptions{Address: "127.0.0.1:8080"})
//	err = definitions.Close()
//
// Objects are in memory unless [Config].Storage opens other storage for them. Definitions are
// kept there, too: the kinds come back when the program starts again.
//
// A program that serves kinds from manifests of its own, and lets clients define none, shows the manifests
// by [NewStatic].
//
// # What of a definition is honoured
//
// A definition is honoured as package registry/crd honours a manifest. If it has parts that are
// not honoured, it is accepted, and its writer gets a warning for each. If it breaks the rules, for
// example by a schema that is not structural, it is refused with 422, even where only a cluster
// would refuse it. A definition that is older than a rule can still be changed.
//
// Rules in CEL are evaluated if [Config].Rules is given. If a definition was stored without, its
// rules are not checked anew: where one does not compile, no object can be written.
//
// # Versions
//
// Versions differ in their schemas alone. If a webhook would have to convert them, only the
// storage version is served, and there is a warning for each other one.
//
// A write is pruned, defaulted and validated by the schema of the version that it is written in.
// Objects are stored as the schema of the storage version has them; neither that version nor any
// other need be served. A read sets the defaults of the version in which an object is stored, and
// shows the fields that its own version has.
//
// Managers keep what they own by one version while others write in another. That holds even where
// Kubernetes refuses the apply, since the other version does not have a field.
//
// # What can change
//
// A changed definition replaces its kind as soon as the new one has read its objects. Requests that
// have found the old one are answered by it, for up to a minute; then the watches of its objects end,
// and clients start others. Over storage that takes more than twenty seconds to list, requests get 429
// until the new kind has read its objects. All reads show the objects as the new schema has them at
// once, with its defaults, and without the fields that it does not have.
//
// No object is written for that. So revisions stay, and watches have no events of it. The next
// write of an object, even one that changes nothing, stores it as the new schema has it.
//
// The objects are converted once, when the new kind is opened. One that this changes is in memory
// twice, and so are all objects of a version that is not the storage version. Other selectable fields
// change every object until it is next written with a change or, over storage that lasts, until the program
// starts again.
//
// The group, the plural, the kind and the scope cannot change. A version that objects may be stored in
// need not be served, but stays until it is taken out of status.storedVersions.
//
// # Names
//
// Of two kinds of a group that share a name the first is served. It keeps the name, by its status,
// until its definition goes or has other names. The condition NamesAccepted of the other one says
// why it is not served. A definition that shares a name with one of the program's own kinds is served
// within ten seconds after that was removed from the server.
//
// # Deletion
//
// With a definition all objects of its kind are deleted, and none can be created any more. The
// definition stays, with the condition Terminating, until the objects with finalizers are gone.
// Without its own finalizer it goes at once, and the objects stay in storage that lasts, as in a
// cluster. While many objects are deleted, other definitions have their turn about every second.
//
// A file keeps the name and the last revision of a kind that is gone, some hundred bytes. If the
// kind is defined again its revisions go on, and a watch from before is refused as expired. Shared
// storage, as in etcd, keeps the history for as long as that of other kinds.
//
// # Several servers
//
// Servers may share storage. Each serves the kinds that any of them was given, a moment after the
// first server has said so in the definition's status. A definition that is deleted stays for two
// seconds, in which the others learn that no objects are to be created any more. It may go at once if
// the server that deletes its objects cannot serve the kind.
//
// Servers can disagree about a definition, if they are of two releases or have other kinds of their
// own. Then they change its status every ten seconds.
//
// # Security
//
// Permit only clients that are trusted with the server's time and memory to write definitions. A pattern of a
// schema may take long for a large text, and nothing stops that. The validation library keeps each pattern that
// it has met. Definitions are served in turn, so that a large one makes others wait for seconds.
//
// # Concurrency
//
// All methods are safe for concurrent use.
package apiextensions
