package bolt

import (
	"reflect"

	"github.com/watchmill/watchmill/store"
)

// drafted is an object on its way into the file. Staging completes it; if it is not written
// after all, it is the caller's again, as it was.
type drafted struct {
	object *store.Object
	header store.Object  // as the caller gave it
	value  *store.Object // a copy that has the caller's value, nil if staging leaves that alone
}

func (b *Backend) drafted(o *store.Object) drafted {
	d := drafted{object: o, header: *o}
	if b.values.schema.SetRevision != nil {
		d.value = b.values.schema.Clone(o)
	}
	return d
}

// giveBack makes the object what it was. Its type is the user's: only the copy of its
// value needs reflection, and only after a write has failed.
func (d *drafted) giveBack(schema *store.Schema) {
	*d.object = d.header
	if d.value != nil {
		reflect.ValueOf(schema.Pointer(d.object)).Elem().Set(reflect.ValueOf(schema.Pointer(d.value)).Elem())
	}
}
