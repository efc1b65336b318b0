// Package buildcost holds down what an engine costs its users' compiler and
// binaries. Its programs mention an engine of no, one, two and three types; its
// test builds them again and again with one line changed, and compares.
//
//	bare   protoactor's actor, apimachinery's labels and fields: what an engine stands on
//	one    the same and an Engine[Pod] that is watched: at most 1.5 times the CPU of bare
//	two    a second type ┐ each at most 150 kB of binary
//	three  a third type  ┘ and some tenths of a second of CPU
package buildcost
