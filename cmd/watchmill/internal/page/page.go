// Package page serves the page of package inspect for the commands that have the flag --inspect.
package page

import (
	"errors"
	"fmt"
	"net"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/inspect"
)

// Listen serves the page of a host at the address that the flag has. Its errors name the flag, and
// are an [engine.ErrConfig] if it has another value than it may have.
func Listen(addr string, host *engine.Host) (*inspect.Server, error) {
	const fix = "give a loopback address with a port, such as 127.0.0.1:6061"
	shown, err := inspect.Listen(addr, host)
	var address *net.AddrError
	switch {
	case err == nil:
		return shown, nil
	case errors.Is(err, engine.ErrConfig):
		return nil, &engine.ConfigError{Field: "--inspect", Problem: fmt.Sprintf("is %q; %s", addr, fix)}
	case errors.As(err, &address):
		return nil, &engine.ConfigError{Field: "--inspect", Problem: fmt.Sprintf("is %q: %s; %s", addr, address.Err, fix)}
	}
	return nil, fmt.Errorf("--inspect: %w", err)
}
