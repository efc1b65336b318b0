package usercode_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleCall() {
	labels := func() { panic("no labels today") }
	err := usercode.Call("Config.Labels", "default/web-1", labels)
	fmt.Println(err)
	fmt.Println(errors.Is(err, usercode.ErrPanic))
	// Output:
	// Config.Labels panicked for "default/web-1": no labels today
	// true
}

func ExampleEach() {
	report := func(err string) {
		fmt.Println(err)
		if err == "disk is full" {
			panic("the logger needs it")
		}
	}
	fmt.Println(usercode.Call("Config.OnError", "", func() {
		usercode.Each([]string{"disk is full", "watch is slow"}, report)
	}))
	// Output:
	// disk is full
	// watch is slow
	// Config.OnError panicked: the logger needs it
}

func ExampleFirstError() {
	limits := map[string]int{"Writes": -1, "Watches": -1, "Reads": 10}
	var wrong usercode.FirstError
	for name, n := range limits {
		if n < 0 {
			wrong.Add(name, &usercode.ConfigError{Field: "Limits." + name, Problem: "is negative; zero means the default"})
		}
	}
	fmt.Println(wrong.Err())
	// Output: invalid configuration: Limits.Watches is negative; zero means the default
}

func ExampleConfigError() {
	err := error(&usercode.ConfigError{Field: "WatchOptions.Buffer", Problem: "is negative; zero means the default"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, usercode.ErrConfig))
	// Output:
	// invalid configuration: WatchOptions.Buffer is negative; zero means the default
	// true
}

func TestCall_ReturnsNilWithoutPanic(t *testing.T) {
	ran := false
	require.NoError(t, usercode.Call("f", "", func() { ran = true }))
	require.True(t, ran)
}

func TestCall_KeepsThePanicsValueAndStack(t *testing.T) {
	err := usercode.Call("f", "k", func() { panic(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)) })
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a panic with an error can be matched")
	require.Contains(t, string(panicked.Stack), "usercode_test.go")
}

func TestPanicError_SaysWhatItWasCalledFor(t *testing.T) {
	for want, e := range map[string]usercode.PanicError{
		`handler panicked for "a" at revision 7: boom`: {Func: "handler", Key: "a", Revision: 7, Value: "boom"},
		`handler panicked at revision 7: boom`:         {Func: "handler", Revision: 7, Value: "boom"},
		`handler panicked: boom`:                       {Func: "handler", Value: "boom"},
	} {
		require.EqualError(t, &e, want)
	}
	require.NoError(t, errors.Unwrap(&usercode.PanicError{Value: "text"}))
}

// An interface that holds a nil pointer does not equal nil.
func ExampleIsNil() {
	var none *strings.Reader
	for _, source := range []io.Reader{nil, none, strings.NewReader("")} {
		fmt.Println(source == nil, usercode.IsNil(source))
	}
	// Output:
	// true true
	// false true
	// false false
}
