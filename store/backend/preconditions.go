package backend

import "github.com/watchmill/watchmill/store"

// Preconditions say which object a caller means. The zero value means whatever
// has the key.
type Preconditions struct {
	// UID is the revision at which the object was created
	// ([store.Object.Created]): with the key, it is the object's identity. Zero
	// means any.
	UID store.Revision
	// Revision is the revision that the object must be at. Zero means any.
	Revision store.Revision
}

// checkPreconditions returns a [*store.PreconditionError] unless o, which is nil if there is
// no object under key, is the one meant.
func checkPreconditions(p Preconditions, key string, o *store.Object) error {
	var uid, revision store.Revision
	if o != nil {
		uid, revision = o.Created, o.Revision
	}
	switch {
	case p.UID != 0 && p.UID != uid:
		return &store.PreconditionError{Key: key, Field: "UID", Want: p.UID, Got: uid}
	case p.Revision != 0 && p.Revision != revision:
		return &store.PreconditionError{Key: key, Field: "Revision", Want: p.Revision, Got: revision}
	}
	return nil
}
