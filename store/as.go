package store

import "unsafe"

// This file has all the unsafe code of the project, except for reading the sizes
// of values and comparing addresses. With it, the core handles only headers of
// type [Object], has no type parameter and is compiled once; a value shares the
// allocation of its header; and the typed façade returns the core's own objects
// and slices without copying.
//
// It is sound because:
//
//   - A whole P is a struct that begins with the fields of Object, in their
//     order, so both have the same address, and a pointer to one keeps the other
//     alive. The façade's types prove that with constant expressions which do not
//     compile otherwise.
//   - All objects of one storage come from one [Schema], whose New and Clone make
//     a P each. The façade never passes in a header of another storage, and refuses
//     a storage whose schema has another Type.
//   - The tests run with -race, which turns on the compiler's checkptr.

// As returns the whole of which o is the header. A nil o gives nil.
func As[P any](o *Object) *P { return (*P)(unsafe.Pointer(o)) }

// Header returns the header of the whole that p points to.
func Header[P any](p *P) *Object { return (*Object)(unsafe.Pointer(p)) }

// AsObjects returns the same slice as one of wholes.
func AsObjects[P any](objects []*Object) []*P {
	return unsafe.Slice((**P)(unsafe.Pointer(unsafe.SliceData(objects))), len(objects))
}

// AsEvents returns the same slice as one of E, a struct that has the fields of
// [Event] with pointers to wholes in place of pointers to headers.
func AsEvents[E any](events []Event) []E {
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(events))), len(events))
}

// Headers returns the same slice as one of headers: the inverse of [AsObjects].
func Headers[P any](wholes []*P) []*Object {
	return unsafe.Slice((**Object)(unsafe.Pointer(unsafe.SliceData(wholes))), len(wholes))
}

// EventHeaders returns the same slice as one of events with headers: the inverse
// of [AsEvents].
func EventHeaders[E any](events []E) []Event {
	return unsafe.Slice((*Event)(unsafe.Pointer(unsafe.SliceData(events))), len(events))
}
