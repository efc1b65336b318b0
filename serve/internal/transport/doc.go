// Package transport is what package serve needs of connections beyond net/http.
//
//	listener ──▶ Limit: at most that many connections of an address ──▶ net/http
//	                                                                     │ Hijack
//	watch over HTTP/1.1 ──events──▶ Taken ──chunks──▶ connection ◀───────┘
//	                                  └─ reads: is the client gone?
//	watch over HTTP/2 ──events──▶ net/http's stream ◀── StreamGuard: breaks it off if the client does not read
package transport
