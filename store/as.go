package store

import "unsafe"

// As returns the whole of which o is the header: P is a struct that begins with
// the fields of [Object], in their order, and o points to the beginning of one.
// A nil o gives nil.
//
// It is the only unsafe code below the façade, and buys this: the core handles
// headers alone, so it has no type parameter and is compiled once; the value
// lies in the same allocation as its header, so a write allocates once; and
// readers get typed fields without a look-up. What makes it sound is that all
// objects of one storage come from one [Schema], whose New and Clone make a P
// each, and that a pointer to a struct's first field keeps the whole struct
// alive. The tests run with -race, which turns on the compiler's checkptr.
func As[P any](o *Object) *P { return (*P)(unsafe.Pointer(o)) }
