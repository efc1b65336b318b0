// Package access tells clients which user they are and what they may do, by the kinds that Kubernetes
// has for it:
//
//	SelfSubjectReview        the user of the request           kubectl auth whoami
//	SelfSubjectAccessReview  what the user may do              kubectl auth can-i, consoles
//	SubjectAccessReview      what any user may do              servers that ask this one
//	TokenReview              the user that has a token         servers that ask this one
//
// Nothing is stored. The answers are those of the functions that the server itself asks:
//
//	client ──review──▶ serve ──▶ access ──▶ Config.Authorize, Config.Authenticate
//	       ◀─────────── the review with its status ◀───────────┘
//
// The server's own Authorize decides, too, which users may ask: allow all to create the reviews of themselves, and
// servers alone to create subjectaccessreviews and tokenreviews.
//
// The package is a module of its own, since Kubernetes' API types weigh more than all
// that a server needs beside them.
package access
