// Package fielderrors bounds the errors of an object that are told. An answer has each of them
// twice. Its text, as the validation library's list of them, takes time by the square of their
// number: for the errors of all the fields that a body has room for it would take hours. And each may
// have a large part of the object as the value that is wrong.
//
//	validation ──▶ errors ──▶ First ──▶ the first Most, shortened, and that there are more
package fielderrors
