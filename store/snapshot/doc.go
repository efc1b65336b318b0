// Package snapshot writes the state of versioned storage to an [io.Writer] and reads it
// back, with the objects' revisions, identities and times of expiry.
//
//	backend ──pages of one revision──▶ Write ──lines──▶ io.Writer
//	io.Reader ──lines──▶ Read ──objects──▶ memory.Options.Objects ──▶ a new storage
//
// A snapshot is text, one JSON object a line: a header with the storage's revision, a line for
// each object in the order of the keys, and an end with their number and a checksum. So a snapshot
// that was cut off is refused, and one that was damaged: the checksum, a CRC-32C of the lines
// before it, shows up to 32 wrong bits in a row, and of all other damage all but a part in four
// billion. It is not keyed, and so does not show changes that are made on purpose. A snapshot
// without it, as from another program, is read as it is.
//
//	{"snapshot":1,"revision":7}
//	{"key":"default/web","revision":5,"created":3,"written":"2026-01-01T00:00:00Z","value":{"Name":"web"}}
//	{"end":1,"sum":2575975698}
//
// Values are those of a [codec.Codec], by default JSON. A snapshot has the state and no
// history: a watch of the new storage starts at the state or later.
//
// Where identities are not revisions, as in storage of package remote, an object gets its
// revision as its identity: it differs from those that its key gets later.
//
// The objects keep their revisions, and the new storage begins beyond all of them, by
// default at a revision that is derived from the clock (see memory.Options.FirstRevision).
// So a resume point of the old storage, which may have gone on after the snapshot, is
// refused as expired.
package snapshot
