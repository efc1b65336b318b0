// Package answer writes the answers of a server, so that a client which does not read them holds nothing up.
//
//	Write ──┬─ large, and the client takes gzip ──▶ packing ──┐
//	        ├─ events over HTTP/2 ─────────────────▶ gathered ─┤
//	        └─ anything else ──────────────────────────────────┴─▶ parts ──▶ connection
//	                                                                └─ each has the time of a stall to be read
//
// A [Writer] gives the client time for each part, so that a slow client gets all of a large answer, and one that
// reads nothing is cut off. A stream of HTTP/2 that has nothing to send has no deadline: one that passes would end it.
//
// Warnings are headers, which have little room.
package answer
