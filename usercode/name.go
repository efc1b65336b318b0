package usercode

import (
	"path"
	"runtime"
	"strconv"
	"sync"
)

// Name is what a watch, a subscription or a handler is called in errors, logs and
// figures: what the user calls it or, without that, where in the user's code it
// was made. The zero value is not a name.
type Name struct {
	// Given is the user's name for it; empty means Made.
	Given string
	// Made is where it was made.
	Made Place
}

// String returns the name, "unnamed" if there is none.
func (n Name) String() string {
	if n.Given != "" {
		return n.Given
	}
	return n.Made.String()
}

// Place is a place in the user's code: a program counter, which takes 8 bytes and
// is looked up only when it is printed. Zero is none.
type Place uintptr

// Caller returns the place of a call: with skip 0 of the call of Caller itself,
// with 1 of the function's that calls Caller, and so on.
func Caller(skip int) Place {
	var pc [1]uintptr
	runtime.Callers(skip+2, pc[:])
	return Place(pc[0])
}

// places holds the text of each place that was printed: there are at most as many
// as the program has lines.
var places sync.Map

// String returns the place as a folder, a file and a line, such as
// "orders/billing.go:41", or "unnamed" for none.
func (p Place) String() string {
	if p == 0 {
		return "unnamed"
	}
	if text, known := places.Load(p); known {
		return text.(string)
	}
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(p)}).Next()
	dir, file := path.Split(frame.File)
	text := path.Join(path.Base(dir), file) + ":" + strconv.Itoa(frame.Line)
	places.Store(p, text)
	return text
}
