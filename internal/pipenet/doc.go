// Package pipenet is a network in memory: in a bubble of testing/synctest, servers and clients that
// are connected by it run in virtual time.
//
//	client ── Dial ──▶ net.Pipe ──▶ Accept ── http.Server
package pipenet
