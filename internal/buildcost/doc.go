// Package buildcost holds down what an engine costs its users' compiler and
// binaries.
//
//	facades  mentions each generic type and each backend: of the generic code that is compiled
//	         with it, all is that of façades
//	bare     protoactor's actor, apimachinery's labels and fields: what an engine stands on
//	one      the same and an Engine[Pod] that is watched: at most 75 kB of machine code compiled
//	two      a second type ┐ each at most 60 kB of machine code compiled,
//	three    a third type  ┘ and 150 kB of binary
//
// A generic type that can be reached from a façade is compiled with each user's package, with
// all its methods. It is reached by a field of a type, by the signature of a method, or by the
// body of a function that the compiler inlines. So façades have an interface for their core.
//
// The benchmark builds the last four again with one line changed, and reports the CPU time of
// whole builds:
//
//	go test -run '^$' -bench . ./internal/buildcost
package buildcost
