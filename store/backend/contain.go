package backend

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Describe fills o's labels and fields from its value, with panics of the
// schema's functions returned as a [*usercode.PanicError].
func Describe(schema *store.Schema, o *store.Object) error {
	return usercode.Call("Schema.Labels or Schema.Fields", o.Key, func() { schema.Describe(o) })
}

// Measure returns the bytes that o's value holds by the schema, with panics
// returned as a [*usercode.PanicError].
func Measure(schema *store.Schema, o *store.Object) (size int, err error) {
	err = usercode.Call("Schema.Size", o.Key, func() { size = schema.Size(o) })
	return size, err
}
