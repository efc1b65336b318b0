// Package doclinks has a test that resolves every link in the comments of this module's
// packages, such as [strings.Builder.Len], as go doc and pkg.go.dev do. A link that names
// nothing is shown there as text in brackets.
//
//	go list ──▶ packages ──▶ comments ──▶ links ──▶ is there such a symbol?
//
// A link to another package leads there if the package that has the comment imports it, if it is of
// the standard library, or if the link has the whole import path. A link to what a type has by
// embedding leads nowhere, and neither does one to what an alias has: name the type that it stands for.
package doclinks
