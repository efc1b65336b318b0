package serve

import (
	"cmp"
	"errors"
	"time"

	"github.com/watchmill/watchmill/usercode"
)

// Audited is a request that is over, refused ones included.
type Audited struct {
	// User is the user that was authenticated, even if it acted as another.
	User User
	// Impersonated is the user that User acted as, nil if it acted as itself, or was not allowed
	// to act as another. See [Config].Impersonation.
	Impersonated *User
	// Request has only its Path if the request could not be parsed.
	Request *Request
	// From is the address of the client, or of a proxy in between, as net/http has it.
	From string
	// Code is the HTTP status.
	Code int
	// Began is when the request arrived, Took how long it was served.
	Began time.Time
	Took  time.Duration
	// End says why a watch ended, for example that a panic has cut it off; nil if it ended at its
	// deadline.
	End error
}

// audit calls the hooks with the request that has ended: Audit even if Metrics ends the goroutine.
func (c *call) audit() {
	if c.cfg.Audit != nil {
		defer c.hook("Config.Audit", func() {
			c.cfg.Audit(c.withUser(c.r.Context()), c.audited())
		})
	}
	if c.cfg.Metrics != nil {
		c.hook("Metrics.Served", func() { c.cfg.Metrics.Served(c.measured()) })
	}
}

// audited returns the call as the audit receives it.
func (c *call) audited() Audited {
	a := Audited{User: c.user, Request: c.req, From: c.r.RemoteAddr, Code: c.w.Code(), Began: c.began, Took: time.Since(c.began)}
	if c.sender != nil {
		a.User, a.Impersonated = *c.sender, &c.user
	}
	if c.watching != nil {
		a.End = c.watching.outcome
		if c.aborted {
			a.End = cmp.Or(a.End, errCutOff)
		}
	}
	return a
}

// errCutOff ends a watch that a panic or runtime.Goexit has cut off.
var errCutOff = errors.New("the watch was cut off by a failure of the server, which is in its log")

// hook calls the hook of that name with what has happened. Its panic is logged: it changes
// neither the answer nor whether other hooks are called.
func (c *call) hook(name string, call func()) {
	if panicked, is := errors.AsType[*usercode.PanicError](usercode.Call(name, "", call)); is {
		c.log.Error("a hook panicked", "hook", name, "path", c.req.Path, "panic", panicked.Value, "stack", string(panicked.Stack))
	}
}
