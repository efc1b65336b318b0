package usercode

import (
	"errors"
	"reflect"
)

// ErrConfig: a setting or an option is wrong. The error is a [*ConfigError].
var ErrConfig = errors.New("invalid configuration")

// ConfigError says which setting is wrong and what would be right.
type ConfigError struct {
	// Field is the setting, or the argument of a call. Settings of a Config have their name
	// alone, as in "Window", others the struct that they are in, too, as in
	// "ErrorPolicy.Attempts".
	Field string
	// Problem is what is wrong with it and what to write instead. It continues the
	// sentence that starts with Field: "is negative; zero means 3 s".
	Problem string
}

// Error returns the field and the problem.
func (e *ConfigError) Error() string { return "invalid configuration: " + e.Field + " " + e.Problem }

// Is makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// FirstError is the error of the first name in alphabetical order, whatever the order in
// which names are checked. So of several errors in a map the same one is returned each
// time. The zero value has none.
type FirstError struct {
	name string
	err  error
}

// Add adds what is wrong with a name; nil means nothing.
func (f *FirstError) Add(name string, err error) {
	if err != nil && (f.err == nil || name < f.name) {
		f.name, f.err = name, err
	}
}

// Err returns the error, nil if nothing is wrong.
func (f *FirstError) Err() error { return f.err }

// IsNil reports whether a value of an interface is nil, or a nil pointer, such as the result beside the
// error of a call that has failed.
func IsNil[T any](value T) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
