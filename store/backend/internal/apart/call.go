package apart

import "github.com/watchmill/watchmill/usercode"

// Call is [usercode.Call] in a goroutine of its own. It waits for that. If f ends that, as
// t.FailNow does, the error is a [*usercode.PanicError] with [usercode.ErrGoexit].
func Call(name string, f func()) error {
	done := make(chan error, 1)
	go func() {
		var err error = &usercode.PanicError{Func: name, Value: usercode.ErrGoexit}
		defer func() { done <- err }()
		err = usercode.Call(name, "", f)
	}()
	return <-done
}
