// Package helm runs Helm against a server with the kinds of packages serve/corekinds and serve/apiextensions.
//
//	helm, a process of its own ──HTTP──▶ serve ──▶ Secrets, which have its releases; what a chart installs
//
// The tests run themselves as Helm, whose command is a library. The package is a module of its own, since nothing
// else has to compile Helm. It has only tests.
package helm
