// Package status turns errors into the answers of the Kubernetes API protocol, each a
// metav1.Status, and writes them.
//
//	error ──▶ ErrorOf: the first of these that knows the error
//	             │  storage that has ended for good           503
//	             │  an error that is a Status already          its own
//	             │  the refusal of an admitter                 403
//	             │  a write that may have been done            500, 504
//	             │  the object: not found, conflict, invalid   404, 409, 422
//	             │  what the client asked for                  400, 405, 413, 422
//	             │  revisions, and the cache                   410, 429, 504
//	             │  anything else                              500, 504
//	             ▼
//	           Of: complete, with texts of bounded length ──▶ Write
//
// The order matters, since an error may match several: a write that may have been done is not
// a conflict, whatever storage has answered first. A Status says by RetryAfterSeconds whether the
// client is to send the request again.
package status
