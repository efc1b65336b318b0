// Package patch changes a JSON document by a patch: the operations of RFC 6902, a merge patch of
// RFC 7386, or a strategic merge patch, which a function of the kind merges.
//
//	                    document
//	                        │
//	body ──▶ Operations ┐   ▼
//	         Merge      ├─▶ Patch.Apply ──▶ the patched document
//	         Strategic  ┘
//
// [EncodeMerged] encodes what a merge has made, for server-side apply, too.
//
// Beyond the RFCs it behaves as Kubernetes does, and it refuses what would take too long: the libraries go
// through a list, or the fields of an object, for each operation.
package patch
