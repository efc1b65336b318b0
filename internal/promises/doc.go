// Package promises has a test that every interface which a program may implement says whether it
// may gain methods, and that one which may cannot be implemented except by embedding: what is
// embedded has the new methods, too.
//
//	go list ──▶ exported interfaces ──▶ what the comment says ──▶ does the interface keep it?
//
// An interface of one method keeps that one, and need not say so. Neither need a constraint of type
// parameters.
package promises
