// Package content makes the objects that a load writes.
//
//	scenario.Objects, seed ──▶ Maker ──Object, File──▶ Item ──▶ engine
//	                                                     └─ Attributes: shared by all that have the same
package content
