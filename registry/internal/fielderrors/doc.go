// Package fielderrors bounds the errors of an object that are reported. An answer has each of them
// twice. Making its text, like making the validation library's list of them, takes time that grows
// with the square of their number: hours for the errors of all the fields that a body has room for.
// And each may have a large part of the object as its value.
//
//	validation ──▶ errors ──▶ First ──▶ the first Most, shortened, and that there are more
package fielderrors
