// Package content makes the objects that a load writes.
//
//	scenario.Objects, seed ──▶ Maker ──Object, File──▶ Item ──▶ engine
//	                                                     └─ Attributes: equal ones are shared
package content
