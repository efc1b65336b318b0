// Package apart calls functions of the user's that must not end the goroutine of the
// backend, such as the one that commits the writes of others:
//
//	backend ──▶ Call ──▶ goroutine ──▶ OnError ──▶ panic, runtime.Goexit ──▶ *PanicError
package apart
