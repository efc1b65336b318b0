// Package access tells clients which user they are and what they may do, by the kinds that Kubernetes
// has for it:
//
//	SelfSubjectReview         the user of the request                    kubectl auth whoami
//	SelfSubjectAccessReview   whether the user may do something          kubectl auth can-i, consoles
//	SelfSubjectRulesReview    all that the user may do in a namespace    kubectl auth can-i --list, consoles
//	SubjectAccessReview       whether any user may do something          servers that ask this one
//	LocalSubjectAccessReview  the same in the namespace of the review    users with rights in one namespace
//	TokenReview               the user that has a token                  servers that ask this one
//
// Nothing is stored. The answers are those of the functions that the server itself asks:
//
//	client ──review──▶ serve ──▶ access ──▶ Config.Authorize, Rules, Authenticate
//	       ◀─────────── the review with its status ◀───────────┘
//
// [Config].Rules lists all that a user may do, since a function that decides does not list what it
// allows. Without it the list is empty, and says that it is incomplete.
//
// A server has the kinds only if it is given them, since discovery lists them, and TokenReview and SubjectAccessReview
// tell of other users:
//
//	reviews, err := access.New(access.Config{Authorize: authorize})
//	server, err := serve.New(serve.Config{Resources: []serve.Provider{widgets, reviews}, Authorize: authorize})
//
// The server's own Authorize also decides which users may ask. Allow all users to create the reviews
// of themselves ([AsksAboutItself]), and only servers to create those of others. A request that impersonates a user, by
// kubectl --as, counts as that user's: kubectl auth can-i --as says what another user may do.
//
// Clients send reviews in JSON or, as typed clients of Kubernetes do, in its protobuf. Answers are JSON.
package access
