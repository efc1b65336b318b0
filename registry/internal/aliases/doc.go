// Package aliases bounds what the aliases of YAML may make of it. An alias repeats a value in three
// bytes. The parser shares what they repeat, and bounds their number, but not the bytes that there are
// once they are written out as JSON.
//
//	YAML ──▶ Check ──▶ parser ──▶ JSON
package aliases
