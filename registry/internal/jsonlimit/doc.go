// Package jsonlimit refuses JSON that would take a parser too long, before it is parsed. A body has room
// for a million brackets that nest, and for a few long names with many fields below them, whose paths the
// parser puts together.
//
//	JSON ──▶ Check ──▶ parser
//	YAML ────────────▶ parser ──▶ TooDeep
//
// Text that is not JSON is left to the parser to refuse. [Longest] measures JSON that has been checked, for what
// takes longer the longer its lists are.
package jsonlimit
