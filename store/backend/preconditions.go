package backend

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Preconditions say which object a caller means. The zero value means whatever
// has the key.
type Preconditions struct {
	// UID is the revision at which the object was created
	// ([store.Object.Created]): with the key, it is the object's identity. Zero
	// means any.
	UID store.Revision
	// Revision is the revision that the object must be at. Zero means any.
	Revision store.Revision
	// Absent: there must be no object under the key, so that an update creates it.
	// The other preconditions must be zero then. A deletion refuses it.
	Absent bool
}

func (p Preconditions) validate() error {
	if p.Absent && (p.UID != 0 || p.Revision != 0) {
		return &usercode.ConfigError{Field: "Preconditions.Absent", Problem: "is set beside UID or Revision, which no absent object has; give one of them"}
	}
	return nil
}

// checkPreconditions returns a [*store.PreconditionError] unless o, which is nil if there is
// no object under key, is the one meant.
func checkPreconditions(p Preconditions, key string, o *store.Object) error {
	var uid, revision store.Revision
	if o != nil {
		uid, revision = o.Created, o.Revision
	}
	switch {
	case p.Absent && o != nil:
		return &store.PreconditionError{Key: key, Field: "Absent", Got: revision}
	case p.UID != 0 && p.UID != uid:
		return &store.PreconditionError{Key: key, Field: "UID", Want: p.UID, Got: uid}
	case p.Revision != 0 && p.Revision != revision:
		return &store.PreconditionError{Key: key, Field: "Revision", Want: p.Revision, Got: revision}
	}
	return nil
}
