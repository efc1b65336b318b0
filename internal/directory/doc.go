// Package directory finds the names by which files are replaced, and makes them durable:
//
//	Followed ──▶ write, sync and rename a file to that ──▶ Sync of its directory ──▶ it is there after a power cut
//
// Some file systems cannot sync a directory, and refuse it: CIFS before Linux 4.17, many in
// user space, those of some hosts of containers. [Sync] takes that as done, as PostgreSQL
// does, where etcd and pebble fail: a program can do no more there, and network file
// systems change names on the server at once. An error of the disk is not such a refusal.
package directory
