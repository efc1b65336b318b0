package backend

import (
	"fmt"
	"runtime/debug"

	"github.com/watchmill/watchmill/store"
)

// Contain calls f, which runs code of the user's on behalf of the object under
// key, and returns a panic in it as a [*PanicError]. what names the code, as in
// "UpdateFunc". It does not contain [runtime.Goexit].
func Contain(what, key string, f func()) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			cause, _ := reason.(error)
			err = &PanicError{Func: what, Key: key, Reason: fmt.Sprint(reason), Cause: cause, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// Describe fills o's labels and fields from its value, with panics of the
// schema's functions returned as a [*PanicError].
func Describe(schema *store.Schema, o *store.Object) error {
	return Contain("Schema.Labels or Schema.Fields", o.Key, func() { schema.Describe(o) })
}

// Measure returns the bytes that o's value holds by the schema, with panics
// returned as a [*PanicError].
func Measure(schema *store.Schema, o *store.Object) (size int, err error) {
	err = Contain("Schema.Size", o.Key, func() { size = schema.Size(o) })
	return size, err
}
